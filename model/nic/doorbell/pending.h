/*
 * Doorbells kept on the chip, one per QP, until the fifo behind takes them: the latest value of a
 * QP replaces the one before it, so nothing that rings often can fill it.
 */
#ifndef RN_NIC_DOORBELL_PENDING_H
#define RN_NIC_DOORBELL_PENDING_H

#include <stdbool.h>
#include <stdint.h>

struct rn_doorbell_kept {
	uint32_t qpn;
	uint32_t uar_page;
	uint16_t pi; /* meaningless for a receive queue kick */
};

struct rn_doorbell_pending;

/** Table for QPNs 0 .. @max_qps - 1, empty. */
struct rn_doorbell_pending *rn_doorbell_pending_new(uint32_t max_qps);
void rn_doorbell_pending_free(struct rn_doorbell_pending *pending);

/** Whether any doorbell is kept. */
bool rn_doorbell_pending_any(const struct rn_doorbell_pending *pending);

/** Whether @kept can be kept: its QPN is in the table and no doorbell from another page is kept for it. */
bool rn_doorbell_pending_can_keep(const struct rn_doorbell_pending *pending,
				  const struct rn_doorbell_kept *kept);

/** Keep a doorbell, replacing the QP's older one; can_keep holds. */
void rn_doorbell_pending_keep(struct rn_doorbell_pending *pending,
			      const struct rn_doorbell_kept *kept);

/** The doorbell that has waited longest; false when there is none. */
bool rn_doorbell_pending_first(const struct rn_doorbell_pending *pending,
			       struct rn_doorbell_kept *kept);

/** Remove the doorbell that first returns. */
void rn_doorbell_pending_drop(struct rn_doorbell_pending *pending);

#endif
