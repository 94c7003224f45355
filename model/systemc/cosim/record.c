#include "systemc/cosim/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/output.h"
#include "sim/param.h"
#include "systemc/cosim/frame.h"

/* Of cycles in a row in which the unit does not even tick, so many are kept: nothing of its own is due in them. */
#define GAP_CYCLES 64

struct rn_cosim_recorder {
	struct rn_output *output;
	FILE *file;		     /* of the output */
	uint64_t cycle;		     /* looked at last */
	uint64_t left_out;	     /* cycles of gaps so far */
	uint64_t seen[RN_RTL_PORTS]; /* entries of an input that have been written */
	bool is_full[RN_RTL_PORTS];  /* of an output, as written last */
};

struct rn_cosim_recorder *rn_cosim_recorder_new(const char *path, char **message)
{
	struct rn_output *output = rn_output_open(path, "a recording", message);
	struct rn_cosim_recorder *recorder;

	if (!output)
		return NULL;
	recorder = rn_calloc(1, sizeof(*recorder));
	recorder->output = output;
	recorder->file = rn_output_stream(output);
	return recorder;
}

static void put_words(FILE *file, const uint32_t *words, uint32_t bits)
{
	uint32_t digits = (bits + 3) / 4;

	while (digits-- > 0)
		fputc("0123456789abcdef"[words[digits / 8] >> digits % 8 * 4 & 15], file);
}

void rn_cosim_recorder_begin(struct rn_cosim_recorder *recorder, const struct rn_cosim_unit *unit,
			     const struct rn_unit_site *site)
{
	FILE *file = recorder->file;

	fprintf(file, "unit %s\n", rn_unit_name(unit->boundary->unit));
	for (size_t i = 0; i < site->table->count; i++)
		fprintf(file, "param %s %.0f\n", site->table->rows[i].key,
			rn_param_value(&site->table->rows[i], site->params));
	if (unit->boundary->constant) {
		fputs("# identity ", file);
		put_words(file, unit->constant, unit->boundary->constant->bits);
		fputc('\n', file);
	}
}

int rn_cosim_recorder_free(struct rn_cosim_recorder *recorder, char **message)
{
	int error;

	if (!recorder)
		return 0;
	fprintf(recorder->file, "end %" PRIu64 "\n", recorder->cycle);
	error = rn_output_close(recorder->output, message);
	free(recorder);
	return error;
}

/* @what: "in", or "# out", which a bench need not read. */
static void put_message(struct rn_cosim_recorder *recorder, const char *what, uint64_t cycle,
			const struct rn_cosim_port *port, const struct rn_cosim_message *message)
{
	FILE *file = recorder->file;

	fprintf(file, "%s %" PRIu64 " %s ", what, cycle, port->is->name);
	put_words(file, message->words, port->is->msg->bits);
	fputc('\n', file);
	if (!message->side_bytes)
		return;
	fprintf(file, "%sdata %" PRIu64 " %s ", *what == '#' ? "# " : "", cycle, port->is->name);
	for (uint32_t i = 0; i < message->side_bytes; i++)
		fprintf(file, "%02x", message->side[i]);
	fputc('\n', file);
}

/* Entries that could be seen in this cycle for the first time, before the unit popped any. */
static void put_arrivals(struct rn_cosim_recorder *recorder, struct rn_cosim_unit *unit,
			 struct rn_cosim_port *port, uint64_t *seen, uint64_t cycle)
{
	const struct rn_fifo *fifo = port->fifo;
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);

	for (; *seen < fifo->tail; ++*seen) {
		/* A popped entry still lies in its slot. */
		uint32_t slot = (uint32_t)((fifo->tail_slot + (uint64_t)fifo->depth -
					    (fifo->tail - *seen) % fifo->depth) %
					   fifo->depth);
		struct rn_cosim_message message;

		if (rn_fifo_ready_ps(fifo, slot) > now_ps)
			return;
		if (*seen == port->head_before)
			message = port->in;
		else
			rn_cosim_pack(unit, port,
				      fifo->slots + (size_t)slot * fifo->slot_bytes +
					      sizeof(uint64_t),
				      &message);
		put_message(recorder, "in", cycle, port, &message);
	}
}

/* The recording's cycle of core cycle @cycle. */
static uint64_t shorten(struct rn_cosim_recorder *recorder, uint64_t cycle)
{
	uint64_t gap = cycle - recorder->left_out - recorder->cycle;

	if (gap > GAP_CYCLES) {
		recorder->left_out += gap - GAP_CYCLES;
		fprintf(recorder->file, "# core cycle %" PRIu64 "\n", cycle);
	}
	recorder->cycle = cycle - recorder->left_out;
	return recorder->cycle;
}

void rn_cosim_record(struct rn_cosim_recorder *recorder, struct rn_cosim_unit *unit, uint64_t cycle)
{
	if (!recorder)
		return;
	cycle = shorten(recorder, cycle);
	for (unsigned i = 0; i < unit->boundary->ports; i++) {
		struct rn_cosim_port *port = &unit->port[i];

		if (port->is->is_input) {
			put_arrivals(recorder, unit, port, &recorder->seen[i], cycle);
		} else if (recorder->is_full[i] == port->has_space) {
			recorder->is_full[i] = !port->has_space;
			fprintf(recorder->file, "ready %" PRIu64 " %s %d\n", cycle, port->is->name,
				port->has_space);
		}
	}
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		if (unit->port[i].pushed)
			put_message(recorder, "# out", cycle, &unit->port[i],
				    &unit->port[i].model_out);
}
