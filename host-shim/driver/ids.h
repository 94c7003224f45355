/*
 * Allocator of small numbers (QPN, CQN, PD, key index, doorbell page): handed out
 * cyclically, so that a number comes back as late as possible.
 */
#ifndef RN_DRIVER_IDS_H
#define RN_DRIVER_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/bitset.h"

struct rn_ids {
	struct rn_bitset unused;
	uint32_t first; /* smallest number handed out */
	uint32_t end;	/* one behind the largest */
	uint32_t next;	/* where the search starts */
	uint32_t limit; /* numbers out at once, at most end - first */
	uint32_t used;
};

/** Numbers @first .. @end - 1, at most @limit at once, starting with @start (in that range). */
void rn_ids_init(struct rn_ids *ids, uint32_t first, uint32_t end, uint32_t limit, uint32_t start);
void rn_ids_fini(struct rn_ids *ids);

/** False when @limit numbers are out. */
bool rn_ids_get(struct rn_ids *ids, uint32_t *id);
void rn_ids_put(struct rn_ids *ids, uint32_t id);

#endif
