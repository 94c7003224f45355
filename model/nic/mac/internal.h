/*
 * The MAC's state, shared by its sources: its two clocked halves, which meet in one registered fifo, and what both
 * count.
 */
#ifndef RN_NIC_MAC_INTERNAL_H
#define RN_NIC_MAC_INTERNAL_H

#include "nic/mac/mac.h"
#include "sim/stats.h"
#include "wire/line.h"
#include "wire/pause.h"

#define RN_MAC_COUNTERS(X)                                                                         \
	X(tx_packets_phy, "packets", "frames sent on the line")                                    \
	X(rx_packets_phy, "packets", "frames received from the line")                              \
	X(tx_bytes_phy, "bytes", "bytes of frames sent, with FCS")                                 \
	X(rx_bytes_phy, "bytes", "bytes of frames received, with FCS")                             \
	X(rx_discards_phy, "packets", "frames discarded because the receive buffer was full")      \
	X(tx_prio3_pause, "packets", "pause frames sent")                                          \
	X(rx_prio3_pause, "packets", "pause frames received")                                      \
	X(tx_prio3_pause_duration, "ps", "time in which the peer was held back")                   \
	X(rx_prio3_pause_duration, "ps", "time in which the peer held this port back")             \
	X(rx_prio3_pause_transition, "events", "times that the peer began to hold this port back") \
	X(tx_pause_storm_error_events, "events",                                                   \
	  "times that the buffer did not move: pause given up")                                    \
	X(rx_buffer_high_bytes, "bytes", "fullest state of the receive buffer, with FCS")          \
	X(tx_busy_ps, "ps", "time in which the line carried frames, gaps included")                \
	X(first_frame_ps, "ps", "time of the first frame, sent or received")                       \
	X(last_frame_ps, "ps", "time of the last frame")                                           \
	X(active_ps, "ps", "time with traffic: from frame to frame, pauses left out")

struct mac_counters {
	RN_MAC_COUNTERS(RN_COUNTER_FIELD)
};

/* From the receiving to the sending half. */
struct mac_pause {
	bool from_peer;	 /* a pause that came; else one to be sent */
	uint32_t quanta; /* 0: go on */
};

/* A frame in the receive buffer. */
struct mac_stored {
	struct rn_frame frame;
	uint64_t ready_ps; /* for transport */
};

/* Frames received and not taken by transport yet: in the order of arrival, first those in rx_frame. */
struct mac_store {
	struct mac_stored *at; /* a ring that grows to what the bytes allow */
	uint32_t room;	       /* a power of two */
	uint64_t first, next,
		end;	/* numbers of the oldest, of the first not in rx_frame, behind the last */
	uint64_t bytes; /* with FCS */
	uint64_t limit_bytes;
	uint64_t limit_frames;
};

struct mac_rx_side {
	struct mac_store store;
	bool is_holding;   /* the peer is held back */
	bool is_storm;	   /* it would be, but nothing leaves the buffer */
	uint64_t moved_ps; /* a frame left the buffer last */
};

struct mac_tx_side {
	struct rn_line line;
	bool is_paused; /* by the peer */
	uint64_t paused_until_ps;
	uint64_t paused_since_ps;  /* up to there it is counted */
	bool is_holding;	   /* as the receiving half says */
	bool is_due;		   /* a pause frame is to be sent */
	uint64_t again_ps;	   /* the next one, while holding */
	uint64_t holding_since_ps; /* up to there it is counted */
};

struct rn_mac {
	const struct rn_nic_env *env;
	struct rn_mac_ports ports;
	struct rn_mac_params params;
	struct rn_cable cable;
	struct rn_clock clock;
	uint64_t pause_ps; /* what note_traffic() takes for one */
	uint64_t active_until_ps;
	struct mac_counters count;
	char *name, *tx_name, *rx_name;
	struct rn_block tx, rx;
	struct rn_fifo pause; /* struct mac_pause, from rx to tx */
	struct mac_tx_side sender;
	struct mac_rx_side receiver;
};

void rn_mac_tx_tick(void *mac, uint64_t cycle);
void rn_mac_rx_tick(void *mac, uint64_t cycle);
void rn_mac_rx_init(struct rn_mac *mac);
void rn_mac_rx_fini(struct rn_mac *mac);

/** A frame of @bytes was sent or received. */
void rn_mac_note_traffic(struct rn_mac *mac, uint32_t bytes);

#endif
