/*
 * Virtual time: who of a run's threads runs native code, and when simulated time passes. At any moment
 * either one thread has the baton (host-shim/bar/time_page.h) or the simulator advances up to the earliest time at
 * which a waiting thread goes on.
 */
#ifndef RN_RNICSIM_VIRTUAL_TIME_H
#define RN_RNICSIM_VIRTUAL_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/driver.h"
#include "driver/server.h"
#include "system/system.h"
#include "systemc/kernel.h"
#include "virtual_tsc.h"

/* From the supervisor: a program of the run has been started. The answer is one byte: start the next. */
struct rn_virtual_start {
	int32_t pid; /* 0: none; it ends the programs, by the wall clock or because somebody wants it */
	uint32_t more;	  /* 0: it is the last */
	uint32_t awaited; /* 0: it is ended when those that are awaited have ended */
};

struct rn_virtual_env {
	const struct rn_scenario *scenario;
	enum rn_tsc_mode tsc_mode;
	struct rn_system *system;
	struct rn_kernel *kernel;
	struct rn_driver *const *driver;
	int stop_fd;  /* readable: end */
	bool is_open; /* programs may join at any time: simulated time never passes the wall clock */
	int start_fd; /* struct rn_virtual_start come, bytes go */
	bool (*must_stop)(void *arg);
	bool (*advanced)(void *arg); /* simulated time has passed; false: end the run */
	void *arg;
};

/* What a report says about the clock of a run. */
struct rn_virtual_counts {
	uint64_t grants;   /* times a thread got the baton */
	uint64_t outside;  /* times a thread blocked where nothing told when it would end */
	uint64_t unproved; /* times a thread used its window of processor time without a call */
	uint64_t outside_looks; /* times everybody waited for something from outside the run */
	uint64_t strangers;	/* programs started by those of the run that did not join */
	uint64_t interrupted;	/* times the supervisor ended programs */
	uint64_t late;		/* programs that joined, unexpected, while others ran */
	uint64_t unseen_reads;	/* processes in which a read of the counter may have gone unseen */
	uint64_t random_addresses;     /* processes with them */
	const struct rn_tsc_roll *tsc; /* all of them */
};

struct rn_virtual;

struct rn_virtual *rn_virtual_new(const struct rn_virtual_env *env);
void rn_virtual_free(struct rn_virtual *virtual);

/** The members of the server's environment that belong to virtual time. */
void rn_virtual_fill_server_env(struct rn_virtual *virtual, struct rn_server_env *env);

/** A driver's event hook. */
void rn_virtual_event(void *arg, pid_t pid);

/** Run until @must_stop says so. Afterwards no thread waits for the simulator any more. */
void rn_virtual_serve(struct rn_virtual *virtual, struct rn_server *server);

/** Nothing but configuration and programs had a say in the run: all that this rests on was looked at in it. */
static inline bool rn_virtual_is_repeatable(const struct rn_virtual_counts *counts)
{
	return !(counts->outside + counts->outside_looks + counts->strangers + counts->late +
		 counts->interrupted + counts->unseen_reads + counts->random_addresses);
}

void rn_virtual_get_counts(const struct rn_virtual *virtual, struct rn_virtual_counts *counts);

#endif
