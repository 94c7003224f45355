#include <check.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "run_suite.h"
#include "sim/sim.h"

#define MAX_LOG 4096

struct log {
	struct rn_sim *sim;
	unsigned count;
	unsigned who[MAX_LOG];
	uint64_t at_ps[MAX_LOG];
};

struct waker {
	struct log *log;
	struct rn_wake wake;
	unsigned who;
	unsigned again;	    /* times it sets itself anew ... */
	uint64_t period_ps; /* ... this much later */
};

static void note(void *arg)
{
	struct waker *w = arg;

	ck_assert_uint_lt(w->log->count, MAX_LOG);
	w->log->who[w->log->count] = w->who;
	w->log->at_ps[w->log->count++] = rn_sim_now_ps(w->log->sim);
	if (w->again) {
		w->again--;
		rn_wake_at(w->log->sim, &w->wake, rn_sim_now_ps(w->log->sim) + w->period_ps);
	}
}

static void set_up(struct log *log, struct waker *wakers, unsigned count, uint64_t seed)
{
	log->sim = rn_sim_new(seed);
	log->count = 0;
	for (unsigned i = 0; i < count; i++) {
		wakers[i] = (struct waker){.log = log, .who = i};
		rn_wake_init(log->sim, &wakers[i].wake, note, &wakers[i]);
	}
}

START_TEST(wakes_run_in_order_of_time)
{
	static const uint64_t at_ps[] = {5,	  3,	   1024,	1023, 0,
					 2097152, 2097151, 70000000000, 4,    3000};
	static const unsigned order[] = {4, 1, 8, 0, 3, 2, 9, 6, 5, 7};
	struct log log;
	struct waker w[RN_ARRAY_LEN(at_ps)];

	set_up(&log, w, RN_ARRAY_LEN(w), 0);
	ck_assert_uint_eq(rn_sim_next_ps(log.sim), RN_TIME_NEVER);
	for (unsigned i = 0; i < RN_ARRAY_LEN(w); i++)
		rn_wake_at(log.sim, &w[i].wake, at_ps[i]);
	ck_assert_uint_eq(rn_sim_next_ps(log.sim), 0);
	ck_assert_uint_eq(rn_sim_run(log.sim, RN_TIME_NEVER, UINT64_MAX), RN_ARRAY_LEN(w));
	for (unsigned i = 0; i < RN_ARRAY_LEN(w); i++) {
		ck_assert_uint_eq(log.who[i], order[i]);
		ck_assert_uint_eq(log.at_ps[i], at_ps[order[i]]);
	}
	ck_assert_uint_eq(rn_sim_wakes(log.sim), RN_ARRAY_LEN(w));
	ck_assert_uint_eq(rn_sim_now_ps(log.sim), 70000000000);
	rn_sim_free(log.sim);
}
END_TEST

START_TEST(same_time_runs_in_order_of_id_without_a_seed)
{
	struct log log;
	struct waker w[50];

	set_up(&log, w, 50, 0);
	for (unsigned i = 0; i < 50; i++)
		rn_wake_at(log.sim, &w[i * 7 % 50].wake, 12345);
	rn_sim_run(log.sim, 12344, UINT64_MAX);
	ck_assert_uint_eq(log.count, 0);
	ck_assert_uint_eq(rn_sim_now_ps(log.sim), 12344);
	rn_sim_run(log.sim, 12345, UINT64_MAX);
	ck_assert_uint_eq(log.count, 50);
	for (unsigned i = 0; i < 50; i++)
		ck_assert_uint_eq(log.who[i], i);
	rn_sim_free(log.sim);
}
END_TEST

START_TEST(a_seed_permutes_same_time_wakes_the_same_way_every_time)
{
	unsigned first[50];

	for (unsigned run = 0; run < 4; run++) {
		struct log log;
		struct waker w[50];
		unsigned seen[50] = {0};

		set_up(&log, w, 50, run < 2 ? 5 : run);
		for (unsigned i = 0; i < 50; i++)
			rn_wake_at(log.sim, &w[run == 1 ? 49 - i : i].wake, 999999999);
		rn_sim_run(log.sim, RN_TIME_NEVER, UINT64_MAX);
		for (unsigned i = 0; i < 50; i++)
			seen[log.who[i]]++;
		for (unsigned i = 0; i < 50; i++)
			ck_assert_uint_eq(seen[i], 1);
		if (run == 0)
			memcpy(first, log.who, sizeof(first));
		else if (run == 1)
			ck_assert_mem_eq(first, log.who, sizeof(first));
		else
			ck_assert_mem_ne(first, log.who, sizeof(first));
		rn_sim_free(log.sim);
	}
}
END_TEST

START_TEST(an_earlier_time_wins_and_a_later_one_is_ignored)
{
	static const uint64_t times_ps[] = {100, 5000, 3000000, 90000000};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < 4; j++) {
			struct log log;
			struct waker w;

			set_up(&log, &w, 1, 0);
			rn_wake_at(log.sim, &w.wake, times_ps[i]);
			rn_wake_at(log.sim, &w.wake, times_ps[j]);
			rn_sim_run(log.sim, RN_TIME_NEVER, UINT64_MAX);
			ck_assert_uint_eq(log.count, 1);
			ck_assert_uint_eq(log.at_ps[0], rn_min_u64(times_ps[i], times_ps[j]));
			rn_sim_free(log.sim);
		}
}
END_TEST

