/*
 * Transport rx: receive WQEs from the WQE fetcher. A request asks for its own, and its queue pair waits aside
 * (park.c); the one behind it is asked for ahead when it is known to be posted; and the producer index is
 * read afresh, beside the work, when few are known to be left. There is a limited number of entries for WQEs
 * asked for, one a queue pair; the oldest that nobody waits for makes room.
 */
#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "nic/transport/rx.h"

/* Tokens: entries, then a flush's producer index, then the one read beside. */
#define PI_TOKEN 0xfffeu
#define REFRESH_TOKEN 0xffffu

enum entry_state {
	ENTRY_FREE,
	ENTRY_ASKED,
	ENTRY_READY,
	ENTRY_DROPPED, /* asked for; nobody wants it any more */
};

struct rn_rx_entry {
	uint32_t qpn;
	struct rn_rq_fetch_rsp rsp; /* READY */
	uint16_t idx;
	uint8_t state;
	bool is_wanted; /* its request waits */
};

void rn_rx_receive_init(struct rn_rx *rx)
{
	uint32_t slots = rx->ports.rq_slots->count;
	uint32_t room = slots > rx->params->rx_slots + 2 ? slots - rx->params->rx_slots - 2 : 0;
	/* The other half is for SENDs of several packets. */
	uint32_t entries = (uint32_t)rn_min_u64(rx->params->receive_ahead_wqes, room / 2);

	rx->asks_ahead = entries > 0;
	rx->entries = entries ? entries : 1;
	rx->entry = rn_calloc(rx->entries, sizeof(*rx->entry));
}

void rn_rx_receive_fini(struct rn_rx *rx)
{
	free(rx->entry);
}

void rn_rx_free_wqe(struct rn_rx *rx, uint32_t slot)
{
	rn_outbox_put(&rx->frees, &(struct rn_slot_free){.slot = slot});
}

static void free_entry(struct rn_rx *rx, struct rn_rx_entry *entry)
{
	entry->state = ENTRY_FREE;
	rn_rx_park_entry_is_free(rx);
}

static void drop_entry(struct rn_rx *rx, struct rn_rx_entry *entry)
{
	rx->flow[entry->qpn].entry = 0;
	if (entry->is_wanted)
		rn_rx_park_end(rx, entry->qpn);
	entry->is_wanted = false;
	if (entry->state == ENTRY_ASKED) {
		entry->state = ENTRY_DROPPED;
		return;
	}
	if (entry->rsp.status == RN_WORK_OK)
		rn_rx_free_wqe(rx, entry->rsp.slot);
	free_entry(rx, entry);
}

static struct rn_rx_entry *entry_of(struct rn_rx *rx, uint32_t qpn)
{
	uint32_t at = rx->flow[qpn].entry;

	return at ? &rx->entry[at - 1] : NULL;
}

/* Make room for a receive WQE to be asked for. False: all are wanted, or on their way. */
static bool make_room(struct rn_rx *rx)
{
	for (uint32_t i = 0; i < rx->entries; i++) {
		struct rn_rx_entry *entry = &rx->entry[rx->entry_next];

		if (entry->state == ENTRY_READY && !entry->is_wanted)
			drop_entry(rx, entry);
		if (entry->state == ENTRY_FREE)
			return true;
		rx->entry_next = rx->entry_next + 1 == rx->entries ? 0 : rx->entry_next + 1;
	}
	return false;
}

/* There is room. */
static void ask(struct rn_rx *rx, uint16_t idx, bool is_wanted)
{
	rx->entry[rx->entry_next] = (struct rn_rx_entry){
		.qpn = rx->op_qpn, .idx = idx, .state = ENTRY_ASKED, .is_wanted = is_wanted};
	rx->flow[rx->op_qpn].entry = rx->entry_next + 1;
	rn_outbox_put(&rx->fetches, &(struct rn_rq_fetch){
					    .qpn = rx->op_qpn,
					    .idx = idx,
					    .token = (uint16_t)rx->entry_next,
				    });
	rx->entry_next = rx->entry_next + 1 == rx->entries ? 0 : rx->entry_next + 1;
}

