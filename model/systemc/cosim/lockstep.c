/*
 * lockstep and recordings: the C block is the unit, and its tick is looked at from both sides. In lockstep the RTL gets
 * the inputs of the same cycle and must take, offer and push the same; the fifos see the C block alone. Cycles in
 * which only the RTL wants to be evaluated come from a wake of the frame's own: the C block then does nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "sim/buffer.h"
#include "systemc/cosim/cosim.h"
#include "systemc/cosim/frame.h"
#include "systemc/cosim/record.h"
#include "systemc/cosim/sleep.h"

static const void *last_entry(const struct rn_fifo *fifo)
{
	uint32_t slot = fifo->tail_slot ? fifo->tail_slot - 1 : fifo->depth - 1;

	return fifo->slots + (size_t)slot * fifo->slot_bytes + sizeof(uint64_t);
}

/* Where the data of a read will be, which the answer does not say. */
static void note_buffer(struct rn_cosim_unit *unit, const struct rn_cosim_port *port,
			const void *entry)
{
	const struct rn_dma_req *req = entry;

	if (port->is->role != RN_RTL_DMA_REQ)
		return;
	RN_ASSERT(req->token < RN_COSIM_TOKENS);
	unit->buffer_of[req->token] = req->buf;
}

static void look_at_port(struct rn_cosim_unit *unit, struct rn_cosim_port *port, uint64_t cycle)
{
	uint8_t idx = (uint8_t)(port - unit->port);

	port->taken = (uint32_t)(port->fifo->head - port->head_before);
	port->pushed = (uint32_t)(port->fifo->tail - port->tail_before);
	if (port->is->is_input) {
		port->pushed = 0;
		if (port->taken)
			rn_cosim_note(unit, cycle, idx, &port->in);
		return;
	}
	port->taken = 0;
	port->is_waiting = port->fifo->producer_waits;
	if (!port->pushed)
		return;
	note_buffer(unit, port, last_entry(port->fifo));
	rn_cosim_pack(unit, port, last_entry(port->fifo), &port->model_out);
	rn_cosim_note(unit, cycle, idx, &port->model_out);
}

/* The C block's tick between two looks. */
static void tick_model(struct rn_cosim_unit *unit, uint64_t cycle)
{
	uint64_t before[RN_COSIM_EVENTS];

	for (size_t i = 0; i < unit->counters; i++)
		before[i] = unit->model_count[i];
	unit->busy_before = unit->model->busy_cycles;
	unit->model_tick(unit->model_self, cycle);
	for (size_t i = 0; i < unit->counters; i++)
		unit->model_sum[i] += unit->model_count[i] - before[i];
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		look_at_port(unit, &unit->port[i], cycle);
	unit->last_cycle = cycle;
}

/* Headline of the first difference at the port, or NULL. */
static const char *compare_input(const struct rn_cosim_port *port)
{
	bool rtl_takes = port->valid && port->rtl_ready;

	if (port->taken > 1)
		return "the model took two entries of a port in one cycle";
	if (rtl_takes != (port->taken == 1))
		return port->taken ? "the model took an input, the RTL did not"
				   : "the RTL took an input, the model did not";
	return NULL;
}

static bool is_same(const struct rn_cosim_port *port)
{
	const struct rn_cosim_message *a = &port->model_out, *b = &port->rtl_out;

	return memcmp(a->words, b->words, port->is->msg->words * sizeof(uint32_t)) == 0 &&
	       a->side_bytes == b->side_bytes && memcmp(a->side, b->side, a->side_bytes) == 0;
}

static const char *compare_output(const struct rn_cosim_unit *unit,
				  const struct rn_cosim_port *port)
{
	bool rtl_pushes = port->rtl_valid && port->has_space;
	uint8_t tried = unit->tried_of[port - unit->port];
	bool rtl_waits = (port->rtl_valid && !port->has_space) ||
			 (tried != RN_COSIM_NO_FIELD && rn_cosim_event(unit, tried));

	if (port->pushed > 1)
		return "the model pushed two entries to a port in one cycle";
	if (rtl_pushes != (port->pushed == 1))
		return port->pushed ? "the model pushed an output, the RTL did not"
				    : "the RTL pushed an output, the model did not";
	if (port->pushed && !is_same(port))
		return "the outputs differ";
	/* A wait that ends in the same cycle cannot be seen from here. */
	if (rtl_waits && !port->is_waiting && port->fifo->popped_ps != rn_sim_now_ps(unit->env.sim))
		return "the RTL waits for space at an output, the model does not";
	return NULL;
}

