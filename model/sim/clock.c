/*
 * Exact edges of rational periods: what the header's short way cannot do, long runs of awkward
 * frequencies, splits off whole multiples first.
 */
#include "sim/clock.h"

#include "base/assert.h"

#define PS_PER_S UINT64_C(1000000000000)

__extension__ typedef unsigned __int128 u128;

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void rn_clock_init(struct rn_clock *clock, const char *name, uint64_t hz)
{
	RN_ASSERT(hz >= 1 && hz <= PS_PER_S);
	uint64_t common = gcd(PS_PER_S, hz);

	clock->name = name;
	clock->num = PS_PER_S / common;
	clock->den = hz / common;
	clock->period_ps = clock->num / clock->den;
	clock->num_inverse = UINT64_MAX / clock->num;
	clock->den_inverse = UINT64_MAX / clock->den;
}

uint64_t rn_clock_edge_far_ps(const struct rn_clock *clock, uint64_t cycle)
{
	uint64_t whole = cycle / clock->den;
	uint64_t rest = cycle % clock->den;

	return whole * clock->num + (uint64_t)((u128)rest * clock->num / clock->den);
}

uint64_t rn_clock_cycle_far(const struct rn_clock *clock, uint64_t at_ps)
{
	uint64_t whole = at_ps / clock->num;
	u128 rest = (u128)(at_ps % clock->num) * clock->den;

	return whole * clock->den + (uint64_t)((rest + clock->num - 1) / clock->num);
}
