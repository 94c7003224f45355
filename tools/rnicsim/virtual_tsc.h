/*
 * What each process of a run said of how reads of the processor's counter were caught in it, and of its addresses: what
 * "another run gives the same" rests on, beside the baton.
 */
#ifndef RN_RNICSIM_VIRTUAL_TSC_H
#define RN_RNICSIM_VIRTUAL_TSC_H

#include <stdbool.h>
#include <stdint.h>

#include "bar/time_page.h"

struct rn_tsc_record {
	uint32_t host, ordinal;
	uint32_t force;		  /* enum rn_tsc_force bits */
	uint32_t unseen;	  /* enum rn_tsc_unseen bits */
	uint32_t jumps, illegals; /* rewritten: by a jump, by ud2 */
	uint64_t traps;
};

struct rn_tsc_roll {
	struct rn_tsc_record *record; /* in the order in which the processes ended */
	unsigned count, room;
};

/** Take over what the process of @page has said, which may be anything. */
void rn_tsc_roll_add(struct rn_tsc_roll *roll, const struct rn_time_page *page, uint32_t host,
		     uint32_t ordinal);
void rn_tsc_roll_fini(struct rn_tsc_roll *roll);

/** A read of the counter may have gone unseen in this process. */
bool rn_tsc_may_be_unseen(const struct rn_tsc_record *record);

/** Processes in which one may, and those whose addresses were random. */
unsigned rn_tsc_roll_unseen(const struct rn_tsc_roll *roll);
unsigned rn_tsc_roll_random(const struct rn_tsc_roll *roll);

/** Name of bit @n of enum rn_tsc_unseen, as reports have it; NULL behind the last. */
const char *rn_tsc_unseen_name(unsigned n);

/** The mode called @name; false: there is none. */
bool rn_tsc_mode_find(const char *name, enum rn_tsc_mode *mode);

#endif
