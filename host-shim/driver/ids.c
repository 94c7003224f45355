/*
 * Cyclic allocator of numbers; see ids.h.
 */
#include "driver/ids.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

void rn_ids_init(struct rn_ids *ids, uint32_t first, uint32_t end, uint32_t limit, uint32_t start)
{
	RN_ASSERT(first < end && start >= first && start < end);
	ids->used_bits = rn_calloc((size_t)end / 64 + 1, sizeof(*ids->used_bits));
	ids->first = first;
	ids->end = end;
	ids->next = start;
	ids->limit = limit < end - first ? limit : end - first;
	ids->used = 0;
}

void rn_ids_fini(struct rn_ids *ids)
{
	free(ids->used_bits);
	ids->used_bits = NULL;
}

/* First free number at or behind @from and below @end, or @end. */
static uint32_t find_free(const struct rn_ids *ids, uint32_t from, uint32_t end)
{
	while (from < end) {
		const uint64_t free_bits = ~ids->used_bits[from / 64] >> (from % 64);

		if (free_bits) {
			const uint64_t id = from + (uint64_t)__builtin_ctzll(free_bits);

			return id < end ? (uint32_t)id : end;
		}
		from = (from / 64 + 1) * 64;
	}
	return end;
}

bool rn_ids_get(struct rn_ids *ids, uint32_t *id)
{
	if (ids->used >= ids->limit)
		return false;

	uint32_t found = find_free(ids, ids->next, ids->end);

	if (found == ids->end)
		found = find_free(ids, ids->first, ids->next);
	ids->used_bits[found / 64] |= UINT64_C(1) << found % 64;
	ids->used++;
	ids->next = found + 1 == ids->end ? ids->first : found + 1;
	*id = found;
	return true;
}

void rn_ids_put(struct rn_ids *ids, uint32_t id)
{
	RN_ASSERT(ids->used_bits[id / 64] >> id % 64 & 1);
	ids->used_bits[id / 64] &= ~(UINT64_C(1) << id % 64);
	ids->used--;
}
