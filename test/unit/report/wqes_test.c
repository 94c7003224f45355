/* The timeline: stamps into WQEs, a WQE's time into stages. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/bits.h"
#include "report_wqes.h"
#include "run_suite.h"

struct timeline {
	struct rn_stamps *stamps;
	struct rn_report_wqes wqes;
};

static void put(struct timeline *timeline, uint32_t wqe_idx, enum rn_stamp_stage stage,
		uint64_t at_ps)
{
	rn_stamps_record(timeline->stamps, &(struct rn_stamp){.at_ps = at_ps,
							      .host = 1,
							      .qpn = 17,
							      .wqe_idx = wqe_idx,
							      .stage = (uint8_t)stage});
}

static struct timeline begin(void)
{
	return (struct timeline){.stamps = rn_stamps_new(true, 1000)};
}

/* A WQE from @at_ps on that takes 10 + 20 + 30 + 40 ps. */
static void put_whole(struct timeline *timeline, uint32_t wqe_idx, uint64_t at_ps)
{
	put(timeline, wqe_idx, RN_STAMP_DOORBELL, at_ps);
	put(timeline, wqe_idx, RN_STAMP_FETCH, at_ps + 10);
	put(timeline, wqe_idx, RN_STAMP_FIRST_PACKET, at_ps + 30);
	put(timeline, wqe_idx, RN_STAMP_ACK, at_ps + 60);
	put(timeline, wqe_idx, RN_STAMP_CQE, at_ps + 100);
}

static uint64_t sum(const struct rn_report_wqe *wqe)
{
	uint64_t all = 0;

	for (unsigned stage = 0; stage < RN_STAMP_STAGE_COUNT; stage++)
		all += wqe->took_ps[stage];
	return all;
}

/* What rn_report_wqes_write() writes, parsed. */
static json_t *written(const struct rn_report_wqes *wqes)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	json_t *array;

	rn_report_wqes_write(wqes, out);
	fclose(out);
	array = json_loads(text, 0, NULL);
	free(text);
	ck_assert(json_is_array(array));
	return array;
}

static json_int_t number(const json_t *object, const char *outer, const char *inner)
{
	const json_t *value = json_object_get(json_object_get(object, outer), inner);

	ck_assert_msg(json_is_integer(value), "%s.%s", outer, inner);
	return json_integer_value(value);
}

