/*
 * Transport tx: timers and retransmission.
 *
 * One timer a QP: the local ACK timer (from the first packet sent without one running, then from the last
 * progress; IBA volume 1, 9.7.6.1.3), the wait after an RNR NAK, or the reaction time before a
 * retransmission. Deadlines hang in a heap whose keys may lag behind, since every ACK moves a deadline on.
 *
 * Going back N: sq_next is set back to the WQE that holds una_psn, prefetched WQEs are forgotten, packets
 * not yet sent are dropped, and the scheduler grants the QP again: the WQE is fetched anew and the message goes
 * on at the packet that una_psn says.
 */
#include "base/mem.h"
#include "nic/transport/tx.h"
#include "wire/psn.h"

#define ACK_TIMEOUT_UNIT_PS UINT64_C(4096000)

static void swap(struct rn_tx *tx, uint32_t a, uint32_t b)
{
	struct rn_tx_heap_node node = tx->heap[a];

	tx->heap[a] = tx->heap[b];
	tx->heap[b] = node;
	tx->flow[tx->heap[a].qpn].heap_pos = a;
	tx->flow[tx->heap[b].qpn].heap_pos = b;
}

/* Equal keys are ordered by QPN, so that the order of arming does not matter. */
static bool is_before(const struct rn_tx *tx, uint32_t a, uint32_t b)
{
	const struct rn_tx_heap_node *x = &tx->heap[a];
	const struct rn_tx_heap_node *y = &tx->heap[b];

	return x->key_ps < y->key_ps || (x->key_ps == y->key_ps && x->qpn < y->qpn);
}

static void sift_up(struct rn_tx *tx, uint32_t pos)
{
	while (pos > 1 && is_before(tx, pos, pos / 2)) {
		swap(tx, pos, pos / 2);
		pos /= 2;
	}
}

static void sift_down(struct rn_tx *tx, uint32_t pos)
{
	for (;;) {
		uint32_t least = pos;

		if (2 * pos <= tx->heap_count && is_before(tx, 2 * pos, least))
			least = 2 * pos;
		if (2 * pos + 1 <= tx->heap_count && is_before(tx, 2 * pos + 1, least))
			least = 2 * pos + 1;
		if (least == pos)
			return;
		swap(tx, pos, least);
		pos = least;
	}
}

static void drop_top(struct rn_tx *tx)
{
	tx->flow[tx->heap[1].qpn].heap_pos = 0;
	tx->heap[1] = tx->heap[tx->heap_count--];
	if (!tx->heap_count)
		return;
	tx->flow[tx->heap[1].qpn].heap_pos = 1;
	sift_down(tx, 1);
}

static void arm_wake(struct rn_tx *tx)
{
	if (tx->heap_count)
		rn_wake_at(tx->env->sim, &tx->timer_wake, tx->heap[1].key_ps);
}

static void wake(void *arg)
{
	struct rn_tx *tx = arg;
	uint64_t now_ps = rn_sim_now_ps(tx->env->sim);

	if (tx->heap_count && tx->heap[1].key_ps <= now_ps)
		rn_block_wake_at(&tx->block, now_ps);
	else
		arm_wake(tx);
}

void rn_tx_retx_init(struct rn_tx *tx)
{
	tx->heap = rn_calloc((size_t)tx->params->max_qps + 1, sizeof(*tx->heap));
	rn_wake_init(tx->env->sim, &tx->timer_wake, wake, tx);
}

void rn_tx_timer_set(struct rn_tx *tx, uint32_t qpn, enum rn_tx_timer kind, uint64_t deadline_ps)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];

	flow->timer = (uint8_t)kind;
	flow->deadline_ps = deadline_ps;
	if (!flow->heap_pos) {
		tx->heap[++tx->heap_count] = (struct rn_tx_heap_node){deadline_ps, qpn};
		flow->heap_pos = tx->heap_count;
	} else if (deadline_ps < tx->heap[flow->heap_pos].key_ps) {
		tx->heap[flow->heap_pos].key_ps = deadline_ps;
	} else {
		return;
	}
	sift_up(tx, flow->heap_pos);
	if (flow->heap_pos == 1)
		arm_wake(tx);
}

void rn_tx_timer_stop(struct rn_tx *tx, uint32_t qpn)
{
	tx->flow[qpn].timer = RN_TIMER_OFF;
}

