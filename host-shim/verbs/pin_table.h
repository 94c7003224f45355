/*
 * Which pages of the process lie in frames, and where in the arena: a table of tables, as the hardware's page tables are.
 * Finding or changing a page costs the same however many there are.
 */
#ifndef RN_VERBS_PIN_TABLE_H
#define RN_VERBS_PIN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rn_pin_node;

struct rn_pin_table {
	struct rn_pin_node *root;
	uint64_t count; /* pages in the table */
	uint64_t nodes;
};

void rn_pin_table_fini(struct rn_pin_table *table);

/** Make sure that entering pages of a range will not need memory. False when memory is short. */
bool rn_pin_table_reserve(struct rn_pin_table *table, uint64_t va, uint64_t pages);

/** Enter pages that lie in the arena from @offset on; their range has been reserved. Replaces what was known of them. */
void rn_pin_table_set(struct rn_pin_table *table, uint64_t va, uint64_t offset, uint64_t pages);

/** Forget the pages of a range, in the table or not. */
void rn_pin_table_clear(struct rn_pin_table *table, uint64_t va, uint64_t pages);

/** The arena offset of a page, or UINT64_MAX when it is not in the table. */
uint64_t rn_pin_table_find(const struct rn_pin_table *table, uint64_t va);

/** Forget everything without freeing: in a child after fork, where freeing is not allowed. */
void rn_pin_table_abandon(struct rn_pin_table *table);

#endif
