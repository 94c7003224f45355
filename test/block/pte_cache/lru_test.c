/*
 * Hits and misses of the PTE cache against a naive LRU: from answers, and from the log of many
 * requests in flight; cyclic sweeps.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "block/pte_cache/fixture.h"
#include "run_suite.h"

#define VA UINT64_C(0x7f0000001000)
#define REGIONS 32
#define PAGES 64u /* of a region */

static struct fixture f;

/* The naive reference: per set a list, most recent first. */
struct reference {
	uint32_t sets, ways;
	uint32_t count[64];
	uint64_t list[64][64];
	unsigned hits, misses;
};

static bool look_up(struct reference *ref, uint64_t number, uint64_t *victim)
{
	uint32_t set = (uint32_t)(number % ref->sets);
	uint64_t *list = ref->list[set];
	uint32_t at = 0;
	bool hit;

	*victim = UINT64_MAX;
	while (at < ref->count[set] && list[at] != number)
		at++;
	hit = at < ref->count[set];
	if (!hit && ref->count[set] < ref->ways) {
		at = ref->count[set]++;
	} else if (!hit) {
		at = ref->ways - 1;
		*victim = list[at];
	}
	memmove(&list[1], &list[0], at * sizeof(*list));
	list[0] = number;
	ref->hits += hit;
	ref->misses += !hit;
	return hit;
}

static void build(uint32_t sets, uint32_t ways)
{
	fixture_prepare(&f, 0);
	f.params.mpt_sets = f.params.mtt_sets = sets;
	f.params.mpt_ways = f.params.mtt_ways = ways;
	fixture_build(&f);
	for (uint32_t i = 0; i < REGIONS; i++)
		make_region(&f, i, VA, PAGES, (uint64_t)i * PAGES);
}

START_TEST(random_translations_hit_exactly_where_naive_lrus_hit)
{
	static const uint32_t shapes[][2] = {{1, 1}, {1, 8}, {8, 2}, {16, 1}};
	struct rn_rng rng;
	uint64_t victim;

	rn_rng_init(&rng, 3, "lru");
	for (unsigned shape = 0; shape < 4; shape++) {
		struct reference mpt = {.sets = shapes[shape][0], .ways = shapes[shape][1]};
		struct reference mtt = mpt;

		build(mpt.sets, mpt.ways);
		for (unsigned i = 0; i < 4000; i++) {
			uint32_t index = (uint32_t)rn_rng_below(&rng, 2 * mpt.sets * mpt.ways);
			uint32_t page = (uint32_t)rn_rng_below(&rng, 16);
			uint8_t expected = look_up(&mpt, index, &victim);

			expected |= look_up(&mtt, (index * PAGES + page) / 8, &victim) << 1;

			struct rn_pte_rsp rsp =
				translate(&f, index << 8 | 0x5a, VA + page * PAGE + 1, 1);

			ck_assert_uint_eq(rsp.hit, expected);
			ck_assert_uint_eq(rsp.pa, page_pa(index * PAGES + page) + 1);
		}
		ck_assert_uint_gt(mpt.hits, 500);
		fixture_free(&f);
	}
}
END_TEST

START_TEST(a_cyclic_sweep_hits_always_at_capacity_and_never_at_one_more_in_a_set)
{
	const uint32_t sets = 4, ways = 3;

	for (uint32_t extra = 0; extra < 2; extra++) {
		unsigned mpt_hits = 0, mtt_hits = 0;

		build(sets, ways);
		for (unsigned round = 0; round < 6; round++) {
			for (uint32_t i = 0; i < ways + extra; i++) {
				uint32_t index = 1 + i * sets; /* PAGES / 8 is a multiple of sets */
				uint8_t hit = translate(&f, index << 8 | 0x5a, VA, 1).hit;

				mpt_hits += round && hit & 1;
				mtt_hits += round && hit & 2;
			}
		}
		ck_assert_uint_eq(mpt_hits, extra ? 0 : 5 * ways);
		ck_assert_uint_eq(mtt_hits, extra ? 0 : 5 * ways);
		fixture_free(&f);
	}
}
END_TEST

static void check_line(struct reference *mpt, struct reference *mtt, const char *line)
{
	char unit[8], result[16], victim[32];
	uint64_t at_ps, number, expected;
	uint32_t set;

	ck_assert_int_eq(sscanf(line, "%" SCNu64 " %7s %" SCNu64 " %15s %" SCNu32 " %31s", &at_ps,
				unit, &number, result, &set, victim),
			 6);

	struct reference *ref = strcmp(unit, "mpt") ? mtt : mpt;
	bool hit = look_up(ref, number, &expected);

	ck_assert_uint_eq(set, number % ref->sets);
	ck_assert_int_eq(hit, strcmp(result, "miss") != 0);
	if (expected == UINT64_MAX)
		ck_assert_str_eq(victim, "-");
	else
		ck_assert_uint_eq(strtoull(victim, NULL, 10), expected);
}

START_TEST(the_log_of_requests_in_flight_replays_in_a_naive_lru)
{
	struct reference mpt = {.sets = 2, .ways = 4}, mtt = mpt;
	struct rn_rng rng;
	FILE *log = tmpfile();
	char line[128];
	unsigned asked = 0, answered = 0;

	fixture_prepare(&f, 0);
	f.params.mpt_sets = f.params.mtt_sets = 2;
	f.params.mpt_ways = f.params.mtt_ways = 4;
	f.params.mpt_misses = f.params.mtt_misses = 3;
	f.params.request_slots = 12;
	fixture_build(&f);
	f.dma->latency_cycles = 20;
	f.dma->spread_cycles = 40;
	for (uint32_t i = 0; i < REGIONS; i++)
		make_region(&f, i, VA, PAGES, (uint64_t)i * PAGES);
	rn_pte_cache_set_log(f.cache, log);
	rn_rng_init(&rng, 5, "log");
	while (answered < 5000) {
		for (; asked < 5000 && asked - answered < 30; asked++)
			ask(&f, DMA, (uint16_t)asked,
			    (uint32_t)rn_rng_below(&rng, REGIONS) << 8 | 0x5a,
			    VA + rn_rng_below(&rng, 8) * PAGE, 1);
		struct rn_pte_rsp rsp = answer(&f, DMA);
		ck_assert_uint_eq(rsp.status, RN_PTE_OK);
		give_back(&f, rsp.epoch);
		answered++;
	}
	rewind(log);
	while (fgets(line, sizeof(line), log))
		check_line(&mpt, &mtt, line);
	ck_assert_uint_eq(mpt.hits + mpt.misses, 5000);
	ck_assert_uint_eq(mtt.hits + mtt.misses, 5000);
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "mpt_misses"), mpt.misses);
	ck_assert_uint_eq(bench_counter(&f.bench, "pte_cache", "mtt_misses"), mtt.misses);
	ck_assert_uint_gt(bench_counter(&f.bench, "pte_cache", "mpt_merges"), 0);
	fclose(log);
	bench_run(&f.bench, 100);
	fixture_free(&f);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("lru");

	tcase_add_test(tcase, random_translations_hit_exactly_where_naive_lrus_hit);
	tcase_add_test(tcase,
		       a_cyclic_sweep_hits_always_at_capacity_and_never_at_one_more_in_a_set);
	tcase_add_test(tcase, the_log_of_requests_in_flight_replays_in_a_naive_lru);
	return run_suite(tcase, "pte_cache_lru");
}