START_TEST(stages_sum_to_the_total)
{
	struct timeline timeline = begin();
	struct rn_report_wqe wqe;
	size_t pos = 0;

	put_whole(&timeline, 3, 1000);
	rn_report_wqes_init(&timeline.wqes, timeline.stamps, 0);
	ck_assert(rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	ck_assert_uint_eq(wqe.took_ps[RN_STAMP_DOORBELL], 0);
	ck_assert_uint_eq(wqe.took_ps[RN_STAMP_FETCH], 10);
	ck_assert_uint_eq(wqe.took_ps[RN_STAMP_FIRST_PACKET], 20);
	ck_assert_uint_eq(wqe.took_ps[RN_STAMP_ACK], 30);
	ck_assert_uint_eq(wqe.took_ps[RN_STAMP_CQE], 40);
	ck_assert_uint_eq(wqe.total_ps, 100);
	ck_assert_uint_eq(sum(&wqe), wqe.total_ps);
	ck_assert(wqe.is_complete);
	ck_assert(!rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	rn_stamps_free(timeline.stamps);
}
END_TEST

START_TEST(stages_sum_to_the_total_when_packets_are_sent_again)
{
	struct timeline timeline = begin();
	struct rn_report_wqe wqe;
	json_t *array, *repeats;
	size_t pos = 0;

	put_whole(&timeline, 3, 1000);
	put(&timeline, 3, RN_STAMP_FIRST_PACKET, 1045);
	rn_report_wqes_init(&timeline.wqes, timeline.stamps, 0);
	ck_assert(rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	ck_assert_uint_eq(wqe.took_ps[RN_STAMP_FIRST_PACKET], 35);
	ck_assert_uint_eq(wqe.took_ps[RN_STAMP_ACK], 15);
	ck_assert_uint_eq(sum(&wqe), 100);
	array = written(&timeline.wqes);
	repeats = json_object_get(json_array_get(array, 0), "repeats");
	ck_assert_uint_eq(json_array_size(repeats), 1);
	ck_assert_str_eq(json_string_value(json_array_get(json_array_get(repeats, 0), 0)),
			 "first_packet");
	ck_assert_int_eq(json_integer_value(json_array_get(json_array_get(repeats, 0), 1)), 1045);
	ck_assert_int_eq(number(json_array_get(array, 0), "at_ps", "first_packet"), 1030);
	ck_assert_int_eq(number(json_array_get(array, 0), "took_ps", "first_packet"), 35);
	json_decref(array);
	rn_stamps_free(timeline.stamps);
}
END_TEST

START_TEST(an_index_that_came_round_is_another_wqe)
{
	struct timeline timeline = begin();
	struct rn_report_wqe wqe;
	size_t pos = 0;

	put_whole(&timeline, 3, 1000);
	put_whole(&timeline, 3, 9000);
	put(&timeline, 3, RN_STAMP_CQE_VISIBLE, 1150);
	rn_report_wqes_init(&timeline.wqes, timeline.stamps, 0);
	ck_assert(rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	ck_assert_uint_eq(wqe.total_ps, 150);
	ck_assert(rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	ck_assert_uint_eq(wqe.stamp->at_ps, 9000);
	ck_assert_uint_eq(wqe.total_ps, 100);
	ck_assert(!rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	rn_stamps_free(timeline.stamps);
}
END_TEST

START_TEST(wqes_of_the_warm_up_are_left_out)
{
	struct timeline timeline = begin();
	struct rn_report_wqe wqe;
	size_t pos = 0;

	put_whole(&timeline, 3, 1000);
	put_whole(&timeline, 4, 1001);
	rn_report_wqes_init(&timeline.wqes, timeline.stamps, 1001);
	ck_assert(rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	ck_assert_uint_eq(wqe.stamp->wqe_idx, 4);
	ck_assert(!rn_report_wqes_next(&timeline.wqes, &pos, &wqe));
	rn_stamps_free(timeline.stamps);
}
END_TEST

START_TEST(a_row_says_whose_wqe_it_is)
{
	struct timeline timeline = begin();
	json_t *array;
	const json_t *row;

	put_whole(&timeline, 3, 1000);
	put(&timeline, 4, RN_STAMP_DOORBELL, 2000);
	rn_report_wqes_init(&timeline.wqes, timeline.stamps, 0);
	array = written(&timeline.wqes);
	ck_assert_uint_eq(json_array_size(array), 2);
	row = json_array_get(array, 0);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "host")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "qpn")), 17);
	ck_assert_str_eq(json_string_value(json_object_get(row, "queue")), "send");
	ck_assert_int_eq(json_integer_value(json_object_get(row, "index")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "total_ps")), 100);
	ck_assert(json_is_true(json_object_get(row, "complete")));
	ck_assert_int_eq(number(row, "at_ps", "cqe"), 1100);
	ck_assert_int_eq(number(row, "took_ps", "cqe"), 40);
	ck_assert(json_is_false(json_object_get(json_array_get(array, 1), "complete")));
	json_decref(array);
	rn_stamps_free(timeline.stamps);
}
END_TEST

START_TEST(percentiles_are_values_that_occurred)
{
	struct timeline timeline = begin();
	json_t *statistics;
	const json_t *send;

	/* ACK takes 1 .. 100 ps, and one WQE never gets one. */
	for (unsigned i = 1; i <= 100; i++) {
		put(&timeline, i, RN_STAMP_FIRST_PACKET, 1000);
		put(&timeline, i, RN_STAMP_ACK, 1000 + i);
	}
	put(&timeline, 200, RN_STAMP_FIRST_PACKET, 1000);
	rn_report_wqes_init(&timeline.wqes, timeline.stamps, 0);
	statistics = rn_report_wqes_statistics(&timeline.wqes);
	send = json_object_get(statistics, "send");
	ck_assert_int_eq(number(send, "ack", "count"), 100);
	ck_assert_int_eq(number(send, "ack", "min_ps"), 1);
	ck_assert_int_eq(number(send, "ack", "p50_ps"), 50);
	ck_assert_int_eq(number(send, "ack", "p90_ps"), 90);
	ck_assert_int_eq(number(send, "ack", "p99_ps"), 99);
	ck_assert_int_eq(number(send, "ack", "p999_ps"), 100);
	ck_assert_int_eq(number(send, "ack", "max_ps"), 100);
	ck_assert_double_eq_tol(
		json_real_value(json_object_get(json_object_get(send, "ack"), "mean_ps")), 50.5,
		1e-9);
	ck_assert_int_eq(number(send, "total", "count"), 100);
	ck_assert_int_eq(number(send, "first_packet", "max_ps"), 0);
	ck_assert_ptr_null(json_object_get(send, "cqe"));
	ck_assert_uint_eq(json_object_size(json_object_get(statistics, "receive")), 0);
	json_decref(statistics);
	rn_stamps_free(timeline.stamps);
}
END_TEST

START_TEST(without_stamps_the_timeline_is_empty)
{
	struct timeline timeline = begin();
	json_t *array;

	rn_report_wqes_init(&timeline.wqes, timeline.stamps, 0);
	array = written(&timeline.wqes);
	ck_assert_uint_eq(json_array_size(array), 0);
	json_decref(array);
	rn_stamps_free(timeline.stamps);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("wqes");

	tcase_add_test(tcase, stages_sum_to_the_total);
	tcase_add_test(tcase, stages_sum_to_the_total_when_packets_are_sent_again);
	tcase_add_test(tcase, an_index_that_came_round_is_another_wqe);
	tcase_add_test(tcase, wqes_of_the_warm_up_are_left_out);
	tcase_add_test(tcase, a_row_says_whose_wqe_it_is);
	tcase_add_test(tcase, percentiles_are_values_that_occurred);
	tcase_add_test(tcase, without_stamps_the_timeline_is_empty);
	return run_suite(tcase, "report wqes");
}
