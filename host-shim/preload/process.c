/*
 * Processes in virtual time: fork, waiting for children. A child lives in virtual time from its
 * first instruction, at its parent's time.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/waits.h"

pid_t vfork(void);

/* The child joins at its parent's time; simulated time stands still until it has, and the parent goes first. */
RN_EXPORT pid_t fork(void)
{
	uint64_t now_ps;
	pid_t pid;

	if (!rn_virtual_is_on())
		return RN_REAL(fork)();
	rn_virtual_charge_call();
	now_ps = rn_virtual_now_ps();
	rn_virtual_enter_native();
	/* A question would make the system begin the fork again. */
	rn_virtual_set_examinable(false);
	pid = RN_REAL(fork)();
	if (pid == 0)
		rn_virtual_attach_child(now_ps);
	else
		rn_virtual_set_examinable(true);
	rn_virtual_leave_native();
	if (pid == 0)
		rn_virtual_wait_turn();
	else if (pid > 0)
		rn_virtual_wait_spawn(pid);
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
	rn_virtual_charge_call();
	if (look->options & WNOHANG) {
		rn_virtual_settle();
		look_child(look);
	} else if (!rn_wait_call(look_child, look, RN_TIME_NO_LIMIT, 0)) {
		return -1;
	} else if (!look->result) {
		return RN_REAL(wait4)(look->pid, look->status, look->options, look->usage);
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
	return wait4(pid, status, options, NULL);
}

RN_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	return wait4(-1, status, options, usage);
}

RN_EXPORT pid_t wait(int *status)
{
	return wait4(-1, status, 0, NULL);
}

struct id_look {
	idtype_t type;
	id_t id;
	siginfo_t info;
	int options;
	int error;
};

static bool look_id(void *arg)
{
	struct id_look *look = arg;

	look->info.si_pid = 0;
	look->error = syscall(SYS_waitid, look->type, look->id, &look->info,
			      look->options | WNOHANG, NULL)
			      ? errno
			      : 0;
	return look->error || look->info.si_pid;
}

RN_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct id_look look = {.type = type, .id = id, .options = options};

	if (!rn_virtual_is_on())
		return RN_REAL(waitid)(type, id, info, options);
	rn_virtual_charge_call();
	if (options & WNOHANG) {
		rn_virtual_settle();
		look_id(&look);
	} else if (!rn_wait_call(look_id, &look, RN_TIME_NO_LIMIT, 0)) {
		return -1;
	}
	if (look.error) {
		errno = look.error;
		return -1;
	}
	if (info)
		*info = look.info;
	return 0;
}
