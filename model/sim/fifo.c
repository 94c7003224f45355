/*
 * The registered fifo. Both ends see the state at the start of the cycle: an entry pushed now is
 * not visible now, and a slot freed now is still held now, whichever end runs first.
 */
#include "sim/fifo.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

/* For a fifo with no clocked end (tests): a cycle is a picosecond. */
static const struct rn_clock unclocked = {
	.name = "unclocked",
	.num = 1,
	.den = 1,
	.period_ps = 1,
	.num_inverse = UINT64_MAX,
	.den_inverse = UINT64_MAX,
};

void rn_fifo_init(struct rn_fifo *fifo, struct rn_sim *sim, const char *name, uint32_t depth,
		  uint32_t entry_bytes, uint32_t latency_cycles)
{
	RN_ASSERT(depth >= 1 && entry_bytes >= 1 && latency_cycles >= 1);
	*fifo = (struct rn_fifo){
		.name = rn_strdup(name),
		.sim = sim,
		.producer_clock = &unclocked,
		.consumer_clock = &unclocked,
		.depth = depth,
		.entry_bytes = entry_bytes,
		.latency_cycles = latency_cycles,
		.data = rn_calloc(depth, entry_bytes),
		.ready_ps = rn_calloc(depth, sizeof(uint64_t)),
		.popped_ps = RN_TIME_NEVER,
	};
}

void rn_fifo_fini(struct rn_fifo *fifo)
{
	free((char *)fifo->name);
	free(fifo->data);
	free(fifo->ready_ps);
	*fifo = (struct rn_fifo){0};
}

static void choose_clocks(struct rn_fifo *fifo)
{
	const struct rn_block *either = fifo->producer ? fifo->producer : fifo->consumer;

	fifo->producer_clock = either->clock;
	fifo->consumer_clock = fifo->consumer ? fifo->consumer->clock : either->clock;
}

void rn_fifo_set_producer(struct rn_fifo *fifo, struct rn_block *producer)
{
	RN_ASSERT(producer && (!fifo->producer || fifo->producer == producer));
	fifo->producer = producer;
	choose_clocks(fifo);
}

void rn_fifo_set_consumer(struct rn_fifo *fifo, struct rn_block *consumer)
{
	RN_ASSERT(consumer && (!fifo->consumer || fifo->consumer == consumer));
	fifo->consumer = consumer;
	choose_clocks(fifo);
}

/* Entries as the producer sees them: a slot freed at the present time is still held. */
static inline uint32_t held(const struct rn_fifo *fifo, uint64_t now_ps)
{
	return rn_fifo_occupancy(fifo) + (fifo->popped_ps == now_ps ? fifo->popped : 0);
}

static void count_full(struct rn_fifo *fifo, uint64_t since_ps, uint64_t end_ps)
{
	if (since_ps < fifo->full_end_ps)
		since_ps = fifo->full_end_ps;
	if (end_ps <= since_ps)
		return;
	fifo->full_ps += end_ps - since_ps;
	fifo->full_end_ps = end_ps;
}

/* Space comes back at the producer's next edge: the wait ends there, and it is woken for it. */
static void end_wait(struct rn_fifo *fifo, uint64_t now_ps)
{
	struct rn_block *producer = fifo->producer;
	const struct rn_clock *clock = fifo->producer_clock;
	uint64_t cycle = producer ? rn_block_cycle_at(producer, now_ps + 1)
				  : rn_clock_cycle_at(clock, now_ps + 1);
	uint64_t edge_ps = rn_clock_edge_ps(clock, cycle);

	if (producer)
		rn_block_wake_cycle(producer, cycle, edge_ps);
	count_full(fifo, fifo->full_since_ps, edge_ps);
	fifo->producer_waits = false;
}

bool rn_fifo_has_space(struct rn_fifo *fifo, uint32_t count)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	RN_ASSERT(count >= 1 && count <= fifo->depth);
	if (held(fifo, now_ps) + count <= fifo->depth)
		return true;
	if (!fifo->producer_waits) {
		fifo->producer_waits = true;
		fifo->full_since_ps = now_ps;
	}
	if (fifo->popped_ps == now_ps)
		end_wait(fifo, now_ps);
	return false;
}

