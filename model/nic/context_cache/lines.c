#include "nic/context_cache/lines.h"

#include <stdlib.h>

#include "base/mem.h"

void rn_context_lines_init(struct rn_context_lines *lines, uint32_t sets, uint32_t ways)
{
	*lines = (struct rn_context_lines){
		.tags = rn_calloc((size_t)sets * ways, sizeof(struct rn_context_tag)),
		.sets = sets,
		.ways = ways,
	};
}

void rn_context_lines_fini(struct rn_context_lines *lines)
{
	free(lines->tags);
	lines->tags = NULL;
}

uint32_t rn_context_lines_find(const struct rn_context_lines *lines, uint32_t number)
{
	uint32_t first = rn_context_lines_set(lines, number) * lines->ways;

	for (uint32_t line = first; line < first + lines->ways; line++)
		if (lines->tags[line].number == number &&
		    lines->tags[line].state != RN_CONTEXT_LINE_EMPTY)
			return line;
	return RN_CONTEXT_NO_LINE;
}

uint32_t rn_context_lines_victim(const struct rn_context_lines *lines, uint32_t number)
{
	uint32_t first = rn_context_lines_set(lines, number) * lines->ways;
	uint32_t oldest = RN_CONTEXT_NO_LINE;
	bool is_leaving = false;

	for (uint32_t line = first; line < first + lines->ways; line++) {
		const struct rn_context_tag *tag = &lines->tags[line];

		if (tag->state == RN_CONTEXT_LINE_EMPTY)
			return line;
		if (tag->state == RN_CONTEXT_LINE_LEAVING)
			is_leaving = true;
		if (tag->pins)
			continue;
		if (oldest == RN_CONTEXT_NO_LINE || tag->used < lines->tags[oldest].used)
			oldest = line;
	}
	if (is_leaving || oldest == RN_CONTEXT_NO_LINE ||
	    lines->tags[oldest].state != RN_CONTEXT_LINE_VALID)
		return RN_CONTEXT_NO_LINE;
	return oldest;
}
