/* What a run reports from: statistics registry, parameters, stamps, buffers. */
#include <check.h>
#include <string.h>

#include "base/bits.h"
#include "run_suite.h"
#include "sim/buffer.h"
#include "sim/param.h"
#include "sim/stamp.h"
#include "sim/stats.h"

#define TEST_PARAMS(X)                                                                             \
	X(u32, tags, 64, 1, 1024, "tags", "read requests outstanding")                             \
	X(u64, retry_ps, 5000000000, 0, 1e13, "ps", "before it tries again")                       \
	X(f64, factor, 1.5, 0, 4, "", "how much")                                                  \
	X(bool, enabled, 1, 0, 1, "", "whether")
RN_PARAM_STRUCT(test_params, TEST_PARAMS);
#define RN_PARAM_OWNER test_params
RN_PARAM_TABLE(test_table, "test", TEST_PARAMS);

START_TEST(parameters_get_their_defaults)
{
	struct test_params params;

	memset(&params, 0xff, sizeof(params));
	rn_params_set_defaults(&test_table, &params);
	ck_assert_uint_eq(params.tags, 64);
	ck_assert_uint_eq(params.retry_ps, 5000000000);
	ck_assert_double_eq(params.factor, 1.5);
	ck_assert(params.enabled);
	for (size_t i = 0; i < test_table.count; i++)
		ck_assert_double_eq(rn_param_value(&test_table.rows[i], &params),
				    test_table.rows[i].def);
}
END_TEST

struct test_counters {
	uint64_t packets;
	uint64_t bytes;
};

static const struct rn_counter_desc counter_descs[] = {
	RN_COUNTER_ROW(struct test_counters, packets, "packets", "sent")
		RN_COUNTER_ROW(struct test_counters, bytes, "bytes", "sent")};

static void tick(void *self, uint64_t cycle)
{
	(void)self;
	(void)cycle;
}

START_TEST(the_registry_finds_and_clears_what_was_registered)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct rn_block block;
	struct rn_fifo fifo;
	struct rn_stats *stats = rn_stats_new();
	struct test_counters a = {1, 2}, b = {3, 4};

	rn_clock_init(&clock, "core", 1000000000);
	rn_block_init(&block, sim, &clock, "block", tick, NULL);
	rn_fifo_init(&fifo, sim, "fifo", 2, 4, 1);
	rn_fifo_set_producer(&fifo, &block);
	rn_fifo_push(&fifo, &(uint32_t){1});
	rn_stats_add_counters(stats, "host0.port", counter_descs, 2, &a);
	rn_stats_add_counters(stats, "host1.port", counter_descs, 2, &b);
	rn_stats_add_block(stats, &block);
	rn_stats_add_fifo(stats, &fifo);

	ck_assert_uint_eq(rn_stats_value(stats, "host0.port", "bytes"), 2);
	ck_assert_uint_eq(rn_stats_value(stats, "host1.port", "packets"), 3);
	ck_assert_uint_eq(rn_stats_value(stats, "host1.port", "nothing"), UINT64_MAX);
	ck_assert_uint_eq(rn_stats_value(stats, "host2.port", "bytes"), UINT64_MAX);
	ck_assert_str_eq(rn_stats_counters_at(stats, 1)->instance, "host1.port");
	ck_assert_ptr_null(rn_stats_counters_at(stats, 2));
	ck_assert_ptr_eq(rn_stats_block_at(stats, 0), &block);
	ck_assert_ptr_null(rn_stats_block_at(stats, 1));
	ck_assert_ptr_eq(rn_stats_fifo_at(stats, 0), &fifo);
	ck_assert_ptr_null(rn_stats_fifo_at(stats, 1));

	block.busy_cycles = 5;
	rn_sim_run(sim, 100, UINT64_MAX);
	rn_stats_settle(stats);
	ck_assert_uint_eq(fifo.occupancy_ps, 100);
	rn_stats_clear(stats);
	ck_assert_uint_eq(b.packets + b.bytes + a.packets + a.bytes, 0);
	ck_assert_uint_eq(block.busy_cycles, 0);
	ck_assert_uint_eq(fifo.pushes, 0);
	rn_stats_free(stats);
	rn_fifo_fini(&fifo);
	rn_sim_free(sim);
}
END_TEST

