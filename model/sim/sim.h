/*
 * The timing wheel: simulated time and the wakes of blocks.
 *
 * Time is picoseconds in uint64_t. A wake is an intrusive node: each is pending at
 * most once. Wakes due at the same picosecond run in an order that a seed can
 * permute; blocks share nothing but registered fifos, so that order cannot change a
 * result (tests prove it by permuting).
 */
#ifndef RN_SIM_SIM_H
#define RN_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#define RN_TIME_NEVER UINT64_MAX

struct rn_sim;

struct rn_wake {
	void (*fn)(void *arg);
	void *arg;
	uint64_t due_ps; /* RN_TIME_NEVER when not pending */
	/* Private to the wheel. */
	uint64_t order;
	struct rn_wake *next;
	struct rn_wake *prev;
	uint32_t heap_idx;
	uint32_t id;
};

/** @permute_seed: 0 keeps same-time wakes in order of rn_wake_init(); else a permutation by it. */
struct rn_sim *rn_sim_new(uint64_t permute_seed);
void rn_sim_free(struct rn_sim *sim);

/* Opaque but for the time at its start, which everybody reads all the time. */
struct rn_sim_time {
	uint64_t now_ps;
};

/** Current simulated time. */
static inline uint64_t rn_sim_now_ps(const struct rn_sim *sim)
{
	return ((const struct rn_sim_time *)sim)->now_ps;
}

/** Prepare a wake; @fn(@arg) is called when due. @sim outlives @wake. */
void rn_wake_init(struct rn_sim *sim, struct rn_wake *wake, void (*fn)(void *arg), void *arg);

/**
 * Make @wake due at @at_ps, or earlier if it already is pending earlier.
 * @at_ps below the current time counts as the current time; a wake set for the
 * current time from inside a callback runs before time moves on.
 */
void rn_wake_at(struct rn_sim *sim, struct rn_wake *wake, uint64_t at_ps);

/** Drop a pending wake; nothing happens when it is not pending. */
void rn_wake_cancel(struct rn_sim *sim, struct rn_wake *wake);

static inline bool rn_wake_is_pending(const struct rn_wake *wake)
{
	return wake->due_ps != RN_TIME_NEVER;
}

/** Time of the earliest pending wake, RN_TIME_NEVER when there is none. */
uint64_t rn_sim_next_ps(struct rn_sim *sim);

/**
 * Run wakes due at or before @until_ps, at most @max_wakes of them, and leave the
 * time at the last one run, or at @until_ps when all were run and @until_ps is not
 * RN_TIME_NEVER. Returns the number of wakes run.
 */
uint64_t rn_sim_run(struct rn_sim *sim, uint64_t until_ps, uint64_t max_wakes);

/** From inside a wake: let rn_sim_run() return after it, as if its wakes were used up. */
void rn_sim_stop(struct rn_sim *sim);

/** Whether the latest rn_sim_run() returned because of rn_sim_stop(). */
bool rn_sim_is_stopped(const struct rn_sim *sim);

/** Wakes run since the start. */
uint64_t rn_sim_wakes(const struct rn_sim *sim);

#endif
