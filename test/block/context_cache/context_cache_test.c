/*
 * The context caches: timing, misses, pins, write-back, flush, exclusive holds.
 */
#include <check.h>
#include <string.h>

#include "block/context_cache/fixture.h"
#include "run_suite.h"

enum {
	WQE = RN_CONTEXT_CLIENT_WQE_FETCH,
	TX = RN_CONTEXT_CLIENT_TX,
	RX = RN_CONTEXT_CLIENT_RX,
	CQE = RN_CONTEXT_CLIENT_CQE,
	CMD = RN_CONTEXT_CLIENT_CMD
};

static struct fixture f;

static void one_set(uint32_t ways, uint32_t misses)
{
	fixture_prepare(&f, 0);
	f.params.qpc_sets = 1;
	f.params.qpc_ways = ways;
	f.params.qpc_misses = misses;
	fixture_build(&f);
}

static void acquire(unsigned client, uint32_t qpn, uint16_t token)
{
	request(&f, client, RN_CONTEXT_ACQUIRE, RN_CONTEXT_QP, qpn, token);
}

static bool is_answered(unsigned client)
{
	return rn_fifo_peek(f.ports.rsp[client]) != NULL;
}

/* Visible to the cache after a cycle, looked up, answered hit_cycles later, visible to the client after one more. */
START_TEST(a_hit_is_answered_after_exactly_hit_cycles)
{
	for (uint32_t hit_cycles = 1; hit_cycles < 9; hit_cycles += 3) {
		fixture_prepare(&f, 0);
		f.params.hit_cycles = hit_cycles;
		fixture_build(&f);
		touch(&f, TX, RN_CONTEXT_QP, 5);
		acquire(TX, 5, 1);
		bench_run(&f.bench, 1 + hit_cycles);
		ck_assert(!is_answered(TX));
		bench_run(&f.bench, 1);
		ck_assert(is_answered(TX));
		ck_assert_uint_eq(answer(&f, TX).hit, 1);
		fixture_free(&f);
	}
}
END_TEST

START_TEST(a_miss_costs_lookup_dma_and_fill)
{
	fixture_prepare(&f, 0);
	f.params.hit_cycles = 4;
	f.params.fill_cycles = 3;
	fixture_build(&f);
	f.dma->latency_cycles = 50;
	acquire(TX, 5, 1);
	/* Request 1, lookup 4, to the DMA engine 1, its latency 50, answer 1, fill 3, to the client 1. */
	bench_run(&f.bench, 1 + 4 + 1 + 50 + 1 + 3);
	ck_assert(!is_answered(TX));
	bench_run(&f.bench, 1);
	ck_assert(is_answered(TX));
	struct rn_context_rsp rsp = answer(&f, TX);
	ck_assert_uint_eq(rsp.hit, 0);
	ck_assert_uint_eq(f.dma->log_count, 1);
	ck_assert_uint_eq(f.dma->log[0].req.addr, QPC_PA + 5 * RN_QPC_BYTES);
	ck_assert_uint_eq(f.dma->log[0].req.len, RN_QPC_BYTES);
	fixture_free(&f);
}
END_TEST

START_TEST(one_request_is_looked_up_each_interval)
{
	for (uint32_t interval = 1; interval < 6; interval += 2) {
		fixture_prepare(&f, 0);
		f.params.interval_cycles = interval;
		f.params.hit_cycles = 1;
		fixture_build(&f);
		touch(&f, TX, RN_CONTEXT_QP, 5);
		bench_run(&f.bench, 10);
		acquire(WQE, 5, 1);
		acquire(TX, 5, 1);
		acquire(RX, 5, 1);
		bench_run(&f.bench, 2 + 2 * interval);
		ck_assert_uint_eq(is_answered(WQE) + is_answered(TX) + is_answered(RX), 2);
		bench_run(&f.bench, 1);
		ck_assert_uint_eq(is_answered(WQE) + is_answered(TX) + is_answered(RX), 3);
		fixture_free(&f);
	}
}
END_TEST

START_TEST(a_hit_passes_a_miss_that_waits)
{
	one_set(8, 4);
	touch(&f, TX, RN_CONTEXT_QP, 1);
	fake_dma_hold(f.dma, true);
	acquire(RX, 2, 22);
	acquire(TX, 1, 11);
	ck_assert_uint_eq(answer(&f, TX).token, 11);
	bench_run(&f.bench, 200);
	ck_assert(!is_answered(RX));
	fake_dma_hold(f.dma, false);
	ck_assert_uint_eq(answer(&f, RX).token, 22);
	fixture_free(&f);
}
END_TEST

