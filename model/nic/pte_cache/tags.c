#include "nic/pte_cache/tags.h"

#include <stdlib.h>

#include "base/mem.h"

void rn_pte_tags_init(struct rn_pte_tags *tags, uint32_t sets, uint32_t ways)
{
	size_t lines = (size_t)sets * ways;

	*tags = (struct rn_pte_tags){
		.number = rn_calloc(lines, sizeof(*tags->number)),
		.used = rn_calloc(lines, sizeof(*tags->used)),
		.state = rn_calloc(lines, sizeof(*tags->state)),
		.miss = rn_calloc(lines, sizeof(*tags->miss)),
		.sets = sets,
		.ways = ways,
	};
}

void rn_pte_tags_fini(struct rn_pte_tags *tags)
{
	free(tags->number);
	free(tags->used);
	free(tags->state);
	free(tags->miss);
}

uint32_t rn_pte_tags_find(const struct rn_pte_tags *tags, uint64_t number)
{
	uint32_t first = rn_pte_tags_set(tags, number) * tags->ways;

	for (uint32_t line = first; line < first + tags->ways; line++)
		if (tags->number[line] == number && tags->state[line] != RN_PTE_TAG_EMPTY)
			return line;
	return RN_PTE_NO_LINE;
}

uint32_t rn_pte_tags_victim(const struct rn_pte_tags *tags, uint64_t number)
{
	uint32_t first = rn_pte_tags_set(tags, number) * tags->ways;
	uint32_t oldest = RN_PTE_NO_LINE;

	for (uint32_t line = first; line < first + tags->ways; line++) {
		if (tags->state[line] == RN_PTE_TAG_EMPTY)
			return line;
		if (oldest == RN_PTE_NO_LINE || tags->used[line] < tags->used[oldest])
			oldest = line;
	}
	return tags->state[oldest] == RN_PTE_TAG_VALID ? oldest : RN_PTE_NO_LINE;
}
