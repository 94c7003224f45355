/*
 * Transport rx: the responder of RC queue pairs (IBA volume 1, 9.7.4, 9.7.5.1, 9.9). Exact: PSN,
 * opcode sequence, length, P_Key and access checks, NAK and RNR NAK codes, duplicates, MSN, credits, completions
 * and events. Cycle level: requests are checked one at a time, with the context held and its neighbours'
 * prefetched; payload is placed by finite slots; what a request causes leaves in order. A queue pair
 * whose request has to wait for its receive WQE waits aside. Left out: atomics, SRQ, UC, UD, CNP.
 */
#include "nic/transport/rx.h"

#include <stdlib.h>

#include "base/mem.h"

void rn_rx_add_todo(struct rn_rx *rx, uint32_t qpn, uint8_t bits)
{
	struct rn_rx_flow *flow = &rx->flow[qpn];

	flow->todo |= bits;
	/* A failure waits for the QP's last slot, which calls here again. */
	if (flow->todo_listed || flow->paused || flow->inflight || !flow->todo)
		return;
	flow->todo_listed = true;
	flow->todo_next = 0;
	if (rx->todo_tail)
		rx->flow[rx->todo_tail - 1].todo_next = qpn + 1;
	else
		rx->todo_head = qpn + 1;
	rx->todo_tail = qpn + 1;
	rx->again = true;
}

void rn_rx_put_event(struct rn_rx *rx, uint32_t qpn, uint8_t subtype)
{
	rn_outbox_put(&rx->events, &(struct rn_event){
					   .type = RN_EQE_QP_EVENT,
					   .subtype = subtype,
					   .number = qpn,
				   });
}

static void fail_from_tx(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_flow *flow = &rx->flow[qpn];

	if (!flow->dead)
		flow->tell = false;
	flow->dead = true;
	rn_rx_add_todo(rx, qpn, RN_RX_TODO_FAIL);
}

static void take_feedback(struct rn_rx *rx)
{
	struct rn_feedback feedback;

	while (rn_fifo_pop(rx->feedback, &feedback)) {
		struct rn_rx_flow *flow = &rx->flow[feedback.qpn];

		rx->busy = true;
		switch (feedback.kind) {
		case RN_FEEDBACK_READ_DONE:
			if (flow->reads)
				flow->reads--;
			break;
		case RN_FEEDBACK_REPLY_ERROR:
			rx->count->resp_remote_operational_errors++;
			if (!flow->dead)
				flow->event = RN_QP_EVENT_FATAL;
			fail_from_tx(rx, feedback.qpn);
			flow->tell = true;
			break;
		default:
			fail_from_tx(rx, feedback.qpn);
			break;
		}
	}
}

/* Somebody else's must not take the place of the owner's: of kicks from several pages one may be right. */
static void note_kick(struct rn_rx_flow *flow, uint32_t uar_page)
{
	bool mixed = (flow->todo & RN_RX_TODO_KICK) && flow->kick_page != uar_page;

	flow->kick_page = mixed ? RN_RX_KICK_MIXED : uar_page;
}

static void take_kicks(struct rn_rx *rx)
{
	struct rn_rq_ring ring;

	while (rn_fifo_pop(rx->ports.rq_ring, &ring)) {
		rx->busy = true;
		if (ring.qpn >= rx->params->max_qps) {
			rx->count->rq_kicks_ignored++;
			continue;
		}
		note_kick(&rx->flow[ring.qpn], ring.uar_page);
		rn_rx_add_todo(rx, ring.qpn, RN_RX_TODO_KICK);
	}
}

static bool send_boxes(struct rn_rx *rx)
{
	bool clear = rn_outbox_send(&rx->fetches);

	clear &= rn_outbox_send(&rx->frees);
	clear &= rn_outbox_send(&rx->completions);
	clear &= rn_outbox_send(&rx->events);
	if (!rx->control_done.count || !clear || rx->op != RN_RX_OP_NONE)
		return clear;
	/* A control request is answered when nothing of it is left here, the context included. */
	if (rn_context_port_holds(&rx->context, rx->control.qpn) &&
	    !rn_context_port_release(&rx->context))
		return false;
	return rn_outbox_send(&rx->control_done);
}

static bool choose_todo(struct rn_rx *rx)
{
	/* A failure may have a NAK to send. */
	while (rx->todo_head && !rn_rx_slots_are_full(rx)) {
		uint32_t qpn = rx->todo_head - 1;
		struct rn_rx_flow *flow = &rx->flow[qpn];

		rx->todo_head = flow->todo_next;
		if (!rx->todo_head)
			rx->todo_tail = 0;
		flow->todo_listed = false;
		if (flow->dying)
			flow->todo = 0;
		if (flow->paused || flow->inflight || !flow->todo)
			continue;
		rx->op = RN_RX_OP_TODO;
		rx->op_qpn = qpn;
		return true;
	}
	return false;
}

