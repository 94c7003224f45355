/*
 * One cycle of a frame, common to all modes. A cycle of the RTL: inputs change with the clock low and the outputs
 * settle (rn_cosim_evaluate), then the rising edge ends the cycle (rn_cosim_clock). Cycles in which nothing can change
 * are left out: the RTL counts no time but compares with cycle_i.
 */
#include "systemc/cosim/frame.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "sim/buffer.h"
#include "systemc/cosim/window.h"

#define RESET_CLOCKS 2

uint64_t rn_cosim_event(const struct rn_cosim_unit *unit, uint8_t field)
{
	const struct rn_msg_field *is = &unit->boundary->events->field[field];
	uint32_t words[4];

	rn_rtl_get_words(&unit->pins.events, is->lsb, is->bits, words);
	return words[0];
}

/* The bytes that a buffer holds for the message, as wires beside it. */
static void pack_side(struct rn_cosim_unit *unit, const struct rn_cosim_port *port,
		      const void *entry, struct rn_cosim_message *message)
{
	uint32_t buf = RN_BUFFER_NONE;

	message->side_bytes = 0;
	if (port->is->role == RN_RTL_DMA_RSP) {
		const struct rn_dma_rsp *rsp = entry;

		RN_ASSERT(rsp->token < RN_COSIM_TOKENS);
		buf = unit->buffer_of[rsp->token];
		message->side_bytes = unit->line_bytes;
	} else if (port->is->role == RN_RTL_BLUEFLAME) {
		const struct rn_blueflame *blueflame = entry;

		buf = blueflame->buf;
		message->side_bytes = blueflame->bytes;
	}
	if (buf != RN_BUFFER_NONE)
		memcpy(message->side, rn_buffer_data(unit->env.buffers, buf), message->side_bytes);
	else
		memset(message->side, 0, message->side_bytes);
}

/* Buffers are the simulator's: their indexes are no bits of the hardware. */
static void clear_buffer_index(const struct rn_msg_desc *msg, uint32_t *words)
{
	static const uint32_t none[1];
	const struct rn_rtl_pin pin = {words, msg->words * 32};

	for (uint32_t i = 0; i < msg->fields; i++)
		if (msg->field[i].is_buffer)
			rn_rtl_set_words(&pin, msg->field[i].lsb, msg->field[i].bits, none);
}

void rn_cosim_pack(struct rn_cosim_unit *unit, struct rn_cosim_port *port, const void *entry,
		   struct rn_cosim_message *message)
{
	port->is->msg->pack(entry, message->words);
	clear_buffer_index(port->is->msg, message->words);
	pack_side(unit, port, entry, message);
}

static const void *visible_head(const struct rn_fifo *fifo)
{
	if (fifo->head == fifo->tail ||
	    rn_fifo_ready_ps(fifo, fifo->head_slot) > rn_sim_now_ps(fifo->sim))
		return NULL;
	return fifo->slots + (size_t)fifo->head_slot * fifo->slot_bytes + sizeof(uint64_t);
}

void rn_cosim_sample(struct rn_cosim_unit *unit)
{
	for (unsigned i = 0; i < unit->boundary->ports; i++) {
		struct rn_cosim_port *port = &unit->port[i];
		const void *head;

		port->head_before = port->fifo->head;
		port->tail_before = port->fifo->tail;
		if (!port->is->is_input) {
			port->has_space = rn_fifo_held(port->fifo, rn_sim_now_ps(unit->env.sim)) <
					  port->fifo->depth;
			continue;
		}
		head = visible_head(port->fifo);
		port->valid = head != NULL;
		if (head)
			rn_cosim_pack(unit, port, head, &port->in);
		if (port->is->role == RN_RTL_MMIO_WRITE)
			port->level = (uint16_t)rn_fifo_visible(port->fifo);
	}
}

/* Byte 0 is the lowest byte of the first word, as on any little-endian host. */
static void drive_side(const struct rn_rtl_pin *pin, const struct rn_cosim_message *message)
{
	if (pin->bits)
		memcpy(pin->at, message->side, message->side_bytes);
}

