/*
 * Tags of one context cache: which number lies in which line, its pins, dirt and age. Sets are
 * chosen by the low bits of the number; replacement is true LRU in order of lookup among the lines
 * that nobody has pinned or waits for. When that line is still being filled (a prefetch), or one of the set
 * is about to become empty, nothing else is taken in its place: the miss waits.
 */
#ifndef RN_NIC_CONTEXT_CACHE_LINES_H
#define RN_NIC_CONTEXT_CACHE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#define RN_CONTEXT_NO_LINE UINT32_MAX

enum rn_context_line_state {
	RN_CONTEXT_LINE_EMPTY,
	RN_CONTEXT_LINE_FILLING, /* allocated by a miss register; the number is the new one */
	RN_CONTEXT_LINE_VALID,
	RN_CONTEXT_LINE_LEAVING, /* flushed: being written back */
};

struct rn_context_tag {
	uint64_t used; /* lookups counted when it was last looked up: its age */
	uint32_t number;
	uint16_t pins; /* of a line that is being filled: those who wait for it */
	uint8_t state; /* enum rn_context_line_state */
	uint8_t dirty;
	uint8_t exclusive; /* its one pin keeps others out */
	uint8_t miss;	   /* register that fills or writes it back */
	uint8_t reserved[6];
};

struct rn_context_lines {
	struct rn_context_tag *tags; /* [set * ways + way] */
	uint32_t sets;
	uint32_t ways;
	uint64_t lookups;
};

void rn_context_lines_init(struct rn_context_lines *lines, uint32_t sets, uint32_t ways);
void rn_context_lines_fini(struct rn_context_lines *lines);

static inline uint32_t rn_context_lines_set(const struct rn_context_lines *lines, uint32_t number)
{
	return number & (lines->sets - 1);
}

/** Line that holds @number in whatever state, or RN_CONTEXT_NO_LINE. */
uint32_t rn_context_lines_find(const struct rn_context_lines *lines, uint32_t number);

/** Line to make room in for @number: an empty one, else the least recently used free one; RN_CONTEXT_NO_LINE: wait. */
uint32_t rn_context_lines_victim(const struct rn_context_lines *lines, uint32_t number);

/** Make @line the youngest. */
static inline void rn_context_lines_touch(struct rn_context_lines *lines, uint32_t line)
{
	lines->tags[line].used = ++lines->lookups;
}

#endif
