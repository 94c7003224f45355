/*
 * Priority flow control (IEEE 802.1Qbb) on a link: MAC control frames of opcode 0x0101 hold one priority of the
 * peer back for a number of quanta. All RoCE traffic is one lossless class, priority 3.
 */
#ifndef RN_WIRE_PAUSE_H
#define RN_WIRE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/line.h"
#include "wire/packet.h"

#define RN_PAUSE_PRIORITY 3u
#define RN_PAUSE_QUANTUM_BITS 512u /* times of a bit on the line */
#define RN_PAUSE_QUANTA_MAX 0xffffu

/* A link as both of its ends see it. */
struct rn_cable {
	uint64_t bps;	   /* a multiple of 10^6 */
	uint64_t delay_ps; /* one way */
	/* From a frame's last bit at a MAC to its pause on the line, and from that pause's last bit to the peer's halt. */
	uint64_t reaction_ps;
	bool is_lossless; /* priority flow control; else frames without room are dropped */
};

/** How long @quanta hold the sender back. */
static inline uint64_t rn_pause_ps(const struct rn_cable *cable, uint32_t quanta)
{
	return (uint64_t)quanta * RN_PAUSE_QUANTUM_BITS * 1000000u / (cable->bps / 1000000u);
}

/**
 * Bytes that can still arrive when a receive buffer has come to its threshold: the frame that took it there; all that
 * the line carries while the own line is busy with the largest frame, the pause goes out, crosses the cable and
 * takes effect, and the cable is emptied; and the frame that the peer has just begun.
 */
static inline uint64_t rn_headroom_bytes(const struct rn_cable *cable)
{
	const uint64_t largest = RN_PACKET_MAX_BYTES + RN_LINE_FCS_BYTES;
	const uint64_t mbps = cable->bps / 1000000u;
	uint64_t flight_ps = 2 * cable->delay_ps + cable->reaction_ps;

	return 2 * largest + rn_line_bytes(RN_PACKET_MAX_BYTES) + rn_line_bytes(0) +
	       mbps * flight_ps / 8000000u + 1;
}

/** A pause frame of @quanta (0: go on) from the port with address @smac. */
uint32_t rn_pause_new(struct rn_packets *packets, const uint8_t smac[6], uint32_t quanta);

/** Frame of a pause, without FCS: RN_LINE_MIN_FRAME_BYTES. */
uint32_t rn_pause_encode(const struct rn_packet *packet, uint8_t *to);

#endif
