/*
 * What this machine lacks, as a run and tools/check say it.
 */
#ifndef RN_RNICSIM_DOCTOR_H
#define RN_RNICSIM_DOCTOR_H

#include "options.h"

/**
 * Before a run: try what it rests on, print one line on stderr about what is lacking (none with --quiet), and note in
 * @options what keeps it from being repeatable.
 */
void rn_doctor_look(struct rn_options *options);

/** After the simulator did not start: what of the needed is lacking, in one line that the caller free()s; NULL: nothing. */
char *rn_doctor_explain(void);

#endif
