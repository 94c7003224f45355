/*
 * Send queue of a QP as software sees it: WQEs built into a ring of 64-byte WQEBBs, a doorbell or
 * BlueFlame image to announce them, and the bookkeeping that turns a completion back into a
 * work request. Pure functions on memory that the caller owns; the caller serialises per queue.
 *
 * A WQE may wrap around the end of the ring. Indexes run freely in 32 bits; hardware sees 16.
 */
#ifndef RN_QUEUE_WQE_H
#define RN_QUEUE_WQE_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"

/** What software remembers of a posted send WQE, one slot a WQEBB, kept at its first WQEBB. */
struct rn_sq_slot {
	uint64_t wr_id;
	uint32_t post_idx; /* number of WQEs posted before it, free running */
	uint16_t wqe_idx;  /* as in the WQE: tells a stale completion */
	uint8_t wqebbs;
	uint8_t opcode; /* enum rn_wqe_opcode */
};

struct rn_sq {
	uint8_t *ring;		 /* wqebbs * 64 bytes */
	struct rn_sq_slot *slot; /* wqebbs entries */
	uint32_t wqebbs;	 /* power of two, at most 32768 */
	uint32_t max_wqes;	 /* outstanding WQEs allowed */
	uint32_t qpn;
	uint32_t pi; /* WQEBBs, free running */
	uint32_t ci;
	uint32_t posted; /* WQEs, free running */
	uint32_t retired;
};

/** One send work request. With RN_WQE_INLINE in @flags the segments' va are pointers and lkeys are ignored. */
struct rn_send_request {
	uint8_t opcode; /* enum rn_wqe_opcode */
	uint8_t flags;	/* enum rn_wqe_flag */
	uint32_t imm_be;
	uint32_t rkey;
	uint64_t raddr;
	uint64_t wr_id;
	const struct rn_hw_wqe_data *segments;
	uint32_t segment_count;
};

enum rn_post_status {
	RN_POST_OK,
	RN_POST_FULL,	   /* no room in the ring, or max_wqes outstanding */
	RN_POST_TOO_LONG,  /* more segments or inline bytes than a WQE holds */
	RN_POST_BAD_OPCODE /* not an enum rn_wqe_opcode */
};

/**
 * WQEBBs that a WQE with @segments data segments (or @inline_bytes of inline data, when @segments is 0) takes.
 * 0: it does not fit into a WQE.
 */
uint32_t rn_sq_wqebbs(uint8_t opcode, uint32_t segments, uint32_t inline_bytes);

/** Set up @sq over zeroed or dirty memory; @ring and @slot stay the caller's. */
void rn_sq_init(struct rn_sq *sq, void *ring, struct rn_sq_slot *slot, uint32_t wqebbs,
		uint32_t max_wqes);

/** Forget everything posted (QP to RESET): indexes start from 0 again. */
void rn_sq_reset(struct rn_sq *sq);

/**
 * Build one WQE at the producer index and advance it. Nothing is announced to the NIC.
 * Zero-length segments are kept; nothing changes unless the answer is RN_POST_OK.
 */
enum rn_post_status rn_sq_post(struct rn_sq *sq, const struct rn_send_request *request);

/** The doorbell write (8 bytes at RN_UAR_SQ_DOORBELL) that announces everything posted. */
struct rn_hw_sq_doorbell rn_sq_doorbell(const struct rn_sq *sq);

/**
 * BlueFlame image of the WQE posted last: copies its WQEBBs, unwrapped, to @image.
 * Returns the bytes (a multiple of 64), or 0 when it is longer than RN_UAR_BLUEFLAME_BYTES.
 */
uint32_t rn_sq_blueflame(const struct rn_sq *sq, uint8_t image[RN_UAR_BLUEFLAME_BYTES]);

/**
 * Retire the WQE with index @wqe_idx and all before it (a send completion, or an error completion).
 * Returns its slot, valid until the next post, or NULL when no outstanding WQE has this index.
 */
const struct rn_sq_slot *rn_sq_retire(struct rn_sq *sq, uint16_t wqe_idx);

#endif
