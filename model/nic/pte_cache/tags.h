/*
 * Tags of one set-associative cache (MPT or MTT): plain arrays, true LRU in order of lookup. When the
 * oldest line of a set is still being filled, nothing else is taken in its place: the miss waits.
 */
#ifndef RN_NIC_PTE_CACHE_TAGS_H
#define RN_NIC_PTE_CACHE_TAGS_H

#include <stdint.h>

#define RN_PTE_NO_LINE UINT32_MAX
#define RN_PTE_NO_NUMBER UINT64_MAX

enum rn_pte_tag_state { RN_PTE_TAG_EMPTY, RN_PTE_TAG_FILLING, RN_PTE_TAG_VALID };

struct rn_pte_tags {
	uint64_t *number; /* [set * ways + way] */
	uint64_t *used;	  /* lookups counted when it was last looked up */
	uint8_t *state;	  /* enum rn_pte_tag_state */
	uint16_t *miss;	  /* register that fills it */
	uint32_t sets;
	uint32_t ways;
	uint64_t lookups;
};

void rn_pte_tags_init(struct rn_pte_tags *tags, uint32_t sets, uint32_t ways);
void rn_pte_tags_fini(struct rn_pte_tags *tags);

static inline uint32_t rn_pte_tags_set(const struct rn_pte_tags *tags, uint64_t number)
{
	return (uint32_t)number & (tags->sets - 1);
}

/** Line that holds or is being filled with @number, or RN_PTE_NO_LINE. */
uint32_t rn_pte_tags_find(const struct rn_pte_tags *tags, uint64_t number);

/** Line to make room in: an empty one, else the least recently used; RN_PTE_NO_LINE while that is being filled. */
uint32_t rn_pte_tags_victim(const struct rn_pte_tags *tags, uint64_t number);

/** Make @line the youngest. */
static inline void rn_pte_tags_touch(struct rn_pte_tags *tags, uint32_t line)
{
	tags->used[line] = ++tags->lookups;
}

#endif
