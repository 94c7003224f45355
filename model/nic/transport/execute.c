/*
 * Transport rx: requests that passed their check become slots; epsn, msn and the state of the message
 * move on. Answers carry the numbers of this moment and leave in order.
 */
#include "base/bits.h"
#include "nic/transport/header.h"
#include "nic/transport/rx.h"
#include "wire/opcode.h"
#include "wire/psn.h"

void rn_rx_fill_completion(const struct rn_hw_qpc *qpc, uint16_t idx, uint8_t status,
			   struct rn_completion *completion)
{
	*completion = (struct rn_completion){
		.cqn = qpc->recv_cqn,
		.qpn = qpc->qpn,
		.src_qpn = qpc->dest_qpn,
		.wqe_idx = idx,
		.opcode = status == RN_WC_SUCCESS ? RN_CQE_RECV : RN_CQE_RECV_ERR,
		.status = status,
		.vendor_syndrome = rn_vendor_syndrome(status, true),
	};
}

/* AETH's credit field: receive WQEs known to be posted and not used. */
static uint8_t credit_code(const struct rn_rx *rx, const struct rn_hw_qpc *qpc,
			   const struct rn_hw_qpc_responder *s)
{
	const struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];
	uint16_t known = (uint16_t)(flow->rq_pi - s->rq_next);

	if (!rx->params->advertise_credits || !flow->pi_known || qpc->srqn)
		return RN_CREDITS_NONE;
	/* The producer index is the program's to write. */
	return rn_aeth_credit_code(known > 1u << (qpc->log_rq_wqes & 15) ? 0 : known);
}

/* An answer with the header of an ACK, for PSN @psn. */
static void set_reply(struct rn_rx *rx, const struct rn_hw_qpc *qpc, struct rn_rx_slot *slot,
		      uint8_t syndrome, uint32_t psn)
{
	const struct rn_hw_qpc_responder *s =
		(const struct rn_hw_qpc_responder *)(const void *)qpc->responder;
	uint32_t idx = rn_packet_get(rx->env->packets);
	struct rn_packet *packet = rn_packet_at(rx->env->packets, idx);

	rn_transport_fill_header(packet, qpc, rx->ports.identity, rx->env->host);
	packet->opcode = RN_BTH_ACKNOWLEDGE;
	packet->psn = psn;
	packet->aeth_syndrome = syndrome;
	packet->aeth_msn = s->msn;
	slot->replies = true;
	slot->reply = (struct rn_reply){
		.qpn = slot->qpn,
		.packet = idx,
		.kind = (syndrome & RN_AETH_KIND_MASK) == RN_AETH_ACK ? RN_REPLY_ACK : RN_REPLY_NAK,
	};
}

void rn_rx_execute_ack(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint32_t psn)
{
	struct rn_rx_slot *slot = rn_rx_slot_add(rx, rx->op_qpn);

	set_reply(rx, qpc, slot, credit_code(rx, qpc, rn_rx_responder(qpc)), psn);
}

struct rn_rx_slot *rn_rx_execute_nak(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint8_t syndrome,
				     uint32_t psn)
{
	struct rn_rx_slot *slot = rn_rx_slot_add(rx, rx->op_qpn);

	set_reply(rx, qpc, slot, syndrome, psn);
	return slot;
}

struct rn_rx_slot *rn_rx_execute_fatal(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint8_t code,
				       uint32_t psn, uint8_t event)
{
	struct rn_rx_slot *slot = rn_rx_execute_nak(rx, qpc, RN_AETH_NAK | code, psn);

	rn_rx_responder(qpc)->error = 1;
	slot->fatal = true;
	slot->event = event;
	if (code == RN_NAK_INVALID_REQUEST)
		rx->count->resp_remote_invalid_request++;
	else
		rx->count->resp_remote_operational_errors++;
	return slot;
}

