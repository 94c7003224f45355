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

#include "exit_status.h"
#include "signals.h"
#include "simulator.h"
#include "virtual_time.h"

/* Every connection of a program takes several. */
static void allow_many_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Ctrl-C and the like are the supervisor's, which stops the simulator after the programs. Its own death is a SIGTERM. */
static void set_signals(pid_t supervisor)
{
	rn_signals_reset();
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != supervisor)
		_exit(RN_EXIT_SIMULATOR);
}

static void run_simulator(const struct rn_options *options, const struct rn_scenario *scenario,
			  const struct rn_config *config, const char *dir, int ready_fd,
			  int stop_fd)
{
	prctl(PR_SET_NAME, "rnicsim-sim");
	allow_many_descriptors();
	exit(rn_simulator_run(options, scenario, config, dir, ready_fd, stop_fd));
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The ends that the other process has are closed in each: what one holds tells the other that it lives. */
struct ends {
	int ready[2], stop[2], start[2];
};

static bool make_ends(struct ends *ends, bool has_start)
{
	*ends = (struct ends){{-1, -1}, {-1, -1}, {-1, -1}};
	if (pipe2(ends->ready, O_CLOEXEC) == 0 && pipe2(ends->stop, O_CLOEXEC) == 0 &&
	    (!has_start || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->start) == 0))
		return true;
	fprintf(stderr, "rnicsim: cannot make a pipe: %s\n", strerror(errno));
	return false;
}

static void close_ends(struct ends *ends)
{
	for (unsigned i = 0; i < 2; i++) {
		close_fd(&ends->ready[i]);
		close_fd(&ends->stop[i]);
		close_fd(&ends->start[i]);
	}
}

static pid_t fork_simulator(struct ends *ends, const struct rn_options *options,
			    const struct rn_scenario *scenario, const struct rn_config *config,
			    const char *dir)
{
	const pid_t supervisor = getpid();
	struct rn_options own = *options;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	set_signals(supervisor);
	close_fd(&ends->ready[0]);
	close_fd(&ends->stop[1]);
	close_fd(&ends->start[0]);
	own.start_fd = ends->start[1];
	run_simulator(&own, scenario, config, dir, ends->ready[1], ends->stop[0]);
	return 0;
}

bool rn_child_start(struct rn_child *child, const struct rn_options *options,
		    const struct rn_scenario *scenario, const struct rn_config *config,
		    const char *dir)
{
	struct ends ends;

	*child = (struct rn_child){.pidfd = -1, .ready_fd = -1, .start_fd = -1, .stop_fd = -1};
	if (!make_ends(&ends, !options->free_run && !options->is_open)) {
		close_ends(&ends);
		return false;
	}
	child->pid = fork_simulator(&ends, options, scenario, config, dir);
	if (child->pid > 0)
		child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd < 0) {
		fprintf(stderr, "rnicsim: cannot start the simulator: %s\n", strerror(errno));
		if (child->pid > 0) {
			kill(child->pid, SIGKILL);
			waitpid(child->pid, NULL, 0);
		}
		child->pid = 0;
		close_ends(&ends);
		return false;
	}
	close_fd(&ends.ready[1]);
	close_fd(&ends.stop[0]);
	close_fd(&ends.start[1]);
	child->ready_fd = ends.ready[0];
	child->stop_fd = ends.stop[1];
	child->start_fd = ends.start[0];
	return true;
}

bool rn_child_is_up(struct rn_child *child)
{
	char byte;
	const bool is_up = read(child->ready_fd, &byte, 1) == 1;

	close_fd(&child->ready_fd);
	return is_up;
}

void rn_child_reap(struct rn_child *child)
{
	int status;

	if (child->pidfd < 0 || waitpid(child->pid, &status, WNOHANG) != child->pid)
		return;
	child->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	close_fd(&child->pidfd);
}

void rn_child_tell_end(struct rn_child *child)
{
	const struct rn_virtual_start told = {.pid = 0};

	if (child->start_fd >= 0)
		send(child->start_fd, &told, sizeof(told), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The byte tells it from a supervisor that has died. */
void rn_child_stop(struct rn_child *child)
{
	ssize_t written = 0;

	if (child->stop_fd >= 0)
		written = write(child->stop_fd, "", 1);
	(void)written; /* when it has ended already, nobody reads */
	close_fd(&child->stop_fd);
}

long rn_child_ticks_asleep(const struct rn_child *child)
{
	char path[64], text[512], state;
	const char *behind_name;
	unsigned long user, system;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child->pid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	behind_name = strrchr(text, ')');
	if (!behind_name ||
	    sscanf(behind_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state,
		   &user, &system) != 3 ||
	    state != 'S')
		return -1;
	return (long)(user + system);
}

void rn_child_fini(struct rn_child *child)
{
	close_fd(&child->pidfd);
	close_fd(&child->ready_fd);
	close_fd(&child->start_fd);
	close_fd(&child->stop_fd);
}
