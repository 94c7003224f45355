/*
 * The registered fifo, the only thing two blocks share. What is pushed in cycle n is
 * visible latency >= 1 cycles later (in the consumer's clock domain); a slot freed in
 * cycle n can be used from n+1. So the order in which producer and consumer run within
 * a cycle does not matter. A fifo of depth 1 runs at half rate.
 */
#ifndef RN_SIM_FIFO_H
#define RN_SIM_FIFO_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/block.h"

struct rn_fifo {
	const char *name;	   /* "host0.nic0.dma.rx_req"; owned */
	struct rn_block *producer; /* woken when space comes back; may be NULL (test, driver) */
	struct rn_block *consumer; /* woken when an entry becomes visible; may be NULL */
	struct rn_sim *sim;
	const struct rn_clock *producer_clock;
	const struct rn_clock *consumer_clock;
	uint32_t depth;
	uint32_t entry_bytes;
	uint32_t latency_cycles;
	uint64_t head; /* entries popped so far */
	uint64_t tail; /* entries pushed so far */
	uint32_t head_slot;
	uint32_t tail_slot;
	uint8_t *data;
	uint64_t *ready_ps; /* per slot: when its entry becomes visible */
	uint64_t popped_ps; /* time of the last pop; RN_TIME_NEVER before */
	uint32_t popped;    /* entries popped at that time: their slots are not free yet */
	bool producer_waits;
	/* Statistics. */
	uint64_t pushes;
	uint32_t max_occupancy; /* counts a slot freed in the same cycle as held */
	uint64_t full_ps;	/* time with a producer waiting for space */
	uint64_t full_since_ps;
	uint64_t full_end_ps;  /* up to where full_ps has been counted */
	uint64_t occupancy_ps; /* integral of occupancy over time, entries * ps */
	uint64_t occupancy_at_ps;
};

/**
 * @depth entries (>= 1) of @entry_bytes each, visible @latency_cycles (>= 1) of the
 * consumer's clock after the push. @name is copied. Producer and consumer connect
 * themselves with rn_fifo_set_producer() and rn_fifo_set_consumer().
 */
void rn_fifo_init(struct rn_fifo *fifo, struct rn_sim *sim, const char *name, uint32_t depth,
		  uint32_t entry_bytes, uint32_t latency_cycles);
void rn_fifo_fini(struct rn_fifo *fifo);

/**
 * Connect an end to the block that pushes or pops; every block connects itself when it is built, each
 * end once. An end that is never connected is not clocked (a test, or host software): the fifo then
 * uses the other end's clock.
 */
void rn_fifo_set_producer(struct rn_fifo *fifo, struct rn_block *producer);
void rn_fifo_set_consumer(struct rn_fifo *fifo, struct rn_block *consumer);

/**
 * Whether an entry can be pushed now. When it cannot, the producer is remembered and woken
 * in the first cycle in which it can.
 */
static inline bool rn_fifo_can_push(struct rn_fifo *fifo);

/** Whether @count entries (1 .. depth) can be pushed in this cycle. Remembers the producer like can_push. */
bool rn_fifo_has_space(struct rn_fifo *fifo, uint32_t count);

static inline bool rn_fifo_can_push(struct rn_fifo *fifo)
{
	return rn_fifo_has_space(fifo, 1);
}

/** Copy an entry in and wake the consumer when it becomes visible. rn_fifo_can_push() holds. */
void rn_fifo_push(struct rn_fifo *fifo, const void *entry);

/** As rn_fifo_push, visible no earlier than @ready_ps (for links that add their own delay). */
void rn_fifo_push_at(struct rn_fifo *fifo, const void *entry, uint64_t ready_ps);

/**
 * The oldest entry visible now, or NULL. The pointer is valid until it is popped. When an entry
 * is on its way, the consumer is (re)woken for it.
 */
const void *rn_fifo_peek(struct rn_fifo *fifo);

/** Remove the entry that rn_fifo_peek() returned. The consumer is woken for the entry behind it. */
void rn_fifo_drop(struct rn_fifo *fifo);

/** Copy the oldest visible entry to @entry and remove it; false when there is none. */
bool rn_fifo_pop(struct rn_fifo *fifo, void *entry);

/** Entries held, visible or not. */
static inline uint32_t rn_fifo_occupancy(const struct rn_fifo *fifo)
{
	return (uint32_t)(fifo->tail - fifo->head);
}

/** Bring the time integrals up to date. */
void rn_fifo_settle(struct rn_fifo *fifo);
void rn_fifo_clear_stats(struct rn_fifo *fifo);

#endif
