/*
 * What is said and left behind when RTL and model differ, or an assertion of the RTL fails.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "sim/sim.h"
#include "systemc/cosim/cosim_internal.h"
#include "systemc/cosim/frame.h"
#include "systemc/cosim/sleep.h"
#include "systemc/cosim/window.h"

static void print_wide(const uint32_t *words, const struct rn_msg_field *field)
{
	uint32_t left = field->bits;

	fputs("0x", stderr);
	while (left) {
		uint32_t now = left % 64 ? left % 64 : 64;

		left -= now;
		fprintf(stderr, "%0*" PRIx64, (int)(now + 3) / 4,
			rn_msg_get(words, field->lsb + left, now));
	}
}

/* The message in one line. */
static void print_message(const struct rn_msg_desc *msg, const struct rn_cosim_message *message)
{
	for (uint32_t i = 0; i < msg->fields; i++) {
		const struct rn_msg_field *field = &msg->field[i];

		if (field->is_buffer)
			continue;
		fprintf(stderr, " %s=", field->name);
		print_wide(message->words, field);
	}
	if (message->side_bytes)
		fprintf(stderr, " +%" PRIu32 " bytes", message->side_bytes);
	fputc('\n', stderr);
}

static void print_fields(const struct rn_cosim_port *port)
{
	const struct rn_msg_desc *msg = port->is->msg;
	const struct rn_cosim_message *model = &port->model_out, *rtl = &port->rtl_out;

	for (uint32_t i = 0; i < msg->fields; i++) {
		const struct rn_msg_field *field = &msg->field[i];
		bool is_same = true;

		if (field->is_buffer)
			continue;
		for (uint32_t bit = 0; bit < field->bits; bit++)
			is_same &= rn_msg_get(model->words, field->lsb + bit, 1) ==
				   rn_msg_get(rtl->words, field->lsb + bit, 1);
		fprintf(stderr, "  %c %-10s model ", is_same ? ' ' : '*', field->name);
		print_wide(model->words, field);
		fputs("  rtl ", stderr);
		print_wide(rtl->words, field);
		fputc('\n', stderr);
	}
	for (uint32_t i = 0; i < model->side_bytes && i < rtl->side_bytes; i++)
		if (model->side[i] != rtl->side[i]) {
			fprintf(stderr, "  * byte %-5" PRIu32 " model 0x%02x  rtl 0x%02x\n", i,
				model->side[i], rtl->side[i]);
			break;
		}
}

/* What each side did at the port that differs. */
static void print_port(const struct rn_cosim_port *port)
{
	fprintf(stderr, "port %s (%s, %s)\n", port->is->name,
		port->is->is_input ? "input" : "output", port->is->msg->name);
	if (port->is->is_input) {
		fprintf(stderr, "  offered: %s", port->valid ? "" : "nothing\n");
		if (port->valid)
			print_message(port->is->msg, &port->in);
		fprintf(stderr, "  model takes %u, rtl ready %d\n", port->taken, port->rtl_ready);
		return;
	}
	fprintf(stderr, "  space: %d; model pushes %u, rtl valid %d\n", port->has_space,
		port->pushed, port->rtl_valid);
	if (port->pushed && port->rtl_valid) {
		print_fields(port);
		return;
	}
	if (port->pushed) {
		fputs("  model:", stderr);
		print_message(port->is->msg, &port->model_out);
	}
	if (port->rtl_valid) {
		fputs("  rtl:", stderr);
		print_message(port->is->msg, &port->rtl_out);
	}
}

static void print_account(const struct rn_cosim_unit *unit)
{
	fprintf(stderr, "stall: model %s, rtl %s; busy cycles: rtl %" PRIu64 "\n",
		rn_stall_name(unit->model->stall),
		rn_stall_name((enum rn_stall)(rn_rtl_get(&unit->pins.stall) % RN_STALL_COUNT)),
		rn_cosim_event(unit, unit->busy_field));
	for (size_t i = 0; i < unit->counters; i++)
		if (unit->model_sum[i] != unit->rtl_sum[i])
			fprintf(stderr, "  counter %s: model %" PRIu64 ", rtl %" PRIu64 "\n",
				unit->descs[i].name, unit->model_sum[i], unit->rtl_sum[i]);
}

static void print_history(const struct rn_cosim_unit *unit)
{
	uint64_t count = rn_min_u64(unit->transactions, RN_COSIM_HISTORY);

	fprintf(stderr, "the last %" PRIu64 " transactions at this unit:\n", count);
	for (uint64_t i = unit->transactions - count; i < unit->transactions; i++) {
		const struct rn_cosim_transaction *t = &unit->history[i % RN_COSIM_HISTORY];
		const struct rn_rtl_port *port = &unit->boundary->port[t->port];

		fprintf(stderr, "  cycle %" PRIu64 " %s %s:", t->cycle,
			port->is_input ? "in " : "out", port->name);
		print_message(port->msg, &t->message);
	}
}

static void write_window(struct rn_cosim_unit *unit)
{
	const char *path = rn_cosim_fst_path(unit->cosim);
	char *message = NULL;
	uint64_t first, last;

	if (rn_cosim_window_write(unit->window, unit, path, &first, &last, &message))
		fprintf(stderr,
			"waveform of the RTL, evaluated cycles %" PRIu64 " to %" PRIu64 ": %s\n",
			first, last, path);
	else
		fprintf(stderr, "rnicsim: %s\n", message);
	free(message);
}

void rn_cosim_fail(struct rn_cosim_unit *unit, uint64_t cycle, const char *headline)
{
	uint64_t now_ps = rn_sim_now_ps(unit->env.sim);

	if (rn_cosim_has_failed(unit->cosim))
		return;
	rn_cosim_set_failed(unit->cosim);
	fflush(stdout); /* Verilator's own messages */
	fprintf(stderr,
		"rnicsim: co-verification failed: %s: unit %s, instance %s, geometry %s, core cycle %" PRIu64
		", simulated time %" PRIu64 " ps; RTL %s (%s, sources %s)\n",
		headline, rn_unit_name(unit->boundary->unit), unit->name, unit->kind->geometry,
		cycle, now_ps, unit->kind->top, unit->kind->is_own ? "own" : "rnicsim's",
		unit->kind->digest);
	rn_cosim_print_sleep(unit);
	if (unit->differing < RN_RTL_PORTS)
		print_port(&unit->port[unit->differing]);
	if (unit->model)
		print_account(unit);
	print_history(unit);
	write_window(unit);
	fflush(stderr);
	rn_cosim_end(unit->cosim);
	rn_sim_stop(unit->env.sim);
}
