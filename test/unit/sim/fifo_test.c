#include <check.h>
#include <string.h>

#include "run_suite.h"
#include "sim/fifo.h"

/* Blocks that do in a given cycle what the test says, in both orders within the cycle. */
struct end {
	struct rn_block block;
	struct rn_fifo *fifo;
	void (*act)(struct end *end, uint64_t cycle);
	unsigned count;
	uint64_t ticks[64];
	uint64_t values[64];
	uint64_t value_cycle[64];
	unsigned values_count;
	uint64_t limit;
};

static void tick(void *self, uint64_t cycle)
{
	struct end *end = self;

	ck_assert_uint_lt(end->count, 64);
	end->ticks[end->count++] = cycle;
	end->act(end, cycle);
}

static void take_one(struct end *end, uint64_t cycle)
{
	uint64_t value;

	if (!rn_fifo_pop(end->fifo, &value))
		return;
	end->values[end->values_count] = value;
	end->value_cycle[end->values_count++] = cycle;
}

static void take_one_from_cycle_10(struct end *end, uint64_t cycle)
{
	if (cycle < 10)
		rn_block_wake_at(&end->block, rn_clock_edge_ps(end->block.clock, 10));
	else
		take_one(end, cycle);
}

static void give_one(struct end *end, uint64_t cycle)
{
	(void)cycle;
	if (end->values_count == end->limit || !rn_fifo_can_push(end->fifo))
		return;
	rn_fifo_push(end->fifo, &cycle);
	end->values[end->values_count] = cycle;
	end->value_cycle[end->values_count++] = cycle;
	rn_block_wake_next(&end->block);
}

struct bench {
	struct rn_sim *sim;
	struct rn_clock clocks[2];
	struct rn_fifo fifo;
	struct end producer, consumer;
};

static void set_up(struct bench *b, bool consumer_first, uint32_t depth, uint32_t latency_cycles,
		   const uint64_t hz[2])
{
	memset(b, 0, sizeof(*b));
	b->sim = rn_sim_new(0);
	rn_clock_init(&b->clocks[0], "producer", hz[0]);
	rn_clock_init(&b->clocks[1], "consumer", hz[1]);
	rn_fifo_init(&b->fifo, b->sim, "fifo", depth, sizeof(uint64_t), latency_cycles);
	for (unsigned i = 0; i < 2; i++) {
		bool is_consumer = (i == 0) == consumer_first;
		struct end *end = is_consumer ? &b->consumer : &b->producer;

		end->fifo = &b->fifo;
		end->act = is_consumer ? take_one : give_one;
		end->limit = 20;
		rn_block_init(&end->block, b->sim, &b->clocks[is_consumer], "end", tick, end);
	}
	rn_fifo_set_producer(&b->fifo, &b->producer.block);
	rn_fifo_set_consumer(&b->fifo, &b->consumer.block);
}

static void tear_down(struct bench *b)
{
	rn_fifo_fini(&b->fifo);
	rn_sim_free(b->sim);
}

static const uint64_t same_hz[2] = {500000000, 500000000};

START_TEST(an_entry_is_visible_latency_cycles_after_its_push)
{
	for (uint32_t latency = 1; latency < 5; latency++) {
		struct bench b;

		set_up(&b, _i, 4, latency, same_hz);
		b.producer.limit = 1;
		rn_block_wake_at(&b.producer.block, 10000);
		/* The consumer looks every cycle and must not see it early. */
		for (uint64_t cycle = 0; cycle < 20; cycle++) {
			rn_block_wake_at(&b.consumer.block, 2000 * cycle);
			rn_sim_run(b.sim, 2000 * cycle, UINT64_MAX);
			ck_assert_uint_eq(b.consumer.values_count, cycle >= 5 + latency);
		}
		ck_assert_uint_eq(b.consumer.value_cycle[0], 5 + latency);
		ck_assert_uint_eq(b.consumer.values[0], 5);
		tear_down(&b);
	}
}
END_TEST

START_TEST(the_consumer_is_woken_when_the_entry_becomes_visible)
{
	struct bench b;

	set_up(&b, _i, 4, 3, same_hz);
	b.producer.limit = 1;
	rn_block_wake_at(&b.producer.block, 10000);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(b.consumer.count, 1);
	ck_assert_uint_eq(b.consumer.ticks[0], 8);
	ck_assert_uint_eq(b.consumer.values_count, 1);
	tear_down(&b);
}
END_TEST

START_TEST(peek_arms_the_consumer_for_an_entry_on_its_way)
{
	struct bench b;

	set_up(&b, _i, 4, 3, same_hz);
	b.producer.limit = 1;
	rn_block_wake_at(&b.producer.block, 10000);
	rn_block_wake_at(&b.consumer.block, 12000);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(b.consumer.count, 2);
	ck_assert_uint_eq(b.consumer.ticks[0], 6);
	ck_assert_uint_eq(b.consumer.ticks[1], 8);
	ck_assert_uint_eq(b.consumer.values_count, 1);
	tear_down(&b);
}
END_TEST

