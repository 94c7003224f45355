/*
 * Replaces what the finder has found: by a jump to a trampoline near the object, or by ud2.
 */
#ifndef RN_PRELOAD_TSC_PATCH_H
#define RN_PRELOAD_TSC_PATCH_H

#include "preload/tsc/find.h"

#define RN_TRAMPOLINE_BYTES 128 /* at most, of one site */

/* Memory for trampolines, within a jump's reach of the code that they serve. */
struct rn_tsc_arena {
	uint8_t *at;
	size_t bytes, used;
};

/**
 * Room for the trampolines of @sites sites of [@start, @end), near it, executable and not writable. False: there is
 * none. @entry: what a trampoline calls; it leaves the counter in eax and edx and every other register as it was.
 */
bool rn_tsc_arena_make(struct rn_tsc_arena *arena, uintptr_t start, uintptr_t end, size_t sites,
		       void (*entry)(void));

/** Nothing is written into an arena any more: trampolines may run. */
void rn_tsc_arena_seal(struct rn_tsc_arena *arena);

/** Write the trampoline of @site and return where it begins; NULL: its window cannot be moved so far, or no room. */
const uint8_t *rn_tsc_trampoline(struct rn_tsc_arena *arena, const struct rn_tsc_site *site);

/** A jump to the arena's entry; its place. */
const uint8_t *rn_tsc_relay(struct rn_tsc_arena *arena);

/** Whether @at is in an arena that was made. */
bool rn_tsc_is_arena(uintptr_t at);

/** Make the pages of [@start, @end) writable, and give them back @prot. False: refused. */
bool rn_tsc_open_code(uintptr_t start, uintptr_t end, int prot);
void rn_tsc_close_code(uintptr_t start, uintptr_t end, int prot);

/** Into code that has been opened: ud2 by one store, whoever executes it; the jump only where nobody does. */
void rn_tsc_write_ud2(const struct rn_tsc_site *site);
void rn_tsc_write_jump(const struct rn_tsc_site *site, const uint8_t *trampoline);

#endif
