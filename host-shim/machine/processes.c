/*
 * What one process may do to another.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/internal.h"

#define PATTERN 0x726e6963u

static bool kernel_randomises(void)
{
	FILE *file = fopen("/proc/sys/kernel/randomize_va_space", "re");
	int value = 1;

	if (file && fscanf(file, "%d", &value) != 1)
		value = 1;
	if (file)
		fclose(file);
	return value != 0;
}

void rn_probe_fixed_addresses(struct rn_machine_finding *finding)
{
	const int old = personality(0xffffffff);

	finding->works = true;
	if (!kernel_randomises()) {
		rn_machine_detail(finding, "the system does not randomise");
		return;
	}
	if (old < 0 || personality((unsigned long)old | ADDR_NO_RANDOMIZE) < 0) {
		rn_machine_refuse(finding, "personality(ADDR_NO_RANDOMIZE)", errno);
		return;
	}
	/* A sandbox may say yes to everything. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE))
		rn_machine_refuse(finding, "personality(ADDR_NO_RANDOMIZE) has no effect", 0);
	personality((unsigned long)old);
}

/* A child that waits for its end; 0 in the child is not returned. */
static pid_t make_child(void (*work)(void *arg), void *arg)
{
	const pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(arg);
	_exit(0);
}

static void wait_for_signal(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Two children: a simulator is no ancestor of the programs whose memory it reads, and some systems allow it to those alone. */
struct reach {
	pid_t pid;
	volatile uint32_t *word;
};

static void read_and_write(void *arg)
{
	const struct reach *reach = arg;
	uint32_t word = 0;
	struct iovec local = {.iov_base = &word, .iov_len = sizeof(word)};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)reach->word, .iov_len = sizeof(word)};

	if (process_vm_readv(reach->pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(word))
		_exit(errno);
	if (process_vm_writev(reach->pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(word))
		_exit(errno);
	_exit(word == PATTERN ? 0 : EIO);
}

void rn_probe_process_memory(struct rn_machine_finding *finding)
{
	static volatile uint32_t word = PATTERN;
	struct reach reach = {.word = &word};
	pid_t reader;
	int status = 0;

	reach.pid = make_child(wait_for_signal, NULL);
	if (reach.pid < 0) {
		rn_machine_refuse(finding, "fork", errno);
		return;
	}
	reader = make_child(read_and_write, &reach);
	if (reader < 0)
		rn_machine_refuse(finding, "fork", errno);
	else if (waitpid(reader, &status, 0) == reader && WIFEXITED(status) &&
		 WEXITSTATUS(status) == 0)
		finding->works = true;
	else
		rn_machine_refuse(finding, "process_vm_readv",
				  WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
	end_child(reach.pid);
}

static void be_traced(void *arg)
{
	(void)arg;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(errno);
	raise(SIGSTOP);
	_exit(0);
}

void rn_probe_ptrace(struct rn_machine_finding *finding)
{
	const pid_t pid = make_child(be_traced, NULL);
	int status = 0;

	if (pid < 0) {
		rn_machine_refuse(finding, "fork", errno);
		return;
	}
	if (waitpid(pid, &status, WUNTRACED) != pid) {
		rn_machine_refuse(finding, "waitpid", errno);
	} else if (WIFEXITED(status)) {
		rn_machine_refuse(finding, "ptrace", WEXITSTATUS(status));
		return;
	} else if (!WIFSTOPPED(status) || ptrace(PTRACE_CONT, pid, NULL, NULL) != 0) {
		rn_machine_refuse(finding, "ptrace", errno);
	} else if (waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
		finding->works = true;
		return;
	} else {
		rn_machine_refuse(finding, "the traced process did not go on", 0);
	}
	end_child(pid);
}

static bool says_state(pid_t pid)
{
	char path[64], line[256];
	FILE *file;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		found = found || strncmp(line, "State:", 6) == 0;
	if (file)
		fclose(file);
	return found;
}

/* A descriptor of it that tells its end, and what /proc says of it. */
void rn_probe_process_watch(struct rn_machine_finding *finding)
{
	const pid_t pid = make_child(wait_for_signal, NULL);
	struct pollfd fd = {.fd = -1, .events = POLLIN};

	if (pid < 0) {
		rn_machine_refuse(finding, "fork", errno);
		return;
	}
	fd.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd.fd < 0)
		rn_machine_refuse(finding, "pidfd_open", errno);
	else if (!says_state(pid))
		rn_machine_refuse(finding, "/proc does not tell what processes do", 0);
	else
		finding->works = true;
	kill(pid, SIGKILL);
	if (finding->works && poll(&fd, 1, 5000) != 1)
		rn_machine_refuse(finding, "pidfd_open's descriptor does not tell the end", 0);
	waitpid(pid, NULL, 0);
	if (fd.fd >= 0)
		close(fd.fd);
}
