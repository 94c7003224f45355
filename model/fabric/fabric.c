/*
 * The fabric. Exact: when each bit arrives (rate, propagation, queueing behind other frames of an output
 * port), and priority flow control. Approximated: the switch is store and forward with one latency. Left out: ECN
 * marks, cut-through, several switches.
 */
#include "fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "fabric/port.h"

#define RN_PARAM_OWNER rn_fabric_params
RN_PARAM_TABLE(rn_fabric_param_table, "fabric", RN_FABRIC_PARAMS);

const char *const rn_flow_control_names[] = {
	[RN_FLOW_CONTROL_PFC] = "pfc",
	[RN_FLOW_CONTROL_NONE] = "none",
	NULL,
};

const char *rn_fabric_check(const struct rn_fabric_params *params)
{
	return params->switch_xon_bytes < params->switch_xoff_bytes
		       ? NULL
		       : "switch_xon_bytes: legal is less than switch_xoff_bytes";
}

#define PS_CLOCK_HZ 1000000000000u

#define PORT_ROW(field, unit, help) RN_COUNTER_ROW(struct rn_port_counters, field, unit, help)

static const struct rn_counter_desc port_counter_descs[] = {RN_PORT_COUNTERS(PORT_ROW)};

void rn_port_schedule(struct rn_port *port, struct rn_transit_list *list,
		      const struct rn_transit *transit)
{
	rn_transit_insert(list, transit);
	rn_block_wake_at(&port->block, transit->at_ps);
}

static struct rn_port *destination(struct rn_fabric *fabric, const struct rn_packet *packet)
{
	for (unsigned i = 0; i < fabric->ports; i++)
		if (memcmp(fabric->port[i].end.mac, packet->dmac, 6) == 0)
			return &fabric->port[i];
	return NULL;
}

/* A pause goes to the other end of the cable and no farther. */
static void forward_pause(struct rn_port *from, struct rn_transit *transit, uint64_t end_ps)
{
	struct rn_fabric *fabric = from->fabric;
	struct rn_port *to = &fabric->port[1 - (from->idx & 1)];

	if (fabric->params.switched) {
		rn_switch_send_pause(from, transit, end_ps);
	} else if (fabric->ports == 2) {
		transit->at_ps = end_ps + fabric->cable.delay_ps;
		rn_port_schedule(to, &to->delivery, transit);
	} else {
		rn_packet_put(fabric->packets, transit->frame.packet);
	}
}

/* Send a frame towards its destination; its first bit left @from at @start_ps. */
static void forward(struct rn_port *from, struct rn_frame frame, uint64_t start_ps,
		    uint64_t delay_ps)
{
	struct rn_fabric *fabric = from->fabric;
	const struct rn_packet *packet = rn_packet_at(fabric->packets, frame.packet);
	struct rn_port *to = packet->is_pause ? NULL : destination(fabric, packet);
	struct rn_transit transit = {.input = from->idx, .seq = from->seq++, .frame = frame};
	struct rn_line line;
	uint64_t end_ps;

	rn_line_init(&line, fabric->cable.bps);
	rn_line_send(&line, start_ps, frame.bytes, &end_ps);
	if (packet->is_pause) {
		forward_pause(from, &transit, end_ps);
	} else if (!to) {
		from->count.unknown_destination++;
		rn_packet_put(fabric->packets, frame.packet);
	} else if (to == from) {
		transit.at_ps = end_ps + delay_ps + fabric->params.loopback_delay_ps;
		rn_port_schedule(to, &to->delivery, &transit);
	} else if (fabric->params.switched) {
		rn_switch_send(from, to, &transit, end_ps + delay_ps);
	} else {
		transit.at_ps = end_ps + delay_ps + fabric->cable.delay_ps;
		rn_port_schedule(to, &to->delivery, &transit);
	}
}

static void apply_fault(struct rn_port *port, const struct rn_fault *fault, struct rn_frame frame,
			uint64_t start_ps)
{
	struct rn_packets *packets = port->fabric->packets;
	struct rn_frame copy = frame;
	uint64_t delay_ps = 0;

	if (fault->action == RN_FAULT_DROP) {
		port->count.fault_dropped++;
		rn_packet_put(packets, frame.packet);
		return;
	}
	port->count.fault_other++;
	if (fault->action == RN_FAULT_CORRUPT)
		rn_packet_at(packets, frame.packet)->corrupt = 1;
	if (fault->action == RN_FAULT_DUPLICATE) {
		copy.packet = rn_packet_clone(packets, frame.packet);
		forward(port, copy, start_ps, 0);
	}
	if (fault->action == RN_FAULT_DELAY)
		delay_ps = fault->delay_ps;
	forward(port, frame, start_ps, delay_ps);
}

