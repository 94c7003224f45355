/*
 * Stand-alone bench of the doorbell unit: model and RTL side by side, under random or recorded stimulus. Exit status 0:
 * no difference, 1: a difference, 2: wrong use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cosim/common/options.h"
#include "cosim/doorbell/points.h"
#include "cosim/doorbell/run.h"

static void print_result(const struct run *run)
{
	if (!run->done_cycles) {
		fprintf(stderr, "doorbell: no cycle was compared\n");
		exit(2);
	}
	printf("doorbell %s: seed %" PRIu64 ", %" PRIu64 " cycles, %" PRIu64
	       " with the gated clock: ",
	       run->kind->geometry, run->seed, run->done_cycles, run->gated_cycles);
	if (run->has_failed)
		printf("cycle %" PRIu64 ": %s\n", run->done_cycles, run->difference);
	else
		printf("no difference\n");
}

static int run_kind(const struct cosim_options *options, const struct rn_rtl_kind *kind)
{
	struct cosim_cover cover;
	struct run run = {
		.kind = kind,
		.seed = options->seed,
		.cycles = options->cycles,
		.plusarg = options->plusarg,
		.ports_alone = options->ports_alone,
		.record = options->record,
		.rtl_cover = options->rtl_cover,
		.cover = options->cover ? &cover : NULL,
	};

	cosim_cover_init(&cover, point_names, POINT_COUNT);
	run_random(&run);
	print_result(&run);
	if (options->cover && !cosim_cover_write(&cover, options->cover))
		fprintf(stderr, "%s: cannot write\n", options->cover);
	cosim_cover_fini(&cover);
	return run.has_failed;
}

static int replay(const struct cosim_options *options)
{
	struct run run = {.plusarg = options->plusarg,
			  .ports_alone = options->ports_alone,
			  .rtl_cover = options->rtl_cover};

	if (!run_replay(&run, options->replay)) {
		fprintf(stderr, "%s\n", run.difference);
		return 2;
	}
	print_result(&run);
	return run.has_failed;
}

int main(int argc, char **argv)
{
	struct cosim_options options = {
		.seed = cosim_env_seed(1),
		.cycles = cosim_env_cycles(100000, 10000000),
		.geometry = cosim_kinds[0]->geometry,
	};
	const struct rn_rtl_kind *kind;

	if (!cosim_options_parse(&options, argc, argv))
		return 2;
	if (options.replay)
		return replay(&options);
	kind = cosim_kind_find(options.geometry);
	return kind ? run_kind(&options, kind) : 2;
}
