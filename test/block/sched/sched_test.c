/*
 * The scheduler: one grant a queue pair, round robin, parking, and whose doorbells count.
 */
#include "nic/sched/sched.h"

#include <check.h>

#include "base/bits.h"
#include "base/rng.h"
#include "block/common/bench.h"
#include "run_suite.h"

#define PAGE 3

static struct bench bench;
static struct rn_sched_params params;
static struct rn_sched_ports ports;
static struct rn_sched *sched;

static void build_with(bool binds)
{
	bench_init(&bench, 0);
	ports = (struct rn_sched_ports){
		.sq_ring = bench_fifo(&bench, "ring", 64, sizeof(struct rn_sq_ring)),
		.turn = bench_fifo(&bench, "turn", 64, sizeof(struct rn_turn)),
		.bind = binds ? bench_fifo(&bench, "bind", 4, sizeof(struct rn_bind)) : NULL,
		.grant = bench_fifo(&bench, "grant", 8, sizeof(struct rn_grant)),
	};
	sched = rn_sched_new(&bench.env, &params, &ports);
	bench_run(&bench, 1);
}

static void set_up(void)
{
	rn_params_set_defaults(&rn_sched_param_table, &params);
	params.max_qps = 64;
}

static void tear_down(void)
{
	rn_sched_free(sched);
	bench_fini(&bench);
}

static void ring_from(uint32_t page, uint32_t qpn, uint16_t pi)
{
	rn_fifo_push(ports.sq_ring, &(struct rn_sq_ring){.qpn = qpn, .uar_page = page, .pi = pi});
}

static void turn(uint32_t qpn, enum rn_turn_kind kind, uint16_t next)
{
	rn_fifo_push(ports.turn,
		     &(struct rn_turn){.qpn = qpn, .kind = (uint8_t)kind, .next = next});
}

static void bind(uint32_t qpn, uint32_t page, bool exists)
{
	rn_fifo_push(ports.bind, &(struct rn_bind){.qpn = qpn, .uar_page = page, .exists = exists});
}

static struct rn_grant want_grant(uint32_t qpn, uint16_t pi)
{
	struct rn_grant grant = {0};

	bench_run(&bench, 5);
	ck_assert(rn_fifo_pop(ports.grant, &grant));
	ck_assert_uint_eq(grant.qpn, qpn);
	ck_assert_uint_eq(grant.pi, pi);
	return grant;
}

static void want_no_grant(void)
{
	bench_run(&bench, 5);
	ck_assert_ptr_null(rn_fifo_peek(ports.grant));
}

static uint64_t count(const char *name)
{
	return bench_counter(&bench, "sched", name);
}

START_TEST(a_ring_is_granted_two_cycles_later)
{
	build_with(false);
	ring_from(PAGE, 5, 1);
	bench_run(&bench, 1); /* taken and granted */
	ck_assert_ptr_null(rn_fifo_peek(ports.grant));
	bench_run(&bench, 1);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.grant));
	ck_assert_uint_eq(want_grant(5, 1).uar_page, PAGE);
}
END_TEST

START_TEST(a_queue_pair_has_one_grant_at_a_time)
{
	build_with(false);
	ring_from(PAGE, 5, 1);
	want_grant(5, 1);
	ring_from(PAGE, 5, 4);
	want_no_grant();
	turn(5, RN_TURN_END, 1);
	want_grant(5, 4);
	turn(5, RN_TURN_END, 4);
	want_no_grant();
}
END_TEST

START_TEST(ready_queue_pairs_take_turns)
{
	params.grants_outstanding = 1;
	build_with(false);
	for (uint32_t qpn = 1; qpn <= 3; qpn++)
		ring_from(PAGE, qpn, 10);
	for (uint16_t next = 1; next <= 3; next++)
		for (uint32_t qpn = 1; qpn <= 3; qpn++) {
			want_grant(qpn, 10);
			turn(qpn, RN_TURN_END, next);
		}
}
END_TEST

START_TEST(no_more_grants_are_outstanding_than_allowed)
{
	params.grants_outstanding = 2;
	build_with(false);
	for (uint32_t qpn = 1; qpn <= 3; qpn++)
		ring_from(PAGE, qpn, 1);
	want_grant(1, 1);
	want_grant(2, 1);
	want_no_grant();
	turn(2, RN_TURN_END, 1);
	want_grant(3, 1);
}
END_TEST

