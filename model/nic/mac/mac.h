/*
 * MAC and port: line rate, preamble, FCS and inter-packet gap, receive buffer, priority flow control.
 */
#ifndef RN_NIC_MAC_MAC_H
#define RN_NIC_MAC_MAC_H

#include "nic/msg/env.h"
#include "nic/msg/frame.h"
#include "nic/msg/identity.h"
#include "sim/fifo.h"
#include "sim/param.h"
#include "wire/pause.h"

#define RN_MAC_PARAMS(X)                                                                           \
	X(u64, clock_hz, 322265625, 1000000, 10000000000, "Hz", "clock of the MAC")                \
	X(u32, tx_latency_cycles, 16, 1, 10000, "MAC cycles",                                      \
	  "transport's frame to the first bit on the line (MAC, PCS, PMA)")                        \
	X(u32, rx_latency_cycles, 16, 1, 10000, "MAC cycles",                                      \
	  "last bit from the line to transport (PMA, PCS, FCS check)")                             \
	X(u32, tx_fifo_depth, 16, 1, 65536, "frames", "frames waiting for the line")               \
	X(u32, rx_fifo_depth, 256, 1, 65536, "frames",                                             \
	  "frames ready for transport; without flow control the whole receive buffer")             \
	X(u32, xoff_bytes, 262144, 1, 1073741824, "bytes",                                         \
	  "receive buffer so full holds the peer back; the headroom of the link comes on top")     \
	X(u32, xon_bytes, 196608, 0, 1073741824, "bytes", "receive buffer so empty lets it go on") \
	X(u32, pause_quanta, 65535, 2, 65535, "quanta",                                            \
	  "time that a pause asks for, of 512 bit times each; asked for again at its half")        \
	X(u64, pause_storm_ps, 10000000000, 1000000, 10000000000000, "ps",                         \
	  "a receive buffer that nothing leaves for so long stops holding the peer back")

RN_PARAM_STRUCT(rn_mac_params, RN_MAC_PARAMS);
extern const struct rn_param_table rn_mac_param_table;

struct rn_mac_ports {
	struct rn_fifo *
		tx_frame; /* in: struct rn_frame, from transport; its latency is tx_latency_cycles */
	struct rn_fifo
		*rx_frame; /* out: struct rn_frame, to transport; visible rx_latency_cycles later */
	struct rn_fifo *
		line_out; /* out: struct rn_frame, to the fabric; visible when the first bit leaves */
	struct rn_fifo *
		line_in; /* in: struct rn_frame, from the fabric; visible when the last bit has arrived */
	const struct rn_cable *cable;		/* from the fabric; copied */
	const struct rn_nic_identity *identity; /* borrowed: the address of pauses */
};

struct rn_mac;

/** Build the MAC and connect it to its ports. @params and @env are borrowed. */
struct rn_mac *rn_mac_new(const struct rn_nic_env *env, const struct rn_mac_params *params,
			  const struct rn_mac_ports *ports);
void rn_mac_free(struct rn_mac *mac);

/** What does not fit together, as a text, or NULL. */
const char *rn_mac_check(const struct rn_mac_params *params);

/** Frames that the line can bring within a cycle of the MAC, and some: depth of line_in. */
uint32_t rn_mac_line_frames(const struct rn_mac_params *params, const struct rn_cable *cable);

/** Count a frame that found line_in full: the fabric tells. */
void rn_mac_count_discard(struct rn_mac *mac);

#endif
