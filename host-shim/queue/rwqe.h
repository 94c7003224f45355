/*
 * Receive queue of a QP as software sees it: a ring of receive WQEs, each an array of data segments
 * (a power of two of them), and the doorbell record the NIC reads. Posting rings nothing: the NIC
 * reads the record when its cached producer index is used up.
 */
#ifndef RN_QUEUE_RWQE_H
#define RN_QUEUE_RWQE_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"
#include "queue/wqe.h"

struct rn_rq {
	uint8_t *ring;	   /* wqes * segments * 16 bytes */
	uint64_t *wr_id;   /* wqes entries */
	uint32_t wqes;	   /* power of two, at most 32768 */
	uint32_t segments; /* data segments of a WQE, power of two */
	uint32_t max_sge;  /* at most segments */
	uint32_t pi;	   /* free running */
	uint32_t ci;
};

/** Set up @rq; @ring and @wr_id stay the caller's. */
void rn_rq_init(struct rn_rq *rq, void *ring, uint64_t *wr_id, uint32_t wqes, uint32_t segments);

/** Forget everything posted (QP to RESET). */
void rn_rq_reset(struct rn_rq *rq);

/** Build one receive WQE; the caller stores rn_rq.pi in the doorbell record (rn_dbr_store) afterwards. */
enum rn_post_status rn_rq_post(struct rn_rq *rq, uint64_t wr_id,
			       const struct rn_hw_wqe_data *segments, uint32_t segment_count);

/** Retire the receive WQE @wqe_idx and all before it. False when it is not outstanding. */
bool rn_rq_retire(struct rn_rq *rq, uint16_t wqe_idx, uint64_t *wr_id);

/** Store an index in a doorbell record's word so that the WQEs written before are seen first. */
static inline void rn_dbr_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#endif
