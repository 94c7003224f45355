#include "task_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 1000000u

uint64_t rn_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static FILE *open_file(pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return fopen(path, "re");
}

static bool read_cpu_ns(pid_t pid, pid_t tid, uint64_t *ns)
{
	FILE *file = open_file(pid, tid, "schedstat");
	bool ok;

	if (!file)
		return false;
	ok = fscanf(file, "%" SCNu64, ns) == 1;
	fclose(file);
	return ok;
}

/* 'S' and the like; switches of both kinds; who traces it. */
static bool read_state(pid_t pid, pid_t tid, char *state, uint64_t *switches, pid_t *tracer)
{
	FILE *file = open_file(pid, tid, "status");
	unsigned found = 0;
	char line[128];
	uint64_t count;

	if (!file)
		return false;
	*switches = 0;
	while (fgets(line, sizeof(line), file)) {
		found += sscanf(line, "State: %c", state) == 1;
		sscanf(line, "TracerPid: %d", tracer);
		if (sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &count) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &count) == 1) {
			*switches += count;
			found++;
		}
	}
	fclose(file);
	return found == 3;
}

static void look(struct rn_task_watch *watch, pid_t pid, pid_t tid)
{
	const uint64_t cpu_before_ns = watch->cpu_ns;
	uint64_t switches, cpu_ns;
	pid_t tracer = 0;
	char state;

	watch->at_ns = rn_wall_ns();
	if (!read_state(pid, tid, &state, &switches, &tracer) || !read_cpu_ns(pid, tid, &cpu_ns)) {
		watch->is_asleep = false;
		return;
	}
	if (!watch->is_known)
		watch->begin_cpu_ns = cpu_ns;
	if (!watch->is_asleep || switches != watch->switches || cpu_ns != cpu_before_ns)
		watch->asleep_since_ns = watch->at_ns;
	watch->is_asleep = state == 'S' || state == 'T' || state == 't';
	watch->tracer = state == 't' ? tracer : 0;
	watch->cpu_ns = cpu_ns;
	watch->switches = switches;
	watch->is_known = true;
}

void rn_task_watch_start(struct rn_task_watch *watch)
{
	memset(watch, 0, sizeof(*watch));
	watch->at_ns = rn_wall_ns();
}

uint64_t rn_task_watch_update(struct rn_task_watch *watch, pid_t pid, pid_t tid)
{
	const uint64_t cpu_ns = watch->cpu_ns, at_ns = watch->at_ns;
	const bool was_known = watch->is_known;

	if (rn_wall_ns() - at_ns < LOOK_NS)
		return 0;
	look(watch, pid, tid);
	if (!was_known)
		return 0;
	return watch->is_asleep ? watch->at_ns - at_ns : watch->cpu_ns - cpu_ns;
}

bool rn_task_is_gone(pid_t pid, pid_t tid)
{
	return tid > 0 && syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;
}
