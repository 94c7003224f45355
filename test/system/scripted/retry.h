/*
 * When a retransmission must come: closed forms over times of the capture and two figures of undisturbed messages.
 *
 * On one connection a WRITE of one packet and the message of the case go twice, each alone. The second ones are warm,
 * and give what the formulas take as known:
 *
 *	W  an ACK's last bit at the NIC (rounded up to the MAC's clock) until transport has processed it
 *	L  the scheduler's grant until the first bit of the granted message's first packet
 *
 * Let T be the time of a frame's first bit in the capture, and C = (hit_cycles + 2) core cycles, in which transport gets
 * a QP's context (docs/blocks/context_cache.md; it is told to keep none while idle). A response is processed at
 *
 *	P(frame) = edge(T + (preamble + frame + FCS) * 8 / link rate + link delay) + W
 *
 * The local ACK timer starts when transport hands the first unacknowledged packet to the MAC, tx_latency_cycles before
 * its first bit, or at the last progress. Its expiry is dealt with at
 *
 *	X = start + timeout_factor * 4.096 us * 2^max(timeout, timeout_floor_log2) + C
 *
 * and one cycle later the scheduler has the turn that leads to the next grant. So the first bit sent again is at
 *
 *	timeout                X + R(timeout_reaction_cycles) + core + L
 *	NAK, or implied NAK    P + R(nak_reaction_cycles) + core + L
 *	RNR NAK                P + timer(code) + C + core + L
 *
 * where R(0) = 0 and R(n) = n cycles + C. Core and MAC run at 500 MHz here, so that edges of both fall together. The
 * line has 40 Gbit/s: what was received before a gap is in memory, and off the PCIe link, when its WQE is fetched again,
 * and a message has left when its NAK comes.
 */
#ifndef RN_TEST_SYSTEM_RETRY_H
#define RN_TEST_SYSTEM_RETRY_H

#include "frames.h"
#include "world.h"

#define RETRY_MTU 1024u
#define RETRY_CORE_PS 2000u
#define RETRY_FIRST_PSN 0xfffff4u /* PSNs wrap within the message of the case, if it has several */

/* Of the reactions, and what makes the local ACK timeout. */
struct retry_reaction {
	uint32_t nak_cycles, timeout_cycles, factor, floor_log2;
};

extern const struct retry_reaction RETRY_AT_ONCE; /* the defaults */

struct retry {
	struct world world;
	struct world_link link;
	struct rn_scripted_path path;
	struct retry_reaction reaction;
	uint8_t opcode;
	uint32_t packets; /* of the message */
	uint32_t psn;	  /* first of the message of the case */
	struct frames frames;
	/* Of the undisturbed messages. */
	uint64_t ack_processed_ps;
	uint64_t grant_to_bit_ps;
};

/** RETRY_MTU, timeout 8 (1.05 ms), RNR timer code 1, PSNs that wrap. */
struct rn_scripted_path retry_path(void);

/** Build everything and send the undisturbed messages of @opcode and @packets whole packets. */
void retry_start(struct retry *retry, uint8_t opcode, uint32_t packets,
		 const struct rn_scripted_path *path, const struct retry_reaction *reaction);

/** A fault on the frame of @class that @host sends with @psn_offset from the message's first PSN. */
unsigned retry_fault(struct retry *retry, enum rn_fault_action action, enum rn_fault_class class,
		     uint32_t host, uint32_t psn_offset, uint64_t delay_ps);

/**
 * Send the message of the case and check its completions and its data at both ends. @late_receive: post the receive after
 * the first RNR NAK, else before.
 */
void retry_transfer(struct retry *retry, bool late_receive);

/** The run is over: read stamps and capture. */
void retry_end(struct retry *retry);
void retry_fini(struct retry *retry);

/** A frame, which must be there; @psn_offset from the first PSN of the message of the case. */
const struct frame *retry_frame(const struct retry *retry, uint32_t host, enum rn_fault_class class,
				uint32_t psn_offset, unsigned nth);

uint64_t retry_processed_ps(const struct retry *retry, const struct frame *response);
/** X, for a timer that was started by @request, or at @start_ps. */
uint64_t retry_expired_ps(const struct retry *retry, const struct frame *request);
uint64_t retry_expired_from_ps(const struct retry *retry, uint64_t start_ps);
/** core + L */
uint64_t retry_resend_ps(const struct retry *retry);
/** R(@cycles) */
uint64_t retry_reaction_ps(uint32_t cycles);
/** C */
uint64_t retry_context_ps(void);

/** Fails unless @at_ps is within one core cycle of @expected_ps. */
void retry_check_time(const char *what, uint64_t at_ps, uint64_t expected_ps);

#endif
