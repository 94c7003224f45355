/*
 * Cache of prefetched WQEs: set associative by QPN, LRU, a line a QP. A line holds consecutive entries
 * (WQEBBs or receive WQEs) of its queue; the oldest is the one in work. Entries leave when the
 * queue moves past them, so that nothing is served twice across a wrap of the ring.
 */
#ifndef RN_NIC_WQE_FETCH_CACHE_H
#define RN_NIC_WQE_FETCH_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct rn_buffers;

struct rn_wqe_line {
	uint64_t used; /* LRU order; 0: free line */
	uint32_t qpn;
	uint32_t buf;	/* RN_BUFFER_NONE: no entries */
	uint16_t first; /* index of the first entry held */
	uint16_t count; /* entries held */
	uint16_t skip;	/* entries in the buffer before the first */
	/* Receive side. */
	uint16_t pi; /* producer index last read */
	uint16_t stride_bytes;
	uint8_t max_sge;
};

struct rn_wqe_cache;

/** @buffers is borrowed; lines hold references into it. */
struct rn_wqe_cache *rn_wqe_cache_new(struct rn_buffers *buffers, uint32_t sets, uint32_t ways);
void rn_wqe_cache_free(struct rn_wqe_cache *cache);

/** The line of @qpn, or NULL. */
struct rn_wqe_line *rn_wqe_cache_find(struct rn_wqe_cache *cache, uint32_t qpn);

/** The line of @qpn, made free of entries; the set's least recently used one if there was none. */
struct rn_wqe_line *rn_wqe_cache_claim(struct rn_wqe_cache *cache, uint32_t qpn);

/** Put @count entries from @first on into a line of claim; the reference to @buf passes to the line. */
void rn_wqe_cache_fill(struct rn_wqe_line *line, uint32_t buf, uint16_t first, uint16_t count);

/**
 * Drop entries before @idx. True when the entry @idx is held; else the line has no entries any more
 * (it is older or newer than what the queue is at).
 */
bool rn_wqe_cache_seek(struct rn_wqe_cache *cache, struct rn_wqe_line *line, uint16_t idx);

/** Forget all about @qpn. */
void rn_wqe_cache_drop(struct rn_wqe_cache *cache, uint32_t qpn);

#endif
