/*
 * All pages back at once, found in the address map rather than in the pinning tables: what the program has moved
 * or unmapped is treated as it lies now. Calls nothing that a child after fork may not call.
 */
#include "verbs/pin_all.h"

#include "verbs/swap.h"

struct collect {
	const struct rn_maps_arena *arena;
	unsigned count;
	struct {
		uint64_t va, pages;
	} range[256];
};

static bool collect_vma(void *user, const struct rn_vma *vma)
{
	struct collect *c = user;

	if (!vma->shared || vma->dev != c->arena->dev || vma->inode != c->arena->inode)
		return true;
	c->range[c->count].va = vma->start;
	c->range[c->count].pages = (vma->end - vma->start) / RN_PAGE_BYTES;
	return ++c->count < sizeof(c->range) / sizeof(c->range[0]);
}

void rn_pin_all_back(const struct rn_maps_arena *arena)
{
	struct collect c = {.arena = arena};
	uint64_t from = 0;

	do {
		c.count = 0;
		rn_maps_walk(from, collect_vma, &c);
		for (unsigned i = 0; i < c.count; i++) {
			from = c.range[i].va + c.range[i].pages * RN_PAGE_BYTES;
			rn_swap_out(c.range[i].va, (unsigned)c.range[i].pages);
		}
	} while (c.count == sizeof(c.range) / sizeof(c.range[0]));
}
