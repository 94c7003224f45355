/*
 * The PTE cache's RTL against its model. Seed and length come from RN_SEED and RN_LONG.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cosim/common/faults.h"
#include "cosim/common/options.h"
#include "cosim/pte_cache/random.h"
#include "cosim/pte_cache/replay.h"
#include "run_suite.h"

#define SHORT_CYCLES 400000
#define LONG_CYCLES 10000000
#define FAULTS RN_SOURCE_DIR "/test/cosim/pte_cache/faults.txt"

static struct rig rig;
static struct random source;
static struct coverage coverage;

static void begin(const struct rn_rtl_kind *kind, const char *plusarg, uint64_t seed)
{
	coverage_init(&coverage);
	rig_init(&rig, kind, random_first_cycle(seed), plusarg, seed);
	random_init(&source, &rig, &coverage, seed);
}

static void finish(void)
{
	coverage_fini(&coverage);
	rig_fini(&rig);
}

static void expect_no_difference(const struct rn_rtl_kind *kind, uint64_t seed, uint64_t cycles)
{
	begin(kind, NULL, seed);
	printf("pte_cache %s: seed %" PRIu64 ", %" PRIu64 " cycles\n", kind->geometry, seed,
	       cycles);
	if (!random_run(&source, cycles))
		rig_explain(&rig, stdout);
	ck_assert_msg(!rig.has_failed, "%s geometry, RN_SEED=%" PRIu64 ": %s", kind->geometry, seed,
		      rig.difference);
}

/* Clock gating included: one of the two Verilated blocks is clocked only when it asks for it. */
START_TEST(rtl_and_model_are_alike_at_every_port_in_every_cycle)
{
	uint32_t missing = 0;

	expect_no_difference(cosim_kinds[_i], cosim_env_seed(1),
			     cosim_env_cycles(SHORT_CYCLES, LONG_CYCLES));
	ck_assert_uint_lt(rig.gated_cycles, rig_cycles(&rig));
	const char *name = cosim_cover_missing(&coverage.cover, &missing);

	/* In the corner geometry some cannot be. */
	ck_assert_msg(!name || !strcmp(cosim_kinds[_i]->geometry, "corner"),
		      "%s geometry: never hit: %s", cosim_kinds[_i]->geometry, name);
	finish();
}
END_TEST

START_TEST(a_few_short_runs_of_other_seeds_are_alike_too)
{
	for (uint64_t seed = 100; seed < 110; seed++) {
		expect_no_difference(cosim_kinds[_i], cosim_env_seed(1) + seed, 10000);
		finish();
	}
}
END_TEST

START_TEST(translations_that_nobody_releases_are_counted)
{
	begin(cosim_kinds[0], NULL, cosim_env_seed(1));
	ck_assert(random_run(&source, 5000));
	for (unsigned i = 0; i < 8 && source.held[0] + source.held[1] < 34000; i++) {
		random_hoard(&source, 50000);
		ck_assert_msg(random_run(&source, 49000), "%s", rig.difference);
	}
	ck_assert_uint_ge(source.held[0] + source.held[1], 34000);
	source.phase.end_cycle = 0;
	ck_assert_msg(random_run(&source, 200000), "%s", rig.difference);
	finish();
}
END_TEST

/* The cycle in which a fault is found, in the first geometry in which it is; 0: not found. */
static uint64_t find_fault(unsigned number, uint64_t cycles, const struct rn_rtl_kind **kind)
{
	char plusarg[32];

	snprintf(plusarg, sizeof(plusarg), "+fault=%u", number);
	for (const struct rn_rtl_kind *const *at = cosim_kinds; *at; at++) {
		uint64_t cycle;

		begin(*at, plusarg, cosim_env_seed(1));
		random_run(&source, cycles);
		*kind = *at;
		cycle = rig.has_failed ? rig_cycles(&rig) : 0;
		finish();
		if (cycle)
			return cycle;
	}
	return 0;
}

START_TEST(every_fault_is_found)
{
	struct cosim_faults faults;
	const struct rn_rtl_kind *kind;

	cosim_faults_load(&faults, FAULTS);
	for (unsigned i = 0; i < faults.count && !cosim_kinds[0]->is_own; i++) {
		const struct cosim_fault *fault = &faults.fault[i];
		uint64_t cycle = find_fault(fault->number, SHORT_CYCLES, &kind);

		if (!cycle)
			cycle = find_fault(fault->number, LONG_CYCLES, &kind);
		ck_assert_msg(cycle, "fault %u (%s) is not found", fault->number, fault->what);
		printf("| %u | %s | %s, %" PRIu64 " | %s\n", fault->number, fault->what,
		       kind->geometry, cycle, rig.difference);
	}
	ck_assert_uint_ge(faults.count, 41);
}
END_TEST

START_TEST(a_recorded_run_replays_and_shows_a_fault_in_the_same_cycle)
{
	char path[] = "/tmp/pte_cache_stimulus_XXXXXX";
	int file = mkstemp(path);

	ck_assert_int_ge(file, 0);
	begin(cosim_kinds[0], "+fault=7", 3);
	rig.record = fdopen(file, "w");
	ck_assert(!random_run(&source, 10000));
	uint64_t failed_cycle = rig.cycle, fifo_answers = rig.logged;

	fprintf(rig.record, "end %" PRIu64 "\n", rig.cycle + 100);
	fclose(rig.record);
	finish();
	/* The recording starts at its first event. */
	begin(cosim_kinds[0], "+fault=7", 3);
	ck_assert(!replay_run(&rig, &coverage, path));
	ck_assert_ptr_nonnull(strstr(rig.difference, "rsp"));
	ck_assert_uint_eq(rig.logged, fifo_answers);
	ck_assert_uint_le(rig.cycle, failed_cycle + 8);
	finish();
	begin(cosim_kinds[0], NULL, 3);
	ck_assert_msg(replay_run(&rig, &coverage, path), "%s", rig.difference);
	finish();
	unlink(path);
}
END_TEST

START_TEST(a_recording_of_another_geometry_is_refused)
{
	char path[] = "/tmp/pte_cache_stimulus_XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	ck_assert_ptr_nonnull(file);
	fprintf(file, "unit pte_cache\nparam mpt_sets 1024\nend 5\n");
	fclose(file);
	begin(cosim_kinds[0], NULL, 1);
	ck_assert(!replay_run(&rig, &coverage, path));
	ck_assert_ptr_nonnull(strstr(rig.difference, "mpt_sets"));
	finish();
	begin(cosim_kinds[0], NULL, 1);
	ck_assert(!replay_run(&rig, &coverage, "/nonexistent"));
	finish();
	unlink(path);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("pte_cache");
	int count = 0;

	while (cosim_kinds[count])
		count++;
	setlinebuf(stdout);

	tcase_set_timeout(tcase, 900);
	tcase_add_loop_test(tcase, rtl_and_model_are_alike_at_every_port_in_every_cycle, 0, count);
	tcase_add_loop_test(tcase, a_few_short_runs_of_other_seeds_are_alike_too, 0, count);
	tcase_add_test(tcase, translations_that_nobody_releases_are_counted);
	tcase_add_test(tcase, every_fault_is_found);
	tcase_add_test(tcase, a_recorded_run_replays_and_shows_a_fault_in_the_same_cycle);
	tcase_add_test(tcase, a_recording_of_another_geometry_is_refused);
	return run_suite(tcase, "cosim_pte_cache");
}
