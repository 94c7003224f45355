#include "pcie/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define INITIAL_ENTRIES 64

void rn_ring_init(struct rn_ring *ring, uint32_t entry_bytes)
{
	*ring = (struct rn_ring){
		.data = rn_calloc(INITIAL_ENTRIES, entry_bytes),
		.entry_bytes = entry_bytes,
		.capacity = INITIAL_ENTRIES,
	};
}

void rn_ring_fini(struct rn_ring *ring)
{
	free(ring->data);
	*ring = (struct rn_ring){0};
}

void rn_ring_grow(struct rn_ring *ring)
{
	struct rn_ring old = *ring;

	ring->capacity *= 2;
	ring->data = rn_calloc(ring->capacity, ring->entry_bytes);
	for (uint64_t nth = old.head; nth != old.tail; nth++)
		memcpy(rn_ring_at(ring, nth), rn_ring_at(&old, nth), old.entry_bytes);
	free(old.data);
}