START_TEST(a_slot_freed_in_cycle_n_is_used_in_n_plus_one)
{
	struct bench b;

	set_up(&b, _i, 2, 1, same_hz);
	b.consumer.act = take_one_from_cycle_10;
	b.producer.limit = 3;
	rn_block_wake_at(&b.producer.block, 0);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(b.producer.values[1], 1);
	ck_assert_uint_eq(b.producer.values[2], 11);
	ck_assert_uint_eq(b.consumer.value_cycle[0], 10);
	ck_assert_uint_eq(b.consumer.value_cycle[2], 12);
	/* Full from cycle 2, when the producer asked, until 11, when it could. */
	ck_assert_uint_eq(b.fifo.full_ps, 18000);
	ck_assert_uint_eq(b.fifo.max_occupancy, 2);
	tear_down(&b);
}
END_TEST

static void ask_in_cycle_10(struct end *end, uint64_t cycle)
{
	if (cycle < 2) {
		give_one(end, cycle);
	} else if (cycle == 10) {
		ck_assert(!rn_fifo_can_push(end->fifo));
	} else if (cycle > 10) {
		give_one(end, cycle);
	}
}

START_TEST(a_slot_freed_in_this_very_cycle_wakes_the_producer_for_the_next)
{
	struct bench b;

	set_up(&b, _i, 2, 1, same_hz);
	b.consumer.act = take_one_from_cycle_10;
	b.producer.act = ask_in_cycle_10;
	b.producer.limit = 3;
	rn_block_wake_at(&b.producer.block, 0);
	rn_sim_run(b.sim, 19000, UINT64_MAX);
	rn_block_wake_at(&b.producer.block, 20000);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(b.producer.values_count, 3);
	ck_assert_uint_eq(b.producer.values[2], 11);
	ck_assert_uint_eq(b.fifo.full_ps, 2000);
	tear_down(&b);
}
END_TEST

START_TEST(depth_one_runs_at_half_rate_and_depth_two_at_full_rate)
{
	for (uint32_t depth = 1; depth <= 2; depth++) {
		struct bench b;

		set_up(&b, _i, depth, 1, same_hz);
		rn_block_wake_at(&b.producer.block, 0);
		rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
		ck_assert_uint_eq(b.consumer.values_count, 20);
		for (unsigned i = 0; i < 20; i++) {
			ck_assert_uint_eq(b.consumer.values[i], depth == 1 ? 2 * i : i);
			ck_assert_uint_eq(b.consumer.value_cycle[i], b.consumer.values[i] + 1);
		}
		/* Every entry is held from its push to its pop, one cycle. */
		ck_assert_uint_eq(b.fifo.occupancy_ps, 20 * 2000);
		ck_assert_uint_eq(b.fifo.pushes, 20);
		ck_assert_uint_eq(b.fifo.max_occupancy, depth);
		tear_down(&b);
	}
}
END_TEST

START_TEST(a_fast_producer_meets_a_slow_consumer_on_its_edges)
{
	static const uint64_t hz[2] = {500000000, 200000000};
	struct bench b;

	set_up(&b, _i, 4, 1, hz);
	rn_block_wake_at(&b.producer.block, 0);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(b.consumer.values_count, 20);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_uint_eq(b.consumer.value_cycle[i], 1 + i);
	/* Edges coincide at 10 ns: the pop there in cycle 2 frees a slot for the edge at 12 ns. */
	ck_assert_uint_eq(b.producer.values[3], 3);
	ck_assert_uint_eq(b.producer.values[4], 4);
	ck_assert_uint_eq(b.producer.values[5], 6);
	tear_down(&b);
}
END_TEST

START_TEST(a_slow_producer_meets_a_fast_consumer_on_its_edges)
{
	static const uint64_t hz[2] = {200000000, 322265625};
	struct bench b;

	set_up(&b, _i, 4, 2, hz);
	rn_block_wake_at(&b.producer.block, 0);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(b.consumer.values_count, 20);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_uint_eq(b.consumer.value_cycle[i],
				  rn_clock_cycle_at(&b.clocks[1], 5000 * i) + 2);
	tear_down(&b);
}
END_TEST

static void take_all(struct end *end, uint64_t cycle)
{
	while (rn_fifo_peek(end->fifo))
		take_one(end, cycle);
}

