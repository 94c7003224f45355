/*
 * Memory of rings and doorbell records: pinned once in chunks, which many queues share, as providers do. What one costs
 * does not depend on how many there are.
 */
#ifndef RN_VERBS_RING_H
#define RN_VERBS_RING_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct rn_conn;
struct rn_ring_chunk;

#define RN_RING_CLASSES 8 /* doorbell records; rings of 1, 2, 4 ... 64 pages */

/* A connection's chunks with room, one list a class. */
struct rn_rings {
	pthread_mutex_t lock;
	struct rn_ring_chunk *roomy[RN_RING_CLASSES];
	uint32_t chunks[RN_RING_CLASSES];
};

struct rn_ring {
	uint8_t *base; /* page aligned, zeroed; NULL for 0 bytes */
	size_t bytes;
	void *dbr;		     /* 64 bytes, zeroed */
	struct rn_ring_chunk *chunk; /* NULL: a mapping of its own, or none */
	struct rn_ring_chunk *dbr_chunk;
};

void rn_rings_init(struct rn_rings *rings);

/** Allocate and pin ring memory of @bytes (whole pages) and a doorbell record. 0, ENOMEM or the driver's errno. */
int rn_ring_new(struct rn_conn *conn, size_t bytes, struct rn_ring *ring);

/** The NIC refers to it no more. Freeing what rn_ring_new() has not filled in does nothing. */
void rn_ring_free(struct rn_conn *conn, struct rn_ring *ring);

#endif
