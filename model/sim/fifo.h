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
#include <string.h>

#include "base/assert.h"
#include "sim/block.h"

struct rn_fifo;

/* Somebody who looks on at every push and pop (a waveform). */
struct rn_fifo_watch {
	void *arg;
	/** @entry will be visible at @visible_ps. */
	void (*pushed)(void *arg, const struct rn_fifo *fifo, const void *entry,
		       uint64_t visible_ps);
	void (*popped)(void *arg, const struct rn_fifo *fifo);
};

/* In the order in which they are touched: a push and a pop should need few cache lines. */
struct rn_fifo {
	struct rn_sim *sim;
	struct rn_block *consumer; /* woken when an entry becomes visible; may be NULL */
	const struct rn_clock *consumer_clock;
	const struct rn_block
		*near; /* whose last tick makes the consumer's cycles cheap to find; may be NULL */
	uint64_t latency_max_ps; /* what is visible that much later cannot be visible too early */
	uint32_t latency_cycles;
	uint32_t depth;
	uint32_t entry_bytes;
	uint32_t slot_bytes; /* an entry behind the time at which it becomes visible */
	uint8_t *slots;

	uint64_t head; /* entries popped so far */
	uint64_t tail; /* entries pushed so far */
	uint32_t head_slot;
	uint32_t tail_slot;
	uint64_t popped_ps;	/* time of the last pop; RN_TIME_NEVER before */
	uint32_t popped;	/* entries popped at that time: their slots are not free yet */
	uint32_t max_occupancy; /* counts a slot freed in the same cycle as held */
	uint64_t pushes;
	uint64_t occupancy_ps; /* integral of occupancy over time, entries * ps */
	uint64_t occupancy_at_ps;

