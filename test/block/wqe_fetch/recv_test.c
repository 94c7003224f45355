/*
 * The WQE fetcher's receive side: producer index from the doorbell record, batches, what is cached.
 */
#include <check.h>
#include <string.h>

#include "base/rng.h"
#include "block/wqe_fetch/bench_wqe.h"
#include "run_suite.h"

static void want_recv_wqe(uint16_t idx, uint16_t pi)
{
	struct rn_rq_fetch_rsp rsp = want_recv(RN_WORK_OK);
	const struct rn_wqe *wqe = &wb.rq_slot[rsp.slot];

	ck_assert_uint_eq(rsp.pi, pi);
	ck_assert_uint_eq(wqe->wqe_idx, idx);
	ck_assert_uint_eq(wqe->valid, 1);
	ck_assert_uint_eq(wqe->sge_count, 1);
	ck_assert_uint_eq(wqe->total_bytes, 64);
	ck_assert_uint_eq(wqe->sge[0].va, 1000u + idx);
}

static void post_recvs(uint16_t from, uint16_t to)
{
	for (uint16_t i = from; i != to; i++)
		post_recv(1, i);
	set_rq_pi(1, to);
}

static void send_control(uint32_t qpn, bool pi_only)
{
	rn_fifo_push(wb.ports.rq_fetch, &(struct rn_rq_fetch){.qpn = qpn,
							      .idx = 0,
							      .pi_only = pi_only,
							      .forget = !pi_only,
							      .token = 0x4242});
}

START_TEST(the_first_request_reads_the_doorbell_record_and_then_a_batch)
{
	wb.params.recv_batch_wqes = 4;
	build();
	post_recvs(0, 6);
	request_recv(1, 0);
	want_recv_wqe(0, 6);
	ck_assert_uint_eq(wb.rq_dma.count, 2);
	ck_assert_uint_eq(wb.rq_dma.log[0].flags, RN_DMA_PHYSICAL);
	ck_assert_uint_eq(wb.rq_dma.log[0].len, 4);
	ck_assert_uint_eq(wb.rq_dma.log[1].key, 0x201);
	ck_assert_uint_eq(wb.rq_dma.log[1].len, 4 * 64);
	for (uint16_t i = 1; i < 6; i++) {
		request_recv(1, i);
		want_recv_wqe(i, 6);
	}
	ck_assert_uint_eq(count("rq_pi_reads"), 1);
	ck_assert_uint_eq(count("rq_fetches"), 2);
	ck_assert_uint_eq(count("rq_cache_hits"), 4);
}
END_TEST

START_TEST(a_used_up_producer_index_is_read_again)
{
	build();
	post_recvs(0, 1);
	request_recv(1, 0);
	want_recv_wqe(0, 1);
	request_recv(1, 1);
	ck_assert_uint_eq(want_recv(RN_WORK_EMPTY).pi, 1);
	post_recvs(1, 2);
	request_recv(1, 1);
	want_recv_wqe(1, 2);
	ck_assert_uint_eq(count("rq_pi_reads"), 3);
	ck_assert_uint_eq(count("rq_empty"), 1);
}
END_TEST

START_TEST(a_receive_wqe_not_posted_yet_is_never_prefetched)
{
	build();
	post_recvs(0, 1);
	request_recv(1, 0);
	want_recv_wqe(0, 1);
	ck_assert_uint_eq(wb.rq_dma.log[1].len, 64);
}
END_TEST

START_TEST(indexes_and_the_ring_wrap)
{
	build();
	for (uint32_t idx = 0xfff0; idx < 0x10020; idx++) {
		post_recvs((uint16_t)idx, (uint16_t)(idx + 1));
		request_recv(1, (uint16_t)idx);
		want_recv_wqe((uint16_t)idx, (uint16_t)(idx + 1));
	}
}
END_TEST

START_TEST(a_batch_ends_at_the_rings_end)
{
	build();
	post_recvs(14, 20);
	request_recv(1, 14);
	want_recv_wqe(14, 20);
	ck_assert_uint_eq(wb.rq_dma.log[1].len, 2 * 64);
	request_recv(1, 15);
	want_recv_wqe(15, 20);
	request_recv(1, 16);
	want_recv_wqe(16, 20);
	ck_assert_uint_eq(wb.rq_dma.log[2].addr, 0);
}
END_TEST