/* A frame's first bit leaves the NIC. */
static bool take_from_nic(struct rn_port *port)
{
	struct rn_fabric *fabric = port->fabric;
	const struct rn_packet *packet;
	const struct rn_fault *fault = NULL;
	struct rn_frame frame;

	if (!rn_fifo_pop(port->end.out, &frame))
		return false;
	packet = rn_packet_at(fabric->packets, frame.packet);
	port->count.frames++;
	port->count.bytes += frame.bytes + RN_LINE_FCS_BYTES;
	if (fabric->params.check_icrc && !packet->is_pause) {
		(void)rn_packet_icrc(fabric->packets, frame.packet);
		port->count.icrc_computed++;
	}
	if (fabric->capture)
		rn_capture_frame(fabric->capture, packet->sent_ps, port->idx, frame.packet);
	if (!packet->is_pause)
		fault = rn_faults_match(fabric->faults, packet);
	if (fault)
		apply_fault(port, fault, frame, packet->sent_ps);
	else
		forward(port, frame, packet->sent_ps, 0);
	return true;
}

static void check_icrc(struct rn_port *port, uint32_t packet)
{
	if (rn_packet_icrc_fits(port->fabric->packets, packet))
		port->count.icrc_verified++;
	else
		port->count.icrc_wrong++;
}

static bool deliver(struct rn_port *port, uint64_t now_ps)
{
	const struct rn_transit *first = rn_transit_due(&port->delivery, now_ps);
	struct rn_frame frame;

	if (!first)
		return false;
	frame = first->frame;
	rn_transit_drop(&port->delivery);
	if (port->fabric->params.check_icrc &&
	    !rn_packet_at(port->fabric->packets, frame.packet)->is_pause)
		check_icrc(port, frame.packet);
	if (rn_fifo_can_push(port->end.in)) {
		port->count.delivered++;
		rn_fifo_push(port->end.in, &frame);
	} else {
		port->end.discard(port->end.arg);
		rn_packet_put(port->fabric->packets, frame.packet);
	}
	return true;
}

/* The medium has no clock: its ticks are at picoseconds. Frames due at one instant go one picosecond apart. */
static void port_tick(void *self, uint64_t cycle)
{
	struct rn_port *port = self;
	uint64_t now_ps = cycle;
	bool took = take_from_nic(port);
	bool switched = port->fabric->params.switched && rn_switch_port_tick(port, now_ps);
	bool delivered = deliver(port, now_ps);

	if (took)
		rn_fifo_peek(port->end.out); /* re-arms for a frame on its way */
	if (port->delivery.count)
		rn_block_wake_at(&port->block, rn_transit_at(&port->delivery, 0)->at_ps);
	rn_block_account(&port->block, took || switched || delivered, RN_STALL_NONE);
}

static void init_port(struct rn_fabric *fabric, struct rn_stats *stats, unsigned idx,
		      const struct rn_fabric_port *end)
{
	struct rn_port *port = &fabric->port[idx];

	port->fabric = fabric;
	port->idx = idx;
	port->end = *end;
	port->name = rn_asprintf("fabric.port%u", idx);
	rn_switch_port_init(port);
	rn_block_init(&port->block, fabric->sim, &fabric->clock, port->name, port_tick, port);
	rn_fifo_set_consumer(end->out, &port->block);
	rn_fifo_set_producer(end->in, &port->block);
	rn_stats_add_counters(stats, port->name, port_counter_descs,
			      RN_ARRAY_LEN(port_counter_descs), &port->count);
}

struct rn_fabric *rn_fabric_new(struct rn_sim *sim, struct rn_stats *stats,
				struct rn_packets *packets, const struct rn_fabric_params *params,
				const struct rn_cable *cable, const struct rn_fabric_port *ports,
				unsigned port_count, struct rn_capture *capture)
{
	struct rn_fabric *fabric = rn_calloc(1, sizeof(*fabric));

	RN_ASSERT(port_count >= 1 && port_count <= RN_FABRIC_MAX_PORTS);
	fabric->sim = sim;
	fabric->packets = packets;
	fabric->params = *params;
	fabric->capture = capture;
	fabric->cable = *cable;
	rn_switch_init(fabric);
	fabric->faults = rn_faults_new();
	fabric->ports = port_count;
	fabric->port = rn_calloc(port_count, sizeof(*fabric->port));
	rn_clock_init(&fabric->clock, "fabric", PS_CLOCK_HZ);
	for (unsigned i = 0; i < port_count; i++)
		init_port(fabric, stats, i, &ports[i]);
	return fabric;
}

void rn_fabric_free(struct rn_fabric *fabric)
{
	if (!fabric)
		return;
	for (unsigned i = 0; i < fabric->ports; i++) {
		struct rn_port *port = &fabric->port[i];

		rn_wake_cancel(fabric->sim, &port->block.wake);
		rn_transit_fini(&port->delivery, fabric->packets);
		rn_switch_port_fini(port);
		free(port->name);
	}
	rn_faults_free(fabric->faults);
	free(fabric->port);
	free(fabric);
}

struct rn_faults *rn_fabric_faults(struct rn_fabric *fabric)
{
	return fabric->faults;
}
