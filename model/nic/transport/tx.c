/*
 * Transport tx: requester, completer, timers and response sender of RC queue pairs (IBA volume 1,
 * 9.7). Exact: packet contents, PSNs, windows, credits, retries, timers, completions and their order. Cycle
 * level: one operation at a time holds a context (a response, an expired timer, a packet of a turn), each with
 * its cost in cycles; payload is gathered into finite packet slots that leave in order; responses and
 * requests share the port in turn. Left out: atomics, UC, UD, selective repeat, congestion control.
 */
#include "nic/transport/tx.h"

#include <stdlib.h>

#include "base/mem.h"

void rn_tx_add_todo(struct rn_tx *tx, uint32_t qpn, uint8_t bits)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];

	flow->todo |= bits;
	if (flow->todo_listed || flow->paused || !flow->todo)
		return;
	flow->todo_listed = true;
	flow->todo_next = RN_NONE;
	if (tx->todo_tail)
		tx->flow[tx->todo_tail - 1].todo_next = qpn + 1;
	else
		tx->todo_head = qpn + 1;
	tx->todo_tail = qpn + 1;
	tx->freed = true;
}

void rn_tx_put_turn(struct rn_tx *tx, uint32_t qpn, enum rn_turn_kind kind, uint16_t next)
{
	rn_outbox_put(&tx->turns, &(struct rn_turn){
					  .qpn = qpn,
					  .kind = (uint8_t)kind,
					  .next = next,
				  });
}

void rn_tx_put_event(struct rn_tx *tx, uint32_t qpn, uint8_t subtype)
{
	rn_outbox_put(&tx->events, &(struct rn_event){
					   .type = RN_EQE_QP_EVENT,
					   .subtype = subtype,
					   .number = qpn,
				   });
}

/* True when everything said so far is on its way: WQEs are forgotten before turns bring grants. */
static bool send_boxes(struct rn_tx *tx)
{
	bool clear = rn_outbox_send(&tx->frees);

	clear &= rn_outbox_send(&tx->completions);
	clear &= rn_outbox_send(&tx->events);
	clear &= rn_outbox_send(&tx->feedback);
	clear = rn_outbox_send(&tx->forgets) && rn_outbox_send(&tx->turns) && clear;
	if (!tx->control_done.count)
		return clear;
	/* A control request is answered when nothing of it is left here, the context included. */
	if (!clear || tx->op != RN_TX_OP_NONE)
		return clear;
	if (rn_context_port_holds(&tx->context, tx->control.qpn) &&
	    !rn_context_port_release(&tx->context))
		return false;
	return rn_outbox_send(&tx->control_done);
}

static bool choose_response(struct rn_tx *tx)
{
	const struct rn_response *response = rn_fifo_peek(tx->response);

	if (!response || !rn_tx_response_is_ready(tx, response))
		return false;
	tx->op_qpn = response->qpn;
	return true;
}

static bool choose_todo(struct rn_tx *tx)
{
	while (tx->todo_head) {
		uint32_t qpn = tx->todo_head - 1;
		struct rn_tx_flow *flow = &tx->flow[qpn];

		tx->todo_head = flow->todo_next;
		if (!tx->todo_head)
			tx->todo_tail = RN_NONE;
		flow->todo_listed = false;
		if (flow->dying)
			flow->todo = 0;
		if (flow->paused || !flow->todo)
			continue;
		tx->op_qpn = qpn;
		return true;
	}
	return false;
}

static bool choose_turn(struct rn_tx *tx)
{
	if (!rn_tx_turn_wants_context(tx, tx->cycle))
		return false;
	tx->op_qpn = tx->turn.work.qpn;
	return true;
}

/* Control first, then the other kinds in turn. */
static bool choose(struct rn_tx *tx)
{
	static bool (*const choices[])(struct rn_tx *) = {choose_response, choose_todo,
							  choose_turn};
	const unsigned kinds = sizeof(choices) / sizeof(choices[0]);

	tx->op_held = false;
	tx->op_ran = false;
	if (rn_tx_control_begin(tx)) {
		tx->op = RN_TX_OP_CONTROL;
		return true;
	}
	if (tx->control_done.count)
		return false;
	for (unsigned i = 1; i <= kinds; i++) {
		unsigned kind = (tx->last_op + i) % kinds;

		if (!choices[kind](tx))
			continue;
		tx->last_op = kind;
		tx->op = RN_TX_OP_RESPONSE + kind;
		return true;
	}
	return false;
}

