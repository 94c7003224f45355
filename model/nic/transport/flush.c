/*
 * Transport rx: a queue pair in error says so and has its receive queue flushed, now and when its program
 * rings for more.
 */
#include "nic/transport/rx.h"

static void flush_one(struct rn_rx *rx, const struct rn_hw_qpc *qpc, uint16_t idx)
{
	struct rn_completion completion;

	rn_rx_fill_completion(qpc, idx, RN_WC_WR_FLUSH_ERR, &completion);
	rx->count->resp_cqe_error++;
	rx->count->resp_cqe_flush_error++;
	rn_outbox_put(&rx->completions, &completion);
	rx->busy = true;
}

/* What failed when no header for a NAK was at hand is answered now. */
static void answer_failure(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];
	struct rn_rx_slot *slot;

	if (!flow->nak_due)
		return;
	flow->nak_due = false;
	slot = rn_rx_execute_nak(rx, qpc, RN_AETH_NAK | flow->nak_code, flow->nak_psn);
	slot->final = true;
	rn_packet_at(rx->env->packets, slot->reply.packet)->aeth_msn = flow->nak_msn;
}

/* The queue pair is in error: say so, and give up the message in progress. */
static void fail(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];

	s->error = 1;
	answer_failure(rx, qpc);
	if (flow->tell)
		rn_outbox_put(&rx->notices, &(struct rn_response){.qpn = rx->op_qpn,
								  .packet = RN_PACKET_NONE,
								  .kind = RN_RESPONSE_ERROR});
	if (flow->event)
		rn_rx_put_event(rx, rx->op_qpn, flow->event);
	flow->tell = false;
	flow->event = 0;
	rn_rx_release_held(rx, rx->op_qpn);
	if (s->message == RN_MESSAGE_SEND &&
	    !(flow->failed_receive && flow->failed_idx == (uint16_t)s->rq_current))
		flush_one(rx, qpc, (uint16_t)s->rq_current);
	s->message = RN_MESSAGE_NONE;
	flow->failed_receive = false;
}

static bool may_kick(struct rn_rx *rx, const struct rn_hw_qpc *qpc)
{
	const struct rn_hw_qpc_responder *s =
		(const struct rn_hw_qpc_responder *)(const void *)qpc->responder;

	uint32_t page = rx->flow[rx->op_qpn].kick_page;

	if ((s->error || qpc->state == RN_QPS_ERR) &&
	    (page == qpc->uar_page || page == RN_RX_KICK_MIXED))
		return true;
	rx->count->rq_kicks_ignored++;
	return false;
}

/* How many receive WQEs are to be flushed; a producer index that makes no sense counts as none. */
static uint16_t posted(const struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	uint16_t count = (uint16_t)(rx->fetched.pi - rn_rx_responder(qpc)->rq_next);
	bool answered = rx->fetched.status == RN_WORK_OK || rx->fetched.status == RN_WORK_EMPTY;

	return answered && count <= 1u << (qpc->log_rq_wqes & 15) ? count : 0;
}

static enum rn_rx_step flush(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);

	if (!rx->flushing) {
		if (rn_rx_fetch_pi(rx, rx->op_qpn, (uint16_t)s->rq_next) != RN_FETCH_ANSWERED)
			return RN_RX_WAIT;
		rx->fetch = RN_FETCH_NONE;
		rx->flushing = true;
		rx->flush_left = posted(rx, qpc);
	}
	if (rx->flush_left) {
		/* The engine comes here with an empty box. */
		flush_one(rx, qpc, (uint16_t)s->rq_next);
		s->rq_next = (uint16_t)(s->rq_next + 1);
		rx->flush_left--;
		rx->again = true;
		return RN_RX_WAIT;
	}
	rx->flushing = false;
	return RN_RX_DONE;
}

enum rn_rx_step rn_rx_todo_run(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];
	uint8_t todo = flow->todo;

	/* In mid-flush: what has come since, a kick from anybody's page perhaps, has its turn afterwards. */
	if (rx->fetch != RN_FETCH_NONE || rx->flushing)
		return flush(rx, qpc);
	flow->todo = 0;
	if (qpc->state == RN_QPS_RESET || qpc->state == RN_QPS_INIT)
		return RN_RX_DONE;
	if (todo & RN_RX_TODO_FAIL)
		fail(rx, qpc);
	else if ((todo & RN_RX_TODO_KICK) && !may_kick(rx, qpc))
		return RN_RX_DONE;
	if (qpc->srqn)
		return RN_RX_DONE;
	return flush(rx, qpc);
}
