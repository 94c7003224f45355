/*
 * The PTE cache: timing, checks, translation, misses.
 */
#include <check.h>

#include "block/pte_cache/fixture.h"
#include "run_suite.h"

#define VA UINT64_C(0x7f0000001000)

static struct fixture f;

static void build(void)
{
	fixture_prepare(&f, 0);
	fixture_build(&f);
}

/* To the cache 1, MPT, MTT, to the client 1. */
START_TEST(a_hit_takes_the_mpt_and_the_mtt_cycles)
{
	for (uint32_t mpt = 1; mpt < 6; mpt += 2) {
		for (uint32_t mtt = 1; mtt < 6; mtt += 2) {
			fixture_prepare(&f, 0);
			f.params.mpt_cycles = mpt;
			f.params.mtt_cycles = mtt;
			fixture_build(&f);
			uint32_t key = make_region(&f, 1, VA, 4, 0);
			translate(&f, key, VA, 100);
			ask(&f, DMA, 1, key, VA, 100);
			bench_run(&f.bench, 1 + mpt + mtt);
			ck_assert(!is_answered(&f, DMA));
			bench_run(&f.bench, 1);
			ck_assert(is_answered(&f, DMA));
			ck_assert_uint_eq(answer(&f, DMA).hit, 3);
			fixture_free(&f);
		}
	}
}
END_TEST

START_TEST(a_check_alone_takes_the_mpt_cycles_and_holds_no_translation)
{
	fixture_prepare(&f, 0);
	f.params.mpt_cycles = 5;
	f.params.mtt_cycles = 9;
	fixture_build(&f);
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	translate(&f, key, VA, 100);
	rn_fifo_push(f.ports.req[RX], &(struct rn_pte_req){.id = 3,
							   .check_only = 1,
							   .key = key,
							   .pd = 7,
							   .length = 4 * PAGE,
							   .va = VA});
	bench_run(&f.bench, 1 + 5);
	ck_assert(!is_answered(&f, RX));
	bench_run(&f.bench, 1);
	ck_assert(is_answered(&f, RX));
	ck_assert_uint_eq(answer(&f, RX).status, RN_PTE_OK);
	/* Nothing to release: an invalidation need not wait. */
	invalidate(&f, key, 0, 4);
	bench_run(&f.bench, 20);
	ck_assert(is_invalidated(&f));
	fixture_free(&f);
}
END_TEST

START_TEST(a_cold_translation_costs_two_reads_in_a_row)
{
	fixture_prepare(&f, 0);
	f.params.mpt_cycles = 3;
	f.params.mtt_cycles = 4;
	f.params.fill_cycles = 2;
	fixture_build(&f);
	f.dma->latency_cycles = 60;
	uint32_t key = make_region(&f, 1, VA, 4, 9);
	ask(&f, DMA, 1, key, VA, 100);
	const uint32_t read = 1 + 60 + 1 + 2;
	bench_run(&f.bench, 1 + 3 + read + 3 + 4 + read + 4);
	ck_assert(!is_answered(&f, DMA));
	bench_run(&f.bench, 1);
	ck_assert(is_answered(&f, DMA));
	struct rn_pte_rsp rsp = answer(&f, DMA);
	ck_assert_uint_eq(rsp.hit, 0);
	ck_assert_uint_eq(rsp.pa, page_pa(9));
	ck_assert_uint_eq(f.dma->log_count, 2);
	ck_assert_uint_eq(f.dma->log[0].req.addr, MPT_PA + RN_MPT_BYTES);
	ck_assert_uint_eq(f.dma->log[0].req.len, RN_MPT_BYTES);
	ck_assert_uint_eq(f.dma->log[1].req.addr, MTT_PA + 8 * RN_MTT_BYTES);
	ck_assert_uint_eq(f.dma->log[1].req.len, 8 * RN_MTT_BYTES);
	/* Its neighbours in the line came with it. */
	ck_assert_uint_eq(translate(&f, key, VA + 2 * PAGE, 1).hit, 3);
	fixture_free(&f);
}
END_TEST

START_TEST(one_lookup_starts_each_interval)
{
	for (uint32_t interval = 1; interval < 8; interval += 3) {
		unsigned answered = 0;

		fixture_prepare(&f, 0);
		f.params.interval_cycles = interval;
		f.params.mpt_cycles = f.params.mtt_cycles = 1;
		fixture_build(&f);
		uint32_t key = make_region(&f, 1, VA, 4, 0);
		translate(&f, key, VA, 100);
		bench_run(&f.bench, 10);
		for (uint16_t id = 0; id < 10; id++)
			ask(&f, DMA, id, key, VA, 100);
		bench_run(&f.bench, 1 + 2 + 9 * interval);
		while (is_answered(&f, DMA))
			ck_assert_uint_eq(answer(&f, DMA).id, answered++);
		ck_assert_uint_eq(answered, 9);
		bench_run(&f.bench, 1);
		ck_assert(is_answered(&f, DMA));
		fixture_free(&f);
	}
}
END_TEST