START_TEST(requests_for_one_line_share_one_read)
{
	one_set(8, 4);
	fake_dma_hold(f.dma, true);
	acquire(TX, 9, 1);
	acquire(RX, 9, 2);
	acquire(WQE, 9, 3);
	bench_run(&f.bench, 50);
	fake_dma_hold(f.dma, false);
	struct rn_context_rsp tx = answer(&f, TX), rx = answer(&f, RX), wqe = answer(&f, WQE);
	ck_assert_uint_eq(tx.line, rx.line);
	ck_assert_uint_eq(tx.line, wqe.line);
	ck_assert_uint_eq(rx.token, 2);
	ck_assert_uint_eq(wqe.token, 3);
	ck_assert_uint_eq(f.dma->log_count, 1);
	ck_assert_uint_eq(bench_counter(&f.bench, "context_cache", "qpc_misses"), 1);
	ck_assert_uint_eq(bench_counter(&f.bench, "context_cache", "qpc_merges"), 2);
	/* Three pins: the line stays until the third release. */
	for (uint32_t n = 100; n < 107; n++)
		touch(&f, CMD, RN_CONTEXT_QP, n);
	give_back(&f, TX, RN_CONTEXT_QP, 9, false);
	give_back(&f, RX, RN_CONTEXT_QP, 9, false);
	bench_run(&f.bench, 10);
	for (uint32_t n = 110; n < 118; n++)
		touch(&f, CMD, RN_CONTEXT_QP, n);
	ck_assert(touch(&f, CMD, RN_CONTEXT_QP, 9));
	give_back(&f, WQE, RN_CONTEXT_QP, 9, false);
	bench_run(&f.bench, 10);
	for (uint32_t n = 120; n < 128; n++)
		touch(&f, CMD, RN_CONTEXT_QP, n);
	ck_assert(!touch(&f, CMD, RN_CONTEXT_QP, 9));
	fixture_free(&f);
}
END_TEST

START_TEST(misses_beyond_the_registers_wait_and_prefetches_are_dropped)
{
	one_set(8, 2);
	fake_dma_hold(f.dma, true);
	acquire(TX, 1, 1);
	acquire(RX, 2, 2);
	bench_run(&f.bench, 10);
	acquire(WQE, 3, 3);
	request(&f, CMD, RN_CONTEXT_PREFETCH, RN_CONTEXT_QP, 4, 0);
	bench_run(&f.bench, 50);
	ck_assert_uint_eq(f.dma->log_count, 2);
	ck_assert_uint_eq(bench_counter(&f.bench, "context_cache", "prefetches_dropped"), 1);
	fake_dma_hold(f.dma, false);
	ck_assert_uint_eq(answer(&f, WQE).token, 3);
	ck_assert_uint_eq(f.dma->log_count, 3);
	fixture_free(&f);
}
END_TEST

START_TEST(a_prefetched_line_hits)
{
	one_set(8, 2);
	request(&f, TX, RN_CONTEXT_PREFETCH, RN_CONTEXT_QP, 4, 0);
	bench_run(&f.bench, 50);
	ck_assert(!is_answered(TX));
	ck_assert(touch(&f, RX, RN_CONTEXT_QP, 4));
	fixture_free(&f);
}
END_TEST

START_TEST(with_all_ways_pinned_one_client_waits_and_the_others_do_not)
{
	one_set(2, 2);
	acquire(TX, 1, 1);
	acquire(RX, 2, 2);
	answer(&f, TX);
	answer(&f, RX);
	acquire(WQE, 3, 3);
	bench_run(&f.bench, 100);
	ck_assert(!is_answered(WQE));
	/* Other clients, and other types, go on. */
	acquire(CMD, 1, 4);
	ck_assert_uint_eq(answer(&f, CMD).hit, 1);
	give_back(&f, CMD, RN_CONTEXT_QP, 1, false);
	ck_assert(!touch(&f, CQE, RN_CONTEXT_CQ, 3));
	give_back(&f, RX, RN_CONTEXT_QP, 2, false);
	ck_assert_uint_eq(answer(&f, WQE).token, 3);
	/* The pinned one was not taken. */
	acquire(CMD, 1, 5);
	ck_assert_uint_eq(answer(&f, CMD).hit, 1);
	fixture_free(&f);
}
END_TEST

static void dirty(uint32_t qpn, uint8_t value)
{
	acquire(TX, qpn, 1);
	struct rn_context_rsp rsp = answer(&f, TX);

	line_at(&f, RN_CONTEXT_QP, rsp.line)[100] = value;
	give_back(&f, TX, RN_CONTEXT_QP, qpn, true);
	bench_run(&f.bench, 5);
}

