/*
 * Processes in virtual time: fork, waiting for children and signals. A child lives in virtual time from its
 * first instruction, at its parent's time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/virtual.h"

pid_t vfork(void);

static void in_child(const int pipe_fd[2], uint64_t now_ps)
{
	RN_REAL(close)(pipe_fd[0]);
	rn_virtual_attach_child(now_ps);
	rn_virtual_leave_native();
	RN_REAL(close)(pipe_fd[1]);
	rn_virtual_wait_turn();
}

/* Until the child has joined, or has died. */
static void in_parent(const int pipe_fd[2])
{
	char byte;

	RN_REAL(close)(pipe_fd[1]);
	while (RN_REAL(read)(pipe_fd[0], &byte, 1) < 0 && errno == EINTR)
		;
	RN_REAL(close)(pipe_fd[0]);
	rn_virtual_leave_native();
}

RN_EXPORT pid_t fork(void)
{
	int pipe_fd[2];
	uint64_t now_ps;
	pid_t pid;

	if (!rn_virtual_is_on() || pipe2(pipe_fd, O_CLOEXEC))
		return RN_REAL(fork)();
	rn_virtual_charge_call();
	now_ps = rn_virtual_now_ps();
	rn_virtual_enter_native();
	pid = RN_REAL(fork)();
	if (pid == 0)
		in_child(pipe_fd, now_ps);
	else
		in_parent(pipe_fd);
	return pid;
}

/* A child that shares memory could not join on its own; fork is what vfork's callers may count on. */
RN_EXPORT pid_t vfork(void)
{
	return fork();
}

/* --- children --- */

struct child_look {
	pid_t pid;
	int options;
	int *status;
	struct rusage *usage;
	pid_t result;
	int error;
};

static bool look_child(void *arg)
{
	struct child_look *look = arg;

	look->result = (pid_t)syscall(SYS_wait4, look->pid, look->status, look->options | WNOHANG,
				      look->usage);
	look->error = look->result < 0 ? errno : 0;
	return look->result != 0;
}

static pid_t wait_child(struct child_look *look)
{
	bool restart = false;

	rn_virtual_charge_call();
	if (look->options & WNOHANG) {
		rn_virtual_settle();
		look_child(look);
	} else {
		while (rn_virtual_wait_for(look_child, look, RN_TIME_NO_LIMIT, &restart) !=
		       RN_WAITED_OK) {
			if (!rn_virtual_is_on() || !restart) {
				errno = EINTR;
				return -1;
			}
		}
	}
	if (look->error)
		errno = look->error;
	return look->result;
}

RN_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	struct child_look look = {pid, options, status, usage, 0, 0};

	return rn_virtual_is_on() ? wait_child(&look) : RN_REAL(wait4)(pid, status, options, usage);
}

RN_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	struct child_look look = {pid, options, status, NULL, 0, 0};

	return rn_virtual_is_on() ? wait_child(&look) : RN_REAL(waitpid)(pid, status, options);
}

RN_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	return wait4(-1, status, options, usage);
}

RN_EXPORT pid_t wait(int *status)
{
	return wait4(-1, status, 0, NULL);
}

/* --- signals --- */

static bool look_pending(void *arg)
{
	const sigset_t *mask = arg;
	sigset_t pending;

	sigpending(&pending);
	for (int signo = 1; signo < _NSIG; signo++)
		if (sigismember(&pending, signo) == 1 && sigismember(mask, signo) != 1)
			return true;
	return false;
}

RN_EXPORT int sigsuspend(const sigset_t *mask)
{
	sigset_t wanted = *mask;

	if (!rn_virtual_is_on())
		return RN_REAL(sigsuspend)(mask);
	rn_virtual_charge_call();
	if (rn_virtual_wait_for(look_pending, &wanted, RN_TIME_NO_LIMIT, NULL) == RN_WAITED_OK)
		return RN_REAL(sigsuspend)(mask);
	errno = EINTR;
	return -1;
}