static uint8_t status_of(const struct rn_pte_req *req)
{
	rn_fifo_push(f.ports.req[DMA], req);
	struct rn_pte_rsp rsp = answer(&f, DMA);

	if (rsp.status == RN_PTE_OK && !req->check_only)
		give_back(&f, rsp.epoch);
	return rsp.status;
}

START_TEST(checks_come_in_the_order_key_pd_access_bounds)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	mpt_at(&f, 1)->access = RN_ACCESS_REMOTE_READ;
	struct rn_pte_req req = {.access = RN_ACCESS_REMOTE_WRITE | RN_ACCESS_REMOTE_READ,
				 .key = key ^ 1,
				 .pd = 8,
				 .length = 1,
				 .va = VA - 1};

	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_KEY);
	req.key = key;
	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_PD);
	req.pd = 7;
	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_ACCESS);
	req.access = RN_ACCESS_REMOTE_READ;
	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_BOUNDS);
	req.va = VA;
	ck_assert_uint_eq(status_of(&req), RN_PTE_OK);
	req.access = 0;
	ck_assert_uint_eq(status_of(&req), RN_PTE_OK);
	fixture_free(&f);
}
END_TEST

START_TEST(a_key_is_bad_when_its_index_is_beyond_the_table_or_its_entry_is_free)
{
	build();
	struct rn_pte_req req = {
		.key = UINT32_C(1) << (LOG_MPTS + 8), .pd = 7, .length = 1, .va = VA};

	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_KEY);
	ck_assert_uint_eq(f.dma->log_count, 0);
	req.key = make_region(&f, 5, VA, 4, 0);
	mpt_at(&f, 5)->state = 0;
	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_KEY);
	/* A free entry is not kept: made live, it is found. */
	mpt_at(&f, 5)->state = 1;
	ck_assert_uint_eq(status_of(&req), RN_PTE_OK);
	fixture_free(&f);
}
END_TEST

START_TEST(bounds_hold_at_both_ends_and_do_not_wrap)
{
	build();
	const uint32_t key = make_region(&f, 1, VA, 4, 0);
	const uint64_t end = VA + 4 * PAGE;
	struct rn_pte_req req = {.check_only = 1, .key = key, .pd = 7};
	const struct {
		uint64_t va;
		uint32_t length;
		uint8_t status;
	} rows[] = {
		{VA, 4 * PAGE, RN_PTE_OK},
		{VA, 4 * PAGE + 1, RN_PTE_BAD_BOUNDS},
		{VA - 1, 1, RN_PTE_BAD_BOUNDS},
		{VA - 1, 2, RN_PTE_BAD_BOUNDS},
		{end - 1, 1, RN_PTE_OK},
		{end - 1, 2, RN_PTE_BAD_BOUNDS},
		{end, 1, RN_PTE_BAD_BOUNDS},
		{UINT64_MAX, 1, RN_PTE_BAD_BOUNDS},
		{UINT64_MAX, 2, RN_PTE_BAD_BOUNDS},
		{VA, UINT32_MAX, RN_PTE_BAD_BOUNDS},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		req.va = rows[i].va;
		req.length = rows[i].length;
		ck_assert_uint_eq(status_of(&req), rows[i].status);
	}
	/* A region at the top of the address space, and a message of 2^31 bytes. */
	make_region(&f, 2, UINT64_MAX - PAGE + 1, 1, 8);
	req.key = 2 << 8 | 0x5a;
	req.va = UINT64_MAX;
	req.length = 1;
	ck_assert_uint_eq(status_of(&req), RN_PTE_OK);
	req.length = 2;
	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_BOUNDS);
	make_region(&f, 3, VA, 4, 16);
	mpt_at(&f, 3)->length = UINT64_C(1) << 33;
	req.key = 3 << 8 | 0x5a;
	req.va = VA;
	req.length = RN_MAX_MESSAGE_BYTES;
	ck_assert_uint_eq(status_of(&req), RN_PTE_OK);
	req.length++;
	ck_assert_uint_eq(status_of(&req), RN_PTE_BAD_BOUNDS);
	fixture_free(&f);
}
END_TEST