void rn_cosim_drive(const struct rn_cosim_unit *unit, const struct rn_rtl_pins *pins,
		    const struct rn_cosim_port *ports, uint64_t cycle)
{
	rn_rtl_set(&pins->clk, 0);
	rn_rtl_set(&pins->cycle, cycle);
	for (unsigned i = 0; i < unit->boundary->ports; i++) {
		const struct rn_cosim_port *port = &ports[i];
		const struct rn_rtl_port_pins *to = &pins->port[i];
		uint32_t idx = port->is->idx, bits = port->is->msg->bits;

		if (!port->is->is_input) {
			rn_rtl_set_bit(&to->ready, idx, port->has_space);
			continue;
		}
		rn_rtl_set_bit(&to->valid, idx, port->valid);
		if (to->level.bits)
			rn_rtl_set(&to->level, port->level);
		if (!port->valid)
			continue;
		rn_rtl_set_words(&to->msg, idx * bits, bits, port->in.words);
		drive_side(&to->side, &port->in);
	}
}

static void read_output(struct rn_cosim_port *port)
{
	const struct rn_rtl_port_pins *from = port->pins;
	uint32_t bits = port->is->msg->bits;
	struct rn_cosim_message *out = &port->rtl_out;
	struct rn_blueflame blueflame;

	port->rtl_valid = rn_rtl_get_bit(&from->valid, port->is->idx);
	if (!port->rtl_valid)
		return;
	rn_rtl_get_words(&from->msg, port->is->idx * bits, bits, out->words);
	clear_buffer_index(port->is->msg, out->words);
	out->side_bytes = 0;
	if (!from->side.bits)
		return;
	rn_msg_unpack_blueflame(out->words, &blueflame);
	out->side_bytes = (uint32_t)rn_min_u64(blueflame.bytes, sizeof(out->side));
	memcpy(out->side, from->side.at, out->side_bytes);
}

void rn_cosim_evaluate(struct rn_cosim_unit *unit, uint64_t cycle)
{
	rn_cosim_window_note(unit->window, unit, cycle);
	rn_cosim_settle(unit, cycle);
	unit->evaluations++;
}

void rn_cosim_settle(struct rn_cosim_unit *unit, uint64_t cycle)
{
	rn_cosim_drive(unit, &unit->pins, unit->port, cycle);
	unit->kind->eval(unit->rtl);
	for (unsigned i = 0; i < unit->boundary->ports; i++) {
		struct rn_cosim_port *port = &unit->port[i];

		if (port->is->is_input)
			port->rtl_ready = rn_rtl_get_bit(&port->pins->ready, port->is->idx);
		else
			read_output(port);
	}
}

uint64_t rn_cosim_wake_cycles(const struct rn_cosim_unit *unit)
{
	uint64_t cycles;

	if (!rn_rtl_get(&unit->pins.idle))
		return 1;
	cycles = rn_rtl_get(&unit->pins.wake);
	if (cycles == UINT32_MAX)
		return UINT64_MAX;
	return cycles ? cycles : 1;
}

void rn_cosim_clock(struct rn_cosim_unit *unit)
{
	uint64_t cycles = rn_cosim_wake_cycles(unit);

	rn_rtl_set(&unit->pins.clk, 1);
	unit->kind->eval(unit->rtl);
	if (cycles != UINT64_MAX)
		rn_block_wake_in(&unit->block, cycles);
}

void rn_cosim_note(struct rn_cosim_unit *unit, uint64_t cycle, uint8_t port,
		   const struct rn_cosim_message *message)
{
	struct rn_cosim_transaction *transaction =
		&unit->history[unit->transactions++ % RN_COSIM_HISTORY];

	transaction->cycle = cycle;
	transaction->port = port;
	memcpy(transaction->message.words, message->words, sizeof(message->words));
	transaction->message.side_bytes = message->side_bytes;
	memcpy(transaction->message.side, message->side, message->side_bytes);
}

void rn_cosim_reset(const struct rn_rtl_kind *kind, void *rtl, const struct rn_rtl_pins *pins,
		    const struct rn_cosim_unit *unit)
{
	static const struct rn_cosim_port quiet[RN_RTL_PORTS];
	struct rn_cosim_port ports[RN_RTL_PORTS];

	memcpy(ports, quiet, sizeof(ports));
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		ports[i].is = &unit->boundary->port[i];
	if (pins->constant.bits)
		rn_rtl_set_words(&pins->constant, 0, pins->constant.bits, unit->constant);
	rn_rtl_set(&pins->rst_n, 0);
	for (unsigned i = 0; i < RESET_CLOCKS; i++) {
		rn_cosim_drive(unit, pins, ports, 0);
		kind->eval(rtl);
		rn_rtl_set(&pins->clk, 1);
		kind->eval(rtl);
	}
	rn_rtl_set(&pins->rst_n, 1);
}