	const struct rn_fifo_watch *watch; /* NULL: nobody */
	uint32_t *arrivals; /* a word of the consumer's in which every push sets arrival_bit */
	uint32_t arrival_bit;
	bool producer_waits;
	struct rn_block *producer; /* woken when space comes back; may be NULL (test, driver) */
	const struct rn_clock *producer_clock;
	uint64_t full_ps; /* time with a producer waiting for space */
	uint64_t full_since_ps;
	uint64_t full_end_ps; /* up to where full_ps has been counted */
	const char *name;     /* "host0.nic0.dma.rx_req"; owned */
	uint32_t no_arrivals; /* the word of a consumer that has none */
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
 * Set @bit in @word at every push, for a consumer with many fifos: it looks at those alone whose bit is set, and
 * clears it when the fifo is empty.
 */
void rn_fifo_note_arrivals(struct rn_fifo *fifo, uint32_t *word, uint32_t bit);

/** Let @watch, which is borrowed, see every push and pop from now on. One for a fifo. */
static inline void rn_fifo_set_watch(struct rn_fifo *fifo, const struct rn_fifo_watch *watch)
{
	RN_ASSERT(!fifo->watch);
	fifo->watch = watch;
}

/** Entries held, visible or not. */
static inline uint32_t rn_fifo_occupancy(const struct rn_fifo *fifo)
{
	return (uint32_t)(fifo->tail - fifo->head);
}

/** When the entry in slot @slot becomes visible. */
static inline uint64_t rn_fifo_ready_ps(const struct rn_fifo *fifo, uint32_t slot)
{
	uint64_t ready_ps;

	memcpy(&ready_ps, fifo->slots + (size_t)slot * fifo->slot_bytes, sizeof(ready_ps));
	return ready_ps;
}

/* Entries as the producer sees them: a slot freed at the present time is still held. */
static inline uint32_t rn_fifo_held(const struct rn_fifo *fifo, uint64_t now_ps)
{
	return rn_fifo_occupancy(fifo) + (fifo->popped_ps == now_ps ? fifo->popped : 0);
}

/* Space comes back at the producer's next edge: the wait ends there, and it is woken for it. */
void rn_fifo_end_wait(struct rn_fifo *fifo);

/* There is not enough space. */
void rn_fifo_wait_for_space(struct rn_fifo *fifo);

/** Whether @count entries (1 .. depth) can be pushed in this cycle. Remembers the producer like can_push. */
static inline bool rn_fifo_has_space(struct rn_fifo *fifo, uint32_t count)
{
	RN_ASSERT(count >= 1 && count <= fifo->depth);
	if (rn_fifo_held(fifo, rn_sim_now_ps(fifo->sim)) + count <= fifo->depth)
		return true;
	rn_fifo_wait_for_space(fifo);
	return false;
}

/**
 * Whether an entry can be pushed now. When it cannot, the producer is remembered and woken
 * in the first cycle in which it can.
 */
static inline bool rn_fifo_can_push(struct rn_fifo *fifo)
{
	return rn_fifo_has_space(fifo, 1);
}

/** Entries that the consumer can see now. */
uint32_t rn_fifo_visible(const struct rn_fifo *fifo);

/** Copy an entry in and wake the consumer when it becomes visible. rn_fifo_can_push() holds. */
void rn_fifo_push(struct rn_fifo *fifo, const void *entry);

/** As rn_fifo_push, visible no earlier than @ready_ps (for links that add their own delay). */
void rn_fifo_push_at(struct rn_fifo *fifo, const void *entry, uint64_t ready_ps);

/**
 * The oldest entry visible now, or NULL. The pointer is valid until it is popped. When an entry
 * is on its way, the consumer is (re)woken for it.
 */
static inline const void *rn_fifo_peek(struct rn_fifo *fifo)
{
	if (fifo->head == fifo->tail)
		return NULL;

	uint64_t ready_ps = rn_fifo_ready_ps(fifo, fifo->head_slot);

	if (ready_ps <= rn_sim_now_ps(fifo->sim))
		return fifo->slots + (size_t)fifo->head_slot * fifo->slot_bytes + sizeof(ready_ps);
	if (fifo->consumer)
		rn_block_wake_at(fifo->consumer, ready_ps);
	return NULL;
}

static inline void rn_fifo_count_occupancy(struct rn_fifo *fifo, uint64_t now_ps)
{
	fifo->occupancy_ps += rn_fifo_occupancy(fifo) * (now_ps - fifo->occupancy_at_ps);
	fifo->occupancy_at_ps = now_ps;
}

static inline uint32_t rn_fifo_slot_after(const struct rn_fifo *fifo, uint32_t slot)
{
	return slot + 1 == fifo->depth ? 0 : slot + 1;
}

/** Remove the entry that rn_fifo_peek() returned. The consumer is woken for the entry behind it. */
static inline void rn_fifo_drop(struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	RN_ASSERT(fifo->head != fifo->tail && rn_fifo_ready_ps(fifo, fifo->head_slot) <= now_ps);
	rn_fifo_count_occupancy(fifo, now_ps);
	fifo->popped = fifo->popped_ps == now_ps ? fifo->popped + 1 : 1;
	fifo->popped_ps = now_ps;
	fifo->head_slot = rn_fifo_slot_after(fifo, fifo->head_slot);
	fifo->head++;
	if (fifo->head != fifo->tail && fifo->consumer)
		rn_block_wake_at(fifo->consumer, rn_fifo_ready_ps(fifo, fifo->head_slot));
	if (fifo->producer_waits)
		rn_fifo_end_wait(fifo);
	if (fifo->watch)
		fifo->watch->popped(fifo->watch->arg, fifo);
}

/** Copy the oldest visible entry to @entry and remove it; false when there is none. */
static inline bool rn_fifo_pop(struct rn_fifo *fifo, void *entry)
{
	const void *oldest = rn_fifo_peek(fifo);

	if (!oldest)
		return false;
	memcpy(entry, oldest, fifo->entry_bytes);
	rn_fifo_drop(fifo);
	return true;
}

/** Bring the time integrals up to date. */
void rn_fifo_settle(struct rn_fifo *fifo);
void rn_fifo_clear_stats(struct rn_fifo *fifo);

#endif
