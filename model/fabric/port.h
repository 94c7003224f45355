/*
 * A port of the fabric: its NIC's end, and with a switch also the switch's end of the cable. Shared by the fabric's
 * sources.
 */
#ifndef RN_FABRIC_PORT_H
#define RN_FABRIC_PORT_H

#include "fabric/fabric.h"
#include "fabric/transit.h"
#include "sim/stats.h"
#include "wire/line.h"

#define RN_PORT_COUNTERS(X)                                                                        \
	X(frames, "packets", "frames that entered the fabric at this port")                        \
	X(bytes, "bytes", "bytes of these frames, with FCS")                                       \
	X(delivered, "packets", "frames handed to this port's NIC")                                \
	X(fault_dropped, "packets", "frames dropped by a scripted fault")                          \
	X(fault_other, "packets", "frames corrupted, duplicated or delayed by a scripted fault")   \
	X(unknown_destination, "packets", "frames whose MAC address belongs to no port: dropped")  \
	X(switch_discards, "packets", "frames dropped because this port's switch buffer was full") \
	X(switch_tx_pause, "packets", "pause frames that the switch sent to this port's NIC")      \
	X(switch_rx_pause, "packets", "pause frames that the switch took from this port's NIC")    \
	X(switch_held_ps, "ps", "time in which this port's NIC held the switch back")              \
	X(switch_ingress_high_bytes, "bytes",                                                      \
	  "most bytes from this port's NIC in the switch, with FCS")                               \
	X(icrc_computed, "packets", "check_icrc: frames of this port's NIC with an ICRC computed") \
	X(icrc_verified, "packets", "check_icrc: frames for this port's NIC whose ICRC fits")      \
	X(icrc_wrong, "packets", "check_icrc: frames for this port's NIC whose ICRC does not fit")

struct rn_port_counters {
	RN_PORT_COUNTERS(RN_COUNTER_FIELD)
};

/* The switch's end of the cable. */
struct rn_switch_port {
	struct rn_line line;		/* to the NIC */
	struct rn_transit_list arrival; /* frames that reach this output port's queue */
	struct rn_transit_list queue;	/* frames that wait for the line */
	struct rn_transit_list leaving; /* lossy: frames in the buffer, by the time they have left */
	uint64_t buffered_bytes;	/* lossy: of this output port's buffer */
	/* Lossless: what came from this port's NIC and is in the switch. */
	struct rn_transit_list account; /* changes of ingress_bytes */
	uint64_t ingress_bytes;
	bool is_holding; /* the NIC is held back */
	bool is_due;	 /* a pause frame is to be sent */
	uint64_t again_ps;
	/* Lossless: what the NIC says. */
	struct rn_transit_list control; /* pause frames of the NIC */
	uint64_t held_until_ps;
	uint64_t held_since_ps; /* up to there it is counted */
	uint8_t mac[6];
};

struct rn_port {
	struct rn_fabric *fabric;
	uint32_t idx;
	struct rn_fabric_port end;
	struct rn_transit_list delivery; /* frames whose last bit reaches the NIC */
	struct rn_switch_port sw;
	uint64_t seq;
	struct rn_block block;
	char *name;
	struct rn_port_counters count;
};

struct rn_fabric {
	struct rn_sim *sim;
	struct rn_packets *packets;
	struct rn_capture *capture;
	struct rn_faults *faults;
	struct rn_clock clock;
	struct rn_fabric_params params;
	struct rn_cable cable;
	uint64_t ingress_limit_bytes;
	struct rn_port *port;
	unsigned ports;
};

/** Enter @transit in @list of @port and wake it for that. */
void rn_port_schedule(struct rn_port *port, struct rn_transit_list *list,
		      const struct rn_transit *transit);

/* switch.c */
void rn_switch_init(struct rn_fabric *fabric);
void rn_switch_port_init(struct rn_port *port);
void rn_switch_port_fini(struct rn_port *port);
/** @transit, whose last bit leaves @from at @end_ps, goes to output port @to. */
void rn_switch_send(struct rn_port *from, struct rn_port *to, struct rn_transit *transit,
		    uint64_t end_ps);
/** The same of a pause frame, which goes no farther than the switch. */
void rn_switch_send_pause(struct rn_port *from, struct rn_transit *transit, uint64_t end_ps);
/** Everything of this port's end that is due; true when there was something. */
bool rn_switch_port_tick(struct rn_port *port, uint64_t now_ps);

#endif