START_TEST(a_dirty_line_is_written_back_before_its_way_is_refilled)
{
	one_set(1, 2);
	f.dma->latency_cycles = 40;
	dirty(1, 0xab);
	touch(&f, RX, RN_CONTEXT_QP, 2);
	ck_assert_uint_eq(f.memory.bytes[QPC_PA + RN_QPC_BYTES + 100], 0xab);
	ck_assert_uint_eq(f.dma->log_count, 3);
	ck_assert_uint_eq(f.dma->log[1].req.op, RN_DMA_WRITE);
	ck_assert_uint_eq(f.dma->log[2].req.op, RN_DMA_READ);
	ck_assert_uint_gt(f.dma->log[2].taken_ps, f.dma->log[1].answered_ps);
	ck_assert_uint_ne(f.dma->log[1].answered_ps, 0);
	/* And a clean one is not. */
	touch(&f, RX, RN_CONTEXT_QP, 3);
	ck_assert_uint_eq(f.dma->log_count, 4);
	fixture_free(&f);
}
END_TEST

START_TEST(a_line_on_its_way_out_is_read_again_only_after_its_write_back)
{
	one_set(2, 2);
	f.dma->latency_cycles = 40;
	dirty(1, 0xcd);
	touch(&f, RX, RN_CONTEXT_QP, 2);
	fake_dma_hold(f.dma, true);
	acquire(RX, 3, 3); /* evicts 1 */
	bench_run(&f.bench, 20);
	acquire(TX, 1, 1);
	bench_run(&f.bench, 200);
	ck_assert_uint_eq(f.dma->log_count, 3);
	fake_dma_hold(f.dma, false);
	struct rn_context_rsp rsp = answer(&f, TX);
	ck_assert_uint_eq(line_at(&f, RN_CONTEXT_QP, rsp.line)[100], 0xcd);
	fixture_free(&f);
}
END_TEST

START_TEST(a_flush_waits_for_pins_writes_back_and_drops)
{
	one_set(4, 2);
	dirty(1, 0x11);
	acquire(TX, 1, 1);
	answer(&f, TX);
	request(&f, CMD, RN_CONTEXT_FLUSH, RN_CONTEXT_QP, 1, 9);
	bench_run(&f.bench, 100);
	ck_assert(!is_answered(CMD));
	give_back(&f, TX, RN_CONTEXT_QP, 1, false);
	ck_assert_uint_eq(answer(&f, CMD).token, 9);
	ck_assert_uint_eq(f.memory.bytes[QPC_PA + RN_QPC_BYTES + 100], 0x11);
	ck_assert(!touch(&f, TX, RN_CONTEXT_QP, 1));
	/* Clean, and absent: answered without a write. */
	uint32_t accesses = f.dma->log_count;
	request(&f, CMD, RN_CONTEXT_FLUSH, RN_CONTEXT_QP, 1, 10);
	ck_assert_uint_eq(answer(&f, CMD).token, 10);
	request(&f, CMD, RN_CONTEXT_FLUSH, RN_CONTEXT_QP, 1, 11);
	ck_assert_uint_eq(answer(&f, CMD).token, 11);
	ck_assert_uint_eq(f.dma->log_count, accesses);
	fixture_free(&f);
}
END_TEST

static void acquire_alone(uint32_t qpn)
{
	rn_fifo_push(f.ports.req[CMD], &(struct rn_context_req){.op = RN_CONTEXT_ACQUIRE,
								.type = RN_CONTEXT_QP,
								.exclusive = 1,
								.token = 50,
								.number = qpn});
}

START_TEST(an_exclusive_hold_waits_for_the_others_and_keeps_them_out)
{
	one_set(8, 2);
	acquire(TX, 1, 1);
	answer(&f, TX);
	acquire_alone(1);
	bench_run(&f.bench, 50);
	ck_assert(!is_answered(CMD));
	/* It does not keep them out while it waits: the holder may need them to finish. */
	acquire(WQE, 1, 2);
	answer(&f, WQE);
	give_back(&f, WQE, RN_CONTEXT_QP, 1, false);
	give_back(&f, TX, RN_CONTEXT_QP, 1, false);
	ck_assert_uint_eq(answer(&f, CMD).token, 50);
	acquire(RX, 1, 3);
	bench_run(&f.bench, 50);
	ck_assert(!is_answered(RX));
	ck_assert(!touch(&f, TX, RN_CONTEXT_QP, 2));
	give_back(&f, CMD, RN_CONTEXT_QP, 1, true);
	ck_assert_uint_eq(answer(&f, RX).token, 3);
	fixture_free(&f);
}
END_TEST

