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

/* On a processor, and runnable without one. */
static bool read_times(pid_t pid, pid_t tid, uint64_t *cpu_ns, uint64_t *queued_ns)
{
	FILE *file = open_file(pid, tid, "schedstat");
	bool ok;

	if (!file)
		return false;
	ok = fscanf(file, "%" SCNu64 " %" SCNu64, cpu_ns, queued_ns) == 2;
	fclose(file);
	return ok;
}

/* 'S' and the like; who traces it. */
static bool read_state(pid_t pid, pid_t tid, char *state, pid_t *tracer)
{
	FILE *file = open_file(pid, tid, "status");
	bool found = false;
	char line[128];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		found |= sscanf(line, "State: %c", state) == 1;
		if (sscanf(line, "TracerPid: %d", tracer) == 1)
			break;
	}
	fclose(file);
	return found;
}

static void begin(struct rn_task_watch *watch)
{
	watch->is_known = true;
	watch->begin_ns = watch->at_ns;
	watch->begin_cpu_ns = watch->cpu_ns;
	watch->begin_queued_ns = watch->queued_ns;
}

/*
 * Only of one that does not wait for a processor now: that wait is counted when it is over. Time for which a hypervisor has
 * taken the processor away looks like sleep: as much again as it was awake is excused.
 */
static void add_sleep(struct rn_task_watch *watch)
{
	const uint64_t awake_ns = 2 * (watch->cpu_ns - watch->begin_cpu_ns + watch->queued_ns -
				       watch->begin_queued_ns + watch->excused_ns);
	const uint64_t passed_ns = watch->at_ns - watch->begin_ns;

	if (passed_ns > awake_ns + watch->asleep_ns)
		watch->asleep_ns = passed_ns - awake_ns;
}

/* False when there is no such thread, or nothing is told of it. */
static bool look(struct rn_task_watch *watch, pid_t pid, pid_t tid, uint64_t since_ns)
{
	pid_t tracer = 0;
	char state;

	watch->is_asleep = false;
	watch->tracer = 0;
	if (!read_state(pid, tid, &state, &tracer) ||
	    !read_times(pid, tid, &watch->cpu_ns, &watch->queued_ns))
		return false;
	if (!watch->is_known)
		begin(watch);
	watch->tracer = state == 't' ? tracer : 0;
	watch->is_asleep = state != 'R' && state != 'D' && state != 't';
	if (state == 'D' || state == 't')
		watch->excused_ns += since_ns;
	if (watch->is_asleep)
		add_sleep(watch);
	return true;
}

void rn_task_watch_start(struct rn_task_watch *watch)
{
	memset(watch, 0, sizeof(*watch));
	watch->at_ns = rn_wall_ns();
}

uint64_t rn_task_watch_update(struct rn_task_watch *watch, pid_t pid, pid_t tid)
{
	const uint64_t cpu_ns = watch->cpu_ns, now_ns = rn_wall_ns();
	const uint64_t since_ns = now_ns - watch->at_ns;
	const bool was_known = watch->is_known;

	if (since_ns < LOOK_NS)
		return 0;
	watch->at_ns = now_ns;
	if (!look(watch, pid, tid, was_known ? since_ns : 0)) {
		watch->unseen_ns += since_ns;
		return since_ns;
	}
	if (!was_known || watch->tracer)
		return 0;
	return watch->is_asleep ? since_ns : watch->cpu_ns - cpu_ns;
}

bool rn_task_is_gone(pid_t pid, pid_t tid)
{
	return tid > 0 && syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;
}

pid_t rn_task_parent(pid_t pid)
{
	FILE *file = open_file(pid, pid, "status");
	pid_t parent = -1;
	char line[128];

	if (!file)
		return -1;
	while (parent < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "PPid: %d", &parent);
	fclose(file);
	return parent;
}
