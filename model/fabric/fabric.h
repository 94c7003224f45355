/*
 * The fabric: two NICs back to back, or up to 64 on one switch. Ports loop frames to their own MAC
 * back. The tap for captures and the scripted faults sit where a frame leaves its NIC.
 */
#ifndef RN_FABRIC_FABRIC_H
#define RN_FABRIC_FABRIC_H

#include <stdint.h>

#include "fabric/capture.h"
#include "fabric/fault.h"
#include "sim/fifo.h"
#include "sim/param.h"
#include "wire/pause.h"

struct rn_stats;

#define RN_FABRIC_MAX_PORTS 64

#define RN_FABRIC_PARAMS(X)                                                                            \
	X(u64, link_mbps, 100000, 10, 1000000, "Mb/s", "rate of every link")                           \
	X(u64, link_delay_ps, 25000, 0, 1000000000000, "ps",                                           \
	  "propagation from one end of a link to the other (5 m of cable: 25 ns)")                     \
	X(u64, loopback_delay_ps, 10000, 0, 1000000000000, "ps",                                       \
	  "from the last bit leaving to the last bit arriving at the same port")                       \
	X(bool, switched, false, 0, 1, "", "false: two hosts back to back; true: one switch")          \
	X(u64, switch_latency_ps, 300000, 0, 1000000000000, "ps",                                      \
	  "switch: last bit in to first bit out of an idle port (store and forward)")                  \
	X(u64, switch_buffer_bytes, 1048576, 4608, 1073741824, "bytes",                                \
	  "lossy switch: frames waiting for an output port; beyond it they are dropped")               \
	X(u64, switch_xoff_bytes, 262144, 1, 1073741824, "bytes",                                      \
	  "lossless switch: so many bytes from a port hold its NIC back; the headroom comes on top")   \
	X(u64, switch_xon_bytes, 196608, 0, 1073741824, "bytes",                                       \
	  "lossless switch: so few bytes from a port let its NIC go on")                               \
	X(bool, check_icrc, false, 0, 1, "",                                                           \
	  "compute every frame's ICRC where it leaves its NIC and again where it arrives; changes no " \
	  "result, only the counters icrc_* and the run time")

RN_PARAM_STRUCT(rn_fabric_params, RN_FABRIC_PARAMS);
extern const struct rn_param_table rn_fabric_param_table;

struct rn_fabric_port {
	struct rn_fifo *out; /* from the NIC's MAC: struct rn_frame, visible at the first bit */
	struct rn_fifo *in;  /* to the NIC's MAC: struct rn_frame, visible at the last bit */
	uint8_t mac[6];
	void (*discard)(void *arg); /* called when @in is full: the frame is lost */
	void *arg;
};

struct rn_fabric;

/** How links treat what has no room; the names are those of the configuration. */
enum rn_flow_control { RN_FLOW_CONTROL_PFC, RN_FLOW_CONTROL_NONE };
extern const char *const rn_flow_control_names[]; /* NULL-terminated */

/** What does not fit together, as a text, or NULL. */
const char *rn_fabric_check(const struct rn_fabric_params *params);

/** @params and @cable (of rate link_mbps and delay link_delay_ps) are copied. @ports: 1 to RN_FABRIC_MAX_PORTS (2 unless switched); copied; its fifos are borrowed. @capture may be NULL. */
struct rn_fabric *rn_fabric_new(struct rn_sim *sim, struct rn_stats *stats,
				struct rn_packets *packets, const struct rn_fabric_params *params,
				const struct rn_cable *cable, const struct rn_fabric_port *ports,
				unsigned port_count, struct rn_capture *capture);
void rn_fabric_free(struct rn_fabric *fabric);

/** The scripted faults; add rules at any time. */
struct rn_faults *rn_fabric_faults(struct rn_fabric *fabric);

#endif
