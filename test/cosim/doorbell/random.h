/*
 * Constrained-random stimulus: what software could write to BAR0 and read from it, legal or not, and when the ports
 * behind are ready. Every few hundred cycles it takes another character.
 */
#ifndef RN_TEST_COSIM_DOORBELL_RANDOM_H
#define RN_TEST_COSIM_DOORBELL_RANDOM_H

#include "base/rng.h"
#include "cosim/doorbell/rig.h"

#define RANDOM_WRITERS 40
#define RANDOM_LEVEL 64	      /* writes that wait at the port, at most */
#define RANDOM_HIGH_LEVEL 400 /* or, seldom */

enum write_kind {
	WRITE_SQ,
	WRITE_ARM,
	WRITE_KICK,
	WRITE_BLUEFLAME,
	WRITE_COMMAND,
	WRITE_BASE,
	WRITE_NEAR, /* a legal write with a mistake */
	WRITE_ANY,
	WRITE_KINDS
};

/* Somebody who writes a WQE piece by piece to a buffer of a page. */
struct writer {
	uint32_t page;
	uint32_t buffer;
	uint32_t piece;
	uint32_t pieces;
};

struct random_stimulus {
	struct rn_rng rng;
	struct writer writer[RANDOM_WRITERS];
	/* The present character. */
	uint64_t until_cycle;
	uint32_t weight[WRITE_KINDS];
	uint32_t write_percent;
	uint32_t read_percent;
	uint32_t ready_percent[OUT_COUNT];
	uint32_t level;
	uint32_t qps;
	uint32_t pages;
	uint32_t writers;
	uint32_t disorder_percent; /* of BlueFlame pieces */
	bool has_foreign_pages;	   /* a QP's doorbells come from several pages */
};

void random_init(struct random_stimulus *random, uint64_t seed);

/** Cycles to the next reset, and how far the RTL's cycle numbers are to be ahead then. */
uint64_t random_restart(struct random_stimulus *random, uint64_t *cycle_offset);

/** Values of the identity registers for the next reset. */
void random_identity(struct random_stimulus *random, struct rn_doorbell_identity *identity);

/** Inputs and readiness of the rig's next cycle. */
void random_drive(struct random_stimulus *random, struct rig *rig);

#endif
