/*
 * Transport rx: the check of a request (IBA volume 1, 9.7.4.1, 9.7.5.1), in this order: state and P_Key, PSN
 * (expected, duplicate, gap), opcode, opcode sequence, rights of the QP, lengths, receive WQE.
 */
#include "base/bits.h"
#include "nic/transport/header.h"
#include "nic/transport/rx.h"
#include "wire/opcode.h"
#include "wire/psn.h"

static bool is_receiving(struct rn_rx *rx, const struct rn_hw_qpc *qpc,
			 const struct rn_hw_qpc_responder *s, const struct rn_packet *packet)
{
	bool state =
		qpc->state == RN_QPS_RTR || qpc->state == RN_QPS_RTS || qpc->state == RN_QPS_SQD;

	if (!state || s->error || rx->flow[rx->op_qpn].dead || qpc->service != RN_QPT_RC) {
		rx->count->rx_bad_state++;
		return false;
	}
	if (!rn_transport_pkey_matches(qpc->pkey, packet->pkey)) {
		rx->count->rx_bad_pkey++;
		return false;
	}
	return true;
}

static bool is_executable(uint32_t flags)
{
	return (flags & (RN_OP_SEND | RN_OP_WRITE | RN_OP_READ)) && !(flags & RN_OP_IETH);
}

static bool is_in_order(const struct rn_hw_qpc_responder *s, uint32_t flags)
{
	if (flags & RN_OP_FIRST)
		return s->message == RN_MESSAGE_NONE;
	return s->message == (flags & RN_OP_SEND ? RN_MESSAGE_SEND : RN_MESSAGE_WRITE);
}

static bool is_granted(const struct rn_hw_qpc *qpc, uint32_t flags)
{
	if (flags & RN_OP_WRITE)
		return qpc->access & RN_ACCESS_REMOTE_WRITE;
	if (flags & RN_OP_READ)
		return qpc->access & RN_ACCESS_REMOTE_READ;
	return true;
}

static bool has_right_length(const struct rn_hw_qpc *qpc, const struct rn_hw_qpc_responder *s,
			     const struct rn_packet *packet, uint32_t flags)
{
	uint32_t mtu = 1u << rn_transport_mtu_log2(qpc);
	bool first = flags & RN_OP_FIRST;
	bool last = flags & RN_OP_LAST;
	uint64_t done = (first ? 0 : (uint64_t)s->bytes_done) + packet->payload_bytes;
	uint64_t total = first ? packet->reth_bytes : s->bytes_total;

	if (flags & RN_OP_READ)
		return !packet->payload_bytes && total <= RN_MAX_MESSAGE_BYTES;
	if (!last && packet->payload_bytes != mtu)
		return false;
	if (packet->payload_bytes > mtu || (last && !first && !packet->payload_bytes))
		return false;
	if (flags & RN_OP_SEND)
		return done <= RN_MAX_MESSAGE_BYTES;
	return total <= RN_MAX_MESSAGE_BYTES && (last ? done == total : done < total);
}

static void raise_established(struct rn_rx *rx, const struct rn_hw_qpc *qpc,
			      struct rn_hw_qpc_responder *s)
{
	if (qpc->state != RN_QPS_RTR || s->comm_est)
		return;
	s->comm_est = 1;
	rn_rx_put_event(rx, rx->op_qpn, RN_QP_EVENT_COMM_EST);
}

static void refuse(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint32_t psn)
{
	rn_rx_execute_fatal(rx, qpc, RN_NAK_INVALID_REQUEST, psn, RN_QP_EVENT_REQ_ERR);
}

static void not_ready(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint32_t psn)
{
	rx->count->out_of_buffer++;
	rn_rx_responder(qpc)->nak_sent = 1;
	rn_rx_execute_nak(rx, qpc, RN_AETH_RNR_NAK | (qpc->min_rnr_timer & 31), psn);
}

