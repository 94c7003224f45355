/*
 * Pages back, found in the address map rather than in the pinning tables: what the program has moved or unmapped is
 * treated as it lies now. Calls nothing that a child after fork may not call.
 */
#include "verbs/pin_all.h"

#include <sys/mman.h>

#include "verbs/raw.h"
#include "verbs/swap.h"

#define RANGES_MAX 256u

struct collect {
	const struct rn_maps_arena *arena;
	const uint64_t *offsets; /* NULL: all */
	unsigned offset_count;
	unsigned count;
	uint64_t end; /* of the last one */
	struct {
		uint64_t va, pages;
		int protection;
	} range[RANGES_MAX];
};

int rn_pin_back(uint64_t va, unsigned pages, int protection)
{
	const int all = PROT_READ | PROT_WRITE;
	void *at = (void *)(uintptr_t)va;
	const size_t bytes = (size_t)pages * RN_PAGE_BYTES;
	int error;

	/* What nobody may write to nobody misses for a moment. */
	if (protection != all)
		rn_raw_mprotect(at, bytes, all);
	error = rn_swap_out(va, pages);
	if (protection != all)
		rn_raw_mprotect(at, bytes, protection);
	return error;
}

static int protection_of(const struct rn_vma *vma)
{
	return (vma->readable ? PROT_READ : 0) | (vma->writable ? PROT_WRITE : 0) |
	       (vma->executable ? PROT_EXEC : 0);
}

static bool add(struct collect *c, const struct rn_vma *vma, uint64_t va, uint64_t pages)
{
	c->range[c->count].va = va;
	c->range[c->count].pages = pages;
	c->range[c->count].protection = protection_of(vma);
	c->end = va + pages * RN_PAGE_BYTES;
	return ++c->count < RANGES_MAX;
}

/* Pages of the mapping that are wanted. */
static bool add_wanted(struct collect *c, const struct rn_vma *vma)
{
	const uint64_t end = vma->offset + (vma->end - vma->start);

	for (unsigned n = 0; n < c->offset_count; n++) {
		const uint64_t va = vma->start + (c->offsets[n] - vma->offset);

		if (c->offsets[n] < vma->offset || c->offsets[n] >= end || va < c->end)
			continue;
		if (!add(c, vma, va, 1))
			return false;
	}
	return true;
}

static bool collect_vma(void *user, const struct rn_vma *vma)
{
	struct collect *c = user;

	if (!vma->shared || vma->dev != c->arena->dev || vma->inode != c->arena->inode)
		return true;
	if (c->offsets)
		return add_wanted(c, vma);
	return add(c, vma, vma->start, (vma->end - vma->start) / RN_PAGE_BYTES);
}

static bool bring_back(struct collect *c)
{
	bool all = true;

	do {
		c->count = 0;
		rn_maps_walk(c->end, collect_vma, c);
		for (unsigned i = 0; i < c->count; i++)
			if (rn_pin_back(c->range[i].va, (unsigned)c->range[i].pages,
					c->range[i].protection))
				all = false;
	} while (c->count == RANGES_MAX);
	return all;
}

void rn_pin_all_back(const struct rn_maps_arena *arena)
{
	struct collect c = {.arena = arena};

	bring_back(&c);
}

bool rn_pin_moved_back(const struct rn_maps_arena *arena, const uint64_t *offsets, unsigned count)
{
	struct collect c = {.arena = arena, .offsets = offsets, .offset_count = count};

	return bring_back(&c);
}