START_TEST(grants_keep_their_interval)
{
	params.interval_cycles = 7;
	build_with(false);
	ring_from(PAGE, 1, 1);
	ring_from(PAGE, 2, 1);
	bench_run(&bench, 1 + 6);
	ck_assert_uint_eq(rn_fifo_occupancy(ports.grant), 1);
	bench_run(&bench, 1);
	ck_assert_uint_eq(rn_fifo_occupancy(ports.grant), 2);
}
END_TEST

START_TEST(a_parked_queue_pair_waits_for_its_activation)
{
	build_with(false);
	ring_from(PAGE, 1, 5);
	want_grant(1, 5);
	turn(1, RN_TURN_PARK, 2);
	want_no_grant();
	ring_from(PAGE, 1, 6);
	want_no_grant();
	turn(1, RN_TURN_ACTIVATE, 2);
	want_grant(1, 6);
}
END_TEST

START_TEST(an_activation_may_set_the_queue_back)
{
	build_with(false);
	ring_from(PAGE, 1, 5);
	want_grant(1, 5);
	turn(1, RN_TURN_END, 5);
	want_no_grant();
	turn(1, RN_TURN_ACTIVATE, 3);
	want_grant(1, 5);
}
END_TEST

START_TEST(an_activation_during_a_grant_gives_no_second_one)
{
	build_with(false);
	ring_from(PAGE, 1, 5);
	want_grant(1, 5);
	turn(1, RN_TURN_ACTIVATE, 0);
	want_no_grant();
	turn(1, RN_TURN_END, 0);
	want_grant(1, 5);
}
END_TEST

START_TEST(indexes_wrap)
{
	build_with(false);
	turn(1, RN_TURN_RESET, 0xffff);
	bench_run(&bench, 3);
	ring_from(PAGE, 1, 1);
	want_grant(1, 1);
	turn(1, RN_TURN_END, 0);
	want_grant(1, 1);
	turn(1, RN_TURN_END, 1);
	want_no_grant();
}
END_TEST

START_TEST(a_reset_forgets_the_queue_pair)
{
	build_with(false);
	params.grants_outstanding = 1;
	ring_from(PAGE, 1, 5);
	want_grant(1, 5);
	ring_from(PAGE, 1, 9);
	turn(1, RN_TURN_RESET, 0);
	want_no_grant();
	/* The old grant still ends, and says nothing about the new life. */
	ring_from(PAGE, 1, 2);
	bench_run(&bench, 2);
	turn(1, RN_TURN_END, 2);
	want_grant(1, 2);
	turn(1, RN_TURN_END, 2);
	want_no_grant();
}
END_TEST

START_TEST(a_reset_queue_pair_in_the_ready_list_is_passed_over)
{
	params.grants_outstanding = 1;
	build_with(false);
	ring_from(PAGE, 1, 1);
	want_grant(1, 1);
	ring_from(PAGE, 2, 1);
	ring_from(PAGE, 3, 1);
	bench_run(&bench, 5);
	turn(2, RN_TURN_RESET, 0);
	bench_run(&bench, 5);
	turn(1, RN_TURN_END, 1);
	want_grant(3, 1);
	turn(3, RN_TURN_END, 1);
	want_no_grant();
	ring_from(PAGE, 2, 1);
	want_grant(2, 1);
}
END_TEST

START_TEST(a_ring_beyond_the_table_is_counted)
{
	build_with(true);
	ring_from(PAGE, 64, 1);
	want_no_grant();
	ck_assert_uint_eq(count("rings_bad_qpn"), 1);
}
END_TEST

START_TEST(the_page_is_asked_for_once)
{
	build_with(true);
	ring_from(PAGE, 1, 1);
	ck_assert_uint_eq(want_grant(1, 1).bind, 1);
	bind(1, PAGE, true);
	turn(1, RN_TURN_END, 1);
	ring_from(PAGE, 1, 2);
	ck_assert_uint_eq(want_grant(1, 2).bind, 0);
	turn(1, RN_TURN_RESET, 0);
	bench_run(&bench, 2);
	turn(1, RN_TURN_END, 0);
	bench_run(&bench, 2);
	ring_from(PAGE + 1, 1, 1);
	ck_assert_uint_eq(want_grant(1, 1).bind, 1);
}
END_TEST

START_TEST(a_ring_from_a_strange_page_is_ignored)
{
	build_with(true);
	ring_from(PAGE, 1, 1);
	want_grant(1, 1);
	bind(1, PAGE, true);
	turn(1, RN_TURN_END, 1);
	bench_run(&bench, 5);
	ring_from(PAGE + 1, 1, 7);
	want_no_grant();
	ck_assert_uint_eq(count("rings_bad_page"), 1);
	ring_from(PAGE, 1, 2);
	want_grant(1, 2);
}
END_TEST

