/*
 * The simulator as a child process of `run` and `serve`, which supervise it from outside.
 */
#ifndef RN_RNICSIM_CHILD_H
#define RN_RNICSIM_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "options.h"

struct rn_child {
	pid_t pid;
	int pidfd;    /* -1 once it has ended */
	int start_fd; /* virtual time: see struct rn_virtual_start; -1 in free-run */
	int stop_fd;  /* closing it asks the simulator to stop and report; -1 when closed */
	int status;   /* exit status as a shell reports it */
};

/** Start the simulator with its socket in @dir and wait until it is up. False with a message when it does not come up. */
bool rn_child_start(struct rn_child *child, const struct rn_options *options,
		    const struct rn_scenario *scenario, const struct rn_config *config,
		    const char *dir);

/** Ask it to stop, wait for its report, and collect its status. Also when it has died already. */
void rn_child_stop(struct rn_child *child);

/** Collect the status when pidfd is readable. */
void rn_child_reap(struct rn_child *child);

#endif
