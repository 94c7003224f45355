#include <check.h>
#include <string.h>

#include "run_suite.h"
#include "sim/block.h"

struct ticker {
	struct rn_block block;
	unsigned count;
	uint64_t cycles[100];
	uint64_t at_ps[100];
	unsigned next; /* ticks to follow, one a cycle */
};

static void tick(void *self, uint64_t cycle)
{
	struct ticker *t = self;

	ck_assert_uint_lt(t->count, 100);
	t->cycles[t->count] = cycle;
	t->at_ps[t->count++] = rn_sim_now_ps(t->block.sim);
	if (t->next) {
		t->next--;
		rn_block_wake_next(&t->block);
	}
}

static void set_up(struct ticker *t, struct rn_sim *sim, struct rn_clock *clock, uint64_t hz)
{
	*t = (struct ticker){.next = 0};
	rn_clock_init(clock, "core", hz);
	rn_block_init(&t->block, sim, clock, "block", tick, t);
}

START_TEST(a_tick_lands_on_the_next_edge)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct ticker t;

	set_up(&t, sim, &clock, 500000000);
	rn_block_wake_at(&t.block, 4001);
	rn_sim_run(sim, 5999, UINT64_MAX);
	ck_assert_uint_eq(t.count, 0);
	rn_sim_run(sim, 6000, UINT64_MAX);
	ck_assert_uint_eq(t.count, 1);
	ck_assert_uint_eq(t.cycles[0], 3);
	rn_sim_free(sim);
}
END_TEST

START_TEST(the_first_tick_may_be_cycle_zero)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct ticker t;

	set_up(&t, sim, &clock, 500000000);
	rn_block_wake_at(&t.block, 0);
	rn_sim_run(sim, 100000, UINT64_MAX);
	ck_assert_uint_eq(t.count, 1);
	ck_assert_uint_eq(t.at_ps[0], 0);
	rn_sim_free(sim);
}
END_TEST

START_TEST(a_block_ticks_once_a_cycle_however_often_it_is_woken)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct ticker t;

	set_up(&t, sim, &clock, 322265625);
	for (unsigned i = 0; i < 10; i++)
		rn_block_wake_at(&t.block, 3000 + 10 * i);
	rn_sim_run(sim, 3103, UINT64_MAX);
	ck_assert_uint_eq(t.count, 1);
	/* It has ticked in cycle 1: now means cycle 2. */
	for (unsigned i = 0; i < 10; i++)
		rn_block_wake_at(&t.block, 3103);
	rn_sim_run(sim, 6205, UINT64_MAX);
	ck_assert_uint_eq(t.count, 1);
	rn_sim_run(sim, 6206, UINT64_MAX);
	ck_assert_uint_eq(t.count, 2);
	ck_assert_uint_eq(t.cycles[1], 2);
	rn_sim_free(sim);
}
END_TEST

START_TEST(wake_in_counts_cycles_and_an_earlier_wake_wins)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct ticker t;

	set_up(&t, sim, &clock, 500000000);
	rn_block_wake_in(&t.block, 10);
	rn_block_wake_in(&t.block, 3);
	rn_block_wake_in(&t.block, 7);
	ck_assert_uint_eq(rn_block_edge_in_ps(&t.block, 3), 6000);
	rn_sim_run(sim, 5999, UINT64_MAX);
	ck_assert_uint_eq(t.count, 0);
	rn_sim_run(sim, 7001, UINT64_MAX);
	ck_assert_uint_eq(t.count, 1);
	ck_assert_uint_eq(t.cycles[0], 3);
	/* Between edges 3 and 4 the present edge is 4. */
	ck_assert_uint_eq(rn_block_edge_in_ps(&t.block, 0), 8000);
	rn_block_wake_in(&t.block, 1);
	rn_sim_run(sim, 100000, UINT64_MAX);
	ck_assert_uint_eq(t.count, 2);
	ck_assert_uint_eq(t.cycles[1], 5);
	rn_sim_free(sim);
}
END_TEST

START_TEST(wake_next_visits_every_cycle_of_a_rational_clock)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct ticker t;

	set_up(&t, sim, &clock, 322265625);
	t.next = 99;
	rn_block_wake_at(&t.block, 0);
	rn_sim_run(sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(t.count, 100);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_uint_eq(t.cycles[i], i);
		ck_assert_uint_eq(t.at_ps[i], rn_clock_edge_ps(&clock, i));
	}
	ck_assert_uint_eq(t.block.ticks, 100);
	rn_sim_free(sim);
}
END_TEST

START_TEST(stall_time_goes_to_its_reason)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct ticker t;

	set_up(&t, sim, &clock, 1000000000);
	rn_sim_run(sim, 1000, UINT64_MAX);
	rn_block_account(&t.block, 1, RN_STALL_TAG);
	rn_sim_run(sim, 5000, UINT64_MAX);
	rn_block_account(&t.block, 0, RN_STALL_OUTPUT);
	rn_sim_run(sim, 7000, UINT64_MAX);
	rn_block_account(&t.block, 2, RN_STALL_NONE);
	rn_sim_run(sim, 9000, UINT64_MAX);
	rn_block_account(&t.block, 0, RN_STALL_TAG);
	rn_sim_run(sim, 9500, UINT64_MAX);
	rn_block_settle(&t.block);
	rn_block_settle(&t.block);
	ck_assert_uint_eq(t.block.busy_cycles, 3);
	ck_assert_uint_eq(t.block.stall_ps[RN_STALL_TAG], 4500);
	ck_assert_uint_eq(t.block.stall_ps[RN_STALL_OUTPUT], 2000);
	ck_assert_uint_eq(t.block.stall_ps[RN_STALL_NONE], 0);

	rn_block_clear_stats(&t.block);
	rn_sim_run(sim, 10000, UINT64_MAX);
	rn_block_settle(&t.block);
	ck_assert_uint_eq(t.block.busy_cycles, 0);
	ck_assert_uint_eq(t.block.stall_ps[RN_STALL_TAG], 500);
	for (unsigned i = 0; i < RN_STALL_COUNT; i++)
		ck_assert_uint_gt(strlen(rn_stall_name(i)), 0);
	rn_sim_free(sim);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("block");

	tcase_add_test(tcase, a_tick_lands_on_the_next_edge);
	tcase_add_test(tcase, the_first_tick_may_be_cycle_zero);
	tcase_add_test(tcase, a_block_ticks_once_a_cycle_however_often_it_is_woken);
	tcase_add_test(tcase, wake_in_counts_cycles_and_an_earlier_wake_wins);
	tcase_add_test(tcase, wake_next_visits_every_cycle_of_a_rational_clock);
	tcase_add_test(tcase, stall_time_goes_to_its_reason);
	return run_suite(tcase, "block");
}
