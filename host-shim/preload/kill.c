/*
 * Signals to other programs of the run. Who catches one runs its handler when it has the baton next. Whom one kills is gone at the
 * sender's time: the sender keeps the baton until the system has ended it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/waits.h"

#define END_LIMIT_NS 1000000000
#define LOOK_NS 50000

struct victim {
	char state;
	pid_t group;
	uint64_t blocked, ignored, caught;
};

/* False: no such process. */
static bool look_at(pid_t pid, struct victim *victim)
{
	char path[64], line[256];
	FILE *file;

	memset(victim, 0, sizeof(*victim));
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &victim->state);
		sscanf(line, "SigBlk: %" SCNx64, &victim->blocked);
		sscanf(line, "SigIgn: %" SCNx64, &victim->ignored);
		sscanf(line, "SigCgt: %" SCNx64, &victim->caught);
	}
	fclose(file);
	victim->group = getpgid(pid);
	return true;
}

static bool ends_by(const struct victim *victim, int signo)
{
	const uint64_t bit = (uint64_t)1 << (signo - 1);

	if (signo == SIGKILL)
		return true;
	switch (signo) {
	case SIGCHLD:
	case SIGWINCH:
	case SIGURG:
	case SIGCONT:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return !((victim->blocked | victim->ignored | victim->caught) & bit);
	}
}

static void await_end(pid_t pid, int signo)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	struct victim victim;

	for (unsigned looks = 0; looks < END_LIMIT_NS / LOOK_NS; looks++) {
		const bool is_known = look_at(pid, &victim);

		if (is_known && !ends_by(&victim, signo))
			return;
		/* Its parent's SIGCHLD comes a moment after the end can be seen. */
		syscall(SYS_nanosleep, &pause, NULL);
		if (!is_known || victim.state == 'Z' || victim.state == 'X')
			return;
	}
}

/* All of @group but the caller; 0: its own. */
static void await_group(pid_t group, int signo)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		const pid_t pid = (pid_t)atoi(entry->d_name);

		if (isdigit((unsigned char)*entry->d_name) && pid != getpid() &&
		    getpgid(pid) == group)
			await_end(pid, signo);
	}
	if (folder)
		closedir(folder);
}

/* The answer of a call that has sent @signo to @pid (as for kill()). */
static int sent(int result, pid_t pid, int signo)
{
	const int saved_errno = errno;

	if (result || !signo || !rn_virtual_is_on())
		return result;
	rn_virtual_enter_native();
	if (pid > 0 && pid != getpid())
		await_end(pid, signo);
	else if (pid <= 0 && pid != -1)
		await_group(pid ? -pid : getpgrp(), signo);
	rn_virtual_leave_native();
	rn_virtual_act_by_signal();
	errno = saved_errno;
	return result;
}

RN_EXPORT int kill(pid_t pid, int signo)
{
	return sent(RN_REAL(kill)(pid, signo), pid, signo);
}

RN_EXPORT int killpg(pid_t group, int signo)
{
	return sent(RN_REAL(killpg)(group, signo), -group, signo);
}

RN_EXPORT int sigqueue(pid_t pid, int signo, const union sigval value)
{
	return sent(RN_REAL(sigqueue)(pid, signo, value), pid, signo);
}

RN_EXPORT int tgkill(pid_t pid, pid_t tid, int signo)
{
	return sent(RN_REAL(tgkill)(pid, tid, signo), pid, signo);
}

RN_EXPORT int pthread_kill(pthread_t id, int signo)
{
	return sent(RN_REAL(pthread_kill)(id, signo), getpid(), signo);
}

RN_EXPORT int pthread_sigqueue(pthread_t id, int signo, const union sigval value)
{
	return sent(RN_REAL(pthread_sigqueue)(id, signo, value), getpid(), signo);
}

RN_EXPORT int raise(int signo)
{
	return sent(RN_REAL(raise)(signo), getpid(), signo);
}