START_TEST(stamps_are_sorted_by_wqe_and_repeats_are_numbered)
{
	static const struct rn_stamp unsorted[] = {
		{.at_ps = 9, .host = 1, .qpn = 1, .wqe_idx = 0, .stage = RN_STAMP_POST},
		{.at_ps = 7, .host = 0, .qpn = 2, .wqe_idx = 1, .stage = RN_STAMP_FIRST_PACKET},
		{.at_ps = 5, .host = 0, .qpn = 2, .wqe_idx = 1, .stage = RN_STAMP_POST},
		{.at_ps = 8, .host = 0, .qpn = 2, .wqe_idx = 1, .stage = RN_STAMP_FIRST_PACKET},
		{.at_ps = 6, .host = 0, .qpn = 2, .wqe_idx = 0, .stage = RN_STAMP_CQE},
		{.at_ps = 1, .host = 0, .qpn = 2, .wqe_idx = 0, .stage = RN_STAMP_CQE, .receive = 1},
	};
	static const unsigned order[] = {4, 2, 1, 3, 5, 0};
	static const unsigned counts[] = {1, 1, 1, 2, 1, 1};
	struct rn_stamps *stamps = rn_stamps_new(true, 6);
	const struct rn_stamp *sorted;
	uint64_t lost;
	size_t count;

	for (unsigned i = 0; i < RN_ARRAY_LEN(unsorted); i++)
		rn_stamps_record(stamps, &unsorted[i]);
	rn_stamps_record(stamps, &unsorted[0]);
	sorted = rn_stamps_sorted(stamps, &count, &lost);
	ck_assert_uint_eq(count, 6);
	ck_assert_uint_eq(lost, 1);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert_uint_eq(sorted[i].at_ps, unsorted[order[i]].at_ps);
		ck_assert_uint_eq(sorted[i].count, counts[i]);
	}
	rn_stamps_free(stamps);
}
END_TEST

START_TEST(stamps_that_are_off_keep_nothing)
{
	struct rn_stamps *stamps = rn_stamps_new(false, 6);
	struct rn_stamp stamp = {.at_ps = 1};
	uint64_t lost;
	size_t count;

	rn_stamps_record(stamps, &stamp);
	rn_stamps_record(NULL, &stamp);
	rn_stamps_sorted(stamps, &count, &lost);
	ck_assert_uint_eq(count, 0);
	ck_assert_uint_eq(lost, 0);
	rn_stamps_free(stamps);
	for (unsigned i = 0; i < RN_STAMP_STAGE_COUNT; i++) {
		ck_assert_uint_gt(strlen(rn_stamp_stage_name(i)), 0);
		ck_assert_uint_gt(strlen(rn_stamp_stage_help(i)), 0);
	}
}
END_TEST

START_TEST(a_buffer_lives_until_its_last_reference_is_dropped)
{
	struct rn_buffers *pool = rn_buffers_new();
	uint32_t a = rn_buffer_get(pool);

	memset(rn_buffer_data(pool, a), 0x5a, RN_BUFFER_BYTES);
	rn_buffer_hold(pool, a);
	rn_buffer_put(pool, a);
	ck_assert_uint_eq(rn_buffers_in_use(pool), 1);
	ck_assert_uint_eq(rn_buffer_data(pool, a)[RN_BUFFER_BYTES - 1], 0x5a);
	ck_assert_uint_ne(rn_buffer_get(pool), a);
	rn_buffer_put(pool, a);
	rn_buffer_put(pool, RN_BUFFER_NONE);
	ck_assert_uint_eq(rn_buffers_in_use(pool), 1);
	rn_buffers_free(pool);
}
END_TEST

START_TEST(buffers_stay_where_they_are_when_the_pool_grows)
{
	enum { COUNT = 2000 };
	struct rn_buffers *pool = rn_buffers_new();
	static uint32_t idx[COUNT];
	static uint8_t *data[COUNT];

	for (unsigned i = 0; i < COUNT; i++) {
		idx[i] = rn_buffer_get(pool);
		data[i] = rn_buffer_data(pool, idx[i]);
		memcpy(data[i], &i, sizeof(i));
	}
	ck_assert_uint_eq(rn_buffers_in_use(pool), COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		ck_assert_ptr_eq(rn_buffer_data(pool, idx[i]), data[i]);
		ck_assert_mem_eq(data[i], &i, sizeof(i));
		rn_buffer_put(pool, idx[i]);
	}
	ck_assert_uint_eq(rn_buffers_in_use(pool), 0);
	rn_buffers_free(pool);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("results");

	tcase_add_test(tcase, parameters_get_their_defaults);
	tcase_add_test(tcase, the_registry_finds_and_clears_what_was_registered);
	tcase_add_test(tcase, stamps_are_sorted_by_wqe_and_repeats_are_numbered);
	tcase_add_test(tcase, stamps_that_are_off_keep_nothing);
	tcase_add_test(tcase, a_buffer_lives_until_its_last_reference_is_dropped);
	tcase_add_test(tcase, buffers_stay_where_they_are_when_the_pool_grows);
	return run_suite(tcase, "results");
}
