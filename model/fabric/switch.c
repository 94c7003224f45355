/*
 * The switch: store and forward, a queue for each output port. Lossy, an output port has a buffer and what does not fit
 * is dropped. Lossless, what came in by a port is accounted to that port while it is in the switch; beyond a
 * threshold its NIC is held back, and the headroom of the link takes what still arrives. A NIC that is full holds
 * its output port back in turn.
 */
#include "fabric/port.h"

void rn_switch_init(struct rn_fabric *fabric)
{
	/* What has crossed the cable but not the switch is not in the account yet. */
	uint64_t latent =
		fabric->cable.bps / 1000000u * fabric->params.switch_latency_ps / 8000000u;

	fabric->ingress_limit_bytes =
		fabric->params.switch_xoff_bytes + rn_headroom_bytes(&fabric->cable) + latent + 1;
}

void rn_switch_port_init(struct rn_port *port)
{
	const uint8_t mac[6] = {2, 0, 0, 1, 0, (uint8_t)(port->idx + 1)};

	rn_line_init(&port->sw.line, port->fabric->cable.bps);
	for (unsigned i = 0; i < sizeof(mac); i++)
		port->sw.mac[i] = mac[i];
}

void rn_switch_port_fini(struct rn_port *port)
{
	struct rn_packets *packets = port->fabric->packets;

	rn_transit_fini(&port->sw.arrival, packets);
	rn_transit_fini(&port->sw.queue, packets);
	rn_transit_fini(&port->sw.control, packets);
	rn_transit_fini(&port->sw.leaving, NULL);
	rn_transit_fini(&port->sw.account, NULL);
}

static uint32_t buffer_bytes(const struct rn_transit *transit)
{
	return transit->frame.bytes + RN_LINE_FCS_BYTES;
}

/* --- in --- */

void rn_switch_send(struct rn_port *from, struct rn_port *to, struct rn_transit *transit,
		    uint64_t end_ps)
{
	const struct rn_fabric *fabric = from->fabric;

	transit->at_ps = end_ps + fabric->cable.delay_ps + fabric->params.switch_latency_ps;
	rn_port_schedule(to, &to->sw.arrival, transit);
	if (!fabric->cable.is_lossless)
		return;
	transit->bytes = (int32_t)buffer_bytes(transit);
	rn_port_schedule(from, &from->sw.account, transit);
}

void rn_switch_send_pause(struct rn_port *from, struct rn_transit *transit, uint64_t end_ps)
{
	transit->at_ps = end_ps + from->fabric->cable.delay_ps;
	rn_port_schedule(from, &from->sw.control, transit);
}

/* Whether the switch has room for a frame that has crossed it; lossy. */
static bool has_room(struct rn_port *port, const struct rn_transit *transit, uint64_t now_ps)
{
	struct rn_switch_port *sw = &port->sw;

	for (; rn_transit_due(&sw->leaving, now_ps); rn_transit_drop(&sw->leaving))
		sw->buffered_bytes -= rn_transit_due(&sw->leaving, now_ps)->frame.bytes;
	if (sw->buffered_bytes + transit->frame.bytes > port->fabric->params.switch_buffer_bytes)
		return false;
	sw->buffered_bytes += transit->frame.bytes;
	return true;
}

/* A frame has crossed the switch: queue it for this port's line, or drop it. */
static bool take_arrival(struct rn_port *port, uint64_t now_ps)
{
	const struct rn_transit *first = rn_transit_due(&port->sw.arrival, now_ps);

	if (!first)
		return false;
	if (port->fabric->cable.is_lossless || has_room(port, first, now_ps)) {
		rn_transit_insert(&port->sw.queue, first);
	} else {
		port->count.switch_discards++;
		rn_packet_put(port->fabric->packets, first->frame.packet);
	}
	rn_transit_drop(&port->sw.arrival);
	return true;
}

/* --- accounts --- */

static bool keep_account(struct rn_port *port, uint64_t now_ps)
{
	struct rn_switch_port *sw = &port->sw;
	const struct rn_fabric_params *params = &port->fabric->params;
	const struct rn_transit *change;
	bool busy = false;

	for (; (change = rn_transit_due(&sw->account, now_ps)); busy = true) {
		sw->ingress_bytes += (uint64_t)(int64_t)change->bytes;
		if (sw->ingress_bytes > port->count.switch_ingress_high_bytes)
			port->count.switch_ingress_high_bytes = sw->ingress_bytes;
		rn_transit_drop(&sw->account);
	}
	if (sw->is_holding ? sw->ingress_bytes <= params->switch_xon_bytes
			   : sw->ingress_bytes >= params->switch_xoff_bytes) {
		sw->is_holding = !sw->is_holding;
		sw->is_due = true;
	}
	if (sw->is_holding && now_ps >= sw->again_ps)
		sw->is_due = true;
	return busy;
}

