#include "cosim/doorbell/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cosim/doorbell/points.h"
#include "cosim/doorbell/random.h"
#include "cosim/doorbell/recording.h"

static void end_run(struct run *run, struct rig *rig)
{
	run->has_failed = rig->has_failed;
	run->gated_cycles = rig->gated_cycles;
	run->done_cycles = rig->cycles;
	memcpy(run->difference, rig->difference, sizeof(run->difference));
	if (run->rtl_cover)
		run->kind->write_coverage(rig->always->block, run->rtl_cover);
	rig_fini(rig);
	free(rig);
}

void run_random(struct run *run)
{
	struct rig *rig = malloc(sizeof(*rig));
	struct random_stimulus stimulus;
	struct point_before before;
	uint64_t until = UINT64_MAX;
	struct rn_doorbell_identity identity;
	struct recording *recording = NULL;

	rig_init(rig, run->kind, 1, run->plusarg, run->seed);
	rig->compares_ports_alone = run->ports_alone;
	if (run->record)
		recording = recording_new(run->record, &rig->params);
	random_init(&stimulus, run->seed);
	if (!recording)
		until = random_restart(&stimulus, &rig->cycle_offset);
	while (rig->cycles < run->cycles && !rig->has_failed) {
		/* A reset in between, memories full of what was. */
		if (rig->bench.cycle >= until) {
			random_identity(&stimulus, &identity);
			rig_restart(rig, &identity);
			until = random_restart(&stimulus, &rig->cycle_offset);
		}
		random_drive(&stimulus, rig);
		if (run->cover)
			points_before(rig, &before);
		rig_cycle(rig);
		if (run->cover && !rig->has_failed)
			points_after(rig, &before, run->cover);
		if (recording)
			recording_add(recording, rig);
	}
	if (recording)
		recording_end(recording, rig);
	end_run(run, rig);
}

static const struct rn_rtl_kind *find_kind(const struct rn_doorbell_params *wanted)
{
	struct rn_doorbell_params params;

	for (const struct rn_rtl_kind *const *kind = cosim_kinds; *kind; kind++) {
		cosim_kind_params(*kind, &rn_doorbell_param_table, &params);
		if (!memcmp(&params, wanted, sizeof(params)))
			return *kind;
	}
	return NULL;
}

bool run_replay(struct run *run, const char *path)
{
	struct replay *replay = replay_open(path);
	struct rig *rig;

	run->has_failed = true;
	run->done_cycles = 0;
	if (!replay) {
		snprintf(run->difference, sizeof(run->difference), "%s: cannot be read", path);
		return false;
	}
	run->kind = find_kind(replay_params(replay));
	if (!run->kind) {
		snprintf(run->difference, sizeof(run->difference),
			 "%s: no block was built with its parameters", path);
		replay_close(replay);
		return false;
	}
	rig = malloc(sizeof(*rig));
	rig_init(rig, run->kind, replay_first_cycle(replay) - 1, run->plusarg, run->seed);
	rig->compares_ports_alone = run->ports_alone;
	while (replay_drive(replay, rig))
		if (!rig_cycle(rig))
			break;
	if (!rig->has_failed && !replay_is_through(replay)) {
		snprintf(rig->difference, sizeof(rig->difference), "%s:%u: not understood", path,
			 replay_line(replay));
		rig->has_failed = true;
	}
	replay_close(replay);
	end_run(run, rig);
	return true;
}
