/*
 * Transport tx: the header of a request packet. FIRST, MIDDLE, LAST or ONLY follows from where the
 * packet stands in its message, so a retransmission in mid-message goes on with MIDDLE or LAST.
 */
#include "base/bits.h"
#include "nic/transport/header.h"
#include "nic/transport/tx.h"
#include "wire/opcode.h"
#include "wire/psn.h"

enum position { FIRST, MIDDLE, LAST, ONLY };

static const uint8_t opcodes[][4] = {
	[RN_WQE_SEND] = {RN_BTH_SEND_FIRST, RN_BTH_SEND_MIDDLE, RN_BTH_SEND_LAST, RN_BTH_SEND_ONLY},
	[RN_WQE_SEND_IMM] = {RN_BTH_SEND_FIRST, RN_BTH_SEND_MIDDLE, RN_BTH_SEND_LAST_IMM,
			     RN_BTH_SEND_ONLY_IMM},
	[RN_WQE_RDMA_WRITE] = {RN_BTH_WRITE_FIRST, RN_BTH_WRITE_MIDDLE, RN_BTH_WRITE_LAST,
			       RN_BTH_WRITE_ONLY},
	[RN_WQE_RDMA_WRITE_IMM] = {RN_BTH_WRITE_FIRST, RN_BTH_WRITE_MIDDLE, RN_BTH_WRITE_LAST_IMM,
				   RN_BTH_WRITE_ONLY_IMM},
};

static enum position position_of(uint32_t number, uint32_t count)
{
	bool first = number == 0;
	bool last = number + 1 == count;

	return first && last ? ONLY : first ? FIRST : last ? LAST : MIDDLE;
}

static uint32_t read_request(const struct rn_hw_qpc *qpc, const struct rn_tx_entry *entry,
			     const struct rn_wqe *wqe, uint32_t number, struct rn_packet *packet)
{
	uint64_t offset = (uint64_t)number << rn_transport_mtu_log2(qpc);

	packet->opcode = RN_BTH_READ_REQUEST;
	packet->reth_va = wqe->raddr + offset;
	packet->reth_rkey = wqe->rkey;
	packet->reth_bytes = (uint32_t)(entry->bytes - offset);
	packet->ackreq = 1;
	packet->last_of_wqe = 1;
	return entry->psns - number;
}

/* AckReq: on a message's end, every so often, and before the window closes. */
static bool wants_ack(const struct rn_tx *tx, struct rn_hw_qpc_requester *r, bool last)
{
	uint32_t behind = rn_psn_ahead(rn_psn_add(r->next_psn, 1), r->una_psn);

	r->since_ackreq++;
	if (!last && r->since_ackreq < tx->params->ack_req_interval &&
	    behind < tx->params->max_outstanding_psns)
		return false;
	r->since_ackreq = 0;
	return true;
}

uint32_t rn_tx_request_packet(struct rn_tx *tx, const struct rn_hw_qpc *qpc,
			      const struct rn_tx_entry *entry, const struct rn_wqe *wqe,
			      struct rn_packet *packet)
{
	struct rn_hw_qpc_requester *r = (struct rn_hw_qpc_requester *)(void *)qpc->requester;
	unsigned mtu_log2 = rn_transport_mtu_log2(qpc);
	uint32_t number = rn_psn_ahead(r->next_psn, entry->first_psn);
	uint64_t offset = (uint64_t)number << mtu_log2;

	packet->psn = r->next_psn;
	packet->wqe_idx = entry->wqe_idx;
	packet->is_request = 1;
	packet->first_of_wqe = number == 0;
	if (entry->opcode == RN_WQE_RDMA_READ)
		return read_request(qpc, entry, wqe, number, packet);

	bool last = number + 1 == entry->psns;

	packet->opcode = opcodes[entry->opcode][position_of(number, entry->psns)];
	packet->payload_bytes = (uint16_t)rn_min_u64(entry->bytes - offset, 1u << mtu_log2);
	packet->pad = (uint8_t)(-packet->payload_bytes & 3);
	packet->last_of_wqe = last;
	packet->se =
		last && (entry->flags & RN_WQE_SOLICITED) && entry->opcode != RN_WQE_RDMA_WRITE;
	packet->imm_be = wqe->imm_be;
	packet->ackreq = wants_ack(tx, r, last);
	if (number == 0) {
		packet->reth_va = wqe->raddr;
		packet->reth_rkey = wqe->rkey;
		packet->reth_bytes = entry->bytes;
	}
	return 1;
}