START_TEST(pages_of_every_size_are_translated_to_their_end)
{
	build();
	for (unsigned log = 12; log <= 30; log++) {
		const uint64_t page = UINT64_C(1) << log;
		const uint64_t start = (UINT64_C(5) << 40) + page / 2 + 3; /* not page aligned */
		const uint32_t index = log;
		const uint64_t entry = log * 64;
		const uint32_t key = make_region(&f, index, start, 1, entry);

		mpt_at(&f, index)->log_page_bytes = (uint8_t)log;
		mpt_at(&f, index)->length = 3 * page;
		for (uint64_t n = 0; n < 4; n++)
			set_mtt(&f, entry + n, (100 * log + n) * page | RN_MTT_PRESENT);

		struct rn_pte_rsp rsp =
			translate(&f, key, start, 1u << 31 > page ? (uint32_t)page : 1);
		ck_assert_uint_eq(rsp.pa, 100 * log * page + page / 2 + 3);
		ck_assert_uint_eq(rsp.bytes, page / 2 - 3);
		rsp = translate(&f, key, start + page, 5);
		ck_assert_uint_eq(rsp.pa, (100 * log + 1) * page + page / 2 + 3);
		ck_assert_uint_eq(rsp.bytes, 5);
		rsp = translate(&f, key, start + 3 * page - 1, 1);
		ck_assert_uint_eq(rsp.pa, (100 * log + 3) * page + page / 2 + 2);
	}
	fixture_free(&f);
}
END_TEST

START_TEST(entries_that_are_not_present_or_not_readable_abort)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 20, 0);
	set_mtt(&f, 9, page_pa(9));
	ck_assert_uint_eq(translate(&f, key, VA + 9 * PAGE, 1).status, RN_PTE_ABORT);
	ck_assert_uint_eq(translate(&f, key, VA + 8 * PAGE, 1).status, RN_PTE_OK);
	/* The MTT lies beyond the memory, then beyond the table. */
	f.dma->memory.size = MTT_PA + 16 * RN_MTT_BYTES;
	ck_assert_uint_eq(translate(&f, key, VA + 16 * PAGE, 1).status, RN_PTE_ABORT);
	f.dma->memory.size = MEMORY_BYTES;
	ck_assert_uint_eq(translate(&f, key, VA + 16 * PAGE, 1).status, RN_PTE_OK);
	key = make_region(&f, 2, VA, 1, 40);
	mpt_at(&f, 2)->mtt_index = UINT64_C(1) << LOG_MTTS;
	ck_assert_uint_eq(translate(&f, key, VA, 1).status, RN_PTE_ABORT);
	key = make_region(&f, 3, VA, 1, 40);
	mpt_at(&f, 3)->log_page_bytes = 70;
	ck_assert_uint_eq(translate(&f, key, VA, 1).status, RN_PTE_ABORT);
	/* The MPT entry itself cannot be read. */
	f.dma->memory.size = MPT_PA + 4 * RN_MPT_BYTES;
	ck_assert_uint_eq(translate(&f, 4 << 8, VA, 1).status, RN_PTE_ABORT);
	fixture_free(&f);
}
END_TEST

/* Through the replay list, like those whose line is good: one an interval. */
START_TEST(those_that_waited_for_a_free_entry_are_refused_one_after_the_other)
{
	const uint32_t read = 1 + 60 + 1 + 2;

	fixture_prepare(&f, 0);
	f.params.mpt_cycles = 3;
	f.params.fill_cycles = 2;
	fixture_build(&f);
	f.dma->latency_cycles = 60;
	uint32_t key = make_region(&f, 1, VA, 4, 9);
	mpt_at(&f, 1)->state = 0;
	for (uint16_t id = 0; id < 3; id++)
		ask(&f, DMA, id, key, VA, 100);
	bench_run(&f.bench, 1 + 3 + read + 3);
	ck_assert(!is_answered(&f, DMA));
	for (uint16_t id = 0; id < 3; id++) {
		bench_run(&f.bench, 1);
		ck_assert(is_answered(&f, DMA));
		struct rn_pte_rsp rsp = answer(&f, DMA);

		ck_assert_uint_eq(rsp.id, id);
		ck_assert_uint_eq(rsp.status, RN_PTE_BAD_KEY);
		ck_assert(!is_answered(&f, DMA));
	}
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "bad_key"), 3);
	fixture_free(&f);
}
END_TEST

START_TEST(hits_pass_a_miss_and_answers_come_out_of_order)
{
	build();
	uint32_t warm = make_region(&f, 1, VA, 4, 0);
	uint32_t cold = make_region(&f, 2, VA, 4, 64);
	translate(&f, warm, VA, 1);
	fake_dma_hold(f.dma, true);
	ask(&f, DMA, 10, cold, VA, 1);
	ask(&f, DMA, 11, warm, VA, 1);
	ck_assert_uint_eq(answer(&f, DMA).id, 11);
	bench_run(&f.bench, 100);
	ck_assert(!is_answered(&f, DMA));
	fake_dma_hold(f.dma, false);
	ck_assert_uint_eq(answer(&f, DMA).id, 10);
	fixture_free(&f);
}
END_TEST

