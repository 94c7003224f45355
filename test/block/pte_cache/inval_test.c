/*
 * Invalidation in the PTE cache: what goes, what is overtaken, what it waits for, what it costs.
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

START_TEST(a_warm_translation_stays_until_it_is_invalidated)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 20, 0);
	ck_assert_uint_eq(translate(&f, key, VA + 9 * PAGE, 1).pa, page_pa(9));
	set_mtt(&f, 9, page_pa(1000) | RN_MTT_PRESENT);
	ck_assert_uint_eq(translate(&f, key, VA + 9 * PAGE, 1).pa, page_pa(9));
	invalidate(&f, key, 0, 20);
	bench_run(&f.bench, 50);
	ck_assert(is_invalidated(&f));
	ck_assert_uint_eq(translate(&f, key, VA + 9 * PAGE, 1).pa, page_pa(1000));
	fixture_free(&f);
}
END_TEST

START_TEST(an_invalidation_leaves_other_regions_in_the_cache)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 16, 0);
	uint32_t other = make_region(&f, 2, VA, 16, 16);
	translate(&f, key, VA, 1);
	translate(&f, other, VA, 1);
	invalidate(&f, key, 0, 16);
	bench_run(&f.bench, 50);
	ck_assert_uint_eq(translate(&f, other, VA, 1).hit, 3);
	ck_assert_uint_eq(translate(&f, key, VA, 1).hit, 0);
	fixture_free(&f);
}
END_TEST

/* What is read before the invalidation comes back after it: the old entries are in the answer. */
START_TEST(an_mpt_read_that_was_overtaken_installs_nothing)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	fake_dma_hold(f.dma, true);
	ask(&f, DMA, 1, key, VA, 1);
	bench_run(&f.bench, 50);
	mpt_at(&f, 1)->state = 0;
	invalidate(&f, key, 0, 4);
	bench_run(&f.bench, 50);
	ck_assert(is_invalidated(&f));
	fake_dma_hold(f.dma, false);
	ck_assert_uint_eq(answer(&f, DMA).status, RN_PTE_BAD_KEY);
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "stale_fills"), 1);
	ck_assert_uint_eq(f.dma->log_count, 2);
	fixture_free(&f);
}
END_TEST

START_TEST(an_mtt_read_that_was_overtaken_installs_nothing)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	translate(&f, key, VA, 1);
	/* Warm the MPT entry, not the MTT. */
	invalidate(&f, 99 << 8, 0, 4);
	bench_run(&f.bench, 50);
	ck_assert(is_invalidated(&f));
	fake_dma_hold(f.dma, true);
	ask(&f, DMA, 1, key, VA, 1);
	bench_run(&f.bench, 50);
	ck_assert_uint_eq(f.dma->log_count, 3);
	/* Moved, and still live: the request that waits must get the new place. */
	set_mtt(&f, 0, page_pa(1000) | RN_MTT_PRESENT);
	invalidate(&f, key, 0, 4);
	bench_run(&f.bench, 50);
	ck_assert(is_invalidated(&f));
	fake_dma_hold(f.dma, false);
	struct rn_pte_rsp rsp = answer(&f, DMA);
	ck_assert_uint_eq(rsp.status, RN_PTE_OK);
	ck_assert_uint_eq(rsp.pa, page_pa(1000));
	ck_assert_uint_eq(translate(&f, key, VA, 1).pa, page_pa(1000));
	fixture_free(&f);
}
END_TEST

START_TEST(a_request_between_the_two_lookups_checks_its_key_again)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 40, 0);
	translate(&f, key, VA, 1);
	fake_dma_hold(f.dma, true);
	ask(&f, DMA, 1, key, VA + 20 * PAGE, 1); /* the key is known, the translation is read */
	bench_run(&f.bench, 50);
	mpt_at(&f, 1)->state = 0;
	invalidate(&f, key, 0, 40);
	bench_run(&f.bench, 50);
	ck_assert(is_invalidated(&f));
	fake_dma_hold(f.dma, false);
	ck_assert_uint_eq(answer(&f, DMA).status, RN_PTE_BAD_KEY);
	fixture_free(&f);
}
END_TEST

START_TEST(the_answer_waits_for_translations_handed_out_before_and_not_for_later_ones)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	uint32_t other = make_region(&f, 2, VA, 4, 64);
	ask(&f, DMA, 1, key, VA, 1);
	uint8_t first = answer(&f, DMA).epoch;
	ask(&f, DMA, 2, other, VA, 1);
	uint8_t second = answer(&f, DMA).epoch;
	ck_assert_uint_eq(first, second);
	invalidate(&f, key, 0, 4);
	bench_run(&f.bench, 50);
	ask(&f, DMA, 3, other, VA, 1);
	uint8_t third = answer(&f, DMA).epoch;
	ck_assert_uint_ne(first, third);
	give_back(&f, first);
	bench_run(&f.bench, 50);
	ck_assert(!is_invalidated(&f));
	give_back(&f, second);
	/* Release 1, answer 1: absent after one cycle, present after two. */
	bench_run(&f.bench, 1);
	ck_assert(!is_invalidated(&f));
	bench_run(&f.bench, 1);
	ck_assert(is_invalidated(&f));
	give_back(&f, third);
	bench_run(&f.bench, 5);
	fixture_free(&f);
}
END_TEST

