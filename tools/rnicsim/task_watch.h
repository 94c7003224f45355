/*
 * What the system tells about another process's thread: how much processor time it has used, and for how long it has
 * been asleep without a single switch.
 */
#ifndef RN_RNICSIM_TASK_WATCH_H
#define RN_RNICSIM_TASK_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rn_task_watch {
	uint64_t at_ns;		       /* wall clock of the last look */
	uint64_t begin_cpu_ns, cpu_ns; /* on the processor: at the first look, at the last */
	uint64_t switches;
	uint64_t asleep_since_ns; /* wall clock; valid while is_asleep */
	bool is_known;		  /* the first look has succeeded */
	bool is_asleep;
	pid_t tracer; /* asleep because this process has stopped it; else 0 */
};

uint64_t rn_wall_ns(void);

/** Begin to watch: the first look is the first update. A thread that cannot be looked at has used nothing and does not sleep. */
void rn_task_watch_start(struct rn_task_watch *watch);

/**
 * Look again, at most once a millisecond. Returns nanoseconds that count as passed since the last look: wall time while it
 * sleeps, else the processor time it has used.
 */
uint64_t rn_task_watch_update(struct rn_task_watch *watch, pid_t pid, pid_t tid);

/** Processor time since the start. */
static inline uint64_t rn_task_watch_cpu_ns(const struct rn_task_watch *watch)
{
	return watch->cpu_ns - watch->begin_cpu_ns;
}

/** For how long it has been asleep, 0 when it is not. */
static inline uint64_t rn_task_watch_asleep_ns(const struct rn_task_watch *watch)
{
	return watch->is_asleep ? watch->at_ns - watch->asleep_since_ns : 0;
}

/** The process has no such thread (any more). */
bool rn_task_is_gone(pid_t pid, pid_t tid);

#endif
