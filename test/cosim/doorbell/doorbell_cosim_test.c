/*
 * The RTL of the doorbell unit is the C block, cycle by cycle, at every port; and the bench that says so finds faults.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "cosim/common/options.h"
#include "cosim/common/faults.h"
#include "cosim/doorbell/points.h"
#include "cosim/doorbell/run.h"
#include "run_suite.h"

#define SHORT_CYCLES 400000
#define LONG_CYCLES 10000000
#define RECORDED_FAULTS 30
#define FAULTS RN_SOURCE_DIR "/test/cosim/doorbell/faults.txt"

static void check_run(const struct run *run)
{
	printf("doorbell %s: seed %" PRIu64 ", %" PRIu64 " cycles, %" PRIu64
	       " with the gated clock\n",
	       run->kind->geometry, run->seed, run->done_cycles, run->gated_cycles);
	ck_assert_msg(!run->has_failed,
		      "%s, seed %" PRIu64 ", cycle %" PRIu64
		      " (again: cosim_doorbell --geometry %s --seed %" PRIu64 "): %s",
		      run->kind->geometry, run->seed, run->done_cycles, run->kind->geometry,
		      run->seed, run->difference);
}

START_TEST(model_and_rtl_are_the_same_under_random_traffic)
{
	struct run run = {
		.kind = cosim_kinds[_i],
		.seed = cosim_env_seed(1),
		.cycles = cosim_env_cycles(SHORT_CYCLES, LONG_CYCLES),
	};

	run_random(&run);
	check_run(&run);
	/* Some cycles have nothing in them, else gating is not shown. */
	ck_assert_uint_lt(run.gated_cycles, run.done_cycles * 19 / 20);
}
END_TEST

START_TEST(random_traffic_meets_every_point_of_coverage)
{
	struct cosim_cover cover;
	const struct rn_rtl_kind *kind = cosim_kinds[_i];
	struct rn_doorbell_params params;
	struct run run = {
		.kind = kind,
		.seed = cosim_env_seed(2),
		.cycles = cosim_env_cycles(SHORT_CYCLES, LONG_CYCLES),
		.cover = &cover,
	};

	cosim_kind_params(kind, &rn_doorbell_param_table, &params);
	cosim_cover_init(&cover, point_names, POINT_COUNT);
	run_random(&run);
	check_run(&run);
	for (uint32_t i = 0; cosim_cover_missing(&cover, &i); i++)
		ck_assert_msg(!point_is_possible((enum point)i, &params), "%s: %s not met",
			      kind->geometry, point_names[i]);
	cosim_cover_fini(&cover);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_run)
{
	struct cosim_cover covers[2];

	for (unsigned i = 0; i < 2; i++) {
		struct run run = {
			.kind = cosim_kinds[0], .seed = 7, .cycles = 50000, .cover = &covers[i]};

		cosim_cover_init(&covers[i], point_names, POINT_COUNT);
		run_random(&run);
		check_run(&run);
	}
	ck_assert_mem_eq(covers[0].hits, covers[1].hits, POINT_COUNT * sizeof(*covers[0].hits));
	for (unsigned i = 0; i < 2; i++)
		cosim_cover_fini(&covers[i]);
}
END_TEST

/* The cycle in which a fault is found, in the first geometry in which it is; 0: not found. */
static uint64_t find_fault(unsigned number, uint64_t cycles, const struct rn_rtl_kind **kind,
			   char difference[256])
{
	char plusarg[32];

	snprintf(plusarg, sizeof(plusarg), "+fault=%u", number);
	for (const struct rn_rtl_kind *const *at = cosim_kinds; *at; at++) {
		struct run run = {.kind = *at,
				  .seed = cosim_env_seed(1),
				  .cycles = cycles,
				  .plusarg = plusarg};

		run_random(&run);
		*kind = *at;
		memcpy(difference, run.difference, sizeof(run.difference));
		if (run.has_failed)
			return run.done_cycles;
	}
	return 0;
}

/* Each hand-made fault of the RTL, in some geometry. */
START_TEST(every_fault_is_found)
{
	struct cosim_faults faults;
	const struct rn_rtl_kind *kind;
	char difference[256];

	cosim_faults_load(&faults, FAULTS);
	for (unsigned i = 0; i < faults.count && !cosim_kinds[0]->is_own; i++) {
		const struct cosim_fault *fault = &faults.fault[i];
		uint64_t cycle = find_fault(fault->number, SHORT_CYCLES, &kind, difference);

		if (!cycle)
			cycle = find_fault(fault->number, LONG_CYCLES, &kind, difference);
		ck_assert_msg(cycle, "fault %u (%s) is not found", fault->number, fault->what);
		printf("| %u | %s | %s, %" PRIu64 " | %s\n", fault->number, fault->what,
		       kind->geometry, cycle, difference);
	}
	ck_assert_uint_ge(faults.count, 50);
}
END_TEST

