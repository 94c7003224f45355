/*
 * Stand-alone bench of the PTE cache: model and RTL side by side, under random or recorded stimulus. Exit status 0: no
 * difference, 1: a difference (printed with the seed and the last transactions), 2: wrong use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cosim/common/options.h"
#include "cosim/pte_cache/random.h"
#include "cosim/pte_cache/replay.h"

static struct rig rig;

static bool run_random(const struct cosim_options *options, struct coverage *coverage)
{
	static struct random random;

	random_init(&random, &rig, coverage, options->seed);

	bool is_same = random_run(&random, options->cycles);

	if (rig.record)
		fprintf(rig.record, "end %" PRIu64 "\n", rig.cycle);
	return is_same;
}

static FILE *open_record(const char *path, const struct rn_pte_cache_params *params)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return NULL;
	fprintf(file, "unit pte_cache\n");
	for (size_t i = 0; i < rn_pte_cache_param_table.count; i++)
		fprintf(file, "param %s %.0f\n", rn_pte_cache_param_table.rows[i].key,
			rn_param_value(&rn_pte_cache_param_table.rows[i], params));
	return file;
}

static int run(const struct cosim_options *options, const struct rn_rtl_kind *kind)
{
	struct coverage coverage;
	bool is_same;

	coverage_init(&coverage);
	rig_init(&rig, kind, random_first_cycle(options->seed), options->plusarg, options->seed);
	rig.compares_ports_alone = options->ports_alone;
	if (options->record)
		rig.record = open_record(options->record, &rig.params);
	if (options->replay)
		is_same = replay_run(&rig, &coverage, options->replay);
	else
		is_same = run_random(options, &coverage);
	if (!rig_cycles(&rig)) {
		fprintf(stderr, "pte_cache: no cycle was compared\n");
		return 2;
	}
	printf("pte_cache %s: seed %" PRIu64 ", %" PRIu64 " cycles, %" PRIu64
	       " with the gated clock: %s\n",
	       kind->geometry, options->seed, rig_cycles(&rig), rig.gated_cycles,
	       is_same ? "no difference" : rig.difference);
	if (!is_same)
		rig_explain(&rig, stdout);
	if (options->cover && !cosim_cover_write(&coverage.cover, options->cover))
		fprintf(stderr, "%s: cannot write\n", options->cover);
	if (options->rtl_cover)
		kind->write_coverage(rig.always->block, options->rtl_cover);
	if (rig.record)
		fclose(rig.record);
	coverage_fini(&coverage);
	rig_fini(&rig);
	return !is_same;
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
	kind = cosim_kind_find(options.geometry);
	return kind ? run(&options, kind) : 2;
}
