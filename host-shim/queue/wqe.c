/*
 * Building of send WQEs; see docs/hardware-interface-tables.md for the layouts.
 *
 * Segments are assembled in a local image and copied into the ring with at most one wrap, so that a
 * WQE is never seen half in the ring's first and half in its second pass.
 */
#include "queue/wqe.h"

#include <stddef.h>
#include <string.h>

#include "base/bits.h"

#define MAX_WQE_BYTES (RN_WQE_MAX_SEGMENTS * RN_WQE_SEGMENT_BYTES)
/* A WQE of RN_WQE_MAX_SEGMENTS, rounded up to whole WQEBBs. */
#define IMAGE_BYTES 1024u

static bool has_raddr(uint8_t opcode)
{
	return opcode >= RN_WQE_RDMA_WRITE && opcode <= RN_WQE_ATOMIC_FAA;
}

static uint32_t header_segments(uint8_t opcode)
{
	return has_raddr(opcode) ? 2 : 1;
}

static uint32_t inline_segments(uint64_t bytes)
{
	return (uint32_t)rn_div_ceil(sizeof(struct rn_hw_wqe_inline) + bytes, RN_WQE_SEGMENT_BYTES);
}

static uint32_t segments_to_wqebbs(uint32_t segments)
{
	if (segments > RN_WQE_MAX_SEGMENTS)
		return 0;
	return (uint32_t)rn_div_ceil(segments * RN_WQE_SEGMENT_BYTES, RN_WQEBB_BYTES);
}

uint32_t rn_sq_wqebbs(uint8_t opcode, uint32_t segments, uint32_t inline_bytes)
{
	if (segments > RN_WQE_MAX_SEGMENTS || inline_bytes > MAX_WQE_BYTES)
		return 0;
	if (segments == 0 && inline_bytes)
		segments = inline_segments(inline_bytes);
	return segments_to_wqebbs(header_segments(opcode) + segments);
}

void rn_sq_init(struct rn_sq *sq, void *ring, struct rn_sq_slot *slot, uint32_t wqebbs,
		uint32_t max_wqes)
{
	*sq = (struct rn_sq){.ring = ring, .slot = slot, .wqebbs = wqebbs, .max_wqes = max_wqes};
	rn_sq_reset(sq);
}

void rn_sq_reset(struct rn_sq *sq)
{
	sq->pi = sq->ci = sq->posted = sq->retired = 0;
	if (sq->wqebbs)
		memset(sq->slot, 0, sq->wqebbs * sizeof(sq->slot[0]));
}

/* Total inline bytes of a request, or UINT64_MAX when they cannot fit. */
static uint64_t inline_total(const struct rn_send_request *request)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < request->segment_count; i++) {
		total += request->segments[i].bytes;
		if (total > MAX_WQE_BYTES)
			return UINT64_MAX;
	}
	return total;
}

/* Data part of the WQE; returns its bytes, UINT32_MAX when they do not fit. */
static uint32_t put_data(uint8_t *image, const struct rn_send_request *request, uint32_t room)
{
	const uint32_t bytes = request->segment_count * (uint32_t)sizeof(request->segments[0]);

	if (request->segment_count > room)
		return UINT32_MAX;
	if (bytes)
		memcpy(image, request->segments, bytes);
	return bytes;
}

/* What the NIC reads is defined to the last byte: neither the stack nor an earlier WQE of the ring shows in it. */
static void clear_rest(uint8_t *image, uint32_t used_bytes)
{
	const uint32_t rest = used_bytes % RN_WQEBB_BYTES;

	if (rest)
		memset(image + used_bytes, 0, RN_WQEBB_BYTES - rest);
}

static uint32_t put_inline(uint8_t *image, const struct rn_send_request *request, uint32_t room)
{
	const uint64_t total = inline_total(request);
	const struct rn_hw_wqe_inline header = {.bytes = (uint32_t)total};
	uint8_t *at = image + sizeof(header);

	if (total == UINT64_MAX || inline_segments(total) > room)
		return UINT32_MAX;
	memcpy(image, &header, sizeof(header));
	for (uint32_t i = 0; i < request->segment_count; i++) {
		const struct rn_hw_wqe_data *segment = &request->segments[i];

		if (segment->bytes == 0)
			continue;
		memcpy(at, (const void *)(uintptr_t)segment->va, segment->bytes);
		at += segment->bytes;
	}
	return (uint32_t)(at - image);
}

static void ring_write(struct rn_sq *sq, const uint8_t *image, uint32_t bytes)
{
	const uint32_t ring_bytes = sq->wqebbs * RN_WQEBB_BYTES;
	const uint32_t at = (sq->pi & (sq->wqebbs - 1)) * RN_WQEBB_BYTES;
	const uint32_t first = (uint32_t)rn_min_u64(bytes, ring_bytes - at);

	memcpy(sq->ring + at, image, first);
	memcpy(sq->ring, image + first, bytes - first);
}

