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

/** Rewrite what is new since the last look. @is_fresh: no thread has executed any of that yet. */
void rn_tsc_look_at_maps(bool is_fresh);

/** Have the loader tell when it has mapped an object, before anything of it runs. False: it cannot be had. */
bool rn_tsc_hook_loader(void (*mapped)(void));

#endif