START_TEST(requests_for_one_entry_share_its_reads)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 8, 0);
	f.dma->latency_cycles = 100;
	for (uint16_t id = 0; id < 8; id++)
		ask(&f, DMA, id, key, VA + id * PAGE, 1);
	for (uint16_t id = 0; id < 8; id++) {
		struct rn_pte_rsp rsp = answer(&f, DMA);

		ck_assert_uint_eq(rsp.id, id);
		ck_assert_uint_eq(rsp.pa, page_pa(id));
	}
	ck_assert_uint_eq(f.dma->log_count, 2);
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "mpt_misses"), 1);
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "mpt_merges"), 7);
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "mtt_misses"), 1);
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "mtt_merges"), 7);
	fixture_free(&f);
}
END_TEST

START_TEST(no_more_reads_are_outstanding_than_there_are_registers)
{
	for (uint32_t misses = 1; misses <= 4; misses++) {
		fixture_prepare(&f, 0);
		f.params.mpt_misses = misses;
		fixture_build(&f);
		fake_dma_hold(f.dma, true);
		for (uint16_t id = 0; id < 10; id++)
			ask(&f, DMA, id, make_region(&f, id, VA, 1, id * 8), VA, 1);
		uint32_t warm = make_region(&f, 20, VA, 1, 200);
		bench_run(&f.bench, 100);
		ck_assert_uint_eq(f.dma->log_count, misses);
		ck_assert(!is_answered(&f, DMA));
		fake_dma_hold(f.dma, false);
		for (uint16_t id = 0; id < 10; id++)
			ck_assert_uint_eq(answer(&f, DMA).status, RN_PTE_OK);
		ck_assert_uint_eq(translate(&f, warm, VA, 1).status, RN_PTE_OK);
		fixture_free(&f);
	}
}
END_TEST

START_TEST(full_slots_hold_requests_back_and_lose_none)
{
	fixture_prepare(&f, 0);
	f.params.request_slots = 3;
	fixture_build(&f);
	fake_dma_hold(f.dma, true);
	for (uint16_t id = 0; id < 10; id++)
		ask(&f, DMA, id, make_region(&f, id, VA, 1, id * 8), VA, 1);
	bench_run(&f.bench, 100);
	ck_assert_uint_eq(rn_fifo_occupancy(f.ports.req[DMA]), 7);
	fake_dma_hold(f.dma, false);
	for (uint16_t id = 0; id < 10; id++)
		ck_assert_uint_eq(answer(&f, DMA).status, RN_PTE_OK);
	fixture_free(&f);
}
END_TEST

START_TEST(clients_take_turns)
{
	fixture_prepare(&f, 0);
	f.params.mpt_cycles = f.params.mtt_cycles = 1;
	fixture_build(&f);
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	translate(&f, key, VA, 1);
	for (uint16_t id = 0; id < 8; id++) {
		ask(&f, DMA, id, key, VA, 1);
		ask(&f, RX, id, key, VA, 1);
	}
	bench_run(&f.bench, 12);
	unsigned dma = 0, rx = 0;
	while (is_answered(&f, DMA))
		ck_assert_uint_eq(answer(&f, DMA).id, dma++);
	while (is_answered(&f, RX))
		ck_assert_uint_eq(answer(&f, RX).id, rx++);
	ck_assert_uint_ge(dma, 4);
	ck_assert_uint_le(dma > rx ? dma - rx : rx - dma, 1);
	bench_run(&f.bench, 20);
	fixture_free(&f);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("pte_cache");

	tcase_add_test(tcase, a_hit_takes_the_mpt_and_the_mtt_cycles);
	tcase_add_test(tcase, a_check_alone_takes_the_mpt_cycles_and_holds_no_translation);
	tcase_add_test(tcase, a_cold_translation_costs_two_reads_in_a_row);
	tcase_add_test(tcase, one_lookup_starts_each_interval);
	tcase_add_test(tcase, checks_come_in_the_order_key_pd_access_bounds);
	tcase_add_test(tcase, a_key_is_bad_when_its_index_is_beyond_the_table_or_its_entry_is_free);
	tcase_add_test(tcase, bounds_hold_at_both_ends_and_do_not_wrap);
	tcase_add_test(tcase, pages_of_every_size_are_translated_to_their_end);
	tcase_add_test(tcase, entries_that_are_not_present_or_not_readable_abort);
	tcase_add_test(tcase, those_that_waited_for_a_free_entry_are_refused_one_after_the_other);
	tcase_add_test(tcase, hits_pass_a_miss_and_answers_come_out_of_order);
	tcase_add_test(tcase, requests_for_one_entry_share_its_reads);
	tcase_add_test(tcase, no_more_reads_are_outstanding_than_there_are_registers);
	tcase_add_test(tcase, full_slots_hold_requests_back_and_lose_none);
	tcase_add_test(tcase, clients_take_turns);
	return run_suite(tcase, "pte_cache");
}
