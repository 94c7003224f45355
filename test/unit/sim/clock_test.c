#include <check.h>

#include "base/bits.h"
#include "base/rng.h"
#include "run_suite.h"
#include "sim/clock.h"

static const uint64_t frequencies_hz[] = {
	1,	   3,	      1000,	 999983,     100000000,	   250000000,
	322265625, 333333333, 390625000, 1000000007, 999999999989, 1000000000000,
};

/* floor(n * 10^12 / hz) by schoolbook, in a way that shares nothing with the clock. */
static uint64_t expected_edge_ps(uint64_t cycle, uint64_t hz)
{
	__extension__ typedef unsigned __int128 u128;

	return (uint64_t)((u128)cycle * UINT64_C(1000000000000) / hz);
}

START_TEST(edge_n_is_the_floor_of_n_periods)
{
	for (unsigned f = 0; f < RN_ARRAY_LEN(frequencies_hz); f++) {
		uint64_t hz = frequencies_hz[f];
		struct rn_clock clock;
		struct rn_rng rng;

		rn_clock_init(&clock, "core", hz);
		rn_rng_init(&rng, hz, "clock");
		for (unsigned i = 0; i < 10000; i++) {
			/* Up to ten simulated hours. */
			uint64_t span = (UINT64_C(1) << rn_rng_below(&rng, 47)) % (36000 * hz) + 1;
			uint64_t cycle = rn_rng_below(&rng, span);
			uint64_t edge_ps = rn_clock_edge_ps(&clock, cycle);

			ck_assert_uint_eq(edge_ps, expected_edge_ps(cycle, hz));
			ck_assert_uint_eq(rn_clock_cycle_at(&clock, edge_ps), cycle);
			ck_assert_uint_eq(rn_clock_cycle_at(&clock, edge_ps + 1), cycle + 1);
			if (cycle && edge_ps > rn_clock_edge_ps(&clock, cycle - 1) + 1)
				ck_assert_uint_eq(rn_clock_cycle_at(&clock, edge_ps - 1), cycle);
			ck_assert_uint_eq(rn_clock_next_edge_ps(&clock, edge_ps), edge_ps);
		}
	}
}
END_TEST

START_TEST(a_rational_period_does_not_drift)
{
	struct rn_clock clock;

	rn_clock_init(&clock, "mac", 322265625);
	ck_assert_uint_eq(rn_clock_edge_ps(&clock, 1), 3103);
	ck_assert_uint_eq(rn_clock_edge_ps(&clock, 33), 102400);
	ck_assert_uint_eq(rn_clock_edge_ps(&clock, 322265625), UINT64_C(1000000000000));
	/* An hour. */
	ck_assert_uint_eq(rn_clock_edge_ps(&clock, UINT64_C(322265625) * 3600),
			  UINT64_C(3600000000000000));
	ck_assert_uint_eq(rn_clock_next_edge_ps(&clock, 3102), 3103);
	ck_assert_uint_eq(rn_clock_next_edge_ps(&clock, 3103), 3103);
	ck_assert_uint_eq(rn_clock_next_edge_ps(&clock, 3104), 6206);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("clock");

	tcase_add_test(tcase, edge_n_is_the_floor_of_n_periods);
	tcase_add_test(tcase, a_rational_period_does_not_drift);
	return run_suite(tcase, "clock");
}
