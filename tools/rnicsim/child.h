/*
 * The simulator as a child process of `run` and `serve`, which supervise it from outside.
 */
#ifndef RN_RNICSIM_CHILD_H
#define RN_RNICSIM_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "options.h"

struct rn_child {
	pid_t pid;    /* 0: never started */
	int pidfd;    /* -1 once it has ended */
	int ready_fd; /* readable when it is up, or has ended; -1 after rn_child_is_up() has said so */
	int start_fd; /* virtual time: see struct rn_virtual_start; -1 in free-run */
	int stop_fd;  /* closing it asks the simulator to stop and report; -1 when closed */
	int status;   /* exit status as a shell reports it */
};

/** Start the simulator with its socket in @dir. It comes up by itself. False with a message when there can be no process. */
bool rn_child_start(struct rn_child *child, const struct rn_options *options,
		    const struct rn_scenario *scenario, const struct rn_config *config,
		    const char *dir);

/** Whether programs can attach; asked when ready_fd is readable. */
bool rn_child_is_up(struct rn_child *child);

/** Tell it that the run is ended from outside: it is then not called repeatable. Nothing in free-run. */
void rn_child_tell_end(struct rn_child *child);

/** Ask it to stop and report. */
void rn_child_stop(struct rn_child *child);

/** Collect the status when pidfd is readable. */
void rn_child_reap(struct rn_child *child);

/** Whether it has ended. */
static inline bool rn_child_is_gone(const struct rn_child *child)
{
	return child->pidfd < 0;
}

/** Processor time that it has used, in clock ticks; -1 unless its main thread sleeps now. */
long rn_child_ticks_asleep(const struct rn_child *child);

/** Close what is open. */
void rn_child_fini(struct rn_child *child);

#endif
