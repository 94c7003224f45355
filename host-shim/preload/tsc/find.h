/*
 * Finds the instructions that read the counter in a piece of executable memory. Where an instruction begins is known
 * from decoding alone; bytes are searched only to learn which functions need not be decoded.
 */
#ifndef RN_PRELOAD_TSC_FIND_H
#define RN_PRELOAD_TSC_FIND_H

#include "preload/tsc/elf.h"

struct rn_tsc_site {
	uintptr_t at;
	uint8_t bytes; /* 2: rdtsc, 3: rdtscp */
	uint8_t window; /* bytes of whole instructions, from it on, that may be replaced together; 0: itself alone */
	uintptr_t function, function_end; /* around it; both @at: not known */
};

struct rn_tsc_found {
	struct rn_tsc_site *site; /* by address */
	size_t sites, room;
	size_t undecided; /* bytes that look like it, where nobody knows whether an instruction begins */
};

/** False: no such instruction is in [@start, @end), whatever begins where. */
bool rn_tsc_may_have(uintptr_t start, uintptr_t end);

/** How often bytes in [@start, @end) are such an instruction's, whatever begins where. */
size_t rn_tsc_count_like(uintptr_t start, uintptr_t end);

/** Whether the bytes at @at, of which those up to @end are there, are such an instruction's. */
bool rn_tsc_looks_like(uintptr_t at, uintptr_t end);

/**
 * All in [@start, @end), which can be read. Functions are those that @elf knows, then all that is called from
 * them; without it (NULL) one that begins at @start, as in generated code. False: no memory. Free with
 * rn_tsc_found_fini().
 */
bool rn_tsc_find(uintptr_t start, uintptr_t end, const struct rn_elf *elf,
		 struct rn_tsc_found *found);
void rn_tsc_found_fini(struct rn_tsc_found *found);

#endif
