/*
 * The programs of a `rnicsim run`: started one host after the other, listened to, ended.
 */
#ifndef RN_RNICSIM_RUN_H
#define RN_RNICSIM_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "programs.h"
#include "supervise.h"

struct rn_run {
	struct rn_options options;
	bool raw;
	double grace_s;
	double timeout_s;     /* 0: none */
	const char *end_with; /* as given; NULL: with all programs */
	uint64_t awaited;     /* hosts whose programs' end is the end of the run; bit n: host n */
	char **command;
	unsigned commands;
	struct rn_program *program;
	unsigned started;
	struct rn_supervisor supervisor;
	int first_failure; /* status of the first program that failed */
	bool failed;
	bool start_failed;
	bool interrupt_told;
	double grace_at_s; /* --grace ends the programs then; 0 never */
	double kill_at_s;  /* SIGKILL what is left then; 0 never */
};

/** Start the programs, wait for their end, and stop the simulator, which is up. Returns the exit status. */
int rn_run_programs(struct rn_run *run, const char *dir);

#endif
