#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulator.h"

/* Every connection of a program takes several. */
static void allow_many_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void run_simulator(const struct rn_options *options, const struct rn_scenario *scenario,
			  const struct rn_config *config, const char *dir, int ready_fd,
			  int stop_fd)
{
	/* Ctrl-C is the supervisor's: it stops the simulator after the programs. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "rnicsim-sim");
	allow_many_descriptors();
	exit(rn_simulator_run(options, scenario, config, dir, ready_fd, stop_fd));
}

bool rn_child_start(struct rn_child *child, const struct rn_options *options,
		    const struct rn_scenario *scenario, const struct rn_config *config,
		    const char *dir)
{
	struct rn_options own = *options;
	int ready[2], stop[2], start[2] = {-1, -1};
	char byte;

	child->pidfd = -1;
	child->stop_fd = -1;
	child->start_fd = -1;
	child->status = 0;
	if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(stop, O_CLOEXEC) != 0 ||
	    (!options->free_run && !options->is_open &&
	     socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, start) != 0)) {
		fprintf(stderr, "rnicsim: cannot make a pipe: %s\n", strerror(errno));
		return false;
	}
	fflush(NULL);
	child->pid = fork();
	if (child->pid == 0) {
		close(ready[0]);
		close(stop[1]);
		if (start[0] >= 0)
			close(start[0]);
		own.start_fd = start[1];
		run_simulator(&own, scenario, config, dir, ready[1], stop[0]);
	}
	close(ready[1]);
	close(stop[0]);
	child->stop_fd = stop[1];
	if (start[1] >= 0)
		close(start[1]);
	child->start_fd = start[0];
	if (child->pid > 0)
		child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd >= 0 && read(ready[0], &byte, 1) == 1) {
		close(ready[0]);
		return true;
	}
	close(ready[0]);
	fprintf(stderr, "rnicsim: the simulator did not start\n");
	rn_child_stop(child);
	return false;
}

static void collect(struct rn_child *child, int flags)
{
	int status;

	if (child->pidfd < 0 || waitpid(child->pid, &status, flags) != child->pid)
		return;
	child->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	close(child->pidfd);
	child->pidfd = -1;
}

void rn_child_reap(struct rn_child *child)
{
	collect(child, WNOHANG);
}

void rn_child_stop(struct rn_child *child)
{
	if (child->stop_fd >= 0)
		close(child->stop_fd);
	child->stop_fd = -1;
	collect(child, 0);
}
