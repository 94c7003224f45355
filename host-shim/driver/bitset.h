/*
 * A set of numbers below a bound, with the next member behind a number found in a few steps however many
 * numbers there are: each level has one bit for every word of the level below that is not empty.
 */
#ifndef RN_DRIVER_BITSET_H
#define RN_DRIVER_BITSET_H

#include <stdbool.h>
#include <stdint.h>

#define RN_BITSET_LEVELS 6 /* 64^6 covers 2^32 numbers */

struct rn_bitset {
	uint64_t *level
		[RN_BITSET_LEVELS]; /* level[0]: the members; the last one in use is a single word */
	uint64_t bits;
	uint64_t words_read; /* by rn_bitset_next() so far: what a test compares */
	uint64_t count;	     /* members */
	uint32_t levels;
};

/** The empty set of numbers below @bits (1 .. 2^32). */
void rn_bitset_init(struct rn_bitset *set, uint64_t bits);
void rn_bitset_fini(struct rn_bitset *set);

/** Add @number, which is no member. */
void rn_bitset_add(struct rn_bitset *set, uint64_t number);

/** Add all of @first .. @end - 1 to an empty set; @first < @end, at most the bound. */
void rn_bitset_fill(struct rn_bitset *set, uint64_t first, uint64_t end);

/** Take @number, a member, out. */
void rn_bitset_remove(struct rn_bitset *set, uint64_t number);

static inline bool rn_bitset_has(const struct rn_bitset *set, uint64_t number)
{
	return set->level[0][number / 64] >> number % 64 & 1;
}

/** The smallest member that is @from or larger; the set's bound when there is none. */
uint64_t rn_bitset_next(struct rn_bitset *set, uint64_t from);

#endif