START_TEST(an_exclusive_hold_that_misses_keeps_the_others_out_too)
{
	one_set(8, 2);
	fake_dma_hold(f.dma, true);
	acquire_alone(1);
	bench_run(&f.bench, 20);
	acquire(RX, 1, 3);
	bench_run(&f.bench, 20);
	fake_dma_hold(f.dma, false);
	answer(&f, CMD);
	bench_run(&f.bench, 50);
	ck_assert(!is_answered(RX));
	give_back(&f, CMD, RN_CONTEXT_QP, 1, false);
	ck_assert_uint_eq(answer(&f, RX).hit, 1);
	fixture_free(&f);
}
END_TEST

START_TEST(numbers_beyond_the_table_and_memory_that_is_gone_have_their_status)
{
	one_set(4, 2);
	acquire(TX, 1u << LOG_NUMBERS, 1);
	ck_assert_uint_eq(answer(&f, TX).status, RN_CONTEXT_BAD_NUMBER);
	request(&f, CMD, RN_CONTEXT_FLUSH, RN_CONTEXT_QP, 1u << LOG_NUMBERS, 1);
	ck_assert_uint_eq(answer(&f, CMD).status, RN_CONTEXT_BAD_NUMBER);
	request(&f, TX, RN_CONTEXT_PREFETCH, RN_CONTEXT_QP, UINT32_MAX, 1);
	f.dma->memory.size = QPC_PA + 10 * RN_QPC_BYTES;
	acquire(TX, 10, 2);
	acquire(RX, 10, 3);
	ck_assert_uint_eq(answer(&f, TX).status, RN_CONTEXT_ABORT);
	ck_assert_uint_eq(answer(&f, RX).status, RN_CONTEXT_ABORT);
	/* Nothing is left behind: the next try reads again. */
	f.dma->memory.size = MEMORY_BYTES;
	ck_assert(!touch(&f, TX, RN_CONTEXT_QP, 10));
	fixture_free(&f);
}
END_TEST

START_TEST(the_check_demands_more_ways_than_lockers_and_powers_of_two)
{
	struct rn_context_cache_params params;

	rn_params_set_defaults(&rn_context_cache_param_table, &params);
	ck_assert_ptr_null(rn_context_cache_check(&params));
	params.qpc_ways = 5;
	ck_assert_ptr_null(rn_context_cache_check(&params));
	params.qpc_ways = 4;
	ck_assert_ptr_nonnull(rn_context_cache_check(&params));
	params.qpc_ways = 5;
	params.cqc_ways = 2;
	ck_assert_ptr_nonnull(rn_context_cache_check(&params));
	params.cqc_ways = 3;
	params.qpc_sets = 12;
	ck_assert_ptr_nonnull(rn_context_cache_check(&params));
	params.qpc_sets = 16;
	ck_assert_ptr_null(rn_context_cache_check(&params));
	ck_assert_uint_eq(rn_context_cache_lines(&params, RN_CONTEXT_QP), 80);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("context_cache");

	tcase_add_test(tcase, a_hit_is_answered_after_exactly_hit_cycles);
	tcase_add_test(tcase, a_miss_costs_lookup_dma_and_fill);
	tcase_add_test(tcase, one_request_is_looked_up_each_interval);
	tcase_add_test(tcase, a_hit_passes_a_miss_that_waits);
	tcase_add_test(tcase, requests_for_one_line_share_one_read);
	tcase_add_test(tcase, misses_beyond_the_registers_wait_and_prefetches_are_dropped);
	tcase_add_test(tcase, a_prefetched_line_hits);
	tcase_add_test(tcase, with_all_ways_pinned_one_client_waits_and_the_others_do_not);
	tcase_add_test(tcase, a_dirty_line_is_written_back_before_its_way_is_refilled);
	tcase_add_test(tcase, a_line_on_its_way_out_is_read_again_only_after_its_write_back);
	tcase_add_test(tcase, a_flush_waits_for_pins_writes_back_and_drops);
	tcase_add_test(tcase, an_exclusive_hold_waits_for_the_others_and_keeps_them_out);
	tcase_add_test(tcase, an_exclusive_hold_that_misses_keeps_the_others_out_too);
	tcase_add_test(tcase, numbers_beyond_the_table_and_memory_that_is_gone_have_their_status);
	tcase_add_test(tcase, the_check_demands_more_ways_than_lockers_and_powers_of_two);
	return run_suite(tcase, "context_cache");
}
