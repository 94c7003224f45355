#include "cosim/pte_cache/replay.h"

#include <inttypes.h>
#include <string.h>

#include "cosim/common/stimulus.h"

static bool refuse(struct rig *rig, const struct cosim_stimulus *stimulus, const char *what,
		   const char *name)
{
	snprintf(rig->difference, sizeof(rig->difference), "line %u of the stimulus: %s: %s",
		 stimulus->line_number, name, what);
	rig->has_failed = true;
	return false;
}

static bool has_param(const struct rig *rig, const struct cosim_event *event)
{
	for (size_t i = 0; i < rn_pte_cache_param_table.count; i++) {
		const struct rn_param_desc *row = &rn_pte_cache_param_table.rows[i];

		if (!strcmp(row->key, event->name))
			return rn_param_value(row, &rig->params) == (double)event->value;
	}
	return !strcmp(event->name, "pte_cache");
}

static bool apply_in(struct rig *rig, const struct cosim_event *event, unsigned port)
{
	const struct rn_msg_desc *desc = rig->in[port].desc;
	uint64_t message[16] = {0};
	uint32_t words[COSIM_WORDS];

	if (!cosim_parse_words(event->hex, desc->bits, words) || !rig_can_push(rig, port))
		return false;
	desc->unpack(words, message);
	if (port == IN_DMA_RSP) {
		const struct rn_dma_rsp *rsp = (const struct rn_dma_rsp *)(const void *)message;
		uint8_t data[RIG_DATA_BYTES] = {0};

		cosim_parse_bytes(event->data, data, sizeof(data));
		rig_answer(rig, rsp->token, rsp->status, data);
	} else {
		rig_push(rig, port, message);
	}
	return true;
}

static bool apply(struct rig *rig, const struct cosim_stimulus *stimulus,
		  const struct cosim_event *event, bool *ready)
{
	for (unsigned i = 0; i < IN_COUNT && event->kind == COSIM_EVENT_IN; i++)
		if (!strcmp(rig->in[i].name, event->name))
			return apply_in(rig, event, i) ||
			       refuse(rig, stimulus, "not a message of it", event->name);
	for (unsigned i = 0; i < OUT_COUNT && event->kind == COSIM_EVENT_READY; i++) {
		if (!strcmp(rig->out[i].name, event->name)) {
			ready[i] = event->value;
			return true;
		}
	}
	return refuse(rig, stimulus, "no such port or event", event->name);
}

static bool run_to(struct rig *rig, struct coverage *coverage, const bool *ready, uint64_t cycle)
{
	while (rig->bench.cycle + 1 < cycle) {
		for (unsigned i = 0; i < OUT_COUNT; i++)
			rig_ready(rig, i, ready[i]);
		coverage_before(coverage, rig);
		if (!rig_cycle(rig))
			return false;
		coverage_after(coverage, rig);
	}
	return true;
}

static bool run_events(struct rig *rig, struct coverage *coverage, struct cosim_stimulus *stimulus)
{
	static struct cosim_event event;
	bool ready[OUT_COUNT] = {true, true, true, true};
	uint64_t first = UINT64_MAX;

	for (;;) {
		cosim_stimulus_next(stimulus, &event);
		if (event.kind == COSIM_EVENT_PARAM) {
			if (!has_param(rig, &event))
				return refuse(rig, stimulus, "another block or geometry",
					      event.name);
			continue;
		}
		if (event.kind == COSIM_EVENT_END && !event.cycle)
			return true;
		if (first == UINT64_MAX)
			first = event.cycle;
		/* The run begins where the recording does, a few cycles after reset. */
		if (!run_to(rig, coverage, ready, event.cycle - first + rig->first_cycle + 8))
			return false;
		if (event.kind == COSIM_EVENT_END)
			return true;
		if (!apply(rig, stimulus, &event, ready))
			return false;
	}
}

bool replay_run(struct rig *rig, struct coverage *coverage, const char *path)
{
	static struct cosim_stimulus stimulus;

	if (!cosim_stimulus_open(&stimulus, path)) {
		snprintf(rig->difference, sizeof(rig->difference), "%s: cannot read", path);
		return false;
	}

	bool is_same = run_events(rig, coverage, &stimulus);

	cosim_stimulus_close(&stimulus);
	return is_same;
}
