/*
 * Transport tx: ACKs, NAKs and READ responses (IBA volume 1, 9.7.5.2, 9.7.7). An acknowledgement of
 * a PSN covers all before it, but a READ is acknowledged by its own data alone: a later PSN while some of
 * it is missing is an implied NAK, answered once a gap. What lies outside una_psn .. max_psn - 1 is stale.
 */
#include "nic/transport/header.h"
#include "nic/transport/tables.h"
#include "nic/transport/tx.h"
#include "wire/opcode.h"
#include "wire/psn.h"

bool rn_tx_response_is_ready(struct rn_tx *tx, const struct rn_response *response)
{
	const struct rn_tx_flow *flow = &tx->flow[response->qpn];

	if (flow->paused) {
		tx->stall = RN_STALL_LOCK;
		return false;
	}
	if (response->kind != RN_RESPONSE_PACKET || rn_tx_can_write(tx))
		return true;
	if (!rn_packet_at(tx->env->packets, response->packet)->payload_bytes)
		return true;
	tx->stall = tx->write_free ? RN_STALL_OUTPUT : RN_STALL_BUFFER;
	return false;
}

/* Where the send queue stands when everything before una_psn needs no sending any more. */
static void catch_up(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint32_t qpn = tx->op_qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];
	uint32_t ref = rn_tx_entry_of_psn(tx, qpn, r->una_psn);
	const struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref ? ref : flow->out_tail);

	r->next_psn = r->una_psn;
	r->sq_next = (uint16_t)(entry->wqe_idx + (ref ? 0 : entry->wqebbs));
	flow->send_entry = ref;
	flow->epoch++;
	rn_outbox_put(&tx->forgets, &(struct rn_wqe_forget){.qpn = qpn});
	if (!flow->paused)
		rn_tx_activate(tx, qpc);
}

static void progress(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint32_t qpn = tx->op_qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];

	r->retries_left = qpc->retry_cnt;
	r->rnr_left = qpc->rnr_retry;
	r->gap = 0;
	if (r->una_psn == r->max_psn)
		rn_tx_timer_stop(tx, qpn);
	else if ((flow->timer == RN_TIMER_ACK || flow->timer == RN_TIMER_OFF) && flow->expiry_ps)
		rn_tx_timer_set(tx, qpn, RN_TIMER_ACK,
				rn_sim_now_ps(tx->env->sim) + flow->expiry_ps);
	if (rn_psn_ahead(r->max_psn, r->next_psn) > rn_psn_ahead(r->max_psn, r->una_psn))
		catch_up(tx, qpc);
	else if (flow->parked && !rn_tx_is_waiting(flow))
		rn_tx_activate(tx, qpc);
}

/*
 * Everything before @to is acknowledged, as far as no READ stands in between. False when one does: una_psn
 * then names its first missing PSN.
 */
static bool acknowledge(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint32_t to)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint32_t old = r->una_psn;
	uint32_t span = rn_psn_ahead(to, old);
	uint32_t una = old;
	bool clear = true;

	for (uint32_t ref = tx->flow[tx->op_qpn].out_head; ref && una != to;) {
		const struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);
		uint32_t end = rn_psn_add(entry->first_psn, entry->psns);

		ref = entry->next;
		if (rn_psn_diff(una, end) >= 0)
			continue;
		if (entry->opcode == RN_WQE_RDMA_READ) {
			clear = false;
			break;
		}
		una = rn_psn_ahead(end, old) < span ? end : to;
	}
	r->una_psn = una;
	if (una != old)
		progress(tx, qpc);
	return clear;
}

static void take_credits(struct rn_tx *tx, struct rn_hw_qpc *qpc, const struct rn_packet *packet)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	struct rn_tx_flow *flow = &tx->flow[tx->op_qpn];
	uint8_t code = packet->aeth_syndrome & RN_AETH_VALUE_MASK;
	bool was_valid = r->credit_valid;

	r->credit_valid = code != RN_CREDITS_NONE;
	if (r->credit_valid) {
		uint32_t limit = rn_psn_add(packet->aeth_msn, rn_aeth_credits(code));

		if (was_valid && rn_psn_diff(limit, r->credit_limit) <= 0)
			return;
		r->credit_limit = limit;
	}
	if (flow->parked && !rn_tx_is_waiting(flow))
		rn_tx_activate(tx, qpc);
}

