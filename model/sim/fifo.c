/*
 * The registered fifo. Both ends see the state at the start of the cycle: an entry pushed now is
 * not visible now, and a slot freed now is still held now, whichever end runs first.
 */
#include "sim/fifo.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

#define SLOT_ALIGN 8

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
	/* Entries are aligned for any type. */
	const uint32_t slot_bytes = (uint32_t)((sizeof(uint64_t) + entry_bytes + SLOT_ALIGN - 1) /
					       SLOT_ALIGN * SLOT_ALIGN);

	RN_ASSERT(depth >= 1 && entry_bytes >= 1 && latency_cycles >= 1);
	*fifo = (struct rn_fifo){
		.name = rn_strdup(name),
		.sim = sim,
		.producer_clock = &unclocked,
		.consumer_clock = &unclocked,
		.depth = depth,
		.entry_bytes = entry_bytes,
		.latency_cycles = latency_cycles,
		.slot_bytes = slot_bytes,
		.slots = rn_calloc(depth, slot_bytes),
		.popped_ps = RN_TIME_NEVER,
		.arrivals = &fifo->no_arrivals,
	};
}

void rn_fifo_fini(struct rn_fifo *fifo)
{
	free((char *)fifo->name);
	free(fifo->slots);
	*fifo = (struct rn_fifo){0};
}

static void choose_clocks(struct rn_fifo *fifo)
{
	const struct rn_block *either = fifo->producer ? fifo->producer : fifo->consumer;

	fifo->producer_clock = either->clock;
	fifo->consumer_clock = fifo->consumer ? fifo->consumer->clock : either->clock;
	fifo->near = fifo->producer && fifo->producer->clock == fifo->consumer_clock
			     ? fifo->producer
			     : fifo->consumer;
	/* A cycle to the first edge, and what rounding adds to each. */
	fifo->latency_max_ps =
		(fifo->latency_cycles + UINT64_C(1)) * (fifo->consumer_clock->period_ps + 1);
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

static void count_full(struct rn_fifo *fifo, uint64_t since_ps, uint64_t end_ps)
{
	if (since_ps < fifo->full_end_ps)
		since_ps = fifo->full_end_ps;
	if (end_ps <= since_ps)
		return;
	fifo->full_ps += end_ps - since_ps;
	fifo->full_end_ps = end_ps;
}

void rn_fifo_note_arrivals(struct rn_fifo *fifo, uint32_t *word, uint32_t bit)
{
	RN_ASSERT(rn_fifo_occupancy(fifo) == 0);
	fifo->arrivals = word;
	fifo->arrival_bit = bit;
}

void rn_fifo_end_wait(struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);
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

void rn_fifo_wait_for_space(struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	if (!fifo->producer_waits) {
		fifo->producer_waits = true;
		fifo->full_since_ps = now_ps;
	}
	if (fifo->popped_ps == now_ps)
		rn_fifo_end_wait(fifo);
}

uint32_t rn_fifo_visible(const struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);
	uint32_t held = rn_fifo_occupancy(fifo);
	uint32_t count = 0;

	while (count < held &&
	       rn_fifo_ready_ps(fifo, (fifo->head_slot + count) % fifo->depth) <= now_ps)
		count++;
	return count;
}

/* The consumer's first cycle at or after @at_ps. */
static inline uint64_t consumer_cycle_at(const struct rn_fifo *fifo, uint64_t at_ps)
{
	return fifo->near ? rn_block_cycle_at(fifo->near, at_ps)
			  : rn_clock_cycle_at(fifo->consumer_clock, at_ps);
}

/* The first cycle in which what is pushed now and ready at @ready_ps can be visible. */
static inline uint64_t visible_cycle(const struct rn_fifo *fifo, uint64_t now_ps, uint64_t ready_ps)
{
	uint64_t cycle;

	if (ready_ps >= now_ps && ready_ps - now_ps >= fifo->latency_max_ps)
		return consumer_cycle_at(fifo, ready_ps);
	cycle = consumer_cycle_at(fifo, now_ps) + fifo->latency_cycles;
	if (ready_ps <= rn_clock_edge_ps(fifo->consumer_clock, cycle))
		return cycle;
	return consumer_cycle_at(fifo, ready_ps);
}

/* Messages have a few words: two or four copies of fixed size that may overlap. */
static inline void copy_entry(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if (bytes < 16 || bytes > 64) {
		memcpy(to, from, bytes);
		return;
	}
	if (bytes > 32) {
		memcpy(to + 16, from + 16, 16);
		memcpy(to + bytes - 32, from + bytes - 32, 16);
	}
	memcpy(to, from, 16);
	memcpy(to + bytes - 16, from + bytes - 16, 16);
}

void rn_fifo_push_at(struct rn_fifo *fifo, const void *entry, uint64_t ready_ps)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);
	uint32_t slot = fifo->tail_slot;
	uint8_t *at = fifo->slots + (size_t)slot * fifo->slot_bytes;
	uint32_t now_held = rn_fifo_held(fifo, now_ps) + 1;
	uint64_t cycle = visible_cycle(fifo, now_ps, ready_ps);
	uint64_t edge_ps = rn_clock_edge_ps(fifo->consumer_clock, cycle);

	RN_ASSERT(now_held <= fifo->depth);
	rn_fifo_count_occupancy(fifo, now_ps);
	memcpy(at, &edge_ps, sizeof(edge_ps));
	copy_entry(at + sizeof(edge_ps), entry, fifo->entry_bytes);
	fifo->tail_slot = rn_fifo_slot_after(fifo, slot);
	fifo->tail++;
	fifo->pushes++;
	*fifo->arrivals |= fifo->arrival_bit;
	if (now_held > fifo->max_occupancy)
		fifo->max_occupancy = now_held;
	if (fifo->consumer)
		rn_block_wake_cycle(fifo->consumer, cycle, edge_ps);
	if (fifo->watch)
		fifo->watch->pushed(fifo->watch->arg, fifo, entry, edge_ps);
}

void rn_fifo_push(struct rn_fifo *fifo, const void *entry)
{
	rn_fifo_push_at(fifo, entry, 0);
}

void rn_fifo_settle(struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	rn_fifo_count_occupancy(fifo, now_ps);
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
