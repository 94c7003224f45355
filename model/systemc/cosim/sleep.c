#include "systemc/cosim/sleep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "systemc/cosim/frame.h"

/* rtl: every sleep at first, then one of so many; of each so many cycles, and the last. */
#define PROBE_ALL 32
#define PROBE_ONE_OF 4096
#define PROBE_CYCLES 64

static bool is_waiting(const struct rn_cosim_unit *unit, unsigned idx)
{
	uint8_t tried = unit->tried_of[idx];

	return unit->port[idx].rtl_valid ||
	       (tried != RN_COSIM_NO_FIELD && rn_cosim_event(unit, tried));
}

/* Space comes back only for somebody who has looked at a full fifo. */
static void see_port(const struct rn_cosim_unit *unit, unsigned idx, struct rn_cosim_seen *seen)
{
	const struct rn_cosim_port *port = &unit->port[idx];

	*seen = (struct rn_cosim_seen){.valid = port->valid, .level = port->level};
	if (!port->is->is_input)
		seen->has_space = port->has_space || !is_waiting(unit, idx);
	else if (port->valid)
		seen->head = port->head_before;
}

void rn_cosim_note_sleep(struct rn_cosim_unit *unit, uint64_t cycle)
{
	struct rn_cosim_sleep *sleep = &unit->sleep;
	uint64_t cycles = rn_cosim_wake_cycles(unit);

	sleep->is_asleep = rn_rtl_get(&unit->pins.idle);
	sleep->since_cycle = cycle;
	sleep->due_cycle = cycles == UINT64_MAX ? UINT64_MAX : cycle + cycles;
	sleep->stall = rn_rtl_get(&unit->pins.stall);
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		see_port(unit, i, &sleep->seen[i]);
}

static bool has_changed(const struct rn_cosim_port *port, const struct rn_cosim_seen *seen)
{
	if (!port->is->is_input)
		return !seen->has_space && port->has_space;
	return port->valid != seen->valid || port->level != seen->level ||
	       (port->valid && port->head_before != seen->head);
}

bool rn_cosim_is_asleep(const struct rn_cosim_unit *unit, uint64_t cycle)
{
	const struct rn_cosim_sleep *sleep = &unit->sleep;

	if (!sleep->is_asleep || cycle >= sleep->due_cycle)
		return false;
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		if (has_changed(&unit->port[i], &sleep->seen[i]))
			return false;
	return true;
}

/* Handshakes and what is counted. */
static bool is_at_work(const struct rn_cosim_unit *unit)
{
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		if (unit->port[i].taken || unit->port[i].pushed)
			return true;
	for (size_t i = 0; i < unit->counters; i++)
		if (rn_cosim_event(unit, unit->event_of[i]))
			return true;
	return rn_cosim_event(unit, unit->busy_field) != 0;
}

const char *rn_cosim_check_sleep(struct rn_cosim_unit *unit, bool is_asleep)
{
	bool is_idle = rn_rtl_get(&unit->pins.idle);

	if (is_asleep && (is_at_work(unit) || rn_rtl_get(&unit->pins.stall) != unit->sleep.stall)) {
		unit->sleep.is_wrong = true;
		return "the RTL sleeps: idle_o and wake_o do not let it see this cycle";
	}
	if (is_idle && is_at_work(unit))
		return "idle_o is 1 in a cycle in which the RTL does something";
	return NULL;
}

/* With the probe's instance in the RTL's place. */
static void swap(struct rn_cosim_unit *unit)
{
	struct rn_cosim_sleep *sleep = &unit->sleep;
	struct rn_rtl_pins pins = unit->pins;
	void *rtl = unit->rtl;

	unit->pins = sleep->probe_pins;
	unit->rtl = sleep->probe;
	sleep->probe_pins = pins;
	sleep->probe = rtl;
}

static bool has_handshake(const struct rn_cosim_unit *unit)
{
	for (unsigned i = 0; i < unit->boundary->ports; i++) {
		const struct rn_cosim_port *port = &unit->port[i];

		if (port->is->is_input ? port->valid && port->rtl_ready
				       : port->has_space && port->rtl_valid)
			return true;
	}
	return false;
}

/* Whether the instance does something in @cycle; it is clocked. */
static bool probe_cycle(struct rn_cosim_unit *unit, uint64_t cycle)
{
	rn_cosim_settle(unit, cycle);
	if (has_handshake(unit))
		return true;
	rn_rtl_set(&unit->pins.clk, 1);
	unit->kind->eval(unit->rtl);
	return unit->kind->has_failed(unit->rtl);
}

static bool probe_sleep(struct rn_cosim_unit *unit)
{
	const struct rn_cosim_sleep *sleep = &unit->sleep;
	uint64_t left = sleep->due_cycle - sleep->since_cycle - 1;
	uint64_t cycles = rn_min_u64(left, PROBE_CYCLES);

	for (uint64_t i = 1; i <= cycles; i++)
		if (probe_cycle(unit, sleep->since_cycle + i))
			return true;
	if (left == cycles || sleep->due_cycle == UINT64_MAX)
		return false;
	return probe_cycle(unit, sleep->due_cycle - 1);
}

const char *rn_cosim_probe(struct rn_cosim_unit *unit)
{
	struct rn_cosim_sleep *sleep = &unit->sleep;

	if (!sleep->is_asleep || sleep->due_cycle <= sleep->since_cycle + 1)
		return NULL;
	if (sleep->count++ >= PROBE_ALL && sleep->count % PROBE_ONE_OF)
		return NULL;
	if (!sleep->probe)
		sleep->probe = unit->kind->make(&unit->rtl_options, &sleep->probe_pins);
	unit->kind->save(unit->rtl, &sleep->image, &sleep->image_bytes);
	swap(unit);
	unit->kind->restore(unit->rtl, sleep->image, sleep->image_bytes);
	if (unit->pins.constant.bits)
		rn_rtl_set_words(&unit->pins.constant, 0, unit->pins.constant.bits, unit->constant);
	rn_rtl_set(&unit->pins.rst_n, 1);
	sleep->is_wrong = probe_sleep(unit);
	swap(unit);
	return sleep->is_wrong
		       ? "the RTL sleeps through something that it has to do (idle_o, wake_o)"
		       : NULL;
}

void rn_cosim_probe_free(struct rn_cosim_unit *unit)
{
	if (unit->sleep.probe)
		unit->kind->free(unit->sleep.probe);
	free(unit->sleep.image);
}

void rn_cosim_print_sleep(const struct rn_cosim_unit *unit)
{
	const struct rn_cosim_sleep *sleep = &unit->sleep;

	if (!sleep->is_wrong)
		return;
	fprintf(stderr, "asleep: in core cycle %" PRIu64 " idle_o was 1, with a wake ",
		sleep->since_cycle);
	if (sleep->due_cycle == UINT64_MAX)
		fputs("never (wake_o all ones)\n", stderr);
	else
		fprintf(stderr, "in cycle %" PRIu64 "\n", sleep->due_cycle);
}

void rn_cosim_print_sleeper(struct rn_cosim_unit *unit)
{
	RN_ASSERT(unit->mode == RN_UNIT_RTL);
	if (!unit->sleep.is_asleep || unit->sleep.due_cycle != UINT64_MAX)
		return;
	rn_cosim_sample(unit);
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		if (unit->port[i].is->is_input && unit->port[i].valid)
			fprintf(stderr,
				"rnicsim: %s (RTL %s) sleeps since core cycle %" PRIu64
				" (idle_o 1, wake_o never) while something waits at port %s\n",
				unit->name, unit->kind->top, unit->sleep.since_cycle,
				unit->port[i].is->name);
}