START_TEST(the_same_request_again_gets_the_same_wqe)
{
	build();
	post_recvs(0, 3);
	request_recv(1, 0);
	want_recv_wqe(0, 3);
	request_recv(1, 0);
	want_recv_wqe(0, 3);
	ck_assert_uint_eq(count("rq_cache_hits"), 1);
}
END_TEST

START_TEST(pi_only_reads_the_record_afresh)
{
	struct rn_rq_fetch_rsp rsp;

	build();
	post_recvs(0, 3);
	request_recv(1, 0);
	want_recv_wqe(0, 3);
	set_rq_pi(1, 7);
	send_control(1, true);
	rsp = want_recv(RN_WORK_OK);
	ck_assert_uint_eq(rsp.pi, 7);
	ck_assert_uint_eq(rsp.slot, UINT32_MAX);
	set_rq_pi(1, 0);
	send_control(1, true);
	ck_assert_uint_eq(want_recv(RN_WORK_EMPTY).pi, 0);
}
END_TEST

START_TEST(forgetting_drops_wqes_and_producer_index)
{
	build();
	post_recvs(0, 3);
	request_recv(1, 0);
	want_recv_wqe(0, 3);
	send_control(1, false);
	run(10);
	ck_assert_ptr_null(rn_fifo_peek(wb.ports.rq_fetch_rsp));
	set_rq_pi(1, 0);
	request_recv(1, 0);
	want_recv(RN_WORK_EMPTY);
}
END_TEST

START_TEST(forgetting_restarts_a_request_under_way)
{
	build();
	post_recvs(0, 3);
	wb.rq_dma.is_held = true;
	request_recv(1, 0);
	run(20);
	send_control(1, false);
	run(5);
	set_rq_pi(1, 2);
	wb.rq_dma.is_held = false;
	want_recv_wqe(0, 2);
}
END_TEST

START_TEST(an_impossible_producer_index_counts_as_empty)
{
	build();
	set_rq_pi(1, 17); /* the ring has 16 */
	request_recv(1, 0);
	want_recv(RN_WORK_EMPTY);
	set_rq_pi(1, 0xffff);
	request_recv(1, 0);
	want_recv(RN_WORK_EMPTY);
	ck_assert_uint_eq(count("rq_bad_pi"), 2);
	post_recvs(0, 16);
	request_recv(1, 0);
	want_recv_wqe(0, 16);
}
END_TEST

START_TEST(segments_end_at_the_invalid_key_or_the_queues_limit)
{
	struct rn_hw_wqe_data segment = {.bytes = 10, .lkey = 7};
	struct rn_rq_fetch_rsp rsp;

	build();
	for (unsigned i = 0; i < 4; i++)
		memcpy(rq_wqe(1, 0) + i * 16, &segment, 16);
	memcpy(rq_wqe(1, 1), &(struct rn_hw_wqe_data){.lkey = RN_LKEY_INVALID}, 16);
	set_rq_pi(1, 2);
	request_recv(1, 0);
	rsp = want_recv(RN_WORK_OK);
	ck_assert_uint_eq(wb.rq_slot[rsp.slot].sge_count, 3); /* rq_max_sge */
	request_recv(1, 1);
	rsp = want_recv(RN_WORK_OK);
	ck_assert_uint_eq(wb.rq_slot[rsp.slot].sge_count, 0);
	ck_assert_uint_eq(wb.rq_slot[rsp.slot].total_bytes, 0);
}
END_TEST

START_TEST(what_cannot_be_read_is_a_dma_error)
{
	build();
	post_recvs(0, 1);
	wb.qpc[1].rq_mkey = 0x999;
	request_recv(1, 0);
	want_recv(RN_WORK_DMA_ERROR);
	wb.qpc[1].dbr_pa = STUB_MEMORY_BYTES;
	send_control(1, false);
	request_recv(1, 0);
	want_recv(RN_WORK_DMA_ERROR);
	ck_assert_uint_eq(count("rq_dma_errors"), 2);
}
END_TEST

START_TEST(a_queue_pair_that_is_not_there_is_refused)
{
	build();
	wb.qpc[1].state = RN_QPS_RESET;
	request_recv(1, 0);
	want_recv(RN_WORK_BAD_QP);
	request_recv(QPS, 0);
	want_recv(RN_WORK_BAD_QP);
	ck_assert_uint_eq(wb.context.held, 0);
}
END_TEST

START_TEST(requests_of_one_queue_pair_are_served_in_order)
{
	build();
	post_recvs(0, 3);
	for (uint16_t i = 0; i < 3; i++)
		request_recv(1, i);
	for (uint16_t i = 0; i < 3; i++)
		want_recv_wqe(i, 3);
	ck_assert_uint_eq(count("rq_pi_reads"), 1);
}
END_TEST