START_TEST(a_second_invalidation_waits_for_the_first)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	ask(&f, DMA, 1, key, VA, 1);
	uint8_t epoch = answer(&f, DMA).epoch;
	invalidate(&f, key, 0, 4);
	invalidate(&f, key, 0, 4);
	bench_run(&f.bench, 100);
	ck_assert(!is_invalidated(&f));
	give_back(&f, epoch);
	bench_run(&f.bench, 50);
	ck_assert(is_invalidated(&f));
	ck_assert(is_invalidated(&f));
	fixture_free(&f);
}
END_TEST

/* To the cache 1, the MPT 1, a cycle a line of the region or a set of the cache, answer 1. */
static void check_walk(uint64_t entries, uint64_t walk_cycles)
{
	fixture_prepare(&f, 0);
	f.params.mtt_sets = 32;
	fixture_build(&f);
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	translate(&f, key, VA, 1);
	invalidate(&f, 5 << 8, 0, entries);
	bench_run(&f.bench, 1);
	ask(&f, DMA, 1, key, VA, 1); /* must wait: the tags are busy */
	bench_run(&f.bench, 1 + walk_cycles);
	ck_assert(!is_invalidated(&f));
	bench_run(&f.bench, 1);
	ck_assert(is_invalidated(&f));
	ck_assert(!is_answered(&f, DMA));
	struct rn_pte_rsp rsp = answer(&f, DMA);
	ck_assert_uint_eq(rsp.hit & 1, 1);
	ck_assert_uint_eq(rsp.hit >> 1, !entries);
	fixture_free(&f);
}

START_TEST(the_walk_takes_a_cycle_a_line_and_at_most_a_cycle_a_set)
{
	check_walk(0, 0);
	check_walk(1, 1);
	check_walk(8, 1);
	check_walk(9, 2);
	check_walk(32 * 8, 32);
	check_walk(32 * 8 + 1, 32);
	check_walk(60000, 32);
}
END_TEST

START_TEST(the_lines_of_a_region_go_one_a_cycle)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 16, 0);
	translate(&f, key, VA, 1);
	translate(&f, key, VA + 8 * PAGE, 1);
	invalidate(&f, 5 << 8, 0, 16);
	for (uint64_t gone = 0; gone < 3; gone++) {
		bench_run(&f.bench, 1);
		ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "invalidated_lines"), gone);
	}
	bench_run(&f.bench, 5);
	ck_assert(is_invalidated(&f));
	fixture_free(&f);
}
END_TEST

START_TEST(new_base_registers_drop_everything)
{
	build();
	uint32_t key = make_region(&f, 1, VA, 4, 0);
	translate(&f, key, VA, 1);
	set_mtt(&f, 0, page_pa(1000) | RN_MTT_PRESENT);
	rn_fifo_push(f.ports.base, &(struct rn_pte_base){.mpt_pa = MPT_PA,
							 .mtt_pa = MTT_PA,
							 .log_mpts = LOG_MPTS,
							 .log_mtts = LOG_MTTS});
	bench_run(&f.bench, 5);
	struct rn_pte_rsp rsp = translate(&f, key, VA, 1);
	ck_assert_uint_eq(rsp.hit, 0);
	ck_assert_uint_eq(rsp.pa, page_pa(1000));
	fixture_free(&f);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("inval");

	tcase_add_test(tcase, a_warm_translation_stays_until_it_is_invalidated);
	tcase_add_test(tcase, an_invalidation_leaves_other_regions_in_the_cache);
	tcase_add_test(tcase, an_mpt_read_that_was_overtaken_installs_nothing);
	tcase_add_test(tcase, an_mtt_read_that_was_overtaken_installs_nothing);
	tcase_add_test(tcase, a_request_between_the_two_lookups_checks_its_key_again);
	tcase_add_test(tcase,
		       the_answer_waits_for_translations_handed_out_before_and_not_for_later_ones);
	tcase_add_test(tcase, a_second_invalidation_waits_for_the_first);
	tcase_add_test(tcase, the_walk_takes_a_cycle_a_line_and_at_most_a_cycle_a_set);
	tcase_add_test(tcase, the_lines_of_a_region_go_one_a_cycle);
	tcase_add_test(tcase, new_base_registers_drop_everything);
	return run_suite(tcase, "pte_cache_inval");
}
