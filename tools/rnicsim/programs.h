/*
 * The programs of a run: started with the environment that makes them find the simulated NIC, their output
 * passed on, their end noticed.
 */
#ifndef RN_RNICSIM_PROGRAMS_H
#define RN_RNICSIM_PROGRAMS_H

#include <stdbool.h>
#include <sys/types.h>

struct rn_outlet;

struct rn_program {
	unsigned host;
	const char *command;
	pid_t pid;	    /* also its process group; 0: not started */
	int pidfd;	    /* -1 once it has ended */
	int out[2];	    /* read ends of its stdout and stderr; -1: closed or passed through */
	char line[2][4096]; /* bytes of an unfinished line */
	unsigned line_bytes[2];
	int status; /* exit status as a shell reports it: 128 + signal */
};

/**
 * Start @command (by sh -c) on host @host with the socket in run folder @dir. @raw: its output goes where ours goes, else
 * through rn_program_forward().
 * @virtual_time: without address randomisation, at the simulator's priority. False with a message when it cannot be started.
 */
bool rn_program_start(struct rn_program *program, unsigned host, const char *command,
		      const char *dir, bool raw, bool virtual_time);

/** Pass on what it has printed, line by line with "[hostN] " in front; closes at end of file. @stream 0 or 1. */
void rn_program_forward(struct rn_program *program, unsigned stream, struct rn_outlet *to);

/** Collect the exit status of a program whose pidfd is readable. */
void rn_program_reap(struct rn_program *program);

/** Pass on what there is left of its output, without waiting, and close. @to: stdout and stderr. */
void rn_program_finish(struct rn_program *program, struct rn_outlet *const to[2]);

static inline bool rn_program_is_running(const struct rn_program *program)
{
	return program->pidfd >= 0;
}

#endif