/* Recorded by rnicsim --record-unit. */
static const char *const recordings[] = {
	RN_SOURCE_DIR "/test/cosim/doorbell/recordings/pingpong.txt",
	RN_SOURCE_DIR "/test/cosim/doorbell/recordings/send_lat.txt",
	RN_SOURCE_DIR "/test/cosim/doorbell/recordings/write_bw.txt",
};

START_TEST(model_and_rtl_are_the_same_in_what_programs_did)
{
	struct run run = {.plusarg = NULL};

	ck_assert_msg(run_replay(&run, recordings[_i]), "%s", run.difference);
	ck_assert_msg(!run.has_failed, "%s: %s", recordings[_i], run.difference);
	ck_assert_uint_gt(run.gated_cycles, 200);
}
END_TEST

/* The shortest way to a fault among the recordings, as in lock step: of the first 30, which are of all kinds. */
START_TEST(programs_find_four_of_five_faults)
{
	unsigned found = 0;

	for (unsigned number = 1; number <= RECORDED_FAULTS; number++) {
		bool is_found = false;

		for (unsigned j = 0; j < RN_ARRAY_LEN(recordings) && !is_found; j++) {
			char plusarg[32];
			struct run run = {.plusarg = plusarg};

			snprintf(plusarg, sizeof(plusarg), "+fault=%u", number);
			ck_assert_msg(run_replay(&run, recordings[j]), "%s", run.difference);
			is_found = run.has_failed;
			if (is_found)
				printf("fault %2u found by %s after %" PRIu64 " cycles\n", number,
				       strrchr(recordings[j], '/') + 1, run.done_cycles);
		}
		found += is_found;
	}
	ck_assert_uint_ge(found * 5, RECORDED_FAULTS * 4);
}
END_TEST

static void temporary(char *path, size_t room, const char *name)
{
	const char *folder = getenv("TMPDIR");

	snprintf(path, room, "%s/rn-doorbell-%d-%s", folder && *folder ? folder : "/tmp",
		 (int)getpid(), name);
}

/* With a fault the replay stops where the recorded run stopped: it is the same run. */
START_TEST(a_recorded_run_replays)
{
	char path[256], again[256];
	struct run first = {.kind = cosim_kinds[0], .seed = 3, .cycles = 20000, .record = path};
	struct run faulty = first;
	struct run replayed = {.plusarg = NULL};
	struct run replayed_fault = {.plusarg = "+fault=24"};

	temporary(path, sizeof(path), "first");
	temporary(again, sizeof(again), "again");
	run_random(&first);
	check_run(&first);
	ck_assert_msg(run_replay(&replayed, path), "%s", replayed.difference);
	ck_assert_msg(!replayed.has_failed, "%s", replayed.difference);
	ck_assert_uint_eq(replayed.done_cycles, first.done_cycles);
	ck_assert(run_replay(&replayed_fault, path));
	faulty.plusarg = "+fault=24";
	faulty.record = again;
	run_random(&faulty);
	ck_assert(faulty.has_failed);
	ck_assert_uint_eq(faulty.done_cycles, replayed_fault.done_cycles);
	ck_assert_str_eq(faulty.difference, replayed_fault.difference);
	remove(path);
	remove(again);
}
END_TEST

START_TEST(a_recording_that_is_none_is_refused)
{
	struct run run = {.plusarg = NULL};

	ck_assert(!run_replay(&run, "/nonexistent"));
	ck_assert(!run_replay(&run, __FILE__));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("doorbell cosim");
	int count = 0;

	while (cosim_kinds[count])
		count++;

	setlinebuf(stdout);
	tcase_add_loop_test(tcase, model_and_rtl_are_the_same_under_random_traffic, 0, count);
	tcase_add_loop_test(tcase, random_traffic_meets_every_point_of_coverage, 0, count);
	tcase_add_test(tcase, the_same_seed_gives_the_same_run);
	tcase_add_test(tcase, every_fault_is_found);
	tcase_add_loop_test(tcase, model_and_rtl_are_the_same_in_what_programs_did, 0,
			    (int)RN_ARRAY_LEN(recordings));
	tcase_add_test(tcase, programs_find_four_of_five_faults);
	tcase_add_test(tcase, a_recorded_run_replays);
	tcase_add_test(tcase, a_recording_that_is_none_is_refused);
	return run_suite(tcase, "doorbell cosim");
}
