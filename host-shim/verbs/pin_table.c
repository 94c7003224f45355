/*
 * Four levels of 512 entries over the 36 bits of a page number. A leaf's entries are arena offsets in pages, plus one; 0: the
 * page is not in the table. A node that has become empty is freed.
 */
#include "verbs/pin_table.h"

#include <stdlib.h>

#include "base/assert.h"
#include "verbs/maps.h"

#define LEVELS 4u
#define ENTRY_BITS 9u
#define ENTRIES (1u << ENTRY_BITS)
#define PAGE_NUMBER_BITS (LEVELS * ENTRY_BITS)

struct rn_pin_node {
	uint32_t used; /* entries that are not 0 */
	union {
		struct rn_pin_node *child;
		uint64_t frame; /* leaves */
	} entry[ENTRIES];
};

static unsigned index_at(uint64_t page, unsigned level)
{
	return page >> level * ENTRY_BITS & (ENTRIES - 1);
}

static void free_node(struct rn_pin_table *table, struct rn_pin_node *node, unsigned level)
{
	for (unsigned n = 0; level && n < ENTRIES; n++)
		if (node->entry[n].child)
			free_node(table, node->entry[n].child, level - 1);
	table->nodes--;
	free(node);
}

void rn_pin_table_fini(struct rn_pin_table *table)
{
	if (table->root)
		free_node(table, table->root, LEVELS - 1);
	RN_ASSERT(!table->nodes);
	rn_pin_table_abandon(table);
}

void rn_pin_table_abandon(struct rn_pin_table *table)
{
	*table = (struct rn_pin_table){0};
}

static struct rn_pin_node *new_node(struct rn_pin_table *table)
{
	struct rn_pin_node *node = calloc(1, sizeof(*node));

	table->nodes += node != NULL;
	return node;
}

/* The leaf of @page, made if @make; NULL: it is not there, or memory is short. */
static struct rn_pin_node *leaf_of(struct rn_pin_table *table, uint64_t page, bool make)
{
	struct rn_pin_node *node = table->root;

	RN_ASSERT(page >> PAGE_NUMBER_BITS == 0);
	if (!node && make)
		node = table->root = new_node(table);
	for (unsigned level = LEVELS - 1; node && level; level--) {
		struct rn_pin_node **child = &node->entry[index_at(page, level)].child;

		if (!*child && make) {
			*child = new_node(table);
			node->used += *child != NULL;
		}
		node = *child;
	}
	return node;
}

bool rn_pin_table_reserve(struct rn_pin_table *table, uint64_t va, uint64_t pages)
{
	const uint64_t first = va / RN_PAGE_BYTES;

	for (uint64_t page = first; page < first + pages; page = (page / ENTRIES + 1) * ENTRIES)
		if (!leaf_of(table, page, true))
			return false;
	return true;
}

void rn_pin_table_set(struct rn_pin_table *table, uint64_t va, uint64_t offset, uint64_t pages)
{
	const uint64_t first = va / RN_PAGE_BYTES;
	struct rn_pin_node *leaf = NULL;

	for (uint64_t n = 0; n < pages; n++) {
		const uint64_t page = first + n;

		if (!leaf || index_at(page, 0) == 0)
			leaf = leaf_of(table, page, false);
		RN_ASSERT(leaf);
		if (!leaf->entry[index_at(page, 0)].frame) {
			leaf->used++;
			table->count++;
		}
		leaf->entry[index_at(page, 0)].frame = offset / RN_PAGE_BYTES + n + 1;
	}
}

/* Free the nodes on the way to @page that hold nothing. True: the node itself is gone. */
static bool prune(struct rn_pin_table *table, struct rn_pin_node *node, uint64_t page,
		  unsigned level)
{
	if (level) {
		struct rn_pin_node **child = &node->entry[index_at(page, level)].child;

		if (*child && prune(table, *child, page, level - 1)) {
			*child = NULL;
			node->used--;
		}
	}
	if (node->used)
		return false;
	table->nodes--;
	free(node);
	return true;
}

static void prune_page(struct rn_pin_table *table, uint64_t page)
{
	if (table->root && prune(table, table->root, page, LEVELS - 1))
		table->root = NULL;
}

void rn_pin_table_clear(struct rn_pin_table *table, uint64_t va, uint64_t pages)
{
	const uint64_t end = va / RN_PAGE_BYTES + pages;
	uint64_t page = va / RN_PAGE_BYTES;

	while (page < end) {
		const uint64_t next = (page / ENTRIES + 1) * ENTRIES;
		struct rn_pin_node *leaf = leaf_of(table, page, false);
		const uint64_t stop = next < end ? next : end;

		for (uint64_t n = page; leaf && n < stop; n++) {
			const bool was = leaf->entry[index_at(n, 0)].frame != 0;

			leaf->entry[index_at(n, 0)].frame = 0;
			leaf->used -= was;
			table->count -= was;
		}
		prune_page(table, page);
		page = next;
	}
}

uint64_t rn_pin_table_find(const struct rn_pin_table *table, uint64_t va)
{
	const uint64_t page = va / RN_PAGE_BYTES;
	const struct rn_pin_node *node = page >> PAGE_NUMBER_BITS ? NULL : table->root;

	for (unsigned level = LEVELS - 1; node && level; level--)
		node = node->entry[index_at(page, level)].child;
	if (!node || !node->entry[index_at(page, 0)].frame)
		return UINT64_MAX;
	return (node->entry[index_at(page, 0)].frame - 1) * RN_PAGE_BYTES;
}
