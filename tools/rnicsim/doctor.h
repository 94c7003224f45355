/*
 * What this machine lacks, as a run and tools/check say it.
 */
#ifndef RN_RNICSIM_DOCTOR_H
#define RN_RNICSIM_DOCTOR_H

#include <stdbool.h>

#include "options.h"

/**
 * Before a run: try what it rests on, print one line on stderr about what is lacking (none with --quiet), and note in
 * @options what keeps it from being repeatable. False when nothing can run, with a message that says why.
 */
bool rn_doctor_look(struct rn_options *options);

#endif
