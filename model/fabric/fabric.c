/*
 * The fabric. Exact: when each bit arrives (rate, propagation, queueing behind other frames of an output
 * port). Approximated: the switch is store and forward with one latency and tail drop. Left out: PFC, ECN marks,
 * cut-through, several switches.
 */
#include "fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/msg/frame.h"
#include "sim/stats.h"
#include "wire/line.h"

#define RN_PARAM_OWNER rn_fabric_params
RN_PARAM_TABLE(rn_fabric_param_table, "fabric", RN_FABRIC_PARAMS);

#define PS_CLOCK_HZ 1000000000000u
#define BITS_PER_MBIT 1000000u

#define PORT_COUNTERS(X)                                                                           \
	X(frames, "packets", "frames that entered the fabric at this port")                        \
	X(bytes, "bytes", "bytes of these frames, with FCS")                                       \
	X(delivered, "packets", "frames handed to this port's NIC")                                \
	X(fault_dropped, "packets", "frames dropped by a scripted fault")                          \
	X(fault_other, "packets", "frames corrupted, duplicated or delayed by a scripted fault")   \
	X(unknown_destination, "packets", "frames whose MAC address belongs to no port: dropped")  \
	X(switch_discards, "packets", "frames dropped because this port's switch buffer was full") \
	X(icrc_computed, "packets", "check_icrc: frames of this port's NIC with an ICRC computed") \
	X(icrc_verified, "packets", "check_icrc: frames for this port's NIC whose ICRC fits")      \
	X(icrc_wrong, "packets", "check_icrc: frames for this port's NIC whose ICRC does not fit")

struct port_counters {
	PORT_COUNTERS(RN_COUNTER_FIELD)
};

#define PORT_ROW(field, unit, help) RN_COUNTER_ROW(struct port_counters, field, unit, help)

static const struct rn_counter_desc port_counter_descs[] = {PORT_COUNTERS(PORT_ROW)};

/* A frame on its way to a place inside the fabric. */
struct transit {
	uint64_t at_ps; /* when it gets there */
	uint64_t seq;	/* of its input port */
	uint32_t input;
	struct rn_frame frame;
};

/* Frames under way to one place, sorted by (time, input port, sequence): a ring that grows. */
struct transit_list {
	struct transit *item;
	uint32_t room; /* power of two */
	uint32_t head;
	uint32_t count;
};

struct port {
	struct rn_fabric *fabric;
	uint32_t idx;
	struct rn_fabric_port end;
	struct rn_line line;	      /* switch to NIC */
	struct transit_list output;   /* frames that reach this port's queue in the switch */
	struct transit_list delivery; /* frames whose last bit reaches the NIC */
	struct transit_list
		buffered; /* frames that leave the switch buffer, by the time they have left */
	uint64_t buffered_bytes;
	uint64_t seq;
	struct rn_block block;
	char *name;
	struct port_counters count;
};

struct rn_fabric {
	struct rn_sim *sim;
	struct rn_packets *packets;
	struct rn_capture *capture;
	struct rn_faults *faults;
	struct rn_clock clock;
	struct rn_fabric_params params;
	uint64_t link_bps;
	struct port *port;
	unsigned ports;
};

static struct transit *item_at(const struct transit_list *list, uint32_t i)
{
	return &list->item[(list->head + i) & (list->room - 1)];
}

static bool is_before(const struct transit *a, const struct transit *b)
{
	if (a->at_ps != b->at_ps)
		return a->at_ps < b->at_ps;
	if (a->input != b->input)
		return a->input < b->input;
	return a->seq < b->seq;
}

static void grow(struct transit_list *list)
{
	uint32_t room = list->room ? list->room * 2 : 16;
	struct transit *item = rn_calloc(room, sizeof(*item));

	for (uint32_t i = 0; i < list->count; i++)
		item[i] = *item_at(list, i);
	free(list->item);
	list->item = item;
	list->room = room;
	list->head = 0;
}

static void insert(struct transit_list *list, const struct transit *transit)
{
	uint32_t i = list->count;

	if (list->count == list->room)
		grow(list);
	list->count++;
	for (; i > 0 && is_before(transit, item_at(list, i - 1)); i--)
		*item_at(list, i) = *item_at(list, i - 1);
	*item_at(list, i) = *transit;
}

