#include "virtual_place.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "task_watch.h"
#include "virtual_process.h"

#define LOOK_NS 200000000u
#define CROWDED_PERCENT 25 /* of wall time spent waiting for the processor: look for an idle one */
#define CRAMPED_PERCENT 50 /* any other may be better */
#define IDLE_PERCENT 50
#define MOVES_IN 8 /* looks */
#define NS_PER_S 1000000000u

static cpu_set_t only(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)processor, &set);
	return set;
}

static bool go_to(struct rn_place *place, int processor)
{
	const cpu_set_t set = only(processor);

	if (sched_setaffinity(0, sizeof(set), &set))
		return false;
	place->processor = processor;
	return true;
}

void rn_place_leave(struct rn_place *place)
{
	if (place->processor >= 0)
		sched_setaffinity(0, sizeof(place->allowed), &place->allowed);
	place->processor = -1;
}

/* --- processes --- */

/* What stands in the time page is the program's: never touch a thread that is not its own. */
static bool has_thread(const struct rn_vprocess *process, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)process->pid, (int)tid);
	return tid > 0 && !access(path, F_OK);
}

static void set_all(const struct rn_vprocess *process, const cpu_set_t *set)
{
	const struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			sched_setaffinity((pid_t)strtol(entry->d_name, NULL, 10), sizeof(*set),
					  set);
	if (tasks)
		closedir(tasks);
}

void rn_place_take(const struct rn_place *place, struct rn_vprocess *process)
{
	const cpu_set_t set = only(place->processor < 0 ? 0 : place->processor);

	if (place->processor < 0)
		return;
	if (!process->has_affinity &&
	    sched_getaffinity(process->pid, sizeof(process->affinity), &process->affinity))
		return;
	process->has_affinity = true;
	atomic_store(&process->page->processor, place->processor);
	set_all(process, &set);
}

void rn_place_release(const struct rn_place *place, const struct rn_vprocess *process)
{
	if (place->processor < 0 || !process->has_affinity)
		return;
	atomic_store(&process->page->processor, -1);
	set_all(process, &process->affinity);
}

void rn_place_take_thread(const struct rn_place *place, const struct rn_vprocess *process,
			  pid_t tid)
{
	if (place->processor >= 0 && has_thread(process, tid)) {
		const cpu_set_t set = only(place->processor);

		sched_setaffinity(tid, sizeof(set), &set);
	}
}

void rn_place_release_thread(const struct rn_place *place, const struct rn_vprocess *process,
			     pid_t tid)
{
	if (place->processor >= 0 && process->has_affinity && has_thread(process, tid))
		sched_setaffinity(tid, sizeof(process->affinity), &process->affinity);
}

/* --- moving --- */

/* For how long this thread has been ready to run without running. */
static bool read_delay_ns(uint64_t *delay_ns)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	bool ok;

	if (!file)
		return false;
	ok = fscanf(file, "%*u %" SCNu64, delay_ns) == 1;
	fclose(file);
	return ok;
}

/* Idle time of all processors in clock ticks; those that are not listed have none. */
static void read_idle(uint64_t idle[CPU_SETSIZE])
{
	FILE *file = fopen("/proc/stat", "re");
	char line[512];

	memset(idle, 0, CPU_SETSIZE * sizeof(*idle));
	while (file && fgets(line, sizeof(line), file)) {
		uint64_t ticks;
		unsigned n;

		/* The first line, "cpu  ...", is the sum of all. */
		if (line[3] != ' ' && sscanf(line, "cpu%u %*u %*u %*u %" SCNu64, &n, &ticks) == 2 &&
		    n < CPU_SETSIZE)
			idle[n] = ticks;
	}
	if (file)
		fclose(file);
}

void rn_place_choose(struct rn_place *place)
{
	const int here = sched_getcpu();

	*place = (struct rn_place){.processor = -1, .dice = (uint64_t)getpid()};
	if (here < 0 || here >= CPU_SETSIZE ||
	    sched_getaffinity(0, sizeof(place->allowed), &place->allowed) ||
	    CPU_COUNT(&place->allowed) < 2)
		return;
	place->looked_ns = rn_wall_ns();
	read_delay_ns(&place->delay_ns);
	read_idle(place->idle);
	go_to(place, here);
}

static unsigned roll(struct rn_place *place, unsigned sides)
{
	place->dice = place->dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(place->dice >> 33) % sides;
}

/* Another processor that was idle for most of the time since @place looked last; -1: none. */
static int find_idle(const struct rn_place *place, const uint64_t idle[CPU_SETSIZE],
		     uint64_t window_ns)
{
	const uint64_t window_ticks = window_ns / (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	uint64_t most = window_ticks * IDLE_PERCENT / 100;
	int best = -1;

	for (int n = 0; n < CPU_SETSIZE; n++) {
		const uint64_t ticks = idle[n] - place->idle[n];

		if (n == place->processor || !CPU_ISSET((unsigned)n, &place->allowed) ||
		    ticks < most)
			continue;
		most = ticks;
		best = n;
	}
	return best;
}

static int any_other(struct rn_place *place)
{
	unsigned steps = 1 + roll(place, (unsigned)CPU_COUNT(&place->allowed) - 1);
	int n = place->processor;

	while (steps) {
		n = (n + 1) % CPU_SETSIZE;
		steps -= CPU_ISSET((unsigned)n, &place->allowed) != 0;
	}
	return n;
}

/* Where to go; the present place: stay. Not all runs of a crowded processor go at once. */
static int better(struct rn_place *place, uint64_t delayed_percent, int idle)
{
	if (delayed_percent >= CROWDED_PERCENT && idle >= 0)
		return roll(place, 2) ? idle : place->processor;
	if (delayed_percent >= CRAMPED_PERCENT && !roll(place, MOVES_IN))
		return any_other(place);
	return place->processor;
}

bool rn_place_look(struct rn_place *place)
{
	const uint64_t now_ns = rn_wall_ns(), window_ns = now_ns - place->looked_ns;
	uint64_t idle[CPU_SETSIZE], delay_ns;
	int to;

	if (place->processor < 0 || window_ns < LOOK_NS || !read_delay_ns(&delay_ns))
		return false;
	read_idle(idle);
	to = better(place, (delay_ns - place->delay_ns) * 100 / window_ns,
		    find_idle(place, idle, window_ns));
	place->looked_ns = now_ns;
	place->delay_ns = delay_ns;
	memcpy(place->idle, idle, sizeof(idle));
	return to != place->processor && go_to(place, to);
}
