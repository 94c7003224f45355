/*
 * Cyclic allocator of numbers; see ids.h.
 */
#include "driver/ids.h"

#include "base/assert.h"

void rn_ids_init(struct rn_ids *ids, uint32_t first, uint32_t end, uint32_t limit, uint32_t start)
{
	RN_ASSERT(first < end && start >= first && start < end);
	rn_bitset_init(&ids->unused, end);
	rn_bitset_fill(&ids->unused, first, end);
	ids->first = first;
	ids->end = end;
	ids->next = start;
	ids->limit = limit < end - first ? limit : end - first;
	ids->used = 0;
}

void rn_ids_fini(struct rn_ids *ids)
{
	rn_bitset_fini(&ids->unused);
}

bool rn_ids_get(struct rn_ids *ids, uint32_t *id)
{
	if (ids->used >= ids->limit)
		return false;

	uint64_t found = rn_bitset_next(&ids->unused, ids->next);

	if (found == ids->end)
		found = rn_bitset_next(&ids->unused, ids->first);
	RN_ASSERT(found < ids->end);
	rn_bitset_remove(&ids->unused, found);
	ids->used++;
	*id = (uint32_t)found;
	ids->next = *id + 1 == ids->end ? ids->first : *id + 1;
	return true;
}

void rn_ids_put(struct rn_ids *ids, uint32_t id)
{
	RN_ASSERT(id >= ids->first && id < ids->end);
	rn_bitset_add(&ids->unused, id);
	ids->used--;
}