/* The first of @list if it is there by @now_ps, else NULL. */
static const struct transit *due(const struct transit_list *list, uint64_t now_ps)
{
	if (!list->count || item_at(list, 0)->at_ps > now_ps)
		return NULL;
	return item_at(list, 0);
}

static void remove_first(struct transit_list *list)
{
	list->head = (list->head + 1) & (list->room - 1);
	list->count--;
}

static void schedule(struct port *port, struct transit_list *list, const struct transit *transit)
{
	insert(list, transit);
	rn_block_wake_at(&port->block, transit->at_ps);
}

static struct port *destination(struct rn_fabric *fabric, const struct rn_packet *packet)
{
	for (unsigned i = 0; i < fabric->ports; i++)
		if (memcmp(fabric->port[i].end.mac, packet->dmac, 6) == 0)
			return &fabric->port[i];
	return NULL;
}

/* Send a frame towards its destination; its first bit left @from at @start_ps. */
static void forward(struct port *from, struct rn_frame frame, uint64_t start_ps, uint64_t delay_ps)
{
	struct rn_fabric *fabric = from->fabric;
	struct port *to = destination(fabric, rn_packet_at(fabric->packets, frame.packet));
	struct transit transit = {.input = from->idx, .seq = from->seq++, .frame = frame};
	struct rn_line line;
	uint64_t end_ps;

	if (!to) {
		from->count.unknown_destination++;
		rn_packet_put(fabric->packets, frame.packet);
		return;
	}
	rn_line_init(&line, fabric->link_bps);
	rn_line_send(&line, start_ps, frame.bytes, &end_ps);
	transit.at_ps = end_ps + delay_ps;
	if (to == from) {
		transit.at_ps += fabric->params.loopback_delay_ps;
		schedule(to, &to->delivery, &transit);
	} else if (fabric->params.switched) {
		transit.at_ps += fabric->params.link_delay_ps + fabric->params.switch_latency_ps;
		schedule(to, &to->output, &transit);
	} else {
		transit.at_ps += fabric->params.link_delay_ps;
		schedule(to, &to->delivery, &transit);
	}
}

