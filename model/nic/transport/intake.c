/*
 * Transport rx: frames from the MAC. What cannot be for an RC queue pair of this NIC is dropped and
 * counted; responses go on to tx at once; requests wait for their check while their contexts are prefetched.
 */
#include "nic/transport/rx.h"
#include "wire/opcode.h"

struct rn_packet *rn_rx_first_waiting(struct rn_rx *rx, struct rn_rx_waiting *waiting)
{
	while (rx->waiting_used) {
		*waiting = rx->waiting[rx->waiting_head];

		struct rn_packet *packet = rn_packet_at(rx->env->packets, waiting->packet);

		if (!rx->flow[packet->dqpn].dying)
			return packet;
		rn_rx_drop_waiting(rx, true);
	}
	return NULL;
}

void rn_rx_drop_waiting(struct rn_rx *rx, bool put)
{
	RN_ASSERT(rx->waiting_used);
	if (put)
		rn_packet_put(rx->env->packets, rx->waiting[rx->waiting_head].packet);
	rx->waiting_head =
		rx->waiting_head + 1 == rx->params->rx_lookahead ? 0 : rx->waiting_head + 1;
	rx->waiting_used--;
	if (rn_fifo_peek(rx->ports.rx_frame))
		rn_block_wake_next(&rx->block);
}

struct rn_packet *rn_rx_packet_at_hand(struct rn_rx *rx, struct rn_rx_waiting *waiting)
{
	if (!rx->op_is_parked)
		return rn_rx_first_waiting(rx, waiting);
	*waiting = *rn_rx_park_first(rx, rx->op_qpn);
	return rn_packet_at(rx->env->packets, waiting->packet);
}

void rn_rx_drop_at_hand(struct rn_rx *rx, bool put)
{
	if (!rx->op_is_parked) {
		rn_rx_drop_waiting(rx, put);
		return;
	}
	if (put)
		rn_packet_put(rx->env->packets, rn_rx_park_first(rx, rx->op_qpn)->packet);
	rn_rx_park_drop(rx, rx->op_qpn);
	rx->again = true;
}

void rn_rx_keep_at_hand(struct rn_rx *rx)
{
	struct rn_rx_waiting *waiting = &rx->waiting[rx->waiting_head];

	if (rx->op_is_parked)
		return;
	waiting->is_checked = true;
	if (rn_rx_park_packet(rx, rx->op_qpn, waiting))
		rn_rx_drop_waiting(rx, false);
}

static void add_waiting(struct rn_rx *rx, uint32_t idx, uint32_t qpn)
{
	uint32_t at = (rx->waiting_head + rx->waiting_used) % rx->params->rx_lookahead;

	if (rx->waiting_used && !rn_context_port_holds(&rx->context, qpn))
		rn_context_port_prefetch(&rx->context, qpn);
	rx->waiting[at] = (struct rn_rx_waiting){
		.packet = idx,
		.ready_cycle = rx->cycle + rx->params->rx_pipeline_cycles,
	};
	rx->waiting_used++;
	if (rx->waiting_used == 1)
		rn_block_wake_in(&rx->block, rx->params->rx_pipeline_cycles);
}

static uint64_t *reason_to_drop(struct rn_rx *rx, const struct rn_packet *packet, uint32_t flags)
{
	if (packet->corrupt)
		return &rx->count->rx_icrc_encapsulated;
	if (!(flags & RN_OP_VALID) || (packet->opcode & 0xe0) != RN_BTH_SERVICE_RC || packet->tver)
		return &rx->count->rx_bad_header;
	if (packet->dqpn >= rx->params->max_qps)
		return &rx->count->rx_unknown_qp;
	return NULL;
}

/* False when it must stay in the fifo for now. */
static bool take(struct rn_rx *rx, uint32_t idx)
{
	const struct rn_packet *packet = rn_packet_at(rx->env->packets, idx);
	uint32_t flags = rn_opcode_info(packet->opcode)->flags;
	uint64_t *reason = reason_to_drop(rx, packet, flags);

	if (reason) {
		++*reason;
		rn_packet_put(rx->env->packets, idx);
		return true;
	}
	if (!(flags & RN_OP_RESPONSE)) {
		if (rx->waiting_used == rx->params->rx_lookahead)
			return false;
		add_waiting(rx, idx, packet->dqpn);
		return true;
	}
	if (!rn_fifo_can_push(rx->response)) {
		rx->stall = RN_STALL_OUTPUT;
		return false;
	}
	rn_fifo_push_at(rx->response,
			&(struct rn_response){
				.qpn = packet->dqpn, .packet = idx, .kind = RN_RESPONSE_PACKET},
			rn_block_edge_in_ps(&rx->block, rx->params->rx_pipeline_cycles));
	return true;
}

void rn_rx_intake(struct rn_rx *rx)
{
	const struct rn_frame *frame;

	while ((frame = rn_fifo_peek(rx->ports.rx_frame))) {
		if (!take(rx, frame->packet))
			return;
		rx->busy = true;
		rn_fifo_drop(rx->ports.rx_frame);
	}
}
