/*
 * Transport rx: control of a queue pair by the command unit; see control.c.
 */
#include <string.h>

#include "nic/transport/rx.h"
#include "wire/psn.h"

static void answer(struct rn_rx *rx)
{
	rn_outbox_put(&rx->control_done, &(struct rn_ctl_done){.token = rx->control.token});
	rx->control_taken = false;
	rx->busy = true;
	rx->again = true;
}

static bool forget_is_due(struct rn_rx *rx)
{
	struct rn_rx_flow *flow = &rx->flow[rx->control.qpn];

	flow->dying = true;
	flow->dead = true;
	flow->paused = false;
	rx->op_qpn = rx->control.qpn;
	return !flow->inflight;
}

bool rn_rx_control_begin(struct rn_rx *rx)
{
	if (!rx->control_taken && !rn_fifo_pop(rx->ports.rx_ctl, &rx->control))
		return false;
	rx->control_taken = true;
	if (rx->control.qpn >= rx->params->max_qps) {
		answer(rx);
		return false;
	}
	switch (rx->control.op) {
	case RN_QP_PAUSE:
		rx->flow[rx->control.qpn].paused = true;
		answer(rx);
		return false;
	case RN_QP_FORGET:
		return forget_is_due(rx);
	default:
		rx->op_qpn = rx->control.qpn;
		return true;
	}
}

/* The responder on the way to RTR (IBA volume 1, 10.3.1); receive WQEs posted before stay. */
static void make_ready(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_rx_flow *flow = &rx->flow[rx->control.qpn];
	struct rn_hw_qpc_responder *s = rn_rx_responder(qpc);
	uint32_t rq_next = s->rq_next;

	memset(s, 0, sizeof(*s));
	s->rq_next = rq_next;
	s->epsn = qpc->rq_psn & RN_PSN_MASK;
	flow->dead = false;
	flow->refused = false;
	flow->nak_due = false;
	flow->failed_receive = false;
	flow->reads = 0;
	flow->event = 0;
	flow->pi_known = false;
}

/* There is no context to go on with. */
static void leave_paused(struct rn_rx *rx)
{
	rx->flow[rx->control.qpn].paused = false;
	rn_rx_park_list(rx, rx->control.qpn);
}

static void resume(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	struct rn_rx_flow *flow = &rx->flow[rx->control.qpn];

	flow->paused = false;
	if (qpc->state == RN_QPS_RTR && rx->control.old_state == RN_QPS_INIT)
		make_ready(rx, qpc);
	if (qpc->state == RN_QPS_ERR) {
		flow->dead = true;
		flow->tell = false;
		flow->event = 0;
		flow->todo |= RN_RX_TODO_FAIL;
	}
	rn_rx_park_list(rx, rx->control.qpn);
	rn_rx_add_todo(rx, rx->control.qpn, 0);
}

static void forget(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	uint32_t qpn = rx->control.qpn;
	struct rn_rx_flow *flow = &rx->flow[qpn];

	rn_rx_release_held(rx, qpn);
	rn_rx_park_forget(rx, qpn);
	flow->dying = false;
	flow->dead = false;
	flow->refused = false;
	flow->nak_due = false;
	flow->failed_receive = false;
	flow->todo = 0;
	flow->reads = 0;
	flow->event = 0;
	flow->pi_known = false;
	if (rx->refresh_qpn == qpn)
		rx->refresh_qpn = UINT32_MAX;
	if (qpc)
		memset(qpc->responder, 0, sizeof(qpc->responder));
	rn_outbox_put(&rx->fetches, &(struct rn_rq_fetch){.qpn = qpn, .forget = 1});
}

void rn_rx_control_run(struct rn_rx *rx, struct rn_hw_qpc *qpc)
{
	if (rx->control.op == RN_QP_FORGET)
		forget(rx, qpc);
	else if (qpc)
		resume(rx, qpc);
	else
		leave_paused(rx);
	answer(rx);
}
