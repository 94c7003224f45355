/*
 * Transport rx: receive WQEs from the WQE fetcher. The request at hand asks for its own and waits; the
 * one behind it is asked for ahead when it is known to be posted, for a limited number of queue pairs; and the
 * producer index is read afresh, beside the work, when few are known to be left.
 */
#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "nic/transport/rx.h"

/* Tokens: own requests, ahead ones by entry, the producer index. */
#define OWN_TOKEN_MASK 0x7fffu
#define AHEAD_TOKEN 0x8000u
#define REFRESH_TOKEN 0xffffu

enum ahead_state {
	AHEAD_FREE,
	AHEAD_ASKED,
	AHEAD_READY,
	AHEAD_TAKEN,   /* asked for; the request at hand waits for it */
	AHEAD_DROPPED, /* asked for; nobody wants it any more */
};

struct rn_rx_ahead {
	uint32_t qpn;
	uint32_t slot;
	uint16_t idx;
	uint8_t state;
};

void rn_rx_ahead_init(struct rn_rx *rx)
{
	uint32_t slots = rx->ports.rq_slots->count;
	uint32_t room = slots > rx->params->rx_slots + 2 ? slots - rx->params->rx_slots - 2 : 0;

	/* The other half is for SENDs of several packets. */
	rx->aheads = (uint32_t)rn_min_u64(rx->params->receive_ahead_wqes, room / 2);
	rx->ahead = rn_calloc(rx->aheads + 1, sizeof(*rx->ahead));
}

void rn_rx_ahead_fini(struct rn_rx *rx)
{
	free(rx->ahead);
}

void rn_rx_free_wqe(struct rn_rx *rx, uint32_t slot)
{
	rn_outbox_put(&rx->frees, &(struct rn_slot_free){.slot = slot});
}

static void drop_entry(struct rn_rx *rx, struct rn_rx_ahead *ahead)
{
	rx->flow[ahead->qpn].ahead = 0;
	if (ahead->state == AHEAD_READY)
		rn_rx_free_wqe(rx, ahead->slot);
	ahead->state = ahead->state == AHEAD_ASKED ? AHEAD_DROPPED : AHEAD_FREE;
}

void rn_rx_ahead_drop(struct rn_rx *rx, uint32_t qpn)
{
	if (rx->flow[qpn].ahead)
		drop_entry(rx, &rx->ahead[rx->flow[qpn].ahead - 1]);
}

/* Ask for the next receive WQE of the QP; the oldest of those asked for ahead makes room. */
void rn_rx_ahead_ask(struct rn_rx *rx, const struct rn_hw_qpc *qpc, uint16_t idx)
{
	struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];
	uint16_t known = (uint16_t)(flow->rq_pi - idx);
	struct rn_rx_ahead *ahead;

	if (!rx->aheads || flow->ahead || !flow->pi_known || !known ||
	    known > 1u << (qpc->log_rq_wqes & 15))
		return;
	ahead = &rx->ahead[rx->ahead_next];
	if (ahead->state == AHEAD_READY)
		drop_entry(rx, ahead);
	if (ahead->state != AHEAD_FREE)
		return;
	*ahead = (struct rn_rx_ahead){.qpn = rx->op_qpn, .idx = idx, .state = AHEAD_ASKED};
	flow->ahead = rx->ahead_next + 1;
	rn_outbox_put(&rx->fetches, &(struct rn_rq_fetch){
					    .qpn = rx->op_qpn,
					    .idx = idx,
					    .token = (uint16_t)(AHEAD_TOKEN | rx->ahead_next),
				    });
	rx->ahead_next = rx->ahead_next + 1 == rx->aheads ? 0 : rx->ahead_next + 1;
}

/* The WQE was asked for ahead: take it, or wait for it. False when it was not. */
static bool take_ahead(struct rn_rx *rx, uint32_t qpn, uint16_t idx)
{
	struct rn_rx_flow *flow = &rx->flow[qpn];
	struct rn_rx_ahead *ahead = flow->ahead ? &rx->ahead[flow->ahead - 1] : NULL;

	if (!ahead || ahead->idx != idx)
		return false;
	flow->ahead = 0;
	if (ahead->state == AHEAD_READY) {
		rx->fetched = (struct rn_rq_fetch_rsp){.pi = flow->rq_pi, .slot = ahead->slot};
		rx->fetch = RN_FETCH_ANSWERED;
		ahead->state = AHEAD_FREE;
	} else {
		ahead->state = AHEAD_TAKEN;
		rx->fetch = RN_FETCH_ASKED;
	}
	return true;
}

