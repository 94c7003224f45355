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
#include "cosim/doorbell/faults.h"
#include "cosim/doorbell/kinds.h"
#include "cosim/doorbell/points.h"
#include "cosim/doorbell/run.h"
#include "run_suite.h"

#define SHORT_CYCLES 400000
#define LONG_CYCLES 10000000

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
		.kind = kinds[_i],
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
	const struct dut_kind *kind = kinds[_i];
	const struct rn_doorbell_params params = {.interval_cycles = kind->params[1],
						  .recover = kind->params[5]};
	struct run run = {
		.kind = kind,
		.seed = cosim_env_seed(2),
		.cycles = cosim_env_cycles(SHORT_CYCLES, LONG_CYCLES),
		.cover = &cover,
	};

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
			.kind = kinds[0], .seed = 7, .cycles = 50000, .cover = &covers[i]};

		cosim_cover_init(&covers[i], point_names, POINT_COUNT);
		run_random(&run);
		check_run(&run);
	}
	ck_assert_mem_eq(covers[0].hits, covers[1].hits, POINT_COUNT * sizeof(*covers[0].hits));
	for (unsigned i = 0; i < 2; i++)
		cosim_cover_fini(&covers[i]);
}
END_TEST

/* Each hand-made fault of the RTL, in a geometry in which it can be seen. */
START_TEST(every_fault_is_found)
{
	const struct fault *fault = &faults[_i];
	char plusarg[32];
	struct run run = {.seed = cosim_env_seed(1), .cycles = LONG_CYCLES, .plusarg = plusarg};

	snprintf(plusarg, sizeof(plusarg), "+fault=%u", fault->number);
	for (unsigned i = 0; kinds[i]; i++)
		if (strcmp(kinds[i]->geometry, fault->geometry) == 0)
			run.kind = kinds[i];
	ck_assert_ptr_nonnull(run.kind);
	run_random(&run);
	printf("fault %2u found after %6" PRIu64 " cycles (%s): %s\n", fault->number,
	       run.done_cycles, fault->what, run.difference);
	ck_assert_msg(run.has_failed, "fault %u (%s) is not found", fault->number, fault->what);
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

	ck_assert_msg(run_replay(&run, recordings[_i], kinds), "%s", run.difference);
	ck_assert_msg(!run.has_failed, "%s: %s", recordings[_i], run.difference);
	ck_assert_uint_gt(run.gated_cycles, 200);
}
END_TEST

/* The shortest way to a fault among the recordings, as in lock step. */
START_TEST(programs_find_four_of_five_faults)
{
	unsigned found = 0;

	for (unsigned i = 0; i < fault_count; i++) {
		const char *by = NULL;

		for (unsigned j = 0; j < RN_ARRAY_LEN(recordings) && !by; j++) {
			char plusarg[32];
			struct run run = {.plusarg = plusarg};

			snprintf(plusarg, sizeof(plusarg), "+fault=%u", faults[i].number);
			ck_assert_msg(run_replay(&run, recordings[j], kinds), "%s", run.difference);
			if (run.has_failed) {
				by = strrchr(recordings[j], '/') + 1;
				printf("fault %2u found by %s after %" PRIu64 " cycles\n",
				       faults[i].number, by, run.done_cycles);
			}
		}
		found += by != NULL;
		ck_assert_msg(by || !faults[i].is_met, "fault %u (%s) is not found",
			      faults[i].number, faults[i].what);
	}
	ck_assert_uint_ge(found * 5, fault_count * 4);
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
	struct run first = {.kind = kinds[0], .seed = 3, .cycles = 20000, .record = path};
	struct run faulty = first;
	struct run replayed = {.plusarg = NULL};
	struct run replayed_fault = {.plusarg = "+fault=24"};

	temporary(path, sizeof(path), "first");
	temporary(again, sizeof(again), "again");
	run_random(&first);
	check_run(&first);
	ck_assert_msg(run_replay(&replayed, path, kinds), "%s", replayed.difference);
	ck_assert_msg(!replayed.has_failed, "%s", replayed.difference);
	ck_assert_uint_eq(replayed.done_cycles, first.done_cycles);
	ck_assert(run_replay(&replayed_fault, path, kinds));
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

	ck_assert(!run_replay(&run, "/nonexistent", kinds));
	ck_assert(!run_replay(&run, __FILE__, kinds));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("doorbell cosim");
	int count = (int)RN_ARRAY_LEN(kinds) - 1;

	setlinebuf(stdout);
	tcase_add_loop_test(tcase, model_and_rtl_are_the_same_under_random_traffic, 0, count);
	tcase_add_loop_test(tcase, random_traffic_meets_every_point_of_coverage, 0, count);
	tcase_add_test(tcase, the_same_seed_gives_the_same_run);
	tcase_add_loop_test(tcase, every_fault_is_found, 0, (int)fault_count);
	tcase_add_loop_test(tcase, model_and_rtl_are_the_same_in_what_programs_did, 0,
			    (int)RN_ARRAY_LEN(recordings));
	tcase_add_test(tcase, programs_find_four_of_five_faults);
	tcase_add_test(tcase, a_recorded_run_replays);
	tcase_add_test(tcase, a_recording_that_is_none_is_refused);
	return run_suite(tcase, "doorbell cosim");
}