START_TEST(requests_of_several_queue_pairs_overlap)
{
	wb.params.recv_fetches = 2;
	build();
	wb.rq_dma.is_held = true;
	for (uint32_t qpn = 1; qpn <= 3; qpn++) {
		post_recv(qpn, 0);
		set_rq_pi(qpn, 1);
		request_recv(qpn, 0);
	}
	run(50);
	ck_assert_uint_eq(wb.rq_dma.count, 2);
	wb.rq_dma.is_held = false;
	for (uint32_t qpn = 1; qpn <= 3; qpn++)
		want_recv_wqe(0, 1);
}
END_TEST

START_TEST(answers_wait_for_a_free_slot)
{
	struct rn_rq_fetch_rsp rsp;

	wb.rq_slots.count = 1;
	build();
	post_recvs(0, 2);
	request_recv(1, 0);
	for (unsigned i = 0; i < 50 && !rn_fifo_peek(wb.ports.rq_fetch_rsp); i++)
		run(1);
	ck_assert(rn_fifo_pop(wb.ports.rq_fetch_rsp, &rsp));
	request_recv(1, 1);
	run(50);
	ck_assert_ptr_null(rn_fifo_peek(wb.ports.rq_fetch_rsp));
	rn_fifo_push(wb.ports.rq_free, &(struct rn_slot_free){.slot = rsp.slot});
	want_recv_wqe(1, 2);
}
END_TEST

/* Four queues of which each gets receives posted and used at random; the cache holds two. */
START_TEST(random_traffic_gets_every_wqe_right)
{
	struct rn_rng rng;
	uint16_t next[5] = {0}, pi[5] = {0};
	unsigned served = 0;

	wb.params.recv_cache_sets = 1;
	wb.params.recv_cache_ways = 2;
	wb.params.recv_batch_wqes = 3;
	build();
	rn_rng_init(&rng, 5, "recv");
	for (unsigned round = 0; round < 1500; round++) {
		uint32_t qpn = 1 + (uint32_t)rn_rng_below(&rng, 4);

		while ((uint16_t)(pi[qpn] - next[qpn]) < 16 && rn_rng_below(&rng, 3))
			post_recv(qpn, pi[qpn]++);
		set_rq_pi(qpn, pi[qpn]);
		request_recv(qpn, next[qpn]);
		if (pi[qpn] == next[qpn]) {
			want_recv(RN_WORK_EMPTY);
			continue;
		}
		struct rn_rq_fetch_rsp rsp = want_recv(RN_WORK_OK);

		ck_assert_uint_eq(wb.rq_slot[rsp.slot].sge[0].va, 1000u + next[qpn]);
		next[qpn]++;
		served++;
	}
	ck_assert_uint_gt(served, 500);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, the_first_request_reads_the_doorbell_record_and_then_a_batch);
	tcase_add_test(tcase, a_used_up_producer_index_is_read_again);
	tcase_add_test(tcase, a_receive_wqe_not_posted_yet_is_never_prefetched);
	tcase_add_test(tcase, indexes_and_the_ring_wrap);
	tcase_add_test(tcase, a_batch_ends_at_the_rings_end);
	tcase_add_test(tcase, the_same_request_again_gets_the_same_wqe);
	tcase_add_test(tcase, pi_only_reads_the_record_afresh);
	tcase_add_test(tcase, forgetting_drops_wqes_and_producer_index);
	tcase_add_test(tcase, forgetting_restarts_a_request_under_way);
	tcase_add_test(tcase, an_impossible_producer_index_counts_as_empty);
	tcase_add_test(tcase, segments_end_at_the_invalid_key_or_the_queues_limit);
	tcase_add_test(tcase, what_cannot_be_read_is_a_dma_error);
	tcase_add_test(tcase, a_queue_pair_that_is_not_there_is_refused);
	tcase_add_test(tcase, requests_of_one_queue_pair_are_served_in_order);
	tcase_add_test(tcase, requests_of_several_queue_pairs_overlap);
	tcase_add_test(tcase, answers_wait_for_a_free_slot);
	tcase_add_test(tcase, random_traffic_gets_every_wqe_right);
}

int main(void)
{
	TCase *tcase = tcase_create("wqe_fetch_recv");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	add_tests(tcase);
	return run_suite(tcase, "wqe_fetch_recv");
}