static uint64_t cost_cycles(const struct rn_tx *tx)
{
	if (tx->op == RN_TX_OP_RESPONSE)
		return tx->params->completion_cycles;
	if (tx->op == RN_TX_OP_TURN && tx->turn.state == RN_TURN_STATE_START)
		return tx->params->turn_cycles;
	return 0;
}

static void run_todo(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_tx_flow *flow = &tx->flow[tx->op_qpn];
	uint8_t todo = flow->todo;

	flow->todo = 0;
	if (todo & RN_TODO_PAYLOAD)
		rn_tx_payload_failed(tx, qpc);
	if (todo & RN_TODO_TIMER)
		rn_tx_timer_run(tx, qpc);
	if ((todo & RN_TODO_ACTIVATE) && flow->parked)
		rn_tx_activate(tx, qpc);
	/* RN_TODO_RETIRE: every operation retires at its end. */
}

static void run_op(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_response response;

	switch (tx->op) {
	case RN_TX_OP_CONTROL:
		rn_tx_control_run(tx, qpc);
		break;
	case RN_TX_OP_RESPONSE:
		rn_fifo_pop(tx->response, &response);
		rn_tx_response_run(tx, qpc, &response);
		break;
	case RN_TX_OP_TODO:
		run_todo(tx, qpc);
		break;
	case RN_TX_OP_TURN:
		rn_tx_turn_run(tx, qpc);
		break;
	case RN_TX_OP_NONE:
		break;
	}
	tx->context.dirty = true;
	tx->op_ran = true;
	tx->busy = true;
}

/* The context of the chosen operation cannot be had. */
static void drop_op(struct rn_tx *tx)
{
	struct rn_response response;

	switch (tx->op) {
	case RN_TX_OP_CONTROL:
		rn_tx_control_run(tx, NULL);
		break;
	case RN_TX_OP_RESPONSE:
		rn_fifo_pop(tx->response, &response);
		rn_packet_put(tx->env->packets, response.packet);
		tx->count->stale_responses++;
		break;
	case RN_TX_OP_TODO:
		tx->flow[tx->op_qpn].todo = 0;
		break;
	case RN_TX_OP_TURN:
		rn_tx_turn_drop(tx);
		break;
	case RN_TX_OP_NONE:
		break;
	}
	tx->op = RN_TX_OP_NONE;
	tx->busy = true;
}

static bool has_more(struct rn_tx *tx)
{
	bool may_take_work = tx->turn.state == RN_TURN_STATE_NONE && rn_fifo_peek(tx->ports.work);

	return tx->todo_head || may_take_work || rn_tx_turn_wants_context(tx, tx->cycle + 1) ||
	       rn_fifo_peek(tx->response) || rn_fifo_peek(tx->ports.tx_ctl) || tx->control_taken;
}

/* One step of the operation in hand. False when it waits for something that wakes the block. */
static bool step_op(struct rn_tx *tx)
{
	switch (rn_context_port_get(&tx->context, tx->op_qpn)) {
	case RN_CONTEXT_PORT_HELD:
		break;
	case RN_CONTEXT_PORT_BAD:
		drop_op(tx);
		return true;
	default:
		tx->stall = RN_STALL_MISS;
		return false;
	}
	if (!tx->op_held) {
		tx->op_held = true;
		tx->op_cycle = tx->cycle + cost_cycles(tx);
		rn_occupy(&tx->occupancy, tx->cycle, cost_cycles(tx));
	}
	if (tx->cycle < tx->op_cycle) {
		tx->busy = true;
		rn_block_wake_in(&tx->block, tx->op_cycle - tx->cycle);
		return false;
	}

	struct rn_hw_qpc *qpc = rn_context_port_qpc(&tx->context);

	rn_context_note_sq_next(tx->ports.qpc, tx->context.line, rn_sim_now_ps(tx->env->sim),
				rn_tx_requester(qpc)->sq_next);
	if (!tx->op_ran)
		run_op(tx, qpc);
	bool is_done = rn_tx_retire(tx, qpc);

	/* A turn whose gather is still going on ends with what sq_next is then. */
	if (tx->turn.work.qpn == tx->op_qpn)
		tx->turn.next = (uint16_t)rn_tx_requester(qpc)->sq_next;
	if (is_done) {
		rn_tx_serve_waiters(tx);
		tx->op = RN_TX_OP_NONE;
		rn_context_port_used(&tx->context, tx->cycle);
	}
	return true;
}