/* --- what the NIC says --- */

static void count_held(struct rn_port *port, uint64_t now_ps)
{
	struct rn_switch_port *sw = &port->sw;
	uint64_t until_ps = now_ps < sw->held_until_ps ? now_ps : sw->held_until_ps;

	if (until_ps > sw->held_since_ps)
		port->count.switch_held_ps += until_ps - sw->held_since_ps;
	sw->held_since_ps = now_ps;
}

static bool obey(struct rn_port *port, uint64_t now_ps)
{
	struct rn_switch_port *sw = &port->sw;
	const struct rn_transit *first = rn_transit_due(&sw->control, now_ps);
	struct rn_packets *packets = port->fabric->packets;

	if (!first)
		return false;
	count_held(port, now_ps);
	sw->held_until_ps =
		now_ps + rn_pause_ps(&port->fabric->cable,
				     rn_packet_at(packets, first->frame.packet)->pause_quanta);
	port->count.switch_rx_pause++;
	rn_packet_put(packets, first->frame.packet);
	rn_transit_drop(&sw->control);
	return true;
}

/* --- out --- */

/* The last bit of @transit leaves at @end_ps: so does the frame its buffer. */
static void leave(struct rn_port *port, const struct rn_transit *transit, uint64_t end_ps)
{
	struct rn_transit left = *transit;
	struct rn_port *from = &port->fabric->port[transit->input];

	left.at_ps = end_ps;
	if (!port->fabric->cable.is_lossless) {
		rn_transit_insert(&port->sw.leaving, &left);
		return;
	}
	left.bytes = -(int32_t)buffer_bytes(transit);
	left.input = port->idx;
	left.seq = port->seq++;
	rn_port_schedule(from, &from->sw.account, &left);
}

static void put(struct rn_port *port, struct rn_transit *transit, uint64_t now_ps)
{
	uint64_t end_ps;

	rn_line_send(&port->sw.line, now_ps, transit->frame.bytes, &end_ps);
	if (transit->input != RN_FABRIC_MAX_PORTS)
		leave(port, transit, end_ps);
	transit->at_ps = end_ps + port->fabric->cable.delay_ps;
	rn_port_schedule(port, &port->delivery, transit);
}

static void put_pause(struct rn_port *port, uint64_t now_ps)
{
	struct rn_fabric *fabric = port->fabric;
	struct rn_switch_port *sw = &port->sw;
	uint32_t quanta = sw->is_holding ? RN_PAUSE_QUANTA_MAX : 0;
	struct rn_transit transit = {
		.input = RN_FABRIC_MAX_PORTS, /* nobody's */
		.seq = port->seq++,
		.frame = {.packet = rn_pause_new(fabric->packets, sw->mac, quanta),
			  .bytes = RN_LINE_MIN_FRAME_BYTES},
	};

	if (fabric->capture)
		rn_capture_frame(fabric->capture, now_ps, port->idx, transit.frame.packet);
	put(port, &transit, now_ps);
	port->count.switch_tx_pause++;
	sw->is_due = false;
	sw->again_ps = now_ps + rn_pause_ps(&fabric->cable, quanta) / 2;
	if (quanta)
		rn_block_wake_at(&port->block, sw->again_ps);
}

static bool transmit(struct rn_port *port, uint64_t now_ps)
{
	struct rn_switch_port *sw = &port->sw;
	struct rn_transit transit;

	if (!sw->is_due && !sw->queue.count)
		return false;
	if (sw->line.free_ps > now_ps) {
		rn_block_wake_at(&port->block, sw->line.free_ps);
		return false;
	}
	if (sw->is_due) {
		put_pause(port, now_ps);
	} else if (sw->held_until_ps > now_ps) {
		rn_block_wake_at(&port->block, sw->held_until_ps);
		return false;
	} else {
		transit = *rn_transit_at(&sw->queue, 0);
		rn_transit_drop(&sw->queue);
		put(port, &transit, now_ps);
	}
	if (sw->is_due || sw->queue.count)
		rn_block_wake_at(&port->block, sw->line.free_ps);
	return true;
}

static void rearm(struct rn_port *port)
{
	const struct rn_switch_port *sw = &port->sw;
	const struct rn_transit_list *const lists[] = {&sw->arrival, &sw->account, &sw->control};

	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i]->count)
			rn_block_wake_at(&port->block, rn_transit_at(lists[i], 0)->at_ps);
	if (sw->is_holding && !sw->is_due)
		rn_block_wake_at(&port->block, sw->again_ps);
}

bool rn_switch_port_tick(struct rn_port *port, uint64_t now_ps)
{
	bool busy = take_arrival(port, now_ps);

	busy |= keep_account(port, now_ps);
	busy |= obey(port, now_ps);
	busy |= transmit(port, now_ps);
	rearm(port);
	return busy;
}