static bool is_ack_due(const struct rn_rx *rx, struct rn_hw_qpc_responder *s,
		       const struct rn_packet *packet)
{
	uint32_t every = rx->params->ack_every_packets;

	s->unacked_packets++;
	if (!packet->ackreq && !(every && s->unacked_packets >= every))
		return false;
	s->unacked_packets = 0;
	return true;
}

/* The receive WQE of a SEND stays with the QP until the last packet, when there is room for it. */
static void use_receive(struct rn_rx *rx, struct rn_hw_qpc *qpc, struct rn_rx_slot *slot,
			uint32_t flags)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];
	bool fetched = rx->fetch == RN_FETCH_ANSWERED;

	if (flags & RN_OP_CONSUMES_RECV) {
		s->rq_current = s->rq_next;
		s->rq_next = (uint16_t)(s->rq_next + 1);
		rn_rx_refresh(rx, qpc);
		rn_rx_ahead_ask(rx, qpc, (uint16_t)s->rq_next);
	}
	slot->rq_slot = fetched ? rx->fetched.slot + 1 : flow->rq_slot;
	if (flags & RN_OP_LAST) {
		rx->held -= !fetched;
		flow->rq_slot = 0;
		slot->rq_free = true;
	} else if (fetched && rn_rx_can_hold(rx)) {
		rx->held++;
		flow->rq_slot = slot->rq_slot;
	} else if (fetched) {
		slot->rq_free = true;
	}
}

static void complete_receive(struct rn_hw_qpc *qpc, const struct rn_packet *packet,
			     struct rn_rx_slot *slot, uint32_t flags)
{
	const struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	struct rn_completion *completion = &slot->completion;

	/* In mid-message it is kept for the case that the payload cannot be placed. */
	rn_rx_fill_completion(qpc, (uint16_t)s->rq_current, RN_WC_SUCCESS, completion);
	slot->completes = flags & RN_OP_LAST;
	completion->byte_len = flags & RN_OP_SEND ? s->bytes_done : s->bytes_total;
	completion->solicited = packet->se;
	if (!(flags & RN_OP_IMM))
		return;
	completion->imm_be = packet->imm_be;
	completion->opcode = flags & RN_OP_SEND ? RN_CQE_RECV_IMM : RN_CQE_RECV_WRITE_IMM;
}

static void place_payload(struct rn_rx *rx, const struct rn_hw_qpc *qpc,
			  const struct rn_packet *packet, struct rn_rx_slot *slot, uint32_t flags)
{
	const struct rn_hw_qpc_responder *s =
		(const struct rn_hw_qpc_responder *)(const void *)qpc->responder;
	uint64_t offset = s->bytes_done;

	slot->issued = !packet->payload_bytes;
	slot->left_bytes = packet->payload_bytes;
	slot->buf_off = packet->payload_off;
	slot->last = flags & RN_OP_LAST;
	slot->pd = qpc->pd;
	if (flags & RN_OP_WRITE) {
		slot->rkey = s->rkey;
		slot->va = s->va + offset;
		return;
	}

	const struct rn_wqe *wqe = &rx->ports.rq_slots->slot[slot->rq_slot - 1];

	while (slot->sge < wqe->sge_count && offset >= wqe->sge[slot->sge].bytes)
		offset -= wqe->sge[slot->sge++].bytes;
	slot->sge_off = (uint32_t)offset;
}

static void begin_message(struct rn_rx *rx, struct rn_hw_qpc_responder *s,
			  const struct rn_packet *packet, struct rn_rx_slot *slot, uint32_t flags)
{
	s->bytes_done = 0;
	s->message = flags & RN_OP_SEND ? RN_MESSAGE_SEND : RN_MESSAGE_WRITE;
	if (flags & RN_OP_SEND)
		return;
	rx->count->rx_write_requests++;
	s->va = packet->reth_va;
	s->rkey = packet->reth_rkey;
	s->bytes_total = packet->reth_bytes;
	if (packet->reth_bytes)
		rn_rx_check_key(rx, slot, RN_ACCESS_REMOTE_WRITE, packet->reth_va,
				packet->reth_bytes);
}