START_TEST(a_cancelled_wake_does_not_run_and_can_be_set_again)
{
	static const uint64_t times_ps[] = {100, 101, 90000000, 80000000, 70000000};
	struct log log;
	struct waker w[5];

	set_up(&log, w, 5, 0);
	for (unsigned i = 0; i < 5; i++)
		rn_wake_at(log.sim, &w[i].wake, times_ps[i]);
	for (unsigned i = 0; i < 5; i += 2)
		rn_wake_cancel(log.sim, &w[i].wake);
	rn_wake_cancel(log.sim, &w[0].wake);
	ck_assert(!rn_wake_is_pending(&w[0].wake));
	ck_assert(rn_wake_is_pending(&w[1].wake));
	rn_wake_at(log.sim, &w[4].wake, 102);
	rn_sim_run(log.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(log.count, 3);
	ck_assert_uint_eq(log.who[0], 1);
	ck_assert_uint_eq(log.who[1], 4);
	ck_assert_uint_eq(log.who[2], 3);
	rn_sim_free(log.sim);
}
END_TEST

struct chain {
	struct log *log;
	struct waker *next;
	struct rn_wake wake;
};

static void wake_next_now(void *arg)
{
	struct chain *chain = arg;

	rn_wake_at(chain->log->sim, &chain->next->wake, 0);
}

START_TEST(a_wake_for_now_from_a_callback_runs_before_time_moves)
{
	struct log log;
	struct waker w[2];
	struct chain chain = {.log = &log, .next = &w[0]};

	set_up(&log, w, 2, 0);
	rn_wake_init(log.sim, &chain.wake, wake_next_now, &chain);
	rn_wake_at(log.sim, &chain.wake, 777);
	rn_wake_at(log.sim, &w[1].wake, 778);
	rn_sim_run(log.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(log.who[0], 0);
	ck_assert_uint_eq(log.at_ps[0], 777);
	ck_assert_uint_eq(log.at_ps[1], 778);
	rn_sim_free(log.sim);
}
END_TEST

START_TEST(run_stops_after_max_wakes_and_leaves_the_time_there)
{
	struct log log;
	struct waker w;

	set_up(&log, &w, 1, 0);
	w.again = 100;
	w.period_ps = 10;
	rn_wake_at(log.sim, &w.wake, 10);
	ck_assert_uint_eq(rn_sim_run(log.sim, 1000000, 3), 3);
	ck_assert_uint_eq(rn_sim_now_ps(log.sim), 30);
	ck_assert_uint_eq(rn_sim_run(log.sim, 39, 100), 0);
	ck_assert_uint_eq(rn_sim_now_ps(log.sim), 39);
	ck_assert_uint_eq(rn_sim_run(log.sim, 40, 100), 1);
	ck_assert_uint_eq(rn_sim_run(log.sim, 1000000, UINT64_MAX), 97);
	ck_assert_uint_eq(rn_sim_now_ps(log.sim), 1000000);
	rn_sim_free(log.sim);
}
END_TEST

/* A plain model of the wheel: an array of due times, the smallest (time, id) runs. */
START_TEST(random_sets_and_cancels_agree_with_a_plain_model)
{
	enum { WAKERS = 200, STEPS = 20000 };
	static struct log log;
	static struct waker w[WAKERS];
	uint64_t due_ps[WAKERS];
	struct rn_rng rng;

	set_up(&log, w, WAKERS, 0);
	rn_rng_init(&rng, 1, "wheel");
	memset(due_ps, 0xff, sizeof(due_ps));
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = (unsigned)rn_rng_below(&rng, WAKERS);
		uint64_t span_ps = UINT64_C(1) << rn_rng_below(&rng, 34);
		uint64_t at_ps = rn_sim_now_ps(log.sim) + rn_rng_below(&rng, span_ps);
		unsigned first = 0;

		switch (rn_rng_below(&rng, 4)) {
		case 0:
			rn_wake_cancel(log.sim, &w[i].wake);
			due_ps[i] = RN_TIME_NEVER;
			break;
		case 1:
		case 2:
			rn_wake_at(log.sim, &w[i].wake, at_ps);
			due_ps[i] = rn_min_u64(due_ps[i], at_ps);
			break;
		default:
			for (unsigned j = 1; j < WAKERS; j++)
				if (due_ps[j] < due_ps[first])
					first = j;
			log.count = 0;
			ck_assert_uint_eq(rn_sim_next_ps(log.sim), due_ps[first]);
			rn_sim_run(log.sim, RN_TIME_NEVER, 1);
			ck_assert_uint_eq(log.count, due_ps[first] != RN_TIME_NEVER);
			if (!log.count)
				break;
			ck_assert_uint_eq(log.who[0], first);
			ck_assert_uint_eq(log.at_ps[0], due_ps[first]);
			due_ps[first] = RN_TIME_NEVER;
		}
	}
	rn_sim_free(log.sim);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("wheel");

	tcase_add_test(tcase, wakes_run_in_order_of_time);
	tcase_add_test(tcase, same_time_runs_in_order_of_id_without_a_seed);
	tcase_add_test(tcase, a_seed_permutes_same_time_wakes_the_same_way_every_time);
	tcase_add_test(tcase, an_earlier_time_wins_and_a_later_one_is_ignored);
	tcase_add_test(tcase, a_cancelled_wake_does_not_run_and_can_be_set_again);
	tcase_add_test(tcase, a_wake_for_now_from_a_callback_runs_before_time_moves);
	tcase_add_test(tcase, run_stops_after_max_wakes_and_leaves_the_time_there);
	tcase_add_test(tcase, random_sets_and_cancels_agree_with_a_plain_model);
	return run_suite(tcase, "wheel");
}