static void apply_fault(struct port *port, const struct rn_fault *fault, struct rn_frame frame,
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
static bool take_from_nic(struct port *port)
{
	struct rn_fabric *fabric = port->fabric;
	const struct rn_packet *packet;
	const struct rn_fault *fault;
	struct rn_frame frame;

	if (!rn_fifo_pop(port->end.out, &frame))
		return false;
	packet = rn_packet_at(fabric->packets, frame.packet);
	port->count.frames++;
	port->count.bytes += frame.bytes + RN_LINE_FCS_BYTES;
	if (fabric->params.check_icrc) {
		(void)rn_packet_icrc(fabric->packets, frame.packet);
		port->count.icrc_computed++;
	}
	if (fabric->capture)
		rn_capture_frame(fabric->capture, packet->sent_ps, port->idx, frame.packet);
	fault = rn_faults_match(fabric->faults, packet);
	if (fault)
		apply_fault(port, fault, frame, packet->sent_ps);
	else
		forward(port, frame, packet->sent_ps, 0);
	return true;
}

/* A frame has crossed the switch: queue it for this port's line, or drop it. */
static bool take_from_switch(struct port *port, uint64_t now_ps)
{
	const struct transit *first = due(&port->output, now_ps);
	struct transit transit;
	uint64_t end_ps;

	if (!first)
		return false;
	transit = *first;
	remove_first(&port->output);
	for (; due(&port->buffered, now_ps); remove_first(&port->buffered))
		port->buffered_bytes -= due(&port->buffered, now_ps)->frame.bytes;
	if (port->buffered_bytes + transit.frame.bytes > port->fabric->params.switch_buffer_bytes) {
		port->count.switch_discards++;
		rn_packet_put(port->fabric->packets, transit.frame.packet);
		return true;
	}
	rn_line_send(&port->line, now_ps, transit.frame.bytes, &end_ps);
	transit.at_ps = end_ps;
	port->buffered_bytes += transit.frame.bytes;
	insert(&port->buffered, &transit);
	transit.at_ps = end_ps + port->fabric->params.link_delay_ps;
	schedule(port, &port->delivery, &transit);
	return true;
}

static void check_icrc(struct port *port, uint32_t packet)
{
	if (rn_packet_icrc_fits(port->fabric->packets, packet))
		port->count.icrc_verified++;
	else
		port->count.icrc_wrong++;
}

static bool deliver(struct port *port, uint64_t now_ps)
{
	const struct transit *first = due(&port->delivery, now_ps);
	struct rn_frame frame;

	if (!first)
		return false;
	frame = first->frame;
	remove_first(&port->delivery);
	if (port->fabric->params.check_icrc)
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

static void rearm(struct port *port)
{
	if (port->output.count)
		rn_block_wake_at(&port->block, item_at(&port->output, 0)->at_ps);
	if (port->delivery.count)
		rn_block_wake_at(&port->block, item_at(&port->delivery, 0)->at_ps);
}

/* The medium has no clock: its ticks are at picoseconds. Frames due at one instant go one picosecond apart. */
static void port_tick(void *self, uint64_t cycle)
{
	struct port *port = self;
	uint64_t now_ps = cycle;
	bool took = take_from_nic(port);
	bool switched = take_from_switch(port, now_ps);
	bool delivered = deliver(port, now_ps);

	if (took)
		rn_fifo_peek(port->end.out); /* re-arms for a frame on its way */
	rearm(port);
	rn_block_account(&port->block, took || switched || delivered, RN_STALL_NONE);
}

static void init_port(struct rn_fabric *fabric, struct rn_stats *stats, unsigned idx,
		      const struct rn_fabric_port *end)
{
	struct port *port = &fabric->port[idx];

	port->fabric = fabric;
	port->idx = idx;
	port->end = *end;
	port->name = rn_asprintf("fabric.port%u", idx);
	rn_line_init(&port->line, fabric->link_bps);
	rn_block_init(&port->block, fabric->sim, &fabric->clock, port->name, port_tick, port);
	rn_fifo_set_consumer(end->out, &port->block);
	rn_fifo_set_producer(end->in, &port->block);
	rn_stats_add_counters(stats, port->name, port_counter_descs,
			      RN_ARRAY_LEN(port_counter_descs), &port->count);
}

struct rn_fabric *rn_fabric_new(struct rn_sim *sim, struct rn_stats *stats,
				struct rn_packets *packets, const struct rn_fabric_params *params,
				const struct rn_fabric_port *ports, unsigned port_count,
				struct rn_capture *capture)
{
	struct rn_fabric *fabric = rn_calloc(1, sizeof(*fabric));

	RN_ASSERT(port_count >= 1 && port_count <= RN_FABRIC_MAX_PORTS);
	fabric->sim = sim;
	fabric->packets = packets;
	fabric->params = *params;
	fabric->capture = capture;
	fabric->link_bps = params->link_mbps * BITS_PER_MBIT;
	fabric->faults = rn_faults_new();
	fabric->ports = port_count;
	fabric->port = rn_calloc(port_count, sizeof(*fabric->port));
	rn_clock_init(&fabric->clock, "fabric", PS_CLOCK_HZ);
	for (unsigned i = 0; i < port_count; i++)
		init_port(fabric, stats, i, &ports[i]);
	return fabric;
}

static void free_list(struct rn_fabric *fabric, struct transit_list *list, bool owns)
{
	for (uint32_t i = 0; owns && i < list->count; i++)
		rn_packet_put(fabric->packets, item_at(list, i)->frame.packet);
	free(list->item);
}

void rn_fabric_free(struct rn_fabric *fabric)
{
	if (!fabric)
		return;
	for (unsigned i = 0; i < fabric->ports; i++) {
		struct port *port = &fabric->port[i];

		rn_wake_cancel(fabric->sim, &port->block.wake);
		free_list(fabric, &port->output, true);
		free_list(fabric, &port->delivery, true);
		free_list(fabric, &port->buffered, false);
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
