/*
 * The send and receive work path: scheduler, WQE fetcher, transport.
 *
 *   doorbell -ring-> sched -grant-> wqe_fetch -work-> transport tx
 *                      ^------------- turn / activate ------'
 *
 * A queue pair has at most one grant outstanding; its turn message ends it. A grant lets the
 * queue pair send up to a quantum of one WQE. sq_next in the QPC's requester section names the
 * WQE to go on with; tx advances it when a WQE's last packet has been built and sets it back
 * for a retransmission.
 */
#ifndef RN_NIC_MSG_WORK_H
#define RN_NIC_MSG_WORK_H

#include <stdint.h>

#define RN_WQE_MAX_SGE 32
#define RN_WQE_MAX_INLINE 976

struct rn_sge {
	uint64_t va;
	uint32_t bytes; /* 0 .. 2^31 */
	uint32_t lkey;
};

/* A decoded WQE in the WQE buffer. wqe_fetch writes a slot before it names it in a message, the
 * receiver of that message reads it until it gives the slot back. */
struct rn_wqe {
	uint64_t raddr;
	uint64_t total_bytes; /* sum of the SGEs, or inline bytes */
	uint32_t rkey;
	uint32_t imm_be;
	uint32_t inline_buf; /* rn_buffers index, RN_BUFFER_NONE without inline data; owned by the slot */
	uint16_t wqe_idx;
	uint8_t wqebbs; /* length of the WQE in WQEBBs */
	uint8_t opcode; /* enum rn_wqe_opcode */
	uint8_t flags;	/* enum rn_wqe_flag */
	uint8_t sge_count;
	uint8_t valid; /* 0: malformed (length, opcode, wrong index or QPN): local QP operation error */
	uint8_t reserved;
	struct rn_sge sge[RN_WQE_MAX_SGE];
};

struct rn_wqe_slots {
	struct rn_wqe *slot;
	uint32_t count;
};

/* sched -> wqe_fetch */
struct rn_grant {
	uint32_t qpn;
	uint32_t uar_page; /* of the doorbell, to be checked against the QPC */
	uint16_t pi;	   /* producer index known */
	uint16_t bind; /* 1: the scheduler does not know the QP's doorbell page yet; answered with rn_bind */
};

/* wqe_fetch -> sched: the doorbell page of a queue pair, once in its life */
struct rn_bind {
	uint32_t qpn;
	uint32_t uar_page;
	uint32_t exists; /* 0: there is no such queue pair */
};

enum rn_work_status {
	RN_WORK_OK,
	RN_WORK_BAD_QP, /* no such QP, wrong doorbell page, not in a state that sends: dropped and counted */
	RN_WORK_DMA_ERROR, /* the WQE could not be read */
	RN_WORK_EMPTY, /* receive: producer index reached; send: sq_next has reached it, nothing to do */
};

/* wqe_fetch -> transport tx */
struct rn_work {
	uint32_t qpn;
	uint32_t slot; /* valid when status is OK */
	uint16_t pi;
	uint8_t status;
	uint8_t reserved;
};

/* transport tx -> wqe_fetch: slot back */
struct rn_slot_free {
	uint32_t slot;
};

/* transport tx -> wqe_fetch: forget prefetched WQEs of this QP (set-back, error, reset) */
struct rn_wqe_forget {
	uint32_t qpn;
};

/* transport tx -> sched */
enum rn_turn_kind {
	RN_TURN_END,  /* ends the grant; next = sq_next. The QP is runnable while next != pi */
	RN_TURN_PARK, /* ends the grant; the QP waits for ACTIVATE although next != pi */
	RN_TURN_ACTIVATE, /* no grant ends; the QP is runnable again, next = sq_next (may be set back) */
	RN_TURN_RESET, /* forget the QP: pi = next = given value, not parked. No grant ends: one that is outstanding
			     is still ended by its own END or PARK, of which next is then ignored */
};

struct rn_turn {
	uint32_t qpn;
	uint8_t kind;
	uint8_t reserved;
	uint16_t next;
};

/* transport rx -> wqe_fetch: receive WQE @idx of the QP */
struct rn_rq_fetch {
	uint32_t qpn;
	uint16_t idx;
	uint8_t pi_only; /* 1: only read the producer index afresh */
	uint8_t forget; /* 1: forget prefetched receive WQEs and the cached producer index; not answered */
	uint16_t token;
	uint16_t reserved;
};

struct rn_rq_fetch_rsp {
	uint16_t token;
	uint16_t pi;	/* producer index last read */
	uint8_t status; /* enum rn_work_status */
	uint8_t reserved[3];
	uint32_t slot;
};

#endif
