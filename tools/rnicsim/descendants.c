#include "descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#define END_ROUNDS 200
#define END_ROUND_NS 10000000 /* 10 ms: two seconds in all */
#define ENVIRONMENT_BYTES (1u << 20)

struct process {
	pid_t pid, parent;
	bool is_ours, is_dead;
};

struct table {
	struct process *process;
	size_t count, room;
};

void rn_descendants_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Whole of a small file of /proc as a string. */
static bool read_small(const char *pid, const char *name, char *text, size_t room)
{
	char path[320];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, room - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool read_process(const char *name, struct process *process)
{
	const char *behind_name;
	char text[512], state;
	int parent;

	if (!isdigit((unsigned char)*name) || !read_small(name, "stat", text, sizeof(text)))
		return false;
	behind_name = strrchr(text, ')');
	if (!behind_name || sscanf(behind_name + 1, " %c %d", &state, &parent) != 2)
		return false;
	*process = (struct process){
		.pid = atoi(name), .parent = parent, .is_dead = state == 'Z' || state == 'X'};
	return true;
}

static bool read_table(struct table *table)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	*table = (struct table){0};
	while (proc && (entry = readdir(proc))) {
		if (table->count == table->room) {
			table->room = table->room ? 2 * table->room : 256;
			table->process = rn_reallocarray(table->process, table->room,
							 sizeof(*table->process));
		}
		table->count += read_process(entry->d_name, &table->process[table->count]);
	}
	if (proc)
		closedir(proc);
	return table->count > 0;
}

static bool is_in(const struct table *table, pid_t pid)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->process[i].is_ours && table->process[i].pid == pid)
			return true;
	return false;
}

/* A child may stand before its parent in the table: until nothing changes. */
static void mark_ours(struct table *table, pid_t except)
{
	const pid_t self = getpid();
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < table->count; i++) {
			struct process *p = &table->process[i];

			if (p->is_ours || p->pid == except ||
			    (p->parent != self && !is_in(table, p->parent)))
				continue;
			p->is_ours = true;
			changed = true;
		}
	}
}

int rn_descendants_signal(int signo, pid_t except)
{
	struct table table;
	int count = 0;

	if (!read_table(&table))
		return -1;
	mark_ours(&table, except);
	for (size_t i = 0; i < table.count; i++) {
		const struct process *p = &table.process[i];

		if (p->is_ours && !p->is_dead && kill(p->pid, signo) == 0)
			count++;
	}
	free(table.process);
	return count;
}

bool rn_descendants_end(pid_t except)
{
	const struct timespec round = {.tv_nsec = END_ROUND_NS};

	for (unsigned i = 0; i < END_ROUNDS; i++) {
		if (rn_descendants_signal(SIGKILL, except) <= 0)
			return true;
		nanosleep(&round, NULL);
	}
	return false;
}

void rn_descendants_reap(bool (*is_kept)(void *arg, pid_t pid), void *arg)
{
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid ||
		    is_kept(arg, info.si_pid))
			return;
		waitpid(info.si_pid, NULL, WNOHANG);
	}
}

static bool has_variable(const char *text, size_t bytes, const char *wanted)
{
	for (const char *at = text; at < text + bytes; at += strlen(at) + 1)
		if (strcmp(at, wanted) == 0)
			return true;
	return false;
}

static bool is_marked(const char *pid, char *text, const char *wanted)
{
	char path[320];
	struct stat st;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid())
		n = read(fd, text, ENVIRONMENT_BYTES - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 && has_variable(text, (size_t)n, wanted);
}

void rn_descendants_kill_marked(const char *variable, const char *value)
{
	char *wanted = rn_asprintf("%s=%s", variable, value);
	char *text = rn_calloc(1, ENVIRONMENT_BYTES);
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid() &&
		    is_marked(entry->d_name, text, wanted))
			kill(atoi(entry->d_name), SIGKILL);
	if (proc)
		closedir(proc);
	free(text);
	free(wanted);
}
