/*
 * Hits and misses of the context caches against a naive LRU, and cyclic sweeps.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "block/context_cache/fixture.h"
#include "run_suite.h"

enum { TX = RN_CONTEXT_CLIENT_TX, RX = RN_CONTEXT_CLIENT_RX, CQE = RN_CONTEXT_CLIENT_CQE };

static struct fixture f;

/* The naive reference: per set a list, most recent first. */
struct reference {
	uint32_t sets, ways;
	uint32_t count[64];
	uint32_t list[64][64];
};

static bool look_up(struct reference *ref, uint32_t number)
{
	uint32_t set = number % ref->sets;
	uint32_t *list = ref->list[set];
	uint32_t at = 0;
	bool hit;

	while (at < ref->count[set] && list[at] != number)
		at++;
	hit = at < ref->count[set];
	if (!hit && ref->count[set] < ref->ways)
		at = ref->count[set]++;
	else if (!hit)
		at = ref->ways - 1;
	memmove(&list[1], &list[0], at * sizeof(*list));
	list[0] = number;
	return hit;
}

static void build(uint32_t sets, uint32_t ways)
{
	fixture_prepare(&f, 0);
	f.params.qpc_sets = f.params.cqc_sets = sets;
	f.params.qpc_ways = f.params.cqc_ways = ways;
	fixture_build(&f);
}

START_TEST(random_lookups_hit_exactly_where_a_naive_lru_hits)
{
	static const uint32_t shapes[][2] = {{1, 1}, {1, 8}, {8, 2}, {16, 4}};
	struct rn_rng rng;

	rn_rng_init(&rng, 3, "lru");
	for (unsigned shape = 0; shape < 4; shape++) {
		struct reference qp = {.sets = shapes[shape][0], .ways = shapes[shape][1]};
		struct reference cq = qp;
		unsigned hits = 0;

		build(qp.sets, qp.ways);
		for (unsigned i = 0; i < 5000; i++) {
			uint32_t number = (uint32_t)rn_rng_below(&rng, 2 * qp.sets * qp.ways);
			bool is_cq = rn_rng_below(&rng, 2);
			bool expected = look_up(is_cq ? &cq : &qp, number);

			hits += expected;
			ck_assert_uint_eq(touch(&f, is_cq ? CQE : TX,
						is_cq ? RN_CONTEXT_CQ : RN_CONTEXT_QP, number),
					  expected);
		}
		ck_assert_uint_gt(hits, 1500);
		ck_assert_uint_eq(bench_counter(&f.bench, "context_cache", "qpc_hits") +
					  bench_counter(&f.bench, "context_cache", "cqc_hits"),
				  hits);
		fixture_free(&f);
	}
}
END_TEST

START_TEST(a_cyclic_sweep_hits_always_at_capacity_and_never_at_one_more_in_a_set)
{
	const uint32_t sets = 8, ways = 5;

	for (uint32_t extra = 0; extra < 2; extra++) {
		unsigned hits = 0;

		build(sets, ways);
		/* One set at a time: numbers that differ by the number of sets. */
		for (unsigned round = 0; round < 6; round++) {
			for (uint32_t i = 0; i < ways + extra; i++) {
				bool hit = touch(&f, TX, RN_CONTEXT_QP, 3 + i * sets);

				if (round)
					hits += hit;
			}
		}
		ck_assert_uint_eq(hits, extra ? 0 : 5 * ways);
		fixture_free(&f);
	}
}
END_TEST

/* A line of the log against a reference that knows pins: what a script does with a log of a run. */
struct log_reader {
	struct reference ref;
	unsigned pins[256];
	unsigned lines, hits, misses;
};

static void check_line(struct log_reader *reader, const char *line)
{
	char type[8], op[16], result[16], victim[16];
	uint64_t at_ps;
	uint32_t number, set;

	ck_assert_int_eq(sscanf(line, "%" SCNu64 " %7s %15s %" SCNu32 " %15s %" SCNu32 " %15s",
				&at_ps, type, op, &number, result, &set, victim),
			 7);
	ck_assert_str_eq(type, "qpc");
	ck_assert_uint_eq(set, number % reader->ref.sets);
	reader->lines++;
	if (!strcmp(op, "release"))
		return;

	uint32_t *list = reader->ref.list[set];
	bool is_full = reader->ref.count[set] == reader->ref.ways;
	uint32_t oldest = list[reader->ref.ways - 1];
	bool hit = look_up(&reader->ref, number);

	ck_assert_str_eq(result, hit ? "hit" : "miss");
	if (!hit && is_full)
		ck_assert_uint_eq((uint32_t)atoi(victim), oldest);
	else
		ck_assert_str_eq(victim, "-");
	reader->hits += hit;
	reader->misses += !hit;
}

START_TEST(the_log_names_every_lookup_its_set_and_its_victim)
{
	struct log_reader reader = {.ref = {.sets = 4, .ways = 3}};
	struct rn_rng rng;
	FILE *log = tmpfile();
	char line[128];

	build(4, 3);
	rn_context_cache_set_log(f.cache, log);
	rn_rng_init(&rng, 5, "log");
	for (unsigned i = 0; i < 2000; i++)
		touch(&f, RX, RN_CONTEXT_QP, (uint32_t)rn_rng_below(&rng, 24));
	rewind(log);
	while (fgets(line, sizeof(line), log))
		check_line(&reader, line);
	ck_assert_uint_eq(reader.lines, 4000);
	ck_assert_uint_eq(bench_counter(&f.bench, "context_cache", "qpc_hits"), reader.hits);
	ck_assert_uint_eq(bench_counter(&f.bench, "context_cache", "qpc_misses"), reader.misses);
	fclose(log);
	fixture_free(&f);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("lru");

	tcase_add_test(tcase, random_lookups_hit_exactly_where_a_naive_lru_hits);
	tcase_add_test(tcase,
		       a_cyclic_sweep_hits_always_at_capacity_and_never_at_one_more_in_a_set);
	tcase_add_test(tcase, the_log_names_every_lookup_its_set_and_its_victim);
	return run_suite(tcase, "context_cache_lru");
}
