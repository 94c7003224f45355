#include "nic/transport/context_port.h"

#include "base/assert.h"

static uint64_t idle_edge_ps(const struct rn_context_port *port)
{
	return rn_clock_edge_ps(port->block->clock, port->used_cycle + port->hold_cycles);
}

static void wake(void *arg)
{
	struct rn_context_port *port = arg;
	uint64_t now_ps = rn_sim_now_ps(port->block->sim);
	uint64_t edge_ps = idle_edge_ps(port);

	if (port->state != RN_CONTEXT_PORT_HELD)
		return;
	if (edge_ps > now_ps)
		rn_wake_at(port->block->sim, &port->wake, edge_ps);
	else
		rn_block_wake_at(port->block, now_ps);
}

void rn_context_port_init(struct rn_context_port *port, struct rn_block *block, struct rn_fifo *req,
			  struct rn_fifo *rsp, struct rn_context_sram *sram, uint64_t hold_cycles)
{
	*port = (struct rn_context_port){
		.req = req, .rsp = rsp, .sram = sram, .block = block, .hold_cycles = hold_cycles};
	rn_wake_init(block->sim, &port->wake, wake, port);
}

void rn_context_port_used(struct rn_context_port *port, uint64_t cycle)
{
	port->used_cycle = cycle;
	if (!rn_wake_is_pending(&port->wake))
		rn_wake_at(port->block->sim, &port->wake, idle_edge_ps(port));
}

void rn_context_port_idle(struct rn_context_port *port, uint64_t cycle)
{
	if (port->state == RN_CONTEXT_PORT_HELD && cycle >= port->used_cycle + port->hold_cycles)
		rn_context_port_release(port);
}

static bool push(struct rn_context_port *port, uint8_t op, uint32_t qpn)
{
	if (!rn_fifo_can_push(port->req))
		return false;
	rn_fifo_push(port->req, &(struct rn_context_req){
					.op = op,
					.type = RN_CONTEXT_QP,
					.dirty = op == RN_CONTEXT_RELEASE && port->dirty,
					.token = port->token,
					.number = qpn,
				});
	return true;
}

bool rn_context_port_release(struct rn_context_port *port)
{
	if (port->state != RN_CONTEXT_PORT_HELD)
		return true;
	if (!push(port, RN_CONTEXT_RELEASE, port->qpn))
		return false;
	port->state = RN_CONTEXT_PORT_FREE;
	port->dirty = false;
	return true;
}

void rn_context_port_prefetch(struct rn_context_port *port, uint32_t qpn)
{
	/* Not rn_fifo_can_push(): nobody need be woken for a hint. */
	if (rn_fifo_occupancy(port->req) + 1 < port->req->depth && rn_fifo_can_push(port->req))
		push(port, RN_CONTEXT_PREFETCH, qpn);
}

static enum rn_context_port_state take_answer(struct rn_context_port *port)
{
	struct rn_context_rsp rsp;

	if (!rn_fifo_pop(port->rsp, &rsp))
		return RN_CONTEXT_PORT_WAIT;
	RN_ASSERT(rsp.token == port->token);
	port->token++;
	if (rsp.status != RN_CONTEXT_OK) {
		port->state = RN_CONTEXT_PORT_FREE;
		return RN_CONTEXT_PORT_BAD;
	}
	RN_ASSERT(rsp.line < port->sram->count);
	port->line = rsp.line;
	port->state = RN_CONTEXT_PORT_HELD;
	return RN_CONTEXT_PORT_HELD;
}

enum rn_context_port_state rn_context_port_get(struct rn_context_port *port, uint32_t qpn)
{
	if (port->state == RN_CONTEXT_PORT_HELD) {
		if (port->qpn == qpn)
			return RN_CONTEXT_PORT_HELD;
		if (!rn_context_port_release(port))
			return RN_CONTEXT_PORT_WAIT;
	}
	if (port->state == RN_CONTEXT_PORT_FREE) {
		if (!push(port, RN_CONTEXT_ACQUIRE, qpn))
			return RN_CONTEXT_PORT_WAIT;
		port->qpn = qpn;
		port->state = RN_CONTEXT_PORT_WAIT;
		return RN_CONTEXT_PORT_WAIT;
	}
	RN_ASSERT(port->qpn == qpn);
	return take_answer(port);
}
