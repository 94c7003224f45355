/*
 * What every test of a single block needs: a simulation with one clock of 1 GHz (a cycle is 1000 ps),
 * registries, and fifos that the test pushes and pops itself. Between calls of bench_run() the
 * time is that of the last edge run: what the test pushes then is visible to the block in the next cycle.
 */
#ifndef RN_TEST_BLOCK_COMMON_BENCH_H
#define RN_TEST_BLOCK_COMMON_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/msg/env.h"
#include "sim/buffer.h"
#include "sim/fifo.h"
#include "sim/sim.h"
#include "sim/stats.h"

#define BENCH_CYCLE_PS 1000u
#define BENCH_FIFOS 64

struct bench {
	struct rn_sim *sim;
	struct rn_clock clock;
	struct rn_stats *stats;
	struct rn_buffers *buffers;
	struct rn_nic_env env; /* named "nic" */
	struct rn_fifo fifos[BENCH_FIFOS];
	unsigned fifo_count;
	uint64_t cycle;
};

void bench_init(struct bench *bench, uint64_t permute_seed);

/** Buffers must all have been given back. Blocks are freed before. */
void bench_fini(struct bench *bench);

/** A new fifo of @depth, latency 1. */
struct rn_fifo *bench_fifo(struct bench *bench, const char *name, uint32_t depth,
			   uint32_t entry_bytes);

/** Run @cycles more edges. */
void bench_run(struct bench *bench, uint64_t cycles);

/** Run until @fifo has a visible entry, at most @limit_cycles; false when it has none then. */
bool bench_wait(struct bench *bench, struct rn_fifo *fifo, uint64_t limit_cycles);

/** Value of counter @name of "nic.@unit". */
uint64_t bench_counter(const struct bench *bench, const char *unit, const char *name);

#endif
