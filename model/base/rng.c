#include "base/rng.h"

#include "base/assert.h"

__extension__ typedef unsigned __int128 u128;

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void rn_rng_init(struct rn_rng *rng, uint64_t seed, const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	/* Mixed, so that neighbouring seeds do not give shifted copies of one sequence. */
	rng->state = mix(hash ^ mix(seed));
}

uint64_t rn_rng_next(struct rn_rng *rng)
{
	rng->state += UINT64_C(0x9e3779b97f4a7c15);
	return mix(rng->state);
}

uint64_t rn_rng_below(struct rn_rng *rng, uint64_t bound)
{
	RN_ASSERT(bound > 0);
	/* The high half of v * bound; the first 2^64 mod bound low halves would favour some results. */
	u128 product = (u128)rn_rng_next(rng) * bound;

	if ((uint64_t)product < bound) {
		uint64_t reject = -bound % bound;

		while ((uint64_t)product < reject)
			product = (u128)rn_rng_next(rng) * bound;
	}
	return (uint64_t)(product >> 64);
}
