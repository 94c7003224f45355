/*
 * Transport tx: control of a queue pair by the command unit. PAUSE holds it between operations; RESUME
 * goes on under the new state; FORGET drops it when its last DMA has been answered.
 */
#include <string.h>

#include "nic/transport/tables.h"
#include "nic/transport/tx.h"
#include "wire/psn.h"

static void answer(struct rn_tx *tx)
{
	rn_outbox_put(&tx->control_done, &(struct rn_ctl_done){.token = tx->control.token});
	tx->control_taken = false;
	tx->busy = true;
	tx->freed = true;
}

static void pause_qp(struct rn_tx *tx)
{
	tx->flow[tx->control.qpn].paused = true;
	rn_tx_turn_abandon(tx, tx->control.qpn);
	answer(tx);
}

static bool is_idle(const struct rn_tx *tx, uint32_t qpn)
{
	return !tx->flow[qpn].inflight &&
	       !(tx->turn.state != RN_TURN_STATE_NONE && tx->turn.work.qpn == qpn);
}

/* True when the QP's last DMA has been answered and its context is wanted. */
static bool forget_is_due(struct rn_tx *tx)
{
	uint32_t qpn = tx->control.qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];

	if (!flow->dying) {
		flow->dying = true;
		flow->paused = false;
		flow->epoch++;
		rn_tx_drop_jobs(tx, qpn);
		rn_tx_timer_stop(tx, qpn);
		rn_tx_turn_abandon(tx, qpn);
	}
	tx->op_qpn = qpn;
	return is_idle(tx, qpn);
}

bool rn_tx_control_begin(struct rn_tx *tx)
{
	if (!tx->control_taken && !rn_fifo_pop(tx->ports.tx_ctl, &tx->control))
		return false;
	tx->control_taken = true;
	if (tx->control.qpn >= tx->params->max_qps) {
		answer(tx);
		return false;
	}
	switch (tx->control.op) {
	case RN_QP_PAUSE:
		pause_qp(tx);
		return false;
	case RN_QP_FORGET:
		return forget_is_due(tx);
	default:
		tx->op_qpn = tx->control.qpn;
		return true;
	}
}

/* INIT of the requester on the way to RTS (IBA volume 1, 10.3.1). */
static void make_ready(struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);

	if (r->ready)
		return;
	r->next_psn = r->una_psn = r->max_psn = qpc->sq_psn & RN_PSN_MASK;
	r->retries_left = qpc->retry_cnt;
	r->rnr_left = qpc->rnr_retry;
	r->ready = 1;
}

static void resume(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	uint32_t qpn = tx->control.qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	bool waits = rn_tx_is_waiting(flow);

	flow->paused = false;
	switch (qpc->state) {
	case RN_QPS_RTS:
		make_ready(qpc);
		r->drained = 0;
		break;
	case RN_QPS_SQD:
		rn_tx_check_drained(tx, qpc);
		break;
	case RN_QPS_ERR:
		rn_tx_drop_jobs(tx, qpn);
		rn_tx_enter_error(tx, qpc, false);
		break;
	default:
		break;
	}
	if (qpc->state >= RN_QPS_RTS && !waits)
		rn_tx_activate(tx, qpc);
	rn_tx_add_todo(tx, qpn, 0);
}

static void forget(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	uint32_t qpn = tx->control.qpn;

	rn_tx_forget(tx, qpn);
	if (qpc)
		memset(qpc->requester, 0, sizeof(qpc->requester));
	rn_outbox_put(&tx->forgets, &(struct rn_wqe_forget){.qpn = qpn});
	rn_tx_put_turn(tx, qpn, RN_TURN_RESET, 0);
}

void rn_tx_control_run(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	if (tx->control.op == RN_QP_FORGET)
		forget(tx, qpc);
	else if (qpc)
		resume(tx, qpc);
	else
		tx->flow[tx->control.qpn].paused = false;
	answer(tx);
}
