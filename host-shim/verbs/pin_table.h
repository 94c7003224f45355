/*
 * Which pages of the process lie in frames: a sorted table of runs.
 */
#ifndef RN_VERBS_PIN_TABLE_H
#define RN_VERBS_PIN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rn_pin_run {
	uint64_t va;
	uint64_t offset; /* in the arena */
	uint64_t pages;
};

struct rn_pin_table {
	struct rn_pin_run *run; /* ascending, not overlapping */
	size_t count, capacity;
};

void rn_pin_table_fini(struct rn_pin_table *table);

/** Make sure that @more insertions or removals will not need memory. False when memory is short. */
bool rn_pin_table_reserve(struct rn_pin_table *table, size_t more);

/** Enter a run; room has been reserved and none of its pages is in the table. */
void rn_pin_table_insert(struct rn_pin_table *table, struct rn_pin_run run);

/** Forget the pages of a range, in the table or not; room for one more run has been reserved. */
void rn_pin_table_remove(struct rn_pin_table *table, uint64_t va, uint64_t pages);

/** The arena offset of a page, or UINT64_MAX when it is not in the table. */
uint64_t rn_pin_table_find(const struct rn_pin_table *table, uint64_t va);

#endif