START_TEST(a_strange_ring_that_came_first_does_not_hide_the_owners)
{
	build_with(true);
	ring_from(PAGE + 1, 1, 0x5555);
	ck_assert_uint_eq(want_grant(1, 0x5555).uar_page, PAGE + 1);
	ring_from(PAGE, 1, 3);
	bench_run(&bench, 2);
	bind(1, PAGE, true);
	bench_run(&bench, 2);
	turn(1, RN_TURN_END, 0x5555);
	ck_assert_uint_eq(want_grant(1, 3).uar_page, PAGE);
	ck_assert_uint_eq(count("grants_refused"), 1);
}
END_TEST

START_TEST(an_owner_that_came_first_is_not_displaced)
{
	build_with(true);
	ring_from(PAGE, 1, 1);
	want_grant(1, 1);
	ring_from(PAGE + 1, 1, 9);
	bench_run(&bench, 2);
	bind(1, PAGE, true);
	turn(1, RN_TURN_END, 1);
	want_no_grant();
	ck_assert_uint_eq(count("rings_bad_page"), 1);
}
END_TEST

START_TEST(rings_of_a_queue_pair_that_is_not_there_come_to_nothing)
{
	build_with(true);
	for (unsigned i = 0; i < 3; i++) {
		ring_from(PAGE, 1, (uint16_t)(i + 1));
		ck_assert_uint_eq(want_grant(1, (uint16_t)(i + 1)).bind, 1);
		bind(1, 0, false);
		bench_run(&bench, 2);
		turn(1, RN_TURN_END, (uint16_t)(i + 1));
		want_no_grant();
	}
	ck_assert_uint_eq(count("grants_refused"), 3);
}
END_TEST

/* Rings, turns and resets at random: every queue pair gets served to its last index, none twice at a time. */
START_TEST(random_traffic_is_served_completely)
{
	struct rn_rng rng;
	uint16_t pi[16] = {0}, next[16] = {0};
	bool granted[16] = {false};
	struct rn_grant grant;

	params.grants_outstanding = 4;
	build_with(false);
	rn_rng_init(&rng, 7, "sched");
	for (unsigned round = 0; round < 60000; round++) {
		uint32_t qpn = (uint32_t)rn_rng_below(&rng, 16);

		if (round < 15000 && rn_rng_below(&rng, 3) == 0)
			ring_from(PAGE, qpn, pi[qpn] += (uint16_t)rn_rng_below(&rng, 4));
		while (rn_fifo_pop(ports.grant, &grant)) {
			ck_assert(!granted[grant.qpn]);
			granted[grant.qpn] = true;
		}
		qpn = (uint32_t)rn_rng_below(&rng, 16);
		if (granted[qpn]) {
			granted[qpn] = false;
			next[qpn] += next[qpn] != pi[qpn];
			turn(qpn, RN_TURN_END, next[qpn]);
		}
		bench_run(&bench, 1);
	}
	for (uint32_t qpn = 0; qpn < 16; qpn++)
		ck_assert_uint_eq(pi[qpn], next[qpn]);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("sched");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, a_ring_is_granted_two_cycles_later);
	tcase_add_test(tcase, a_queue_pair_has_one_grant_at_a_time);
	tcase_add_test(tcase, ready_queue_pairs_take_turns);
	tcase_add_test(tcase, no_more_grants_are_outstanding_than_allowed);
	tcase_add_test(tcase, grants_keep_their_interval);
	tcase_add_test(tcase, a_parked_queue_pair_waits_for_its_activation);
	tcase_add_test(tcase, an_activation_may_set_the_queue_back);
	tcase_add_test(tcase, an_activation_during_a_grant_gives_no_second_one);
	tcase_add_test(tcase, indexes_wrap);
	tcase_add_test(tcase, a_reset_forgets_the_queue_pair);
	tcase_add_test(tcase, a_reset_queue_pair_in_the_ready_list_is_passed_over);
	tcase_add_test(tcase, a_ring_beyond_the_table_is_counted);
	tcase_add_test(tcase, the_page_is_asked_for_once);
	tcase_add_test(tcase, a_ring_from_a_strange_page_is_ignored);
	tcase_add_test(tcase, a_strange_ring_that_came_first_does_not_hide_the_owners);
	tcase_add_test(tcase, an_owner_that_came_first_is_not_displaced);
	tcase_add_test(tcase, rings_of_a_queue_pair_that_is_not_there_come_to_nothing);
	tcase_add_test(tcase, random_traffic_is_served_completely);
	return run_suite(tcase, "sched");
}
