/*
 * Runs of the rig: random, recorded, with faults.
 */
#ifndef RN_TEST_COSIM_DOORBELL_RUN_H
#define RN_TEST_COSIM_DOORBELL_RUN_H

#include "cosim/common/cover.h"
#include "cosim/doorbell/dut.h"

struct run {
	/* In. */
	const struct rn_rtl_kind *kind;
	uint64_t seed;
	uint64_t cycles;
	const char *plusarg;	   /* "+fault=N" or NULL */
	bool ports_alone;	   /* compare no counters, stalls and deadlines */
	const char *record;	   /* file for the stimulus, or NULL */
	const char *rtl_cover;	   /* file for line and toggle coverage, or NULL */
	struct cosim_cover *cover; /* or NULL */
	/* Out. */
	uint64_t done_cycles;  /* compared, the one that differs included */
	uint64_t gated_cycles; /* of them, those in which the gated block was clocked */
	bool has_failed;
	char difference[256];
};

/** Random stimulus until @cycles are done or something differs. */
void run_random(struct run *run);

/**
 * What was recorded in @path, by this bench or by rnicsim, to its end. The kind comes from the parameters in the file,
 * of cosim_kinds. False: @path cannot be read or nobody was built so; @difference says it.
 */
bool run_replay(struct run *run, const char *path);

#endif
