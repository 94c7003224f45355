/*
 * Per-QP kept doorbells: an array indexed by QPN, the kept ones linked in order of arrival.
 */
#include "nic/doorbell/pending.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

#define NO_QP UINT32_MAX

struct entry {
	uint32_t uar_page;
	uint32_t next;
	uint16_t pi;
	bool is_kept;
};

struct rn_doorbell_pending {
	uint32_t max_qps;
	uint32_t first;
	uint32_t last;
	struct entry *entry;
};

struct rn_doorbell_pending *rn_doorbell_pending_new(uint32_t max_qps)
{
	struct rn_doorbell_pending *pending = rn_calloc(1, sizeof(*pending));

	pending->max_qps = max_qps;
	pending->first = NO_QP;
	pending->entry = rn_calloc(max_qps, sizeof(struct entry));
	return pending;
}

void rn_doorbell_pending_free(struct rn_doorbell_pending *pending)
{
	if (!pending)
		return;
	free(pending->entry);
	free(pending);
}

bool rn_doorbell_pending_any(const struct rn_doorbell_pending *pending)
{
	return pending->first != NO_QP;
}

bool rn_doorbell_pending_can_keep(const struct rn_doorbell_pending *pending,
				  const struct rn_doorbell_kept *kept)
{
	if (kept->qpn >= pending->max_qps)
		return false;
	return !pending->entry[kept->qpn].is_kept ||
	       pending->entry[kept->qpn].uar_page == kept->uar_page;
}

void rn_doorbell_pending_keep(struct rn_doorbell_pending *pending,
			      const struct rn_doorbell_kept *kept)
{
	RN_ASSERT(rn_doorbell_pending_can_keep(pending, kept));
	struct entry *entry = &pending->entry[kept->qpn];

	entry->uar_page = kept->uar_page;
	entry->pi = kept->pi;
	if (entry->is_kept)
		return;
	entry->is_kept = true;
	entry->next = NO_QP;
	if (pending->first == NO_QP)
		pending->first = kept->qpn;
	else
		pending->entry[pending->last].next = kept->qpn;
	pending->last = kept->qpn;
}

bool rn_doorbell_pending_first(const struct rn_doorbell_pending *pending,
			       struct rn_doorbell_kept *kept)
{
	if (pending->first == NO_QP)
		return false;
	const struct entry *entry = &pending->entry[pending->first];

	kept->qpn = pending->first;
	kept->uar_page = entry->uar_page;
	kept->pi = entry->pi;
	return true;
}

void rn_doorbell_pending_drop(struct rn_doorbell_pending *pending)
{
	RN_ASSERT(pending->first != NO_QP);
	struct entry *entry = &pending->entry[pending->first];

	entry->is_kept = false;
	pending->first = entry->next;
}
