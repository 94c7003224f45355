/*
 * Clock domains. The period is rational, edge n = floor(n * num / den) ps, so that
 * 322.265625 MHz does not drift.
 */
#ifndef RN_SIM_CLOCK_H
#define RN_SIM_CLOCK_H

#include <stdint.h>

struct rn_clock {
	const char *name; /* "core", "pcie", "mac" */
	uint64_t num;	  /* period = num / den picoseconds */
	uint64_t den;
	uint64_t period_ps; /* num / den, rounded down */
	/* Private: floor((2^64 - 1) / num) and / den. */
	uint64_t num_inverse;
	uint64_t den_inverse;
};

/** Clock of @hz, 1 .. 10^12; the period is exactly 10^12 / hz ps. */
void rn_clock_init(struct rn_clock *clock, const char *name, uint64_t hz);

/* Where the product does not fit 64 bits. */
uint64_t rn_clock_edge_far_ps(const struct rn_clock *clock, uint64_t cycle);
uint64_t rn_clock_cycle_far(const struct rn_clock *clock, uint64_t at_ps);

/* value / divisor, exactly, without a division: the estimate is right or one too low. */
static inline uint64_t rn_clock_quotient(uint64_t value, uint64_t divisor, uint64_t inverse)
{
	__extension__ typedef unsigned __int128 u128;
	uint64_t estimate = (uint64_t)((u128)value * inverse >> 64);

	return estimate + (value - estimate * divisor >= divisor);
}

/** Time of edge @cycle. */
static inline uint64_t rn_clock_edge_ps(const struct rn_clock *clock, uint64_t cycle)
{
	uint64_t product;

	if (__builtin_mul_overflow(cycle, clock->num, &product))
		return rn_clock_edge_far_ps(clock, cycle);
	if (clock->den == 1)
		return product;
	return rn_clock_quotient(product, clock->den, clock->den_inverse);
}

/** Number of the first edge at or after @at_ps. */
static inline uint64_t rn_clock_cycle_at(const struct rn_clock *clock, uint64_t at_ps)
{
	uint64_t product;

	if (__builtin_mul_overflow(at_ps, clock->den, &product))
		return rn_clock_cycle_far(clock, at_ps);

	/* floor(n * num / den) >= at  <=>  n >= at * den / num: the ceiling is the first. */
	uint64_t cycle = rn_clock_quotient(product, clock->num, clock->num_inverse);

	return cycle + (cycle * clock->num != product);
}

/** First edge at or after @at_ps. */
static inline uint64_t rn_clock_next_edge_ps(const struct rn_clock *clock, uint64_t at_ps)
{
	return rn_clock_edge_ps(clock, rn_clock_cycle_at(clock, at_ps));
}

#endif
