/*
 * Pending arms: an array indexed by CQN, the CQs with something pending linked in order of arrival.
 */
#include "nic/cqe/arms.h"

#include <stdlib.h>

#include "base/mem.h"

#define NO_CQ UINT32_MAX

struct entry {
	struct rn_cq_pending pending;
	uint32_t next;
	bool is_queued;
};

struct rn_cq_arms {
	uint32_t max_cqs;
	uint32_t first;
	uint32_t last;
	struct entry *entry;
};

struct rn_cq_arms *rn_cq_arms_new(uint32_t max_cqs)
{
	struct rn_cq_arms *arms = rn_calloc(1, sizeof(*arms));

	arms->max_cqs = max_cqs;
	arms->first = NO_CQ;
	arms->entry = rn_calloc(max_cqs, sizeof(struct entry));
	return arms;
}

void rn_cq_arms_free(struct rn_cq_arms *arms)
{
	if (!arms)
		return;
	free(arms->entry);
	free(arms);
}

static void enqueue(struct rn_cq_arms *arms, uint32_t cqn)
{
	struct entry *entry = &arms->entry[cqn];

	if (entry->is_queued)
		return;
	entry->is_queued = true;
	entry->next = NO_CQ;
	if (arms->first == NO_CQ)
		arms->first = cqn;
	else
		arms->entry[arms->last].next = cqn;
	arms->last = cqn;
}

/* "Next" includes "next solicited"; the newer consumer index counts. */
static void merge(struct rn_cq_ring *old, const struct rn_cq_ring *ring)
{
	uint8_t solicited = old->solicited && ring->solicited;

	*old = *ring;
	old->solicited = solicited;
}

bool rn_cq_arms_add(struct rn_cq_arms *arms, const struct rn_cq_ring *ring)
{
	if (ring->cqn >= arms->max_cqs)
		return false;
	struct rn_cq_pending *pending = &arms->entry[ring->cqn].pending;

	for (uint32_t i = 0; i < pending->arms; i++)
		if (pending->arm[i].uar_page == ring->uar_page) {
			merge(&pending->arm[i], ring);
			return true;
		}
	if (pending->arms == sizeof(pending->arm) / sizeof(pending->arm[0]))
		return false;
	pending->arm[pending->arms++] = *ring;
	enqueue(arms, ring->cqn);
	return true;
}

void rn_cq_arms_add_failure(struct rn_cq_arms *arms, uint32_t cqn)
{
	if (cqn >= arms->max_cqs)
		return;
	arms->entry[cqn].pending.has_failed = true;
	enqueue(arms, cqn);
}

bool rn_cq_arms_has_failure(const struct rn_cq_arms *arms, uint32_t cqn)
{
	return cqn < arms->max_cqs && arms->entry[cqn].pending.has_failed;
}

bool rn_cq_arms_is_empty(const struct rn_cq_arms *arms)
{
	return arms->first == NO_CQ;
}

bool rn_cq_arms_take(struct rn_cq_arms *arms, uint32_t *cqn, struct rn_cq_pending *pending)
{
	if (arms->first == NO_CQ)
		return false;
	struct entry *entry = &arms->entry[arms->first];

	*cqn = arms->first;
	*pending = entry->pending;
	entry->pending = (struct rn_cq_pending){0};
	entry->is_queued = false;
	arms->first = entry->next;
	return true;
}
