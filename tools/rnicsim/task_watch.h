/*
 * What the system tells about another process's thread: how much processor time it has used, and for how long it has
 * been asleep, in one piece or in many. What it has waited for a processor is neither.
 */
#ifndef RN_RNICSIM_TASK_WATCH_H
#define RN_RNICSIM_TASK_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rn_task_watch {
	uint64_t at_ns; /* wall clock of the last look */
	/* At the first look that succeeded, and at the last: on a processor, and runnable without one. */
	uint64_t begin_ns, begin_cpu_ns, cpu_ns, begin_queued_ns, queued_ns;
	uint64_t excused_ns; /* waited for a disk, or stopped by a debugger */
	uint64_t asleep_ns;
	uint64_t unseen_ns; /* wall time for which it could not be looked at */
	bool is_known;	    /* a look has succeeded */
	bool is_asleep;
	pid_t tracer; /* stopped by this process; else 0 */
};

uint64_t rn_wall_ns(void);

/** Begin to watch: the first look is the first update. */
void rn_task_watch_start(struct rn_task_watch *watch);

/**
 * Look again, at most once a millisecond. Returns nanoseconds that count as passed since the last look: wall time while it
 * sleeps or cannot be looked at, none while somebody has stopped it by ptrace, else the processor time it has used.
 */
uint64_t rn_task_watch_update(struct rn_task_watch *watch, pid_t pid, pid_t tid);

/** Processor time since the start. */
static inline uint64_t rn_task_watch_cpu_ns(const struct rn_task_watch *watch)
{
	return watch->cpu_ns - watch->begin_cpu_ns;
}

/** For how long it has been asleep in all since the first look. */
static inline uint64_t rn_task_watch_asleep_ns(const struct rn_task_watch *watch)
{
	return watch->asleep_ns;
}

/** The process has no such thread (any more). */
bool rn_task_is_gone(pid_t pid, pid_t tid);

/** The process that has started @pid, or that has taken its place when it ended; -1 when @pid is gone. */
pid_t rn_task_parent(pid_t pid);

#endif