/* The receive WQE cannot take the request: it completes with @status. */
static void fail_receive(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint32_t psn, uint8_t nak,
			 uint8_t status)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	bool in_message = s->message == RN_MESSAGE_SEND;
	uint16_t idx = (uint16_t)(in_message ? s->rq_current : s->rq_next);
	struct rn_rx_slot *slot = rn_rx_execute_fatal(rx, qpc, nak, psn, 0);

	slot->completes = true;
	rn_rx_fill_completion(qpc, idx, status, &slot->completion);
	if (!in_message)
		s->rq_next = (uint16_t)(s->rq_next + 1);
	s->message = RN_MESSAGE_NONE;
	if (rx->fetch == RN_FETCH_ANSWERED && rx->fetched.status == RN_WORK_OK)
		rn_rx_free_wqe(rx, rx->fetched.slot);
}

static bool needs_fetch(const struct rn_rx *rx, uint32_t flags)
{
	if (flags & RN_OP_CONSUMES_RECV)
		return true;
	return (flags & RN_OP_SEND) && !rx->flow[rx->op_qpn].rq_slot;
}

static const struct rn_wqe *receive_wqe(const struct rn_rx *rx)
{
	uint32_t held = rx->flow[rx->op_qpn].rq_slot;

	return &rx->ports.rq_slots
			->slot[rx->fetch == RN_FETCH_ANSWERED ? rx->fetched.slot : held - 1];
}

/* The receive WQE that the request needs. False: it was answered otherwise. */
static bool check_receive(struct rn_rx *rx, struct rn_hw_qpc *qpc, const struct rn_packet *packet,
			  uint32_t flags)
{
	const struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);

	if (rx->fetch == RN_FETCH_ANSWERED && rx->fetched.status != RN_WORK_OK) {
		if (rx->fetched.status == RN_WORK_EMPTY)
			not_ready(rx, qpc, packet->psn);
		else
			fail_receive(rx, qpc, packet->psn, RN_NAK_REMOTE_OPERATIONAL,
				     RN_WC_LOC_QP_OP_ERR);
		return false;
	}

	const struct rn_wqe *wqe = receive_wqe(rx);
	uint64_t done = (flags & RN_OP_FIRST) ? 0 : s->bytes_done;

	if (!wqe->valid) {
		fail_receive(rx, qpc, packet->psn, RN_NAK_REMOTE_OPERATIONAL, RN_WC_LOC_QP_OP_ERR);
		return false;
	}
	if (!(flags & RN_OP_SEND) || done + packet->payload_bytes <= wqe->total_bytes)
		return true;
	rx->count->resp_local_length_error++;
	fail_receive(rx, qpc, packet->psn, RN_NAK_INVALID_REQUEST, RN_WC_LOC_LEN_ERR);
	return false;
}

static bool is_valid(struct rn_rx *rx, const struct rn_hw_qpc *qpc,
		     const struct rn_hw_qpc_responder *s, const struct rn_packet *packet,
		     uint32_t flags)
{
	if (!is_executable(flags)) {
		rx->count->rx_atomic_requests += !!(flags & RN_OP_ATOMIC);
		return false;
	}
	if (!is_in_order(s, flags) || !is_granted(qpc, flags) ||
	    !has_right_length(qpc, s, packet, flags))
		return false;
	return !(flags & RN_OP_READ) || rx->flow[rx->op_qpn].reads < qpc->max_dest_rd_atomic;
}

