/*
 * Seeded random numbers (splitmix64). Every instance that needs randomness owns
 * a generator seeded by the run's seed and its own name, so that the order in
 * which instances draw cannot change a result.
 */
#ifndef RN_BASE_RNG_H
#define RN_BASE_RNG_H

#include <stdint.h>

struct rn_rng {
	uint64_t state;
};

/** Seed @rng from the run's @seed and the instance's @name (FNV-1a of the name mixed in). */
void rn_rng_init(struct rn_rng *rng, uint64_t seed, const char *name);

/** Next 64 uniformly distributed bits. */
uint64_t rn_rng_next(struct rn_rng *rng);

/** Uniform in 0 .. bound-1; bound >= 1. */
uint64_t rn_rng_below(struct rn_rng *rng, uint64_t bound);

#endif