START_TEST(push_at_delays_and_later_entries_do_not_overtake)
{
	struct bench b;
	uint64_t value = 1;

	set_up(&b, _i, 4, 1, same_hz);
	b.consumer.act = take_all;
	rn_fifo_push_at(&b.fifo, &value, 9001);
	value = 2;
	rn_fifo_push(&b.fifo, &value);
	rn_sim_run(b.sim, 9999, UINT64_MAX);
	ck_assert_uint_eq(b.consumer.values_count, 0);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(b.consumer.values_count, 2);
	ck_assert_uint_eq(b.consumer.values[0], 1);
	ck_assert_uint_eq(b.consumer.value_cycle[0], 5);
	ck_assert_uint_eq(b.consumer.value_cycle[1], 5);
	tear_down(&b);
}
END_TEST

START_TEST(several_entries_need_space_for_all)
{
	struct bench b;
	uint64_t value = 0;

	set_up(&b, _i, 4, 1, same_hz);
	b.producer.limit = 0;
	ck_assert(rn_fifo_has_space(&b.fifo, 4));
	rn_fifo_push(&b.fifo, &value);
	ck_assert(rn_fifo_has_space(&b.fifo, 3));
	ck_assert(!rn_fifo_has_space(&b.fifo, 4));
	rn_sim_run(b.sim, 1999, UINT64_MAX);
	ck_assert_ptr_null(rn_fifo_peek(&b.fifo));
	rn_sim_run(b.sim, 2000, UINT64_MAX);
	ck_assert_uint_eq(b.consumer.values_count, 1);
	ck_assert(!rn_fifo_has_space(&b.fifo, 4));
	rn_sim_run(b.sim, 4000, UINT64_MAX);
	ck_assert(rn_fifo_has_space(&b.fifo, 4));
	tear_down(&b);
}
END_TEST

START_TEST(unclocked_ends_use_the_other_ends_clock)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct end consumer = {.act = take_one};
	struct rn_fifo fifo;
	uint64_t value = 7;

	rn_clock_init(&clock, "core", 500000000);
	rn_block_init(&consumer.block, sim, &clock, "consumer", tick, &consumer);
	rn_fifo_init(&fifo, sim, "fifo", 3, sizeof(value), 1);
	rn_fifo_set_consumer(&fifo, &consumer.block);
	consumer.fifo = &fifo;
	rn_sim_run(sim, 4100, UINT64_MAX);
	rn_fifo_push(&fifo, &value);
	rn_sim_run(sim, RN_TIME_NEVER, UINT64_MAX);
	ck_assert_uint_eq(consumer.value_cycle[0], 4);
	rn_fifo_fini(&fifo);
	rn_sim_free(sim);
}
END_TEST

START_TEST(clearing_statistics_keeps_the_entries)
{
	struct bench b;
	uint64_t value = 9;

	set_up(&b, _i, 4, 1, same_hz);
	b.consumer.act = take_one_from_cycle_10;
	rn_fifo_push(&b.fifo, &value);
	rn_sim_run(b.sim, 4000, UINT64_MAX);
	rn_fifo_clear_stats(&b.fifo);
	ck_assert_uint_eq(b.fifo.pushes, 0);
	ck_assert_uint_eq(b.fifo.occupancy_ps, 0);
	ck_assert_uint_eq(b.fifo.max_occupancy, 1);
	rn_sim_run(b.sim, RN_TIME_NEVER, UINT64_MAX);
	rn_fifo_settle(&b.fifo);
	ck_assert_uint_eq(b.fifo.occupancy_ps, 16000);
	ck_assert_uint_eq(b.consumer.values[0], 9);
	tear_down(&b);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("fifo");

	/* Loop variable 0: the producer runs first within a cycle; 1: the consumer does. */
	tcase_add_loop_test(tcase, an_entry_is_visible_latency_cycles_after_its_push, 0, 2);
	tcase_add_loop_test(tcase, the_consumer_is_woken_when_the_entry_becomes_visible, 0, 2);
	tcase_add_loop_test(tcase, peek_arms_the_consumer_for_an_entry_on_its_way, 0, 2);
	tcase_add_loop_test(tcase, a_slot_freed_in_cycle_n_is_used_in_n_plus_one, 0, 2);
	tcase_add_loop_test(tcase, a_slot_freed_in_this_very_cycle_wakes_the_producer_for_the_next,
			    0, 2);
	tcase_add_loop_test(tcase, depth_one_runs_at_half_rate_and_depth_two_at_full_rate, 0, 2);
	tcase_add_loop_test(tcase, a_fast_producer_meets_a_slow_consumer_on_its_edges, 0, 2);
	tcase_add_loop_test(tcase, a_slow_producer_meets_a_fast_consumer_on_its_edges, 0, 2);
	tcase_add_loop_test(tcase, push_at_delays_and_later_entries_do_not_overtake, 0, 2);
	tcase_add_loop_test(tcase, several_entries_need_space_for_all, 0, 2);
	tcase_add_test(tcase, unclocked_ends_use_the_other_ends_clock);
	tcase_add_loop_test(tcase, clearing_statistics_keeps_the_entries, 0, 2);
	return run_suite(tcase, "fifo");
}
