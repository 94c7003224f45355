/*
 * Allocator of ranges of a table (MTT entries): binary buddy. A range need not be a power of two
 * long; what it does not use of its block stays free.
 */
#ifndef RN_DRIVER_BUDDY_H
#define RN_DRIVER_BUDDY_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/bitset.h"

#define RN_BUDDY_ORDERS 33

struct rn_buddy {
	uint32_t log_entries;
	uint64_t used; /* entries */
	struct rn_buddy_order {
		struct rn_bitset blocks; /* b: block [b << order, (b + 1) << order) is free */
		uint32_t hint;		 /* block where the search starts: blocks come back late */
	} order[RN_BUDDY_ORDERS];
};

/** All 2^@log_entries (at most 2^32) entries are free. */
void rn_buddy_init(struct rn_buddy *buddy, uint32_t log_entries);
void rn_buddy_fini(struct rn_buddy *buddy);

/** @count (>= 1) entries in a row; false when there is no such free range. */
bool rn_buddy_get(struct rn_buddy *buddy, uint32_t count, uint32_t *first);
void rn_buddy_put(struct rn_buddy *buddy, uint32_t first, uint32_t count);

#endif