enum rn_rx_fetch_state rn_rx_fetch(struct rn_rx *rx, uint32_t qpn, uint16_t idx, bool pi_only)
{
	if (rx->fetch != RN_FETCH_NONE || (!pi_only && take_ahead(rx, qpn, idx)))
		return rx->fetch;
	rx->fetch_token = (uint16_t)((rx->fetch_token + 1) & OWN_TOKEN_MASK);
	rn_outbox_put(&rx->fetches, &(struct rn_rq_fetch){
					    .qpn = qpn,
					    .idx = idx,
					    .pi_only = pi_only,
					    .token = rx->fetch_token,
				    });
	rx->fetch = RN_FETCH_ASKED;
	return rx->fetch;
}

static void take_own(struct rn_rx *rx, const struct rn_rq_fetch_rsp *rsp)
{
	RN_ASSERT(rx->fetch == RN_FETCH_ASKED);
	rx->fetched = *rsp;
	rx->fetch = RN_FETCH_ANSWERED;
}

/* Returns the queue pair that the answer is about, UINT32_MAX when it is gone. */
static uint32_t take_answer(struct rn_rx *rx, const struct rn_rq_fetch_rsp *rsp)
{
	if (rsp->token == REFRESH_TOKEN) {
		rx->refreshing = false;
		return rx->refresh_qpn;
	}
	if (rsp->token < AHEAD_TOKEN) {
		RN_ASSERT(rsp->token == rx->fetch_token);
		take_own(rx, rsp);
		return rx->op_qpn;
	}

	struct rn_rx_ahead *ahead = &rx->ahead[rsp->token - AHEAD_TOKEN];
	uint8_t was = ahead->state;
	bool is_ok = rsp->status == RN_WORK_OK;

	RN_ASSERT(rsp->token - AHEAD_TOKEN < rx->aheads && was > AHEAD_FREE);
	ahead->state = AHEAD_FREE;
	if (was == AHEAD_TAKEN) {
		take_own(rx, rsp);
	} else if (was == AHEAD_DROPPED) {
		if (is_ok)
			rn_rx_free_wqe(rx, rsp->slot);
		return UINT32_MAX;
	} else if (is_ok) {
		ahead->state = AHEAD_READY;
		ahead->slot = rsp->slot;
	} else {
		rx->flow[ahead->qpn].ahead = 0;
	}
	return ahead->qpn;
}

void rn_rx_take_fetched(struct rn_rx *rx)
{
	struct rn_rq_fetch_rsp rsp;
	unsigned most = RN_OUTBOX_MESSAGES / 2; /* WQEs to be given back */

	while (rx->frees.count < most && rn_fifo_pop(rx->ports.rq_fetch_rsp, &rsp)) {
		uint32_t qpn = take_answer(rx, &rsp);

		rx->busy = true;
		if (qpn == UINT32_MAX || (rsp.status != RN_WORK_OK && rsp.status != RN_WORK_EMPTY))
			continue;
		rx->flow[qpn].rq_pi = rsp.pi;
		rx->flow[qpn].pi_known = true;
	}
	if (rx->frees.count >= most && rn_fifo_peek(rx->ports.rq_fetch_rsp))
		rn_block_wake_next(&rx->block);
}

void rn_rx_refresh(struct rn_rx *rx, const struct rn_hw_qpc *qpc)
{
	const struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];
	const struct rn_hw_qpc_responder *s =
		(const struct rn_hw_qpc_responder *)(const void *)qpc->responder;
	uint32_t half = (1u << (qpc->log_rq_wqes & 15)) / 2;
	uint32_t least = (uint32_t)rn_min_u64(rx->params->credit_refresh_wqes, half);

	/* Once on the way down: a program that posts late gains nothing from more. */
	if (!rx->params->advertise_credits || rx->refreshing || !flow->pi_known ||
	    (uint32_t)(uint16_t)(flow->rq_pi - s->rq_next) + 1 != least)
		return;
	rx->refreshing = true;
	rx->refresh_qpn = rx->op_qpn;
	rn_outbox_put(&rx->fetches, &(struct rn_rq_fetch){
					    .qpn = rx->op_qpn,
					    .idx = (uint16_t)s->rq_next,
					    .pi_only = 1,
					    .token = REFRESH_TOKEN,
				    });
}

/* One receive WQE must always be free for the request at hand, or QPs in mid-message would block it. */
bool rn_rx_can_hold(const struct rn_rx *rx)
{
	return rx->held + rx->aheads + rx->params->rx_slots + 1 < rx->ports.rq_slots->count;
}

void rn_rx_release_held(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_flow *flow = &rx->flow[qpn];

	rn_rx_ahead_drop(rx, qpn);
	if (!flow->rq_slot)
		return;
	rn_rx_free_wqe(rx, flow->rq_slot - 1);
	flow->rq_slot = 0;
	rx->held--;
}
