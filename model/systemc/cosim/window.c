#include "systemc/cosim/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/output.h"
#include "sim/clock.h"
#include "systemc/cosim/frame.h"
#include "systemc/cosim/fst_check.h"

#define FIRST_BYTES 65536u

/* Inputs as bytes: for each cycle its number, then for each port a flag byte and, of valid inputs, the message. */
struct stretch {
	uint8_t *image; /* of the RTL before the first cycle */
	size_t image_bytes;
	uint8_t *inputs;
	size_t bytes, capacity;
	unsigned cycles;
	uint64_t first_cycle, last_cycle;
};

struct rn_cosim_window {
	struct stretch stretch[2];
	unsigned now; /* the newer one */
	unsigned cycles;
};

static void begin(struct stretch *stretch, struct rn_cosim_unit *unit)
{
	unit->kind->save(unit->rtl, &stretch->image, &stretch->image_bytes);
	stretch->bytes = 0;
	stretch->cycles = 0;
}

struct rn_cosim_window *rn_cosim_window_new(struct rn_cosim_unit *unit, unsigned cycles)
{
	struct rn_cosim_window *window = rn_calloc(1, sizeof(*window));

	window->cycles = cycles;
	begin(&window->stretch[0], unit);
	return window;
}

void rn_cosim_window_free(struct rn_cosim_window *window)
{
	if (!window)
		return;
	for (unsigned i = 0; i < 2; i++) {
		free(window->stretch[i].image);
		free(window->stretch[i].inputs);
	}
	free(window);
}

static void put(struct stretch *stretch, const void *data, size_t bytes)
{
	if (stretch->bytes + bytes > stretch->capacity) {
		stretch->capacity = stretch->capacity ? 2 * stretch->capacity : FIRST_BYTES;
		stretch->inputs = rn_reallocarray(stretch->inputs, stretch->capacity, 1);
	}
	memcpy(stretch->inputs + stretch->bytes, data, bytes);
	stretch->bytes += bytes;
}

static void put_port(struct stretch *stretch, const struct rn_cosim_port *port)
{
	uint8_t flag = port->is->is_input ? port->valid : port->has_space;

	put(stretch, &flag, 1);
	if (!port->is->is_input)
		return;
	put(stretch, &port->level, sizeof(port->level));
	if (!port->valid)
		return;
	put(stretch, port->in.words, port->is->msg->words * sizeof(uint32_t));
	put(stretch, &port->in.side_bytes, sizeof(port->in.side_bytes));
	put(stretch, port->in.side, port->in.side_bytes);
}

void rn_cosim_window_note(struct rn_cosim_window *window, struct rn_cosim_unit *unit,
			  uint64_t cycle)
{
	struct stretch *stretch = &window->stretch[window->now];

	if (stretch->cycles == window->cycles) {
		window->now ^= 1;
		stretch = &window->stretch[window->now];
		begin(stretch, unit);
	}
	if (!stretch->cycles)
		stretch->first_cycle = cycle;
	stretch->last_cycle = cycle;
	stretch->cycles++;
	put(stretch, &cycle, sizeof(cycle));
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		put_port(stretch, &unit->port[i]);
}

static const uint8_t *get(const uint8_t *from, void *data, size_t bytes)
{
	memcpy(data, from, bytes);
	return from + bytes;
}

static const uint8_t *get_port(const uint8_t *from, struct rn_cosim_port *port)
{
	uint8_t flag;

	from = get(from, &flag, 1);
	port->valid = port->has_space = flag;
	if (!port->is->is_input)
		return from;
	from = get(from, &port->level, sizeof(port->level));
	if (!port->valid)
		return from;
	from = get(from, port->in.words, port->is->msg->words * sizeof(uint32_t));
	from = get(from, &port->in.side_bytes, sizeof(port->in.side_bytes));
	return get(from, port->in.side, port->in.side_bytes);
}

/* A rising edge stands at the edge of the cycle that it begins, new inputs at the falling edge behind it. */
static void replay(const struct stretch *stretch, const struct rn_cosim_unit *unit, void *rtl,
		   const struct rn_rtl_pins *pins)
{
	const struct rn_clock *clock = unit->env.core;
	const uint8_t *from = stretch->inputs;
	struct rn_cosim_port *ports = rn_calloc(RN_RTL_PORTS, sizeof(*ports));
	uint64_t cycle;

	for (unsigned i = 0; i < unit->boundary->ports; i++)
		ports[i].is = &unit->boundary->port[i];
	for (unsigned n = 0; n < stretch->cycles; n++) {
		from = get(from, &cycle, sizeof(cycle));
		for (unsigned i = 0; i < unit->boundary->ports; i++)
			from = get_port(from, &ports[i]);
		rn_cosim_drive(unit, pins, ports, cycle);
		unit->kind->eval(rtl);
		unit->kind->dump(rtl, rn_clock_edge_ps(clock, cycle) + clock->period_ps / 2);
		rn_rtl_set(&pins->clk, 1);
		unit->kind->eval(rtl);
		unit->kind->dump(rtl, rn_clock_edge_ps(clock, cycle + 1));
	}
	free(ports);
}

bool rn_cosim_window_write(const struct rn_cosim_window *window, struct rn_cosim_unit *unit,
			   const char *path, uint64_t *first, uint64_t *last, char **message)
{
	const struct stretch *newer = &window->stretch[window->now];
	const struct stretch *older = &window->stretch[window->now ^ 1];
	const struct stretch *oldest = older->cycles ? older : newer;
	struct rn_rtl_options options = unit->rtl_options;
	struct rn_whole_file *file = rn_whole_file_new(path, "a waveform", message);
	struct rn_rtl_pins pins;
	bool is_open;
	void *rtl;

	if (!file)
		return false;
	options.has_trace = true;
	rtl = unit->kind->make(&options, &pins);
	is_open = unit->kind->open_trace(rtl, rn_whole_file_path(file));
	if (is_open) {
		rn_cosim_reset(unit->kind, rtl, &pins, unit);
		unit->kind->restore(rtl, oldest->image, oldest->image_bytes);
		if (older->cycles)
			replay(older, unit, rtl, &pins);
		replay(newer, unit, rtl, &pins);
		unit->kind->close_trace(rtl);
	}
	*first = oldest->first_cycle;
	*last = newer->last_cycle;
	unit->kind->free(rtl);
	return rn_fst_finish(file, message) == 0;
}
