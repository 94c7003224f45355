/*
 * Starting programs in virtual time. The counter of the processor must not stay trapped across exec: the next
 * program's loader reads it before anybody could catch that.
 */
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include "preload/affinity.h"
#include "preload/own_signals.h"
#include "preload/tsc/tsc.h"
#include "preload/virtual.h"

#define ARGUMENTS_MAX 1024

extern char **environ;

/* An exec returns only when it has failed. */
#define EXEC(call)                                                                                 \
	do {                                                                                       \
		int result_;                                                                       \
                                                                                                   \
		rn_virtual_act();                                                                  \
		rn_virtual_set_examinable(false);                                                  \
		rn_tsc_trap(false);                                                                \
		rn_own_signals_leave();                                                            \
		rn_affinity_release();                                                             \
		result_ = (call);                                                                  \
		rn_affinity_return();                                                              \
		rn_own_signals_return();                                                           \
		rn_tsc_trap(true);                                                                 \
		rn_virtual_set_examinable(true);                                                   \
		return result_;                                                                    \
	} while (0)

RN_EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	EXEC(RN_REAL(execve)(path, argv, env));
}

RN_EXPORT int execv(const char *path, char *const argv[])
{
	EXEC(RN_REAL(execv)(path, argv));
}

RN_EXPORT int execvp(const char *file, char *const argv[])
{
	EXEC(RN_REAL(execvp)(file, argv));
}

RN_EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	EXEC(RN_REAL(execvpe)(file, argv, env));
}

RN_EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	EXEC(RN_REAL(fexecve)(fd, argv, env));
}

static void collect(char **argv, const char *first, va_list *list)
{
	unsigned count = 0;

	argv[count++] = (char *)(uintptr_t)first;
	while (argv[count - 1] && count < ARGUMENTS_MAX)
		argv[count++] = va_arg(*list, char *);
	argv[count - 1] = NULL;
}

RN_EXPORT int execl(const char *path, const char *first, ...)
{
	char *argv[ARGUMENTS_MAX];
	va_list list;

	va_start(list, first);
	collect(argv, first, &list);
	va_end(list);
	return execv(path, argv);
}

RN_EXPORT int execlp(const char *file, const char *first, ...)
{
	char *argv[ARGUMENTS_MAX];
	va_list list;

	va_start(list, first);
	collect(argv, first, &list);
	va_end(list);
	return execvp(file, argv);
}

RN_EXPORT int execle(const char *path, const char *first, ...)
{
	char *argv[ARGUMENTS_MAX];
	char **env;
	va_list list;

	va_start(list, first);
	collect(argv, first, &list);
	env = va_arg(list, char **);
	va_end(list);
	return execve(path, argv, env);
}

static int spawn(__typeof__(&posix_spawn) real, pid_t *pid, const char *file,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		 char *const argv[], char *const env[])
{
	pid_t own;
	int error;

	rn_tsc_trap(false);
	rn_affinity_release();
	error = real(&own, file, actions, attributes, argv, env);
	rn_affinity_return();
	rn_tsc_trap(true);
	if (error)
		return error;
	if (pid)
		*pid = own;
	rn_virtual_wait_spawn(own);
	return 0;
}

RN_EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
			  const posix_spawn_file_actions_t *restrict actions,
			  const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
			  char *const env[restrict])
{
	return spawn(RN_REAL(posix_spawn), pid, path, actions, attributes, argv, env);
}

RN_EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
			   const posix_spawn_file_actions_t *restrict actions,
			   const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
			   char *const env[restrict])
{
	return spawn(RN_REAL(posix_spawnp), pid, file, actions, attributes, argv, env);
}