/* Whether the check takes @waiting now. One that comes back is through with it but for its receive WQE. */
static bool begin_packet(struct rn_rx *rx, const struct rn_rx_waiting *waiting, uint32_t qpn,
			 bool is_parked)
{
	uint64_t cycle = waiting->ready_cycle;

	if (cycle < rx->packet_cycle && !waiting->is_checked)
		cycle = rx->packet_cycle;
	if (rx->cycle < cycle) {
		rn_block_wake_in(&rx->block, cycle - rx->cycle);
		return false;
	}
	if (rn_rx_slots_are_full(rx)) {
		rx->stall = RN_STALL_BUFFER;
		return false;
	}
	rx->op = RN_RX_OP_PACKET;
	rx->op_qpn = qpn;
	rx->op_is_parked = is_parked;
	if (waiting->is_checked)
		return true;
	rx->packet_cycle = rx->cycle + rx->params->rx_packet_cycles;
	rn_occupy(&rx->occupancy, rx->cycle, rx->params->rx_packet_cycles);
	return true;
}

static bool choose_waiting(struct rn_rx *rx)
{
	struct rn_rx_waiting waiting;
	const struct rn_packet *packet;

	while ((packet = rn_rx_first_waiting(rx, &waiting))) {
		uint32_t qpn = packet->dqpn;

		if (rx->flow[qpn].paused) {
			rx->stall = RN_STALL_LOCK;
			return false;
		}
		if (!rn_rx_is_parked(rx, qpn))
			return begin_packet(rx, &waiting, qpn, false);
		if (!rn_rx_park_packet(rx, qpn, &waiting)) {
			rx->stall = RN_STALL_MISS;
			return false;
		}
		rn_rx_park_list(rx, qpn);
		rn_rx_drop_waiting(rx, false);
	}
	if (rx->parking.waiting)
		rx->stall = RN_STALL_MISS;
	return false;
}

static bool choose_back(struct rn_rx *rx)
{
	uint32_t back = rn_rx_park_back(rx);

	return back && begin_packet(rx, rn_rx_park_first(rx, back - 1), back - 1, true);
}

static bool choose_packet(struct rn_rx *rx)
{
	rx->op_back_next = !rx->op_back_next;
	if (rx->op_back_next)
		return choose_back(rx) || choose_waiting(rx);
	return choose_waiting(rx) || choose_back(rx);
}

static bool choose(struct rn_rx *rx)
{
	if (rn_rx_control_begin(rx)) {
		rx->op = RN_RX_OP_CONTROL;
		return true;
	}
	/* A notice to tx waits aside: control must go on while tx takes none. */
	if (rx->control_done.count || rx->notices.count)
		return false;
	rx->op_todo_next = !rx->op_todo_next;
	if (rx->op_todo_next)
		return choose_todo(rx) || choose_packet(rx);
	return choose_packet(rx) || choose_todo(rx);
}

static enum rn_rx_step run_op(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	switch (rx->op) {
	case RN_RX_OP_CONTROL:
		rn_rx_control_run(rx, qpc);
		return RN_RX_DONE;
	case RN_RX_OP_TODO:
		return rn_rx_todo_run(rx, qpc);
	case RN_RX_OP_PACKET:
		return rn_rx_packet_run(rx, qpc);
	case RN_RX_OP_NONE:
		break;
	}
	return RN_RX_DONE;
}

static void drop_op(struct rn_rx *rx)
{
	if (rx->op == RN_RX_OP_CONTROL)
		rn_rx_control_run(rx, NULL);
	else if (rx->op == RN_RX_OP_TODO)
		rx->flow[rx->op_qpn].todo = 0;
	else {
		rx->count->rx_unknown_qp++;
		rn_rx_drop_at_hand(rx, true);
	}
	rx->op = RN_RX_OP_NONE;
	rx->again = true;
}

/* The context of a queue pair that waits is kept: it goes on with it. */
static void idle(struct rn_rx *rx)
{
	uint32_t qpn = rx->context.qpn;

	if (qpn >= rx->params->max_qps || !rx->flow[qpn].park.waits)
		rn_context_port_idle(&rx->context, rx->cycle);
}

