/*
 * A clocked block: one wake, one tick function, and the account of where its cycles
 * went. A block runs only in cycles in which it has something to do, at most once a
 * cycle.
 */
#ifndef RN_SIM_BLOCK_H
#define RN_SIM_BLOCK_H

#include <stdint.h>

#include "base/assert.h"
#include "sim/clock.h"
#include "sim/sim.h"

/* Why a block that had work could not do it in a cycle; the report names the largest. */
enum rn_stall {
	RN_STALL_NONE,
	RN_STALL_OUTPUT, /* a fifo behind it is full */
	RN_STALL_CREDIT, /* PCIe flow-control credits, window or rate */
	RN_STALL_TAG,	 /* no free tag or miss register */
	RN_STALL_BUFFER, /* no free buffer */
	RN_STALL_MISS,	 /* waits for a context or translation */
	RN_STALL_LOCK,	 /* a line or queue pair is held by another */
	RN_STALL_COUNT
};

/* What every tick touches comes first. */
struct rn_block {
	struct rn_wake wake;
	uint64_t due_cycle; /* of the pending wake */

	struct rn_sim *sim;
	const struct rn_clock *clock;
	void (*tick)(void *self, uint64_t cycle);
	void *self;
	uint64_t last_cycle;   /* of the last tick; UINT64_MAX before the first */
	uint64_t last_edge_ps; /* of the last tick; RN_TIME_NEVER before the first */
	uint64_t ticks;
	uint64_t busy_cycles; /* cycles in which something was done */

	const char *name;    /* instance name, "host0.nic0.dma"; borrowed */
	enum rn_stall stall; /* present reason */
	uint64_t stall_since_ps;
	uint64_t stall_ps[RN_STALL_COUNT]; /* time spent waiting, by reason */
};

/** @name and @clock are borrowed and outlive the block. */
void rn_block_init(struct rn_block *block, struct rn_sim *sim, const struct rn_clock *clock,
		   const char *name, void (*tick)(void *self, uint64_t cycle), void *self);

/* Where the block may not tick early enough yet. */
void rn_block_wake_sooner(struct rn_block *block, uint64_t at_ps);

/** Tick at the first edge at or after @at_ps at which the block has not ticked yet. */
static inline void rn_block_wake_at(struct rn_block *block, uint64_t at_ps)
{
	if (block->wake.due_ps > at_ps)
		rn_block_wake_sooner(block, at_ps);
}

/* Where the wake of rn_block_wake_cycle() is not the one pending. */
void rn_block_wake_earlier(struct rn_block *block, uint64_t cycle, uint64_t edge_ps);

/**
 * Tick in @cycle, whose edge is @edge_ps (not past), or in the next if it has ticked in that one.
 * Nothing when it ticks earlier anyway.
 */
static inline void rn_block_wake_cycle(struct rn_block *block, uint64_t cycle, uint64_t edge_ps)
{
	if (block->wake.due_ps > edge_ps)
		rn_block_wake_earlier(block, cycle, edge_ps);
}

/** First cycle of the block's clock whose edge is at or after @at_ps (not past). Cheap near the last tick. */
static inline uint64_t rn_block_cycle_at(const struct rn_block *block, uint64_t at_ps)
{
	/* Before the first tick the last edge is later than any time. */
	uint64_t since_ps = at_ps - block->last_edge_ps;

	if (!since_ps)
		return block->last_cycle;
	if (at_ps > block->last_edge_ps && since_ps <= block->clock->period_ps)
		return block->last_cycle + 1;
	return rn_clock_cycle_at(block->clock, at_ps);
}

/** Tick @cycles (>= 1) cycles after the present one. */
static inline void rn_block_wake_in(struct rn_block *block, uint64_t cycles)
{
	uint64_t cycle = rn_block_cycle_at(block, rn_sim_now_ps(block->sim)) + cycles;

	RN_ASSERT(cycles >= 1);
	rn_block_wake_cycle(block, cycle, rn_clock_edge_ps(block->clock, cycle));
}

/** Tick again in the next cycle. */
static inline void rn_block_wake_next(struct rn_block *block)
{
	rn_block_wake_in(block, 1);
}

/** Time of the edge @cycles after the present time's edge. */
static inline uint64_t rn_block_edge_in_ps(const struct rn_block *block, uint64_t cycles)
{
	uint64_t cycle = rn_block_cycle_at(block, rn_sim_now_ps(block->sim));

	return rn_clock_edge_ps(block->clock, cycle + cycles);
}

/* Another reason to wait than before. */
void rn_block_change_stall(struct rn_block *block, enum rn_stall stall);

/** Say at the end of a tick whether the block did work, and what it waits for if it could not. */
static inline void rn_block_account(struct rn_block *block, uint64_t busy_cycles,
				    enum rn_stall stall)
{
	block->busy_cycles += busy_cycles;
	if (block->stall != stall)
		rn_block_change_stall(block, stall);
}

/** Close the open stall interval at the present time (before a report or a warm-up cut). */
void rn_block_settle(struct rn_block *block);

/** Zero ticks, busy cycles and stalls: the end of a warm-up. */
void rn_block_clear_stats(struct rn_block *block);

/** Name of a stall reason in reports: "output", "credit" ... */
const char *rn_stall_name(enum rn_stall stall);

#endif
