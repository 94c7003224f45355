/*
 * On-chip table of what waits for a CQ's context: arms from doorbells, and the note that a CQE could
 * not be written. Taking an arm never waits (ADR 29); arms of one CQ merge.
 */
#ifndef RN_NIC_CQE_ARMS_H
#define RN_NIC_CQE_ARMS_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/msg/doorbell.h"

/* What is pending for one CQ. Arms come from at most two doorbell pages: the owner's and a stranger's. */
struct rn_cq_pending {
	uint32_t arms;
	struct rn_cq_ring arm[2];
	bool has_failed;
};

struct rn_cq_arms;

/** Table for CQNs 0 .. @max_cqs - 1, empty. */
struct rn_cq_arms *rn_cq_arms_new(uint32_t max_cqs);
void rn_cq_arms_free(struct rn_cq_arms *arms);

/** Note an arm. False: its CQN is beyond the table, or two other pages have arms pending. */
bool rn_cq_arms_add(struct rn_cq_arms *arms, const struct rn_cq_ring *ring);

/** Note that a CQE of @cqn could not be written; a CQN beyond the table is ignored. */
void rn_cq_arms_add_failure(struct rn_cq_arms *arms, uint32_t cqn);

/** Whether a failed write of @cqn has not been taken yet. */
bool rn_cq_arms_has_failure(const struct rn_cq_arms *arms, uint32_t cqn);

bool rn_cq_arms_is_empty(const struct rn_cq_arms *arms);

/** Take what is pending for the CQ that has waited longest; false when nothing is. */
bool rn_cq_arms_take(struct rn_cq_arms *arms, uint32_t *cqn, struct rn_cq_pending *pending);

#endif
