/*
 * Transport rx: queue pairs that wait for a receive WQE. Their requests are kept aside, in order, in a finite
 * buffer that all queue pairs share (a linked list each), so that the requests behind them go on. A queue pair is
 *
 *   passing  nothing is kept aside: its requests are checked as they come to the head
 *   waiting  its oldest request waits for its receive WQE, or for a place to ask for one
 *   back     what it waited for has come: its requests are checked before those that arrived later
 *
 * When the buffer is full, the request at the head stays there and holds up the others, as all of them were once.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "nic/transport/rx.h"

void rn_rx_park_init(struct rn_rx *rx)
{
	struct rn_rx_parking *park = &rx->parking;
	uint32_t packets = rx->params->rx_park_packets;

	park->packet = rn_calloc((size_t)packets + 1, sizeof(*park->packet));
	for (uint32_t i = 0; i < packets; i++)
		park->packet[i].next = i + 2 > packets ? 0 : i + 2;
	park->free = packets ? 1 : 0;
}

void rn_rx_park_fini(struct rn_rx *rx)
{
	free(rx->parking.packet);
}

static void append(struct rn_rx *rx, enum rn_rx_list list, uint32_t qpn)
{
	struct rn_rx_queue *queue = &rx->parking.queue[list];
	struct rn_rx_park *park = &rx->flow[qpn].park;

	RN_ASSERT(park->list == RN_RX_LIST_NONE);
	park->list = (uint8_t)list;
	park->next = 0;
	if (queue->tail)
		rx->flow[queue->tail - 1].park.next = qpn + 1;
	else
		queue->head = qpn + 1;
	queue->tail = qpn + 1;
}

/* Off the list it is in. It is the head but when a queue pair is forgotten. */
static void unlist(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_park *park = &rx->flow[qpn].park;
	struct rn_rx_queue *queue = &rx->parking.queue[park->list];
	uint32_t before = 0;

	if (park->list == RN_RX_LIST_NONE)
		return;
	for (uint32_t at = queue->head; at != qpn + 1; at = rx->flow[at - 1].park.next)
		before = at;
	if (before)
		rx->flow[before - 1].park.next = park->next;
	else
		queue->head = park->next;
	if (queue->tail == qpn + 1)
		queue->tail = before;
	park->list = RN_RX_LIST_NONE;
}

bool rn_rx_is_parked(const struct rn_rx *rx, uint32_t qpn)
{
	const struct rn_rx_park *park = &rx->flow[qpn].park;

	return park->waits || park->head;
}

bool rn_rx_park_packet(struct rn_rx *rx, uint32_t qpn, const struct rn_rx_waiting *waiting)
{
	struct rn_rx_parking *parking = &rx->parking;
	struct rn_rx_park *park = &rx->flow[qpn].park;
	uint32_t at = parking->free;

	if (!at)
		return false;
	parking->free = parking->packet[at - 1].next;
	parking->packet[at - 1] = (struct rn_rx_parked){.waiting = *waiting};
	if (park->head)
		parking->packet[park->tail - 1].next = at;
	else
		park->head = at;
	park->tail = at;
	rx->count->rx_parked_packets++;
	return true;
}

void rn_rx_park_wait(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_park *park = &rx->flow[qpn].park;

	unlist(rx, qpn);
	park->waits = true;
	rx->parking.waiting++;
	if (park->head)
		rx->parking.packet[park->head - 1].waiting.is_checked = true;
}

void rn_rx_park_wait_for_entry(struct rn_rx *rx, uint32_t qpn)
{
	rn_rx_park_wait(rx, qpn);
	append(rx, RN_RX_LIST_ENTRY, qpn);
}

void rn_rx_park_list(struct rn_rx *rx, uint32_t qpn)
{
	const struct rn_rx_park *park = &rx->flow[qpn].park;

	if (!park->waits && park->head && park->list == RN_RX_LIST_NONE)
		append(rx, RN_RX_LIST_BACK, qpn);
	rx->again = true;
}

void rn_rx_park_end(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_park *park = &rx->flow[qpn].park;

	if (!park->waits)
		return;
	unlist(rx, qpn);
	park->waits = false;
	rx->parking.waiting--;
	rn_rx_park_list(rx, qpn);
}

void rn_rx_park_entry_is_free(struct rn_rx *rx)
{
	const struct rn_rx_queue *queue = &rx->parking.queue[RN_RX_LIST_ENTRY];

	if (queue->head)
		rn_rx_park_end(rx, queue->head - 1);
}

uint32_t rn_rx_park_back(struct rn_rx *rx)
{
	const struct rn_rx_queue *queue = &rx->parking.queue[RN_RX_LIST_BACK];

	/* A paused one comes back with its RESUME, a dying one is forgotten. */
	while (queue->head && (rx->flow[queue->head - 1].paused || rx->flow[queue->head - 1].dying))
		unlist(rx, queue->head - 1);
	return queue->head;
}

const struct rn_rx_waiting *rn_rx_park_first(const struct rn_rx *rx, uint32_t qpn)
{
	const struct rn_rx_park *park = &rx->flow[qpn].park;

	RN_ASSERT(park->head);
	return &rx->parking.packet[park->head - 1].waiting;
}

void rn_rx_park_drop(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_parking *parking = &rx->parking;
	struct rn_rx_park *park = &rx->flow[qpn].park;
	uint32_t at = park->head;

	RN_ASSERT(at);
	park->head = parking->packet[at - 1].next;
	parking->packet[at - 1].next = parking->free;
	parking->free = at;
	if (park->head)
		return;
	park->tail = 0;
	if (park->list == RN_RX_LIST_BACK)
		unlist(rx, qpn);
}

void rn_rx_park_forget(struct rn_rx *rx, uint32_t qpn)
{
	struct rn_rx_park *park = &rx->flow[qpn].park;

	unlist(rx, qpn);
	rx->parking.waiting -= park->waits;
	park->waits = false;
	while (park->head) {
		rn_packet_put(rx->env->packets, rn_rx_park_first(rx, qpn)->packet);
		rn_rx_park_drop(rx, qpn);
	}
}
