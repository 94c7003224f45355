/*
 * A queue of fixed-size entries that grows while a run warms up: what is under way inside the
 * root complex at once is bounded by credits and latencies, not by a number known beforehand.
 */
#ifndef RN_PCIE_RING_H
#define RN_PCIE_RING_H

#include <stdbool.h>
#include <stdint.h>

struct rn_ring {
	uint8_t *data;
	uint32_t entry_bytes;
	uint32_t capacity; /* power of two */
	uint64_t head;	   /* entries popped so far */
	uint64_t tail;	   /* entries pushed so far */
};

void rn_ring_init(struct rn_ring *ring, uint32_t entry_bytes);
void rn_ring_fini(struct rn_ring *ring);

/* Double the capacity. */
void rn_ring_grow(struct rn_ring *ring);

static inline bool rn_ring_is_empty(const struct rn_ring *ring)
{
	return ring->head == ring->tail;
}

/** Entry number @nth since the start, head .. tail - 1; valid until the next push. */
static inline void *rn_ring_at(const struct rn_ring *ring, uint64_t nth)
{
	return ring->data + (nth & (ring->capacity - 1)) * ring->entry_bytes;
}

/** The new last entry, to be filled in. */
static inline void *rn_ring_push(struct rn_ring *ring)
{
	if (ring->tail - ring->head == ring->capacity)
		rn_ring_grow(ring);
	return rn_ring_at(ring, ring->tail++);
}

/** The oldest entry, or NULL. */
static inline void *rn_ring_front(const struct rn_ring *ring)
{
	return rn_ring_is_empty(ring) ? (void *)0 : rn_ring_at(ring, ring->head);
}

static inline void rn_ring_pop(struct rn_ring *ring)
{
	ring->head++;
}

#endif
