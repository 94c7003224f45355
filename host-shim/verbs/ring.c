/*
 * Chunks of equal slots: one class a slot size, a bitmap of up to 64 slots a chunk, chunks with room in a list. The
 * first chunk of a class is small, later ones double, and an empty one goes at once.
 */
#include "verbs/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "verbs/conn.h"
#include "verbs/maps.h"
#include "verbs/pin.h"
#include "verbs/raw.h"

#define DBR_BYTES 64u
#define DBR_CLASS 0u
#define MIN_SLOTS_LOG2 2u
#define MAX_SLOTS_LOG2 6u
#define MAX_CHUNK_PAGES_LOG2 8u
#define MAX_RING_PAGES (1u << (RN_RING_CLASSES - 2))

struct rn_ring_chunk {
	struct rn_ring_chunk *next, *prev; /* among those with room */
	uint8_t *base;
	size_t bytes;
	uint64_t unused; /* bit n: slot n */
	uint32_t slots;
	unsigned class;
};

void rn_rings_init(struct rn_rings *rings)
{
	memset(rings, 0, sizeof(*rings));
	pthread_mutex_init(&rings->lock, NULL);
}

static size_t slot_bytes(unsigned class)
{
	return class == DBR_CLASS ? DBR_BYTES : (size_t)RN_PAGE_BYTES << (class - 1);
}

/* ---- pinned mappings ---- */

static int map_pinned(struct rn_conn *conn, size_t bytes, uint8_t **base)
{
	uint8_t *at = rn_raw_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
	int error;

	if (!at)
		return ENOMEM;
	error = rn_pin_range(conn->pin, at, bytes, RN_PIN_OWN | RN_PIN_WRITE);
	if (error)
		rn_raw_munmap(at, bytes);
	else
		*base = at;
	return error;
}

static void unmap_pinned(struct rn_conn *conn, uint8_t *base, size_t bytes)
{
	rn_unpin_discard(conn->pin, base, bytes);
	rn_raw_munmap(base, bytes);
}

/* ---- chunks; the lock is held ---- */

static void link_chunk(struct rn_rings *rings, struct rn_ring_chunk *chunk)
{
	chunk->prev = NULL;
	chunk->next = rings->roomy[chunk->class];
	if (chunk->next)
		chunk->next->prev = chunk;
	rings->roomy[chunk->class] = chunk;
}

static void unlink_chunk(struct rn_rings *rings, struct rn_ring_chunk *chunk)
{
	if (chunk->next)
		chunk->next->prev = chunk->prev;
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		rings->roomy[chunk->class] = chunk->next;
}

static uint32_t slots_log2(const struct rn_rings *rings, unsigned class)
{
	const uint64_t log2 = rn_min_u64(MIN_SLOTS_LOG2 + rings->chunks[class], MAX_SLOTS_LOG2);

	if (class == DBR_CLASS)
		return MAX_SLOTS_LOG2; /* a page */
	return (uint32_t)rn_min_u64(log2, MAX_CHUNK_PAGES_LOG2 - (class - 1));
}

static int add_chunk(struct rn_conn *conn, unsigned class)
{
	struct rn_rings *rings = &conn->rings;
	struct rn_ring_chunk *chunk = calloc(1, sizeof(*chunk));
	int error;

	if (!chunk)
		return ENOMEM;
	chunk->class = class;
	chunk->slots = 1u << slots_log2(rings, class);
	chunk->bytes = chunk->slots * slot_bytes(class);
	chunk->unused = ~UINT64_C(0) >> (64 - chunk->slots);
	error = map_pinned(conn, chunk->bytes, &chunk->base);
	if (error) {
		free(chunk);
		return error;
	}
	rings->chunks[class]++;
	link_chunk(rings, chunk);
	return 0;
}

static int take_slot(struct rn_conn *conn, unsigned class, struct rn_ring_chunk **out,
		     uint8_t **slot)
{
	struct rn_rings *rings = &conn->rings;
	const int error = rings->roomy[class] ? 0 : add_chunk(conn, class);
	struct rn_ring_chunk *chunk = rings->roomy[class];

	if (error)
		return error;

	const unsigned n = (unsigned)__builtin_ctzll(chunk->unused);

	chunk->unused &= chunk->unused - 1;
	if (!chunk->unused)
		unlink_chunk(rings, chunk);
	*out = chunk;
	*slot = chunk->base + n * slot_bytes(class);
	/* Whoever had it before left something there. */
	memset(*slot, 0, slot_bytes(class));
	return 0;
}

static void put_slot(struct rn_conn *conn, struct rn_ring_chunk *chunk, const void *slot)
{
	struct rn_rings *rings = &conn->rings;
	const size_t n = (size_t)((const uint8_t *)slot - chunk->base) / slot_bytes(chunk->class);

	if (!chunk->unused)
		link_chunk(rings, chunk);
	chunk->unused |= UINT64_C(1) << n;
	if (chunk->unused != ~UINT64_C(0) >> (64 - chunk->slots))
		return;
	unlink_chunk(rings, chunk);
	rings->chunks[chunk->class]--;
	unmap_pinned(conn, chunk->base, chunk->bytes);
	free(chunk);
}

/* ---- rings ---- */

static int take_ring(struct rn_conn *conn, size_t bytes, struct rn_ring *ring)
{
	const size_t pages = bytes / RN_PAGE_BYTES;

	if (!pages)
		return 0;
	if (pages > MAX_RING_PAGES)
		return map_pinned(conn, bytes, &ring->base);
	return take_slot(conn, 1 + rn_log2_ceil(pages), &ring->chunk, &ring->base);
}

int rn_ring_new(struct rn_conn *conn, size_t bytes, struct rn_ring *ring)
{
	uint8_t *dbr = NULL;
	int error;

	*ring = (struct rn_ring){.bytes = bytes};
	pthread_mutex_lock(&conn->rings.lock);
	error = take_ring(conn, bytes, ring);
	if (!error)
		error = take_slot(conn, DBR_CLASS, &ring->dbr_chunk, &dbr);
	ring->dbr = dbr;
	pthread_mutex_unlock(&conn->rings.lock);
	if (error)
		rn_ring_free(conn, ring);
	return error;
}

void rn_ring_free(struct rn_conn *conn, struct rn_ring *ring)
{
	pthread_mutex_lock(&conn->rings.lock);
	if (ring->chunk)
		put_slot(conn, ring->chunk, ring->base);
	else if (ring->base)
		unmap_pinned(conn, ring->base, ring->bytes);
	if (ring->dbr_chunk)
		put_slot(conn, ring->dbr_chunk, ring->dbr);
	pthread_mutex_unlock(&conn->rings.lock);
	*ring = (struct rn_ring){0};
}
