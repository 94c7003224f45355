/*
 * What `run` and `serve` have in common: the simulator is started, waited for and stopped, while signals, the time limit and
 * whoever reads the output are listened to all the time. Nothing in here waits for one thing alone.
 */
#ifndef RN_RNICSIM_SUPERVISE_H
#define RN_RNICSIM_SUPERVISE_H

#include <poll.h>
#include <stdbool.h>

#include "child.h"
#include "outlet.h"

#define RN_SUPERVISOR_FDS 6

struct rn_supervisor {
	struct rn_child child;
	int signal_fd;
	struct rn_outlet *outlet[2]; /* stdout and stderr; the same where both go to one place */
	int interrupted;       /* first signal that came, or SIGPIPE when nobody reads; 0 none */
	unsigned insisted;     /* signals that came after it */
	double limit_at_s;     /* time limit by rn_supervisor_now_s(); 0: none */
	bool listens_to_start; /* rn_supervisor_poll() returns when start_fd is readable */
	bool gave_up;	       /* the simulator was killed since it was blocked */
	bool output_failed;    /* and it was said why */
};

double rn_supervisor_now_s(void);

/** Begin to listen to signals: before anything is made that has to be removed. False with a message. */
bool rn_supervisor_init(struct rn_supervisor *s);

/**
 * Start the simulator and wait until it is up. @limit_s: time limit of the whole run, 0 none. Returns 0, or the exit
 * status of a command that ends here, with a message; then only rn_supervisor_fini() is left to do.
 */
int rn_supervisor_start(struct rn_supervisor *s, const struct rn_options *options,
			const struct rn_scenario *scenario, const struct rn_config *config,
			const char *dir, double limit_s);

/**
 * poll() for at most @wait_ms. The first RN_SUPERVISOR_FDS of @fds are this function's; it handles what has happened
 * to them. Returns the number of ready descriptors, as poll().
 */
int rn_supervisor_poll(struct rn_supervisor *s, struct pollfd *fds, nfds_t count, int wait_ms);

/** Whether the time limit has passed. */
bool rn_supervisor_is_late(const struct rn_supervisor *s);

/** Write out what programs have printed, ask the simulator to stop, and wait until it has. Its status is then in the child. */
void rn_supervisor_stop(struct rn_supervisor *s);

/** Write out the last messages; free. @status: of the command. Returns the status to exit with. */
int rn_supervisor_fini(struct rn_supervisor *s, int status);

#endif
