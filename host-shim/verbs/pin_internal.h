/*
 * Pinning, shared by its two files: what is being worked on.
 */
#ifndef RN_VERBS_PIN_INTERNAL_H
#define RN_VERBS_PIN_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/uapi.h"
#include "verbs/maps.h"
#include "verbs/pin.h"
#include "verbs/pin_room.h"
#include "verbs/pin_table.h"

/* Pages of one request: the answer's runs, one a page at worst, fit into a message. */
#define RN_PIN_PIECE_PAGES 1024u
#define RN_PIN_BITMAP_BYTES (RN_PIN_PIECE_PAGES / 8)

struct rn_pin_piece;

struct rn_pin {
	struct rn_conn *conn;
	pthread_mutex_t lock;
	struct rn_pin_table table;
	struct rn_maps_arena arena;
	struct rn_pin_room room;
	struct rn_pin_piece *piece; /* the one that is worked on */
};

/* A part of a range that one request covers. */
struct rn_pin_piece {
	uint64_t va;
	unsigned pages;
	unsigned flags;
	bool stays;				/* private pages cannot be exchanged now */
	uint8_t kind[RN_PIN_PIECE_PAGES];	/* enum rn_mem_kind */
	uint8_t protection[RN_PIN_PIECE_PAGES]; /* PROT_* */
	uint64_t offset[RN_PIN_PIECE_PAGES];
	uint64_t moved
		[RN_PIN_PIECE_PAGES]; /* arena offsets of pages that are not where they were pinned */
	unsigned runs;
	struct rn_uapi_run run[RN_PIN_PIECE_PAGES];
};

static inline uint64_t rn_pin_page_va(const struct rn_pin_piece *piece, unsigned index)
{
	return piece->va + (uint64_t)index * RN_PAGE_BYTES;
}

static inline bool rn_pin_bit(const uint8_t *map, unsigned index)
{
	return map[index / 8] >> (index % 8) & 1;
}

/**
 * pin_release.c: the pages of @piece lose one pin; those that nobody else pins become private memory again, with their
 * contents unless @discard. The lock is held.
 */
void rn_pin_release(struct rn_pin *pin, struct rn_pin_piece *piece, bool discard);

#endif