static void put_headers(uint8_t *image, const struct rn_sq *sq,
			const struct rn_send_request *request, uint32_t segments)
{
	const struct rn_hw_wqe_ctrl ctrl = {
		.opcode = request->opcode,
		.flags = request->flags,
		.wqe_idx = (uint16_t)sq->pi,
		.qpn_ds = sq->qpn << 8 | segments,
		.imm_be = request->imm_be,
		.post_idx = sq->posted,
	};
	const struct rn_hw_wqe_raddr raddr = {.va = request->raddr, .rkey = request->rkey};

	memcpy(image, &ctrl, sizeof(ctrl));
	if (has_raddr(request->opcode))
		memcpy(image + sizeof(ctrl), &raddr, sizeof(raddr));
}

static void remember(struct rn_sq *sq, const struct rn_send_request *request, uint32_t wqebbs)
{
	sq->slot[sq->pi & (sq->wqebbs - 1)] = (struct rn_sq_slot){
		.wr_id = request->wr_id,
		.post_idx = sq->posted,
		.wqe_idx = (uint16_t)sq->pi,
		.wqebbs = (uint8_t)wqebbs,
		.opcode = request->opcode,
	};
}

enum rn_post_status rn_sq_post(struct rn_sq *sq, const struct rn_send_request *request)
{
	_Alignas(16) uint8_t image[IMAGE_BYTES];
	uint32_t segments = header_segments(request->opcode);
	uint8_t *data = image + segments * RN_WQE_SEGMENT_BYTES;
	const uint32_t room = RN_WQE_MAX_SEGMENTS - segments;
	uint32_t bytes, wqebbs;

	if (request->opcode > RN_WQE_SEND_INV)
		return RN_POST_BAD_OPCODE;
	if (request->flags & RN_WQE_INLINE)
		bytes = put_inline(data, request, room);
	else
		bytes = put_data(data, request, room);
	if (bytes == UINT32_MAX)
		return RN_POST_TOO_LONG;
	clear_rest(image, segments * RN_WQE_SEGMENT_BYTES + bytes);
	segments += (uint32_t)rn_div_ceil(bytes, RN_WQE_SEGMENT_BYTES);
	wqebbs = segments_to_wqebbs(segments);
	if (sq->pi - sq->ci + wqebbs > sq->wqebbs || sq->posted - sq->retired >= sq->max_wqes)
		return RN_POST_FULL;
	put_headers(image, sq, request, segments);
	ring_write(sq, image, wqebbs * RN_WQEBB_BYTES);
	remember(sq, request, wqebbs);
	sq->pi += wqebbs;
	sq->posted++;
	return RN_POST_OK;
}

struct rn_hw_sq_doorbell rn_sq_doorbell(const struct rn_sq *sq)
{
	return (struct rn_hw_sq_doorbell){.qpn = sq->qpn, .pi = sq->pi};
}

/* The slot of the WQE posted last: the only one whose wqebbs reach the producer index exactly. */
static uint32_t last_wqebbs(const struct rn_sq *sq)
{
	for (uint32_t n = 1; n <= RN_UAR_BLUEFLAME_BYTES / RN_WQEBB_BYTES && n <= sq->pi - sq->ci;
	     n++) {
		const struct rn_sq_slot *slot = &sq->slot[(sq->pi - n) & (sq->wqebbs - 1)];

		if (slot->wqebbs == n && slot->wqe_idx == (uint16_t)(sq->pi - n) &&
		    slot->post_idx == sq->posted - 1)
			return n;
	}
	return 0;
}

uint32_t rn_sq_blueflame(const struct rn_sq *sq, uint8_t image[RN_UAR_BLUEFLAME_BYTES])
{
	const uint32_t wqebbs = last_wqebbs(sq);

	for (uint32_t n = 0; n < wqebbs; n++) {
		const uint32_t at = (sq->pi - wqebbs + n) & (sq->wqebbs - 1);

		memcpy(image + n * RN_WQEBB_BYTES, sq->ring + (size_t)at * RN_WQEBB_BYTES,
		       RN_WQEBB_BYTES);
	}
	return wqebbs * RN_WQEBB_BYTES;
}

const struct rn_sq_slot *rn_sq_retire(struct rn_sq *sq, uint16_t wqe_idx)
{
	const uint16_t ahead = (uint16_t)(wqe_idx - (uint16_t)sq->ci);
	const struct rn_sq_slot *slot;

	if (ahead >= sq->pi - sq->ci)
		return NULL;
	slot = &sq->slot[wqe_idx & (sq->wqebbs - 1)];
	if (slot->wqe_idx != wqe_idx || slot->wqebbs == 0 ||
	    slot->post_idx - sq->retired >= sq->posted - sq->retired)
		return NULL;
	sq->ci += ahead + slot->wqebbs;
	sq->retired = slot->post_idx + 1;
	return slot;
}