static void engine(struct rn_rx *rx)
{
	if (!send_boxes(rx)) {
		rx->stall = RN_STALL_OUTPUT;
		return;
	}
	if (rx->op == RN_RX_OP_NONE && !choose(rx)) {
		idle(rx);
		return;
	}
	switch (rn_context_port_get(&rx->context, rx->op_qpn)) {
	case RN_CONTEXT_PORT_HELD:
		break;
	case RN_CONTEXT_PORT_BAD:
		drop_op(rx);
		return;
	default:
		rx->stall = RN_STALL_MISS;
		return;
	}
	rx->context.dirty = true;
	if (run_op(rx, rn_context_port_qpc(&rx->context)) == RN_RX_WAIT)
		return;
	rx->op = RN_RX_OP_NONE;
	rn_context_port_used(&rx->context, rx->cycle);
	rx->busy = true;
	rx->again = true;
}

static bool has_more(struct rn_rx *rx)
{
	return rx->op != RN_RX_OP_NONE || rx->waiting_used || rx->todo_head || rx->control_taken ||
	       rx->parking.queue[RN_RX_LIST_BACK].head || rn_fifo_peek(rx->ports.rx_ctl);
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_rx *rx = self;

	rx->cycle = cycle;
	rx->busy = false;
	rx->again = false;
	rx->stall = RN_STALL_NONE;
	take_feedback(rx);
	take_kicks(rx);
	rn_rx_take_fetched(rx);
	rn_rx_take_answers(rx);
	rn_outbox_send(&rx->notices);
	rn_rx_intake(rx);
	engine(rx);
	rn_rx_place(rx);
	rn_rx_retire(rx);
	rn_outbox_send(&rx->notices);
	if (!send_boxes(rx))
		rx->stall = RN_STALL_OUTPUT;
	else if (rx->again && has_more(rx))
		rn_block_wake_next(&rx->block);
	rn_block_account(&rx->block, rx->busy, rx->stall);
}

static void connect(struct rn_rx *rx)
{
	const struct rn_transport_ports *p = &rx->ports;
	struct rn_fifo *const in[] = {p->rx_frame,   p->rx_context_rsp, p->rx_pte_rsp,
				      p->rx_dma_rsp, p->rq_fetch_rsp,	p->rq_ring,
				      p->rx_ctl};
	struct rn_fifo *const out[] = {p->rx_context_req, p->rx_pte_req, p->rx_dma_req,
				       p->rq_fetch,	  p->rq_free,	 p->rx_completion,
				       p->rx_event,	  p->rx_ctl_done};

	for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		rn_fifo_set_consumer(in[i], &rx->block);
	for (unsigned i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		rn_fifo_set_producer(out[i], &rx->block);
	rn_outbox_init(&rx->fetches, p->rq_fetch);
	rn_outbox_init(&rx->frees, p->rq_free);
	rn_outbox_init(&rx->completions, p->rx_completion);
	rn_outbox_init(&rx->events, p->rx_event);
	rn_outbox_init(&rx->control_done, p->rx_ctl_done);
}

void rn_rx_link(struct rn_rx *rx, struct rn_fifo *response, struct rn_fifo *reply,
		struct rn_fifo *feedback)
{
	rx->response = response;
	rx->reply = reply;
	rx->feedback = feedback;
	rn_fifo_set_producer(response, &rx->block);
	rn_fifo_set_producer(reply, &rx->block);
	rn_fifo_set_consumer(feedback, &rx->block);
	rn_outbox_init(&rx->notices, response);
}

struct rn_rx *rn_rx_new(const struct rn_nic_env *env, const struct rn_transport_params *params,
			const struct rn_transport_ports *ports, const char *name,
			struct rn_transport_counters *count)
{
	struct rn_rx *rx = rn_calloc(1, sizeof(*rx));

	rx->env = env;
	rx->params = params;
	rx->ports = *ports;
	rx->count = count;
	rx->flow = rn_calloc(params->max_qps, sizeof(*rx->flow));
	rx->waiting = rn_calloc(params->rx_lookahead, sizeof(*rx->waiting));
	rn_block_init(&rx->block, env->sim, env->core, name, tick, rx);
	rn_context_port_init(&rx->context, &rx->block, ports->rx_context_req, ports->rx_context_rsp,
			     ports->qpc, params->context_hold_cycles);
	connect(rx);
	rn_rx_slots_init(rx);
	rn_rx_receive_init(rx);
	rn_rx_park_init(rx);
	return rx;
}

void rn_rx_free(struct rn_rx *rx)
{
	if (!rx)
		return;
	rn_rx_receive_fini(rx);
	rn_rx_park_fini(rx);
	free(rx->flow);
	free(rx->waiting);
	free(rx->slot);
	free(rx);
}
