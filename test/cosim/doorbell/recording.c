#include "cosim/doorbell/recording.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "cosim/common/stimulus.h"

/* Nothing for so long, and both blocks have nothing to do: the time between is left out. */
#define SKIP_CYCLES 64

struct recording {
	FILE *file;
	bool ready[OUT_COUNT];
	/* Entries of each input that have been written. */
	uint64_t written[3];
};

struct recording *recording_new(const char *path, const struct rn_doorbell_params *params)
{
	FILE *file = fopen(path, "w");
	struct recording *recording;

	if (!file)
		return NULL;
	recording = rn_calloc(1, sizeof(*recording));
	recording->file = file;
	for (unsigned i = 0; i < OUT_COUNT; i++)
		recording->ready[i] = true;
	fprintf(file, "unit doorbell\n");
	for (size_t i = 0; i < rn_doorbell_param_table.count; i++)
		fprintf(file, "param %s %.0f\n", rn_doorbell_param_table.rows[i].key,
			rn_param_value(&rn_doorbell_param_table.rows[i], params));
	return recording;
}

/* All that has become visible at an input in this cycle, behind earlier ones or not. */
static void add_input(struct recording *recording, const struct rig *rig, unsigned idx,
		      const char *name, const struct rn_msg_desc *desc, const struct rn_fifo *fifo)
{
	uint64_t cycle = rig->in.cycle;
	struct cosim_in in = {.name = name, .desc = desc};

	/* What was popped in this cycle still stands in its slot. */
	for (; recording->written[idx] < fifo->tail; recording->written[idx]++) {
		uint32_t slot = (uint32_t)(recording->written[idx] % fifo->depth);

		desc->pack(fifo->slots + (size_t)slot * fifo->slot_bytes + sizeof(uint64_t),
			   in.words);
		cosim_write_in(recording->file, cycle, &in, NULL, 0);
	}
}

void recording_add(struct recording *recording, const struct rig *rig)
{
	add_input(recording, rig, 0, "mmio_write", &rn_msg_mmio_write, rig->ports.mmio_write);
	add_input(recording, rig, 1, "mmio_read", &rn_msg_mmio_read, rig->ports.mmio_read);
	add_input(recording, rig, 2, "status", &rn_msg_hca_status, rig->ports.status);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		if (recording->ready[i] == rig->in.ready[i])
			continue;
		recording->ready[i] = rig->in.ready[i];
		fprintf(recording->file, "ready %" PRIu64 " %s %d\n", rig->in.cycle,
			rig_out_name[i], rig->in.ready[i]);
	}
}

void recording_end(struct recording *recording, const struct rig *rig)
{
	fprintf(recording->file, "end %" PRIu64 "\n", rig->in.cycle + 1);
	fclose(recording->file);
	free(recording);
}

/* Replay */

struct replay {
	struct cosim_stimulus stimulus;
	struct cosim_event event; /* the next one */
	struct rn_doorbell_params params;
	bool has_error;
	bool is_through;
};

static bool read_head(struct replay *replay)
{
	bool is_doorbell = false;

	for (;;) {
		struct cosim_event *event = &replay->event;

		cosim_stimulus_next(&replay->stimulus, event);
		if (event->kind != COSIM_EVENT_PARAM)
			return is_doorbell && event->kind != COSIM_EVENT_ERROR;
		if (strcmp(event->name, "doorbell") == 0)
			is_doorbell = true;
		cosim_param_set(&rn_doorbell_param_table, &replay->params, event->name,
				(double)event->value);
	}
}

struct replay *replay_open(const char *path)
{
	struct replay *replay = rn_calloc(1, sizeof(*replay));

	if (!cosim_stimulus_open(&replay->stimulus, path)) {
		free(replay);
		return NULL;
	}
	if (!read_head(replay)) {
		replay_close(replay);
		return NULL;
	}
	return replay;
}

void replay_close(struct replay *replay)
{
	cosim_stimulus_close(&replay->stimulus);
	free(replay);
}

const struct rn_doorbell_params *replay_params(const struct replay *replay)
{
	return &replay->params;
}

uint64_t replay_first_cycle(const struct replay *replay)
{
	return rn_max_u64(replay->event.cycle, 2);
}

bool replay_is_through(const struct replay *replay)
{
	return replay->is_through && !replay->has_error;
}

unsigned replay_line(const struct replay *replay)
{
	return replay->stimulus.line_number;
}

static bool push_input(const struct cosim_event *event, const char *name,
		       const struct rn_msg_desc *desc, struct rn_fifo *fifo)
{
	uint32_t words[COSIM_WORDS];
	uint64_t message[16];

	if (strcmp(event->name, name) != 0 || !cosim_parse_words(event->hex, desc->bits, words) ||
	    !rn_fifo_can_push(fifo))
		return false;
	desc->unpack(words, message);
	rn_fifo_push(fifo, message);
	return true;
}

static bool set_ready(struct rig *rig, const struct cosim_event *event)
{
	for (unsigned i = 0; i < OUT_COUNT; i++)
		if (strcmp(event->name, rig_out_name[i]) == 0) {
			rig->ready[i] = event->value;
			return true;
		}
	return false;
}

static bool apply(struct rig *rig, const struct cosim_event *event)
{
	if (event->kind == COSIM_EVENT_READY)
		return set_ready(rig, event);
	return event->kind == COSIM_EVENT_IN &&
	       (push_input(event, "mmio_write", &rn_msg_mmio_write, rig->ports.mmio_write) ||
		push_input(event, "mmio_read", &rn_msg_mmio_read, rig->ports.mmio_read) ||
		push_input(event, "status", &rn_msg_hca_status, rig->ports.status));
}

/* Nothing happens up to the event: go there. */
static void skip(const struct replay *replay, struct rig *rig)
{
	uint64_t next_ps = rn_sim_next_ps(rig->bench.sim);
	uint64_t until = replay->event.cycle - 2;

	RN_ASSERT(!rig->cycle_offset);
	if (replay->event.cycle < rig->bench.cycle + SKIP_CYCLES ||
	    next_ps <= until * BENCH_CYCLE_PS || !rig->out.is_idle ||
	    rig->out.wake_cycles != UINT32_MAX)
		return;
	rig->cycles += until - rig->bench.cycle;
	bench_run(&rig->bench, until - rig->bench.cycle);
}

bool replay_drive(struct replay *replay, struct rig *rig)
{
	struct cosim_event *event = &replay->event;

	skip(replay, rig);
	while (event->cycle <= rig->bench.cycle + 1) {
		if (event->kind == COSIM_EVENT_END) {
			replay->is_through = true;
			return false;
		}
		if (!apply(rig, event)) {
			replay->has_error = true;
			return false;
		}
		cosim_stimulus_next(&replay->stimulus, event);
	}
	return true;
}
