/*
 * One client's end of the QP context cache: at most one line held, kept for a while in case the next
 * operation is about the same queue pair.
 */
#ifndef RN_NIC_TRANSPORT_CONTEXT_PORT_H
#define RN_NIC_TRANSPORT_CONTEXT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"
#include "nic/msg/context.h"
#include "sim/fifo.h"

enum rn_context_port_state {
	RN_CONTEXT_PORT_FREE,
	RN_CONTEXT_PORT_WAIT, /* on its way */
	RN_CONTEXT_PORT_HELD,
	RN_CONTEXT_PORT_BAD, /* answer of get: there is no such context */
};

struct rn_context_port {
	struct rn_fifo *req;
	struct rn_fifo *rsp;
	struct rn_context_sram *sram;
	enum rn_context_port_state state;
	bool dirty;
	uint32_t qpn;
	uint32_t line;
	uint16_t token;
	/* The line is given back when no operation has used it for @hold_cycles. */
	struct rn_block *block;
	uint64_t hold_cycles;
	uint64_t used_cycle;
	struct rn_wake wake;
};

/** @block owns the port and is woken to call rn_context_port_idle(). */
void rn_context_port_init(struct rn_context_port *port, struct rn_block *block, struct rn_fifo *req,
			  struct rn_fifo *rsp, struct rn_context_sram *sram, uint64_t hold_cycles);

/** An operation on the held line has ended in @cycle. */
void rn_context_port_used(struct rn_context_port *port, uint64_t cycle);

/** No operation wants a context in @cycle: give the line back if it has been idle for long enough. */
void rn_context_port_idle(struct rn_context_port *port, uint64_t cycle);

/**
 * Work towards holding the context of @qpn: give another one back, ask, take the answer. HELD: read and
 * write it through rn_context_port_qpc(); WAIT: call again, the fifos wake the block; BAD: it cannot be had.
 */
enum rn_context_port_state rn_context_port_get(struct rn_context_port *port, uint32_t qpn);

/** Give the held line back, if any. False: the request fifo is full, call again. */
bool rn_context_port_release(struct rn_context_port *port);

/** Ask the cache to have the context of @qpn at hand; silently nothing when the fifo is full. */
void rn_context_port_prefetch(struct rn_context_port *port, uint32_t qpn);

static inline bool rn_context_port_holds(const struct rn_context_port *port, uint32_t qpn)
{
	return port->state == RN_CONTEXT_PORT_HELD && port->qpn == qpn;
}

static inline struct rn_hw_qpc *rn_context_port_qpc(const struct rn_context_port *port)
{
	return rn_context_line(port->sram, port->line);
}

#endif
