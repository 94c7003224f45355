/*
 * Hash table of pinned pages; see pages.h.
 */
#include "driver/pages.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/mem.h"
#include "driver/frames.h"

#define SLOTS_AT_START 64

void rn_pages_init(struct rn_pages *pages)
{
	pages->slot = rn_calloc(SLOTS_AT_START, sizeof(*pages->slot));
	pages->slots = SLOTS_AT_START;
	pages->used = 0;
	/* Where a page lies in the table changes no result, but a client shall not be able to make pages collide. */
	if (getrandom(&pages->secret, sizeof(pages->secret), GRND_NONBLOCK) < 0)
		pages->secret = (uintptr_t)pages->slot;
}

void rn_pages_fini(struct rn_pages *pages)
{
	free(pages->slot);
	pages->slot = NULL;
}

/* Sixteen neighbours stay neighbours, for a range is walked page by page; groups are scattered. */
static uint64_t home_of(const struct rn_pages *pages, uint64_t vpn)
{
	uint64_t group = (vpn >> 4) ^ pages->secret;

	group *= UINT64_C(0x9e3779b97f4a7c15);
	group ^= group >> 32;
	group *= UINT64_C(0xd6e8feb86659fd93);
	group ^= group >> 29;
	return (group << 4 | (vpn & 15)) & (pages->slots - 1);
}

/* Slot of @vpn, or the free one where it belongs. */
static uint64_t probe(const struct rn_pages *pages, uint64_t vpn)
{
	uint64_t idx = home_of(pages, vpn);

	while (pages->slot[idx].vpn && pages->slot[idx].vpn != vpn)
		idx = (idx + 1) & (pages->slots - 1);
	return idx;
}

struct rn_page *rn_pages_find(const struct rn_pages *pages, uint64_t va)
{
	struct rn_page *page = &pages->slot[probe(pages, va / RN_FRAME_BYTES + 1)];

	return page->vpn ? page : NULL;
}

static void grow(struct rn_pages *pages)
{
	struct rn_page *old = pages->slot;
	const uint64_t old_slots = pages->slots;

	pages->slots *= 2;
	pages->slot = rn_calloc(pages->slots, sizeof(*pages->slot));
	for (uint64_t idx = 0; idx < old_slots; idx++)
		if (old[idx].vpn)
			pages->slot[probe(pages, old[idx].vpn)] = old[idx];
	free(old);
}

void rn_pages_add(struct rn_pages *pages, uint64_t va, uint64_t pa)
{
	const uint64_t vpn = va / RN_FRAME_BYTES + 1;

	if (pages->used * 2 >= pages->slots)
		grow(pages);

	struct rn_page *page = &pages->slot[probe(pages, vpn)];

	RN_ASSERT(!page->vpn);
	*page = (struct rn_page){.vpn = vpn, .pa = pa, .pins = 1};
	pages->used++;
}

void rn_pages_remove(struct rn_pages *pages, struct rn_page *page)
{
	const uint64_t mask = pages->slots - 1;
	uint64_t hole = (uint64_t)(page - pages->slot);

	/* Move back what was displaced over the hole, so that probing never meets a gap. */
	for (uint64_t idx = (hole + 1) & mask; pages->slot[idx].vpn; idx = (idx + 1) & mask) {
		const uint64_t home = home_of(pages, pages->slot[idx].vpn);

		if (((idx - home) & mask) >= ((idx - hole) & mask)) {
			pages->slot[hole] = pages->slot[idx];
			hole = idx;
		}
	}
	pages->slot[hole].vpn = 0;
	pages->used--;
}
