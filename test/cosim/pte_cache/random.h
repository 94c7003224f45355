/*
 * Constrained-random stimulus of the PTE cache. The run is cut into phases, each with its own rates, latencies and pool of keys:
 * so there are stretches of hits, of thrashing, of full back-pressure, of silence. The DMA
 * engine is the bench's: it answers in any order, with tables that are made up from the seed.
 */
#ifndef RN_TEST_COSIM_PTE_CACHE_RANDOM_H
#define RN_TEST_COSIM_PTE_CACHE_RANDOM_H

#include "base/rng.h"
#include "cosim/pte_cache/coverage.h"
#include "cosim/pte_cache/rig.h"
#include "hw/gen/rnic_hw.h"

#define RANDOM_VERSIONS 64

struct random_phase {
	uint64_t end_cycle;
	uint32_t req_rate[2]; /* of 16, as all rates here */
	uint32_t ready_rate[OUT_COUNT];
	uint32_t release_rate;
	uint32_t inval_rate; /* of 1024 */
	uint32_t base_rate;  /* of 1024 */
	uint32_t error_rate;
	uint32_t abort_rate;
	uint32_t latency_cycles;
	uint32_t keys; /* in use */
	uint32_t high; /* upper bits of their indexes */
	uint32_t sets; /* over which they spread */
	uint32_t pages;
};

struct random_read {
	uint64_t due_cycle;
	uint64_t index; /* of the MPT */
	uint16_t token;
	bool is_mpt;
};

struct random {
	struct rig *rig;
	struct coverage *coverage;
	struct rn_rng rng;
	uint64_t seed;
	struct random_phase phase;
	struct rn_pte_base base;
	uint32_t versions[RANDOM_VERSIONS]; /* of MPT entries, by index */
	struct random_read reads[RIG_BUFFERS];
	uint32_t reads_count;
	uint32_t held[2]; /* translations to be released, by epoch */
	uint16_t next_id;
};

/** Where the run of @seed begins. */
uint64_t random_first_cycle(uint64_t seed);

void random_init(struct random *random, struct rig *rig, struct coverage *coverage, uint64_t seed);

/** From now on, for @cycles: translations, as fast as they come, and none is released. */
void random_hoard(struct random *random, uint64_t cycles);

/** Run @cycles; false at a difference. */
bool random_run(struct random *random, uint64_t cycles);

#endif
