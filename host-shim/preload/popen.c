/*
 * popen and system in virtual time: the shell lives in it from its start, and its end is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/tsc/tsc.h"
#include "preload/locks.h"
#include "preload/streams.h"
#include "preload/virtual.h"

extern char **environ;

struct opened {
	FILE *stream;
	pid_t pid;
	struct opened *next;
};

static struct opened *opened;

void rn_stream_drain_all(void)
{
	rn_stream_drain(stdout);
	for (const struct opened *one = opened; one; one = one->next)
		rn_stream_drain(one->stream);
}

/* The shell has none of the ends that earlier ones are read or written by. */
static int start_shell(pid_t *pid, const char *command, int end, int as)
{
	char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
			      (char *)(uintptr_t)command, NULL};
	posix_spawn_file_actions_t actions;
	int error;

	posix_spawn_file_actions_init(&actions);
	for (const struct opened *one = opened; one; one = one->next)
		if (fileno(one->stream) != as)
			posix_spawn_file_actions_addclose(&actions, fileno(one->stream));
	posix_spawn_file_actions_adddup2(&actions, end, as);
	error = posix_spawn(pid, "/bin/sh", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static FILE *open_shell(struct opened *one, const char *command, bool reads, bool stays)
{
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	one->stream = fdopen(ends[!reads], reads ? "r" : "w");
	error = one->stream ? start_shell(&one->pid, command, ends[reads], reads ? 1 : 0) : errno;
	close(ends[reads]);
	if (error) {
		if (one->stream)
			fclose(one->stream);
		else
			close(ends[!reads]);
		errno = error;
		return NULL;
	}
	if (stays)
		fcntl(ends[!reads], F_SETFD, 0);
	return one->stream;
}

RN_EXPORT FILE *popen(const char *command, const char *type)
{
	struct opened *one;

	if (!rn_virtual_is_on() || (type[0] != 'r' && type[0] != 'w') ||
	    strspn(type + 1, "e") != strlen(type + 1)) {
		FILE *stream;

		rn_tsc_trap(false);
		stream = RN_REAL(popen)(command, type);
		rn_tsc_trap(true);
		return stream;
	}
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	if (!open_shell(one, command, type[0] == 'r', !type[1])) {
		free(one);
		return NULL;
	}
	one->next = opened;
	opened = one;
	return one->stream;
}

RN_EXPORT int pclose(FILE *stream)
{
	struct opened **link = &opened, *one;
	int status = -1;

	while (*link && (*link)->stream != stream)
		link = &(*link)->next;
	one = *link;
	if (!one)
		return RN_REAL(pclose)(stream);
	*link = one->next;
	fclose(stream);
	while (waitpid(one->pid, &status, 0) < 0) {
		if (errno == EINTR)
			continue;
		status = -1;
		break;
	}
	free(one);
	return status;
}

static void run_shell(const char *command, const sigset_t *mask)
{
	sigprocmask(SIG_SETMASK, mask, NULL);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

RN_EXPORT int system(const char *command)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction interrupt, quit;
	sigset_t block, old;
	int status = -1;
	pid_t pid;

	if (!command || !rn_virtual_is_on())
		return RN_REAL(system)(command);
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &old);
	pid = fork();
	if (pid == 0)
		run_shell(command, &old);
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return status;
}