/* Takes the packet over when it returns DONE; WAIT: its queue pair waits. */
static enum rn_rx_step take_expected(struct rn_rx *rx, struct rn_hw_qpc *qpc,
				     const struct rn_packet *packet, uint32_t idx)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	uint32_t flags = rn_opcode_info(packet->opcode)->flags;

	if (!is_valid(rx, qpc, s, packet, flags)) {
		refuse(rx, qpc, packet->psn);
		rn_packet_put(rx->env->packets, idx);
		return RN_RX_DONE;
	}
	if (needs_fetch(rx, flags)) {
		bool goes_on = (flags & RN_OP_SEND) && !(flags & RN_OP_FIRST);
		uint32_t at = goes_on ? s->rq_current : s->rq_next;

		if (!rn_rx_receive(rx, (uint16_t)at))
			return RN_RX_WAIT;
	}
	raise_established(rx, qpc, s);
	if ((rx->fetch == RN_FETCH_ANSWERED || (flags & RN_OP_SEND)) &&
	    !check_receive(rx, qpc, packet, flags)) {
		rn_packet_put(rx->env->packets, idx);
	} else if (flags & RN_OP_READ) {
		rn_rx_execute_read(rx, qpc, packet, false);
		rn_packet_put(rx->env->packets, idx);
	} else {
		rn_rx_execute_data(rx, qpc, packet, idx);
	}
	rx->fetch = RN_FETCH_NONE;
	return RN_RX_DONE;
}

/* PSN of the answer to a duplicate: the latest, unless that would acknowledge a READ between the two. */
static uint32_t duplicate_ack_psn(const struct rn_hw_qpc_responder *s, uint32_t psn)
{
	uint32_t latest = rn_psn_add(s->epsn, RN_PSN_MASK);

	if (!s->recent_count)
		return latest;

	uint32_t read = rn_get_le32(s->recent_reads + ((s->recent_next - 1u) & 15) * 4);

	return rn_psn_diff(read, psn) > 0 && rn_psn_diff(read, s->epsn) < 0 ? psn : latest;
}

static void take_duplicate(struct rn_rx *rx, struct rn_hw_qpc *qpc, const struct rn_packet *packet)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	uint32_t flags = rn_opcode_info(packet->opcode)->flags;

	rx->count->duplicate_request++;
	if (!is_executable(flags))
		return;
	if (!(flags & RN_OP_READ)) {
		rn_rx_execute_ack(rx, qpc, duplicate_ack_psn(s, packet->psn));
		return;
	}

	uint32_t psns = rn_transport_packets(packet->reth_bytes, rn_transport_mtu_log2(qpc));
	uint32_t span = rn_psn_ahead(s->epsn, packet->psn);

	/* One that reaches beyond what was executed is no duplicate of anything. */
	if (packet->reth_bytes > RN_MAX_MESSAGE_BYTES || psns > span || packet->payload_bytes ||
	    !is_granted(qpc, flags))
		return;
	rn_rx_execute_read(rx, qpc, packet, true);
}

static void take_gap(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);

	rx->count->out_of_sequence++;
	if (s->nak_sent)
		return;
	s->nak_sent = 1;
	rn_rx_execute_nak(rx, qpc, RN_AETH_NAK | RN_NAK_SEQUENCE, s->epsn);
}

enum rn_rx_step rn_rx_packet_run(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_rx_waiting waiting;
	const struct rn_packet *packet = rn_rx_packet_at_hand(rx, &waiting);
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);

	RN_ASSERT(packet);
	if (!rn_fifo_can_push(rx->ports.rx_pte_req)) {
		rx->stall = RN_STALL_OUTPUT;
		return RN_RX_WAIT;
	}
	if (!is_receiving(rx, qpc, s, packet)) {
		rn_rx_drop_at_hand(rx, true);
		return RN_RX_DONE;
	}

	int32_t ahead = rn_psn_diff(packet->psn, s->epsn);

	if (ahead == 0) {
		if (take_expected(rx, qpc, packet, waiting.packet) == RN_RX_WAIT)
			rn_rx_keep_at_hand(rx);
		else
			rn_rx_drop_at_hand(rx, false);
		return RN_RX_DONE;
	}
	if (ahead < 0)
		take_duplicate(rx, qpc, packet);
	else
		take_gap(rx, qpc);
	rn_rx_drop_at_hand(rx, true);
	return RN_RX_DONE;
}
