#include "programs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "environment.h"
#include "outlet.h"
#include "signals.h"

/*
 * Programs poll. The simulator, on which all of them wait, must not wait for the end of their time slices.
 */
#define PROGRAM_NICE 10

/* What a child needs, ready before it is made. */
struct start {
	const char *command;
	char **environment;
	int null, out, err;
	bool virtual_time;
};

static void redirect(int fd, int to)
{
	if (fd >= 0)
		dup2(fd, to);
}

/* In the child, which has the launcher's memory: system calls only. */
static void become_program(const struct start *start)
{
	const char *const argv[] = {"sh", "-c", start->command, NULL};

	setpgid(0, 0);
	/* One that spins on memory would not find out that the run was killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (start->virtual_time)
		personality(ADDR_NO_RANDOMIZE);
	else
		setpriority(PRIO_PROCESS, 0, PROGRAM_NICE);
	redirect(start->null, STDIN_FILENO);
	redirect(start->out, STDOUT_FILENO);
	redirect(start->err, STDERR_FILENO);
	rn_signals_reset();
	execve("/bin/sh", (char *const *)(uintptr_t)argv, start->environment);
	_exit(127);
}

/* The launcher waits until the child has exec'ed: nothing is copied for it. */
static pid_t start_child(const struct start *start)
{
	const pid_t pid = vfork();

	if (pid == 0)
		become_program(start);
	return pid;
}

static bool make_pipes(int out[2], int err[2])
{
	if (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0)
		return true;
	fprintf(stderr, "rnicsim: cannot make a pipe: %s\n", strerror(errno));
	return false;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static bool watch(struct rn_program *program)
{
	setpgid(program->pid, program->pid);
	program->pidfd = (int)syscall(SYS_pidfd_open, program->pid, 0);
	if (program->pidfd >= 0)
		return true;
	fprintf(stderr, "rnicsim: cannot watch a program: %s\n", strerror(errno));
	kill(program->pid, SIGKILL);
	waitpid(program->pid, NULL, 0);
	return false;
}

bool rn_program_start(struct rn_program *program, unsigned host, const char *command,
		      const char *dir, bool raw, bool virtual_time)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1};
	struct start start = {.command = command, .virtual_time = virtual_time};
	bool started = false;

	memset(program, 0, sizeof(*program));
	program->host = host;
	program->command = command;
	program->pidfd = -1;
	if (raw || make_pipes(out, err)) {
		start.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		start.out = out[1];
		start.err = err[1];
		start.environment = rn_environment_new(dir, host, raw ? STDOUT_FILENO : out[1],
						       raw ? STDERR_FILENO : err[1]);
		program->pid = start.environment ? start_child(&start) : 0;
		if (program->pid < 0)
			fprintf(stderr, "rnicsim: cannot start: %s: %s\n", command,
				strerror(errno));
		started = program->pid > 0 && watch(program);
		rn_environment_free(start.environment);
		close_fd(start.null);
	}
	close_fd(out[1]);
	close_fd(err[1]);
	program->out[0] = out[0];
	program->out[1] = err[0];
	return started;
}

static void pass_line(struct rn_program *program, unsigned stream, struct rn_outlet *to)
{
	char line[sizeof(program->line[0]) + 32];
	int bytes = snprintf(line, sizeof(line), "[host%u] ", program->host);

	memcpy(line + bytes, program->line[stream], program->line_bytes[stream]);
	bytes += (int)program->line_bytes[stream];
	line[bytes++] = '\n';
	rn_outlet_put(to, line, (size_t)bytes);
	program->line_bytes[stream] = 0;
}

static void split_lines(struct rn_program *program, unsigned stream, const char *text, size_t bytes,
			struct rn_outlet *to)
{
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] != '\n')
			program->line[stream][program->line_bytes[stream]++] = text[i];
		if (text[i] == '\n' || program->line_bytes[stream] == sizeof(program->line[stream]))
			pass_line(program, stream, to);
	}
}

static void close_stream(struct rn_program *program, unsigned stream, struct rn_outlet *to)
{
	if (program->line_bytes[stream])
		pass_line(program, stream, to);
	close_fd(program->out[stream]);
	program->out[stream] = -1;
}

void rn_program_forward(struct rn_program *program, unsigned stream, struct rn_outlet *to)
{
	char text[16384];
	ssize_t n = read(program->out[stream], text, sizeof(text));

	if (n > 0)
		split_lines(program, stream, text, (size_t)n, to);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		close_stream(program, stream, to);
}

void rn_program_reap(struct rn_program *program)
{
	int status;

	if (waitpid(program->pid, &status, WNOHANG) != program->pid)
		return;
	program->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	close(program->pidfd);
	program->pidfd = -1;
}

void rn_program_finish(struct rn_program *program, struct rn_outlet *const to[2])
{
	for (unsigned stream = 0; stream < 2; stream++) {
		if (program->out[stream] < 0)
			continue;
		fcntl(program->out[stream], F_SETFL, O_NONBLOCK);
		/* A pipe holds no more than this. */
		for (unsigned i = 0; i < 64 && program->out[stream] >= 0; i++)
			rn_program_forward(program, stream, to[stream]);
		if (program->out[stream] >= 0)
			close_stream(program, stream, to[stream]);
	}
}