static inline void count_occupancy(struct rn_fifo *fifo, uint64_t now_ps)
{
	fifo->occupancy_ps += rn_fifo_occupancy(fifo) * (now_ps - fifo->occupancy_at_ps);
	fifo->occupancy_at_ps = now_ps;
}

static inline uint32_t slot_after(const struct rn_fifo *fifo, uint32_t slot)
{
	return slot + 1 == fifo->depth ? 0 : slot + 1;
}

/* The consumer's first cycle at or after @at_ps; a block's own last tick makes that cheap. */
static inline uint64_t consumer_cycle_at(const struct rn_fifo *fifo, uint64_t at_ps)
{
	const struct rn_clock *clock = fifo->consumer_clock;

	if (fifo->producer && fifo->producer->clock == clock)
		return rn_block_cycle_at(fifo->producer, at_ps);
	if (fifo->consumer)
		return rn_block_cycle_at(fifo->consumer, at_ps);
	return rn_clock_cycle_at(clock, at_ps);
}

void rn_fifo_push_at(struct rn_fifo *fifo, const void *entry, uint64_t ready_ps)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);
	uint32_t slot = fifo->tail_slot;
	uint32_t now_held = held(fifo, now_ps) + 1;
	uint64_t cycle = consumer_cycle_at(fifo, now_ps) + fifo->latency_cycles;
	uint64_t edge_ps = rn_clock_edge_ps(fifo->consumer_clock, cycle);

	RN_ASSERT(now_held <= fifo->depth);
	if (ready_ps > edge_ps) {
		cycle = consumer_cycle_at(fifo, ready_ps);
		edge_ps = rn_clock_edge_ps(fifo->consumer_clock, cycle);
	}
	count_occupancy(fifo, now_ps);
	memcpy(fifo->data + (size_t)slot * fifo->entry_bytes, entry, fifo->entry_bytes);
	fifo->ready_ps[slot] = edge_ps;
	fifo->tail_slot = slot_after(fifo, slot);
	fifo->tail++;
	fifo->pushes++;
	if (now_held > fifo->max_occupancy)
		fifo->max_occupancy = now_held;
	if (fifo->consumer)
		rn_block_wake_cycle(fifo->consumer, cycle, edge_ps);
}

void rn_fifo_push(struct rn_fifo *fifo, const void *entry)
{
	rn_fifo_push_at(fifo, entry, 0);
}

const void *rn_fifo_peek(struct rn_fifo *fifo)
{
	if (fifo->head == fifo->tail)
		return NULL;

	uint64_t ready_ps = fifo->ready_ps[fifo->head_slot];

	if (ready_ps <= rn_sim_now_ps(fifo->sim))
		return fifo->data + (size_t)fifo->head_slot * fifo->entry_bytes;
	if (fifo->consumer)
		rn_block_wake_at(fifo->consumer, ready_ps);
	return NULL;
}

void rn_fifo_drop(struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	RN_ASSERT(fifo->head != fifo->tail && fifo->ready_ps[fifo->head_slot] <= now_ps);
	count_occupancy(fifo, now_ps);
	fifo->popped = fifo->popped_ps == now_ps ? fifo->popped + 1 : 1;
	fifo->popped_ps = now_ps;
	fifo->head_slot = slot_after(fifo, fifo->head_slot);
	fifo->head++;
	if (fifo->head != fifo->tail && fifo->consumer)
		rn_block_wake_at(fifo->consumer, fifo->ready_ps[fifo->head_slot]);
	if (fifo->producer_waits)
		end_wait(fifo, now_ps);
}

bool rn_fifo_pop(struct rn_fifo *fifo, void *entry)
{
	const void *oldest = rn_fifo_peek(fifo);

	if (!oldest)
		return false;
	memcpy(entry, oldest, fifo->entry_bytes);
	rn_fifo_drop(fifo);
	return true;
}

void rn_fifo_settle(struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	count_occupancy(fifo, now_ps);
	if (fifo->producer_waits)
		count_full(fifo, fifo->full_since_ps, now_ps);
}

void rn_fifo_clear_stats(struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	rn_fifo_settle(fifo);
	fifo->pushes = 0;
	fifo->max_occupancy = rn_fifo_occupancy(fifo);
	fifo->full_ps = 0;
	if (fifo->full_end_ps < now_ps)
		fifo->full_end_ps = now_ps;
	fifo->occupancy_ps = 0;
}