void rn_rx_ahead_ask(struct rn_rx *rx, const struct rn_hw_qpc *qpc, uint16_t idx)
{
	struct rn_rx_flow *flow = &rx->flow[rx->op_qpn];
	uint16_t known = (uint16_t)(flow->rq_pi - idx);

	if (!rx->asks_ahead || flow->entry || !flow->pi_known || !known ||
	    known > 1u << (qpc->log_rq_wqes & 15) || !make_room(rx))
		return;
	ask(rx, idx, false);
}

bool rn_rx_receive(struct rn_rx *rx, uint16_t idx)
{
	struct rn_rx_entry *entry = entry_of(rx, rx->op_qpn);

	if (entry && entry->idx != idx) {
		drop_entry(rx, entry);
		entry = NULL;
	}
	if (entry && entry->state == ENTRY_READY) {
		rx->fetched = entry->rsp;
		rx->fetch = RN_FETCH_ANSWERED;
		rx->flow[rx->op_qpn].entry = 0;
		free_entry(rx, entry);
		return true;
	}
	if (entry) {
		entry->is_wanted = true;
		rn_rx_park_wait(rx, rx->op_qpn);
	} else if (make_room(rx)) {
		ask(rx, idx, true);
		rn_rx_park_wait(rx, rx->op_qpn);
	} else {
		rn_rx_park_wait_for_entry(rx, rx->op_qpn);
	}
	return false;
}

enum rn_rx_fetch_state rn_rx_fetch_pi(struct rn_rx *rx, uint32_t qpn, uint16_t idx)
{
	if (rx->fetch != RN_FETCH_NONE)
		return rx->fetch;
	rn_outbox_put(&rx->fetches, &(struct rn_rq_fetch){
					    .qpn = qpn,
					    .idx = idx,
					    .pi_only = 1,
					    .token = PI_TOKEN,
				    });
	rx->fetch = RN_FETCH_ASKED;
	return rx->fetch;
}

/* A receive WQE that was asked for. Returns its queue pair, UINT32_MAX when nobody wants it any more. */
static uint32_t take_wqe(struct rn_rx *rx, const struct rn_rq_fetch_rsp *rsp)
{
	struct rn_rx_entry *entry = &rx->entry[rsp->token];

	RN_ASSERT(rsp->token < rx->entries);
	if (entry->state == ENTRY_DROPPED) {
		if (rsp->status == RN_WORK_OK)
			rn_rx_free_wqe(rx, rsp->slot);
		free_entry(rx, entry);
		return UINT32_MAX;
	}
	RN_ASSERT(entry->state == ENTRY_ASKED);
	entry->state = ENTRY_READY;
	entry->rsp = *rsp;
	if (entry->is_wanted)
		rn_rx_park_end(rx, entry->qpn);
	else if (rsp->status != RN_WORK_OK)
		drop_entry(rx, entry);
	return entry->qpn;
}

/* Returns the queue pair that the answer is about, UINT32_MAX when it is gone. */
static uint32_t take_answer(struct rn_rx *rx, const struct rn_rq_fetch_rsp *rsp)
{
	if (rsp->token == REFRESH_TOKEN) {
		rx->refreshing = false;
		return rx->refresh_qpn;
	}
	if (rsp->token != PI_TOKEN)
		return take_wqe(rx, rsp);
	RN_ASSERT(rx->fetch == RN_FETCH_ASKED);
	rx->fetched = *rsp;
	rx->fetch = RN_FETCH_ANSWERED;
	return rx->op_qpn;
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
	return rx->held + rx->entries + rx->params->rx_slots + 1 < rx->ports.rq_slots->count;
}

void rn_rx_release_held(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_flow *flow = &rx->flow[qpn];
	struct rn_rx_entry *entry = entry_of(rx, qpn);

	if (entry)
		drop_entry(rx, entry);
	if (!flow->rq_slot)
		return;
	rn_rx_free_wqe(rx, flow->rq_slot - 1);
	flow->rq_slot = 0;
	rx->held--;
}