/* Set back already, and nothing sent again since. */
static bool is_set_back(const struct rn_hw_qpc_requester *r)
{
	return r->next_psn == r->una_psn && r->una_psn != r->max_psn;
}

static void implied_nak(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);

	if (r->gap || is_set_back(r))
		return;
	r->gap = 1;
	tx->count->implied_nak_seq_err++;
	rn_tx_retry(tx, qpc, tx->params->nak_reaction_cycles);
}

static void receiver_not_ready(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint8_t code)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);

	if (is_set_back(r))
		return;
	tx->count->rnr_nak_retry_err++;
	if (qpc->rnr_retry != 7) {
		if (!r->rnr_left) {
			tx->count->req_rnr_retries_exceeded++;
			rn_tx_fail_una(tx, qpc, RN_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		r->rnr_left--;
	}
	rn_tx_set_back(tx, qpc, RN_TIMER_RNR, rn_rnr_timer_ps(code));
}

static void take_nak(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint8_t code)
{
	switch (code) {
	case RN_NAK_SEQUENCE:
		tx->count->packet_seq_err++;
		if (!is_set_back(rn_tx_requester(qpc)))
			rn_tx_retry(tx, qpc, tx->params->nak_reaction_cycles);
		break;
	case RN_NAK_INVALID_REQUEST:
		tx->count->req_remote_invalid_request++;
		rn_tx_fail_una(tx, qpc, RN_WC_REM_INV_REQ_ERR);
		break;
	case RN_NAK_REMOTE_ACCESS:
		tx->count->req_remote_access_errors++;
		rn_tx_fail_una(tx, qpc, RN_WC_REM_ACCESS_ERR);
		break;
	case RN_NAK_REMOTE_OPERATIONAL:
		tx->count->req_remote_operational_errors++;
		rn_tx_fail_una(tx, qpc, RN_WC_REM_OP_ERR);
		break;
	default:
		tx->count->stale_responses++;
		break;
	}
}

/* A NAK says of its PSN what it says; the PSNs before it are acknowledged. */
static void take_negative(struct rn_tx *tx, struct rn_hw_qpc *qpc, const struct rn_packet *packet)
{
	uint32_t ref = rn_tx_entry_of_psn(tx, tx->op_qpn, packet->psn);
	const struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);
	uint8_t value = packet->aeth_syndrome & RN_AETH_VALUE_MASK;
	uint32_t una = rn_tx_requester(qpc)->una_psn;
	uint32_t to = packet->psn;

	tx->count->rx_nak_packets++;
	/* A READ that fails half way: whether what came before is missing or there, it fails. */
	if (entry->opcode == RN_WQE_RDMA_READ)
		to = rn_psn_ahead(una, entry->first_psn) < entry->psns ? una : entry->first_psn;
	if (!acknowledge(tx, qpc, to))
		implied_nak(tx, qpc);
	else if ((packet->aeth_syndrome & RN_AETH_KIND_MASK) == RN_AETH_RNR_NAK)
		receiver_not_ready(tx, qpc, value);
	else
		take_nak(tx, qpc, value);
}

static void take_ack(struct rn_tx *tx, struct rn_hw_qpc *qpc, const struct rn_packet *packet)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint8_t kind = packet->aeth_syndrome & RN_AETH_KIND_MASK;
	uint32_t behind = rn_psn_ahead(packet->psn, r->una_psn);

	if (behind >= rn_psn_ahead(r->max_psn, r->una_psn)) {
		/* The last acknowledgement again may carry new credits. */
		if (behind == RN_PSN_MASK && kind == RN_AETH_ACK)
			take_credits(tx, qpc, packet);
		else
			tx->count->stale_responses++;
		return;
	}
	if (kind == RN_AETH_RNR_NAK || kind == RN_AETH_NAK) {
		take_negative(tx, qpc, packet);
		return;
	}
	if (kind != RN_AETH_ACK) {
		tx->count->stale_responses++;
		return;
	}
	tx->count->rx_ack_packets++;
	/* The credits first: they may let the next message go. */
	take_credits(tx, qpc, packet);
	if (!acknowledge(tx, qpc, rn_psn_add(packet->psn, 1)))
		implied_nak(tx, qpc);
}