void rn_tx_timers_due(struct rn_tx *tx)
{
	uint64_t now_ps = rn_sim_now_ps(tx->env->sim);

	if (!tx->heap_count || tx->heap[1].key_ps > now_ps)
		return;
	while (tx->heap_count && tx->heap[1].key_ps <= now_ps) {
		uint32_t qpn = tx->heap[1].qpn;
		struct rn_tx_flow *flow = &tx->flow[qpn];

		if (flow->timer != RN_TIMER_OFF && flow->deadline_ps > now_ps) {
			tx->heap[1].key_ps = flow->deadline_ps;
			sift_down(tx, 1);
			continue;
		}
		drop_top(tx);
		if (flow->timer != RN_TIMER_OFF)
			rn_tx_add_todo(tx, qpn, RN_TODO_TIMER);
	}
	arm_wake(tx);
}

uint64_t rn_tx_cycles_ps(const struct rn_tx *tx, uint64_t cycles)
{
	return cycles ? rn_block_edge_in_ps(&tx->block, cycles) - rn_sim_now_ps(tx->env->sim) : 0;
}

uint64_t rn_tx_expiry_ps(const struct rn_tx *tx, const struct rn_hw_qpc *qpc)
{
	uint32_t exponent = qpc->timeout & 31;

	if (!exponent)
		return 0;
	if (exponent < tx->params->timeout_floor_log2)
		exponent = tx->params->timeout_floor_log2;
	return tx->params->timeout_factor * (ACK_TIMEOUT_UNIT_PS << exponent);
}

void rn_tx_activate(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	tx->flow[tx->op_qpn].parked = false;
	rn_tx_put_turn(tx, tx->op_qpn, RN_TURN_ACTIVATE, (uint16_t)rn_tx_requester(qpc)->sq_next);
}

void rn_tx_set_back(struct rn_tx *tx, struct rn_hw_qpc *qpc, enum rn_tx_timer kind,
		    uint64_t delay_ps)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint32_t qpn = tx->op_qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];
	uint32_t ref = rn_tx_entry_of_psn(tx, qpn, r->una_psn);

	RN_ASSERT(ref);
	r->next_psn = r->una_psn;
	r->sq_next = rn_tx_entry_at(tx, ref)->wqe_idx;
	flow->send_entry = ref;
	flow->epoch++;
	rn_outbox_put(&tx->forgets, &(struct rn_wqe_forget){.qpn = qpn});
	rn_tx_timer_stop(tx, qpn);
	if (delay_ps)
		rn_tx_timer_set(tx, qpn, kind, rn_sim_now_ps(tx->env->sim) + delay_ps);
	else
		rn_tx_activate(tx, qpc);
}

void rn_tx_fail_una(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint8_t status)
{
	uint32_t ref = rn_tx_entry_of_psn(tx, tx->op_qpn, rn_tx_requester(qpc)->una_psn);

	RN_ASSERT(ref);
	if (rn_tx_entry_at(tx, ref)->status == RN_WC_SUCCESS)
		rn_tx_entry_at(tx, ref)->status = status;
	/* It completes behind its elders; meanwhile nothing is sent again. */
	rn_tx_timer_stop(tx, tx->op_qpn);
}

void rn_tx_retry(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint64_t reaction_cycles)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);

	if (!r->retries_left) {
		tx->count->req_transport_retries_exceeded++;
		rn_tx_fail_una(tx, qpc, RN_WC_RETRY_EXC_ERR);
		return;
	}
	r->retries_left--;
	rn_tx_set_back(tx, qpc, RN_TIMER_REACT, rn_tx_cycles_ps(tx, reaction_cycles));
}

void rn_tx_timer_run(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_tx_flow *flow = &tx->flow[tx->op_qpn];
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint8_t kind = flow->timer;

	/* Progress may have come first. */
	if (kind == RN_TIMER_OFF || flow->deadline_ps > rn_sim_now_ps(tx->env->sim) ||
	    rn_tx_in_error(qpc, r))
		return;
	flow->timer = RN_TIMER_OFF;
	if (kind != RN_TIMER_ACK) {
		rn_tx_activate(tx, qpc);
		return;
	}
	if (r->una_psn == r->max_psn || (qpc->state != RN_QPS_RTS && qpc->state != RN_QPS_SQD))
		return;
	tx->count->local_ack_timeout_err++;
	rn_tx_retry(tx, qpc, tx->params->timeout_reaction_cycles);
}
