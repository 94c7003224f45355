/*
 * Decoding of send and receive WQEs. Data segments of no bytes are left out of the list: no
 * byte of theirs is ever touched.
 */
#include "nic/wqe_fetch/decode.h"

#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "hw/gen/rnic_hw.h"
#include "sim/buffer.h"

unsigned rn_wqe_send_wqebbs(const uint8_t *data, uint32_t qpn, uint16_t idx)
{
	struct rn_hw_wqe_ctrl ctrl;

	memcpy(&ctrl, data, sizeof(ctrl));
	unsigned segments = ctrl.qpn_ds & 0xff;

	if (ctrl.wqe_idx != idx || ctrl.qpn_ds >> 8 != qpn || !segments ||
	    segments > RN_WQE_MAX_SEGMENTS)
		return 0;
	return (unsigned)rn_div_ceil(segments * RN_WQE_SEGMENT_BYTES, RN_WQEBB_BYTES);
}

void rn_wqe_make_nop(struct rn_wqe *wqe)
{
	wqe->raddr = 0;
	wqe->total_bytes = 0;
	wqe->rkey = 0;
	wqe->imm_be = 0;
	wqe->inline_buf = RN_BUFFER_NONE;
	wqe->wqebbs = 1;
	wqe->opcode = RN_WQE_NOP;
	wqe->flags = 0;
	wqe->sge_count = 0;
	wqe->valid = 1;
	wqe->reserved = 0;
}

/* Append the data segment at @data; false when it is too long or there are too many. */
static bool add_sge(struct rn_wqe *wqe, const uint8_t *data)
{
	struct rn_hw_wqe_data segment;

	memcpy(&segment, data, sizeof(segment));
	if (segment.bytes > RN_MAX_MESSAGE_BYTES)
		return false;
	if (!segment.bytes)
		return true;
	if (wqe->sge_count == RN_WQE_MAX_SGE)
		return false;
	wqe->sge[wqe->sge_count++] =
		(struct rn_sge){.va = segment.va, .bytes = segment.bytes, .lkey = segment.lkey};
	wqe->total_bytes += segment.bytes;
	return true;
}

/* Inline data in @segments segments at @data; NULL when its length does not fit them. */
static const uint8_t *decode_inline(const uint8_t *data, unsigned segments, struct rn_wqe *wqe)
{
	struct rn_hw_wqe_inline header;

	if (!segments)
		return NULL;
	memcpy(&header, data, sizeof(header));
	if (header.bytes > RN_WQE_MAX_INLINE ||
	    header.bytes + sizeof(header) > segments * RN_WQE_SEGMENT_BYTES)
		return NULL;
	wqe->total_bytes = header.bytes;
	return data + sizeof(header);
}

static bool decode_raddr(const uint8_t *data, unsigned segments, struct rn_wqe *wqe)
{
	struct rn_hw_wqe_raddr raddr;

	if (!segments)
		return false;
	memcpy(&raddr, data, sizeof(raddr));
	wqe->raddr = raddr.va;
	wqe->rkey = raddr.rkey;
	return true;
}

static bool decode_data(const uint8_t *data, unsigned segments, struct rn_wqe *wqe)
{
	for (unsigned i = 0; i < segments; i++)
		if (!add_sge(wqe, data + i * RN_WQE_SEGMENT_BYTES))
			return false;
	/* Too long a sum is a length error, which transport reports. */
	return true;
}

static bool has_raddr(unsigned opcode)
{
	return opcode == RN_WQE_RDMA_WRITE || opcode == RN_WQE_RDMA_WRITE_IMM ||
	       opcode == RN_WQE_RDMA_READ;
}

static bool is_supported(unsigned opcode)
{
	return opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM || has_raddr(opcode);
}

const uint8_t *rn_wqe_decode_send(const uint8_t *data, unsigned wqebbs, struct rn_wqe *wqe)
{
	struct rn_hw_wqe_ctrl ctrl;

	memcpy(&ctrl, data, sizeof(ctrl));
	unsigned segments = ctrl.qpn_ds & 0xff;
	const uint8_t *inline_data = NULL;

	rn_wqe_make_nop(wqe);
	wqe->opcode = ctrl.opcode <= RN_WQE_SEND_INV ? ctrl.opcode : RN_WQE_NOP;
	wqe->flags = ctrl.flags;
	wqe->imm_be = ctrl.imm_be;
	if (wqebbs)
		wqe->wqebbs = (uint8_t)wqebbs;
	if (wqebbs && ctrl.opcode == RN_WQE_NOP)
		return NULL;
	wqe->valid = 0;
	if (!wqebbs || !is_supported(ctrl.opcode))
		return NULL;
	data += RN_WQE_SEGMENT_BYTES;
	segments--;
	if (has_raddr(ctrl.opcode)) {
		if (!decode_raddr(data, segments, wqe))
			return NULL;
		data += RN_WQE_SEGMENT_BYTES;
		segments--;
	}
	if (!(ctrl.flags & RN_WQE_INLINE)) {
		wqe->valid = decode_data(data, segments, wqe);
		return NULL;
	}
	if (ctrl.opcode != RN_WQE_RDMA_READ)
		inline_data = decode_inline(data, segments, wqe);
	wqe->valid = inline_data != NULL;
	return wqe->total_bytes ? inline_data : NULL;
}

void rn_wqe_decode_recv(const uint8_t *data, unsigned max_sge, struct rn_wqe *wqe)
{
	rn_wqe_make_nop(wqe);
	for (unsigned i = 0; i < max_sge; i++) {
		const uint8_t *segment = data + i * RN_RQ_SEGMENT_BYTES;
		uint32_t lkey = rn_get_le32(segment + offsetof(struct rn_hw_wqe_data, lkey));

		if (lkey == RN_LKEY_INVALID)
			return;
		if (!add_sge(wqe, segment))
			wqe->valid = 0;
	}
}