/* Length and opcode must be those of the packet's place in the READ (IBA volume 1, 9.7.5.2). */
static uint8_t fault_of(const struct rn_hw_qpc *qpc, const struct rn_tx_entry *entry,
			const struct rn_packet *packet)
{
	unsigned mtu_log2 = rn_transport_mtu_log2(qpc);
	uint32_t number = rn_psn_ahead(packet->psn, entry->first_psn);
	bool last = number + 1 == entry->psns;
	uint64_t rest = entry->bytes - ((uint64_t)number << mtu_log2);
	bool says_last = rn_opcode_info(packet->opcode)->flags & RN_OP_LAST;

	if (says_last != last)
		return RN_WC_BAD_RESP_ERR;
	if (packet->payload_bytes != (last ? rest : 1u << mtu_log2))
		return RN_WC_LOC_LEN_ERR;
	return RN_WC_SUCCESS;
}

/* Takes the packet over when it returns true. */
static bool take_data(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint32_t ref, uint32_t idx)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);
	const struct rn_packet *packet = rn_packet_at(tx->env->packets, idx);
	uint32_t number = rn_psn_ahead(packet->psn, entry->first_psn);
	uint8_t fault = fault_of(qpc, entry, packet);

	tx->count->rx_read_response_packets++;
	tx->count->rx_read_response_bytes += packet->payload_bytes;
	if (fault != RN_WC_SUCCESS) {
		rn_tx_fail_una(tx, qpc, fault);
		return false;
	}
	entry->complete = number + 1 == entry->psns;
	r->una_psn = rn_psn_add(r->una_psn, 1);
	progress(tx, qpc);
	if (!packet->payload_bytes || entry->status != RN_WC_SUCCESS)
		return false;
	rn_tx_write_begin(tx, qpc, ref, idx, (uint64_t)number << rn_transport_mtu_log2(qpc));
	return true;
}

static bool take_read_response(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint32_t idx)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	const struct rn_packet *packet = rn_packet_at(tx->env->packets, idx);
	uint32_t ref = rn_tx_entry_of_psn(tx, tx->op_qpn, packet->psn);
	uint32_t outstanding = rn_psn_ahead(r->max_psn, r->una_psn);

	if (rn_psn_ahead(packet->psn, r->una_psn) >= outstanding || !ref ||
	    rn_tx_entry_at(tx, ref)->opcode != RN_WQE_RDMA_READ) {
		tx->count->stale_responses++;
		return false;
	}
	acknowledge(tx, qpc, packet->psn);
	if (r->una_psn != packet->psn) {
		implied_nak(tx, qpc);
		return false;
	}
	if (rn_opcode_info(packet->opcode)->flags & RN_OP_AETH)
		take_credits(tx, qpc, packet);
	return take_data(tx, qpc, ref, idx);
}

static bool is_welcome(const struct rn_tx *tx, const struct rn_hw_qpc *qpc,
		       const struct rn_packet *packet)
{
	const struct rn_hw_qpc_requester *r =
		(const struct rn_hw_qpc_requester *)(const void *)qpc->requester;

	return (qpc->state == RN_QPS_RTS || qpc->state == RN_QPS_SQD) && r->ready && !r->error &&
	       qpc->service == RN_QPT_RC && !tx->flow[tx->op_qpn].dying &&
	       rn_transport_pkey_matches(qpc->pkey, packet->pkey);
}

void rn_tx_response_run(struct rn_tx *tx, struct rn_hw_qpc *qpc, const struct rn_response *response)
{
	struct rn_packets *packets = tx->env->packets;
	bool taken = false;

	if (response->kind == RN_RESPONSE_ERROR) {
		if (qpc->state >= RN_QPS_RTR && !tx->flow[tx->op_qpn].dying)
			rn_tx_enter_error(tx, qpc, false);
		return;
	}

	const struct rn_packet *packet = rn_packet_at(packets, response->packet);

	if (!is_welcome(tx, qpc, packet))
		tx->count->stale_responses++;
	else if (packet->opcode == RN_BTH_ACKNOWLEDGE)
		take_ack(tx, qpc, packet);
	else if (rn_opcode_info(packet->opcode)->flags & RN_OP_READ)
		taken = take_read_response(tx, qpc, response->packet);
	else
		tx->count->stale_responses++;
	if (!taken)
		rn_packet_put(packets, response->packet);
}
