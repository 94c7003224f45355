/*
 * The executable memory of this process, and the rewriting of it.
 */
#ifndef RN_PRELOAD_TSC_OBJECTS_H
#define RN_PRELOAD_TSC_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bar/time_page.h"

struct rn_tsc_tally {
	uint32_t jumps, illegals; /* sites rewritten by a jump, by ud2 */
	uint32_t unseen;	  /* enum rn_tsc_unseen bits */
};

/** What has been done so far. */
const struct rn_tsc_tally *rn_tsc_tally(void);

/** Something that rewriting does not see. */
void rn_tsc_note(unsigned unseen);

/** A site has been rewritten, by a jump or by ud2. */
void rn_tsc_count_site(bool is_jump);

/** Rewrite what is new since the last look. @is_fresh: no thread has executed any of that yet. */
void rn_tsc_look_at_maps(bool is_fresh);

/** Of [@start, @end), which can be written again, what was generated and rewritten is as the program wrote it. */
void rn_tsc_restore_generated(uintptr_t start, uintptr_t end);

/** What was generated in [@start, @end) may be other code by now. */
void rn_tsc_forget_generated(uintptr_t start, uintptr_t end);

/** All of [@start, @end) is memory of the program's own: of no file, not the stack, not shared. */
bool rn_tsc_is_anonymous(uintptr_t start, uintptr_t end);

/** Have the loader tell when it has mapped an object, before anything of it runs. False: it cannot be had. */
bool rn_tsc_hook_loader(void (*mapped)(void));

#endif