static const char *compare_account(const struct rn_cosim_unit *unit, bool has_ticked)
{
	uint64_t busy = rn_cosim_event(unit, unit->busy_field);
	uint64_t model_busy = has_ticked ? unit->model->busy_cycles - unit->busy_before : 0;

	if (busy != model_busy)
		return "the busy cycles differ";
	if (has_ticked && rn_rtl_get(&unit->pins.stall) != (uint64_t)unit->model->stall)
		return "the stall reasons differ";
	return NULL;
}

static const char *compare_counters(const struct rn_cosim_unit *unit)
{
	if (!rn_rtl_get(&unit->pins.idle))
		return NULL;
	for (size_t i = 0; i < unit->counters; i++)
		if (unit->model_sum[i] != unit->rtl_sum[i])
			return "the counters differ";
	return NULL;
}

static const char *compare(struct rn_cosim_unit *unit, bool has_ticked)
{
	const char *headline = NULL;

	unit->differing = RN_RTL_PORTS;
	for (unsigned i = 0; i < unit->boundary->ports && !headline; i++) {
		const struct rn_cosim_port *port = &unit->port[i];

		headline = port->is->is_input ? compare_input(port) : compare_output(unit, port);
		if (headline)
			unit->differing = (uint8_t)i;
	}
	if (!headline)
		headline = compare_account(unit, has_ticked);
	for (size_t i = 0; i < unit->counters; i++)
		unit->rtl_sum[i] += rn_cosim_event(unit, unit->event_of[i]);
	return headline ? headline : compare_counters(unit);
}

static void step_rtl(struct rn_cosim_unit *unit, uint64_t cycle, bool has_ticked)
{
	const char *headline;
	bool is_asleep;

	if (rn_cosim_has_failed(unit->cosim))
		return;
	is_asleep = rn_cosim_is_asleep(unit, cycle);
	rn_cosim_evaluate(unit, cycle);
	headline = compare(unit, has_ticked);
	if (!headline)
		headline = rn_cosim_check_sleep(unit, is_asleep);
	if (!headline) {
		rn_cosim_note_sleep(unit, cycle);
		rn_cosim_clock(unit);
	}
	if (unit->kind->has_failed(unit->rtl))
		headline = "an assertion of the RTL has failed";
	if (headline)
		rn_cosim_fail(unit, cycle, headline);
}

/* In the place of the C block's tick. */
static void tick(void *self, uint64_t cycle)
{
	struct rn_cosim_unit *unit = self;

	rn_cosim_sample(unit);
	tick_model(unit, cycle);
	if (unit->rtl)
		step_rtl(unit, cycle, true);
	rn_cosim_record(unit->recorder, unit, cycle);
}

/* The RTL wants to be evaluated. If the C block ticks in this cycle too, it does so there. */
static void tick_alone(void *self, uint64_t cycle)
{
	struct rn_cosim_unit *unit = self;

	if (unit->last_cycle == cycle || unit->model->wake.due_ps <= rn_sim_now_ps(unit->env.sim))
		return;
	rn_cosim_sample(unit);
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		unit->port[i].taken = unit->port[i].pushed = 0;
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		unit->port[i].is_waiting = unit->port[i].fifo->producer_waits;
	step_rtl(unit, cycle, false);
}

static const uint64_t *counters_of(const struct rn_cosim_unit *unit)
{
	const struct rn_stats_counters *counters;

	for (size_t i = 0; (counters = rn_stats_counters_at(unit->env.stats, i)); i++)
		if (strcmp(counters->instance, unit->name) == 0)
			return counters->values;
	RN_ASSERT(!"the C block's counters are registered");
	return NULL;
}

void rn_cosim_start_watch(struct rn_cosim_unit *unit, struct rn_block *block)
{
	unit->model = block;
	unit->model_tick = block->tick;
	unit->model_self = block->self;
	unit->model_count = counters_of(unit);
	unit->last_cycle = UINT64_MAX;
	block->tick = tick;
	block->self = unit;
	if (unit->kind)
		rn_block_init(&unit->block, unit->env.sim, unit->env.core, unit->name, tick_alone,
			      unit);
}