void rn_rx_execute_data(struct rn_rx *rx, struct rn_hw_qpc *qpc, const struct rn_packet *packet,
			uint32_t idx)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	struct rn_rx_slot *slot = rn_rx_slot_add(rx, rx->op_qpn);
	uint32_t flags = rn_opcode_info(packet->opcode)->flags;
	bool receives = flags & (RN_OP_SEND | RN_OP_CONSUMES_RECV);

	slot->packet = idx;
	slot->psn = packet->psn;
	slot->msn = s->msn;
	slot->remote = flags & RN_OP_WRITE;
	slot->pd = qpc->pd;
	if (flags & RN_OP_FIRST) {
		slot->rkey = packet->reth_rkey;
		begin_message(rx, s, packet, slot, flags);
	}
	if (receives)
		use_receive(rx, qpc, slot, flags);
	place_payload(rx, qpc, packet, slot, flags);
	s->bytes_done += packet->payload_bytes;
	s->epsn = rn_psn_add(s->epsn, 1);
	s->nak_sent = 0;
	rx->count->rx_payload_bytes += packet->payload_bytes;
	if (flags & RN_OP_SEND)
		rx->count->rx_send_packets++;
	else
		rx->count->rx_write_packets++;
	if (flags & RN_OP_LAST) {
		s->msn = rn_psn_add(s->msn, 1);
		s->message = RN_MESSAGE_NONE;
	}
	if (receives)
		complete_receive(qpc, packet, slot, flags);
	if (is_ack_due(rx, s, packet))
		set_reply(rx, qpc, slot, credit_code(rx, qpc, s), packet->psn);
}

static void remember_read(struct rn_hw_qpc_responder *s, uint32_t psn)
{
	rn_put_le32(s->recent_reads + (s->recent_next & 15) * 4, psn);
	s->recent_next = (s->recent_next + 1) & 15;
	if (s->recent_count < 16)
		s->recent_count++;
}

/* Whether a duplicate READ asks for the rest of an earlier one: the nearest start is before it. */
static bool is_rest(const struct rn_hw_qpc_responder *s, uint32_t psn)
{
	bool found = false;

	for (unsigned i = 0; i < s->recent_count && i < 16; i++) {
		int32_t behind = rn_psn_diff(psn, rn_get_le32(s->recent_reads + i * 4));

		if (!behind)
			return false;
		found |= behind > 0;
	}
	return found;
}

void rn_rx_execute_read(struct rn_rx *rx, struct rn_hw_qpc *qpc, const struct rn_packet *packet,
			bool is_duplicate)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	struct rn_rx_slot *slot = rn_rx_slot_add(rx, rx->op_qpn);
	unsigned mtu_log2 = rn_transport_mtu_log2(qpc);

	slot->psn = packet->psn;
	slot->msn = s->msn;
	slot->remote = true;
	slot->pd = qpc->pd;
	slot->rkey = packet->reth_rkey;
	if (packet->reth_bytes)
		rn_rx_check_key(rx, slot, RN_ACCESS_REMOTE_READ, packet->reth_va,
				packet->reth_bytes);
	if (!is_duplicate) {
		remember_read(s, packet->psn);
		s->epsn = rn_psn_add(s->epsn, rn_transport_packets(packet->reth_bytes, mtu_log2));
		s->msn = rn_psn_add(s->msn, 1);
		s->nak_sent = 0;
		s->unacked_packets = 0;
		rx->flow[rx->op_qpn].reads++;
		rx->count->rx_read_requests++;
	}
	set_reply(rx, qpc, slot, credit_code(rx, qpc, s), packet->psn);
	slot->reply.kind = RN_REPLY_READ;
	slot->reply.va = packet->reth_va;
	slot->reply.rkey = packet->reth_rkey;
	slot->reply.bytes = packet->reth_bytes;
	slot->reply.pd = qpc->pd;
	slot->reply.mtu_log2 = (uint8_t)mtu_log2;
	slot->reply.counted = !is_duplicate;
	slot->reply.continued = is_duplicate && is_rest(s, packet->psn);
}
