/*
 * Completion queue as software sees it: CQEs told apart from old ones by the parity in their owner
 * byte, the consumer index in the doorbell record, and the arm doorbell. The caller serialises.
 */
#ifndef RN_QUEUE_CQ_H
#define RN_QUEUE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"

struct rn_cq {
	uint8_t *ring;		  /* cqes * 64 bytes, zeroed before the NIC uses it */
	struct rn_hw_cq_dbr *dbr; /* may be NULL: then the caller keeps the record */
	uint32_t cqes;		  /* power of two */
	uint32_t cqn;
	uint32_t ci;	   /* free running */
	uint32_t arm_sn;   /* advances when an event of the CQ has been consumed */
	uint32_t arm_ci;   /* index of the last arm */
	uint32_t notified; /* CQEs before this index have had their event */
};

/** Set up @cq; the memory stays the caller's. @dbr is zeroed. */
void rn_cq_init(struct rn_cq *cq, void *ring, struct rn_hw_cq_dbr *dbr, uint32_t cqes);

/**
 * The next CQE, or NULL. Its body may be read after the call (the owner byte was load-acquired); it
 * stays valid until the consumer index is published.
 */
const struct rn_hw_cqe *rn_cq_peek(const struct rn_cq *cq);

/** Step over the CQE that rn_cq_peek() gave. */
void rn_cq_advance(struct rn_cq *cq);

/** Publish the consumer index in the doorbell record: the NIC may overwrite what was consumed. */
void rn_cq_publish(struct rn_cq *cq);

/**
 * The arm write (8 bytes at RN_UAR_CQ_ARM); also stores its command word in the doorbell record. Its index is the
 * consumer index, or behind the CQE of the last event if that has not been consumed yet: programs arm between
 * the event and the poll, and one CQE shall not raise two events. Since the NIC takes it for the consumer index, which
 * it may be ahead of by one, a ring has one entry more than completions can be outstanding.
 */
struct rn_hw_cq_arm rn_cq_arm(struct rn_cq *cq, bool solicited_only);

/** An event of the CQ has been taken from its completion channel. */
void rn_cq_event(struct rn_cq *cq);

/**
 * Remove the CQEs of a QP that no longer exists and publish the consumer index. The NIC must have
 * finished with the QP. Returns how many went away; @drop, if any, is called for each first.
 */
uint32_t rn_cq_clean(struct rn_cq *cq, uint32_t qpn,
		     void (*drop)(void *user, const struct rn_hw_cqe *cqe), void *user);

/** True for a completion of a receive WQE. */
static inline bool rn_cqe_is_recv(const struct rn_hw_cqe *cqe)
{
	return cqe->opcode == RN_CQE_RECV || cqe->opcode == RN_CQE_RECV_IMM ||
	       cqe->opcode == RN_CQE_RECV_WRITE_IMM || cqe->opcode == RN_CQE_RECV_ERR;
}

#endif