/* True when the operation in hand goes on in the next cycle. */
static bool engine(struct rn_tx *tx)
{
	/* An operation starts, and one that retires goes on, when all was said before. */
	if (!send_boxes(tx)) {
		tx->stall = RN_STALL_OUTPUT;
		return false;
	}
	if (tx->op == RN_TX_OP_NONE && !choose(tx)) {
		rn_context_port_idle(&tx->context, tx->cycle);
		return false;
	}
	if (!step_op(tx))
		return false;
	tx->freed = true;
	return tx->op != RN_TX_OP_NONE;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_tx *tx = self;

	tx->cycle = cycle;
	tx->busy = false;
	tx->freed = false;
	tx->stall = RN_STALL_NONE;
	rn_tx_take_reads(tx);
	rn_tx_take_writes(tx);
	rn_tx_take_replies(tx);
	rn_tx_timers_due(tx);

	bool stepped = engine(tx);

	rn_tx_turn_step(tx);
	rn_tx_scatter_step(tx);
	rn_tx_reply_step(tx);
	rn_tx_emit(tx);
	if (!send_boxes(tx))
		tx->stall = RN_STALL_OUTPUT;
	else if (tx->freed &&
		 (stepped || tx->reply_head || (tx->op == RN_TX_OP_NONE && has_more(tx))))
		rn_block_wake_next(&tx->block);
	rn_block_account(&tx->block, tx->busy, tx->stall);
}

static void connect(struct rn_tx *tx)
{
	const struct rn_transport_ports *p = &tx->ports;
	struct rn_fifo *const in[] = {p->work,	       p->tx_context_rsp,    p->tx_dma_rsp,
				      p->resp_dma_rsp, p->read_data_dma_rsp, p->tx_ctl};
	struct rn_fifo *const out[] = {
		p->turn,       p->sq_free,	p->sq_forget,	      p->tx_context_req,
		p->tx_dma_req, p->resp_dma_req, p->read_data_dma_req, p->tx_completion,
		p->tx_event,   p->tx_ctl_done,	p->tx_frame};

	for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		rn_fifo_set_consumer(in[i], &tx->block);
	for (unsigned i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		rn_fifo_set_producer(out[i], &tx->block);
	rn_outbox_init(&tx->turns, p->turn);
	rn_outbox_init(&tx->frees, p->sq_free);
	rn_outbox_init(&tx->forgets, p->sq_forget);
	rn_outbox_init(&tx->completions, p->tx_completion);
	rn_outbox_init(&tx->events, p->tx_event);
	rn_outbox_init(&tx->control_done, p->tx_ctl_done);
}

void rn_tx_link(struct rn_tx *tx, struct rn_fifo *response, struct rn_fifo *reply,
		struct rn_fifo *feedback)
{
	tx->response = response;
	tx->reply = reply;
	rn_fifo_set_consumer(response, &tx->block);
	rn_fifo_set_consumer(reply, &tx->block);
	rn_fifo_set_producer(feedback, &tx->block);
	rn_outbox_init(&tx->feedback, feedback);
}

struct rn_tx *rn_tx_new(const struct rn_nic_env *env, const struct rn_transport_params *params,
			const struct rn_transport_ports *ports, const char *name,
			struct rn_transport_counters *count)
{
	struct rn_tx *tx = rn_calloc(1, sizeof(*tx));

	tx->env = env;
	tx->params = params;
	tx->ports = *ports;
	tx->count = count;
	tx->flow = rn_calloc(params->max_qps, sizeof(*tx->flow));
	rn_block_init(&tx->block, env->sim, env->core, name, tick, tx);
	rn_context_port_init(&tx->context, &tx->block, ports->tx_context_req, ports->tx_context_rsp,
			     ports->qpc, params->context_hold_cycles);
	connect(tx);
	rn_tx_ring_init(&tx->requests, params->tx_packet_slots);
	rn_tx_ring_init(&tx->replies, params->reply_slots);
	rn_tx_outstanding_init(tx);
	rn_tx_writes_init(tx);
	rn_tx_retx_init(tx);
	rn_tx_reply_init(tx);
	return tx;
}

void rn_tx_free(struct rn_tx *tx)
{
	if (!tx)
		return;
	free(tx->flow);
	free(tx->requests.slot);
	free(tx->replies.slot);
	free(tx->entry);
	free(tx->sge_list);
	free(tx->write);
	free(tx->heap);
	free(tx->job);
	free(tx->delay);
	free(tx);
}
