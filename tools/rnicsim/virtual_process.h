/*
 * The processes of a run in virtual time, as the simulator sees them: their time pages, and a copy of what
 * each waiting thread waits for.
 *
 * A page is the process's word, and may change or lie at any moment. Each field is read here alone, once for each use,
 * and bounded. Where a thread stands is kept outside of the page; the page only asks for the transitions that
 * are a thread's to make:
 *
 *   a thread is    the page says      then
 *   FREE           WAITING            it waits for the baton (a thread has begun)
 *   WAITS          FREE               it has withdrawn
 *   HOLDS          WAITING, FREE      it has given the baton back; it has ended
 *   OUTSIDE        WAITING, FREE      it has joined again; it has ended
 *
 * Whatever else it says changes nothing. The simulator alone makes a thread HOLDS (grant) or OUTSIDE.
 */
#ifndef RN_RNICSIM_VIRTUAL_PROCESS_H
#define RN_RNICSIM_VIRTUAL_PROCESS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bar/time_page.h"
#include "system/scenario.h"
#include "task_watch.h"

enum rn_vthread_life { RN_VTHREAD_FREE, RN_VTHREAD_WAITS, RN_VTHREAD_HOLDS, RN_VTHREAD_OUTSIDE };

struct rn_vthread {
	enum rn_vthread_life life;
	/* Of WAITS. */
	uint32_t on;
	pid_t pid; /* of ON_SPAWN */
	uint64_t now_ps, until_ps, grid_ps;
	uint64_t look_ps; /* the earliest action that it has not looked at; RN_TIME_NO_LIMIT: none */
	uint64_t changed_ps;
	uint64_t granted_ps; /* virtual time of the last grant */
	unsigned stalls;     /* grants in a row that its clock has not moved since */
	uint64_t slept_ns;   /* with the baton; a little is forgiven at each grant */
	/* Since it was left outside: up to where it lets simulated time pass. */
	bool was_outside;
	bool is_released; /* it has its own processors */
	uint64_t outside_ps;
	uint64_t stopped_ns; /* wall clock at which it was last seen to have run */
	struct rn_task_watch watch;
};

struct rn_vprocess {
	pid_t pid;
	int pidfd;
	unsigned host, ordinal;
	uint64_t ahead_max_ps; /* so far a thread's clock may be ahead of simulated time */
	bool is_stranger;      /* it has been seen not to live in virtual time (any more) */
	bool answered;
	bool has_run; /* it had the baton */
	uint64_t answered_ps;
	struct rn_time_page *page;
	int page_fd;
	bool has_affinity;
	cpu_set_t affinity; /* when it joined: where it may run when it is not part of the run */
	struct rn_vthread thread[RN_TIME_SLOTS];
};

/** A process with a time page of its own; NULL with *@error an errno. */
struct rn_vprocess *rn_vprocess_new(pid_t pid, unsigned host, unsigned ordinal,
				    const struct rn_scenario *scenario, enum rn_tsc_mode tsc_mode,
				    int *error);
void rn_vprocess_free(struct rn_vprocess *process);

/** Slots that may be in use. */
unsigned rn_vprocess_threads(const struct rn_vprocess *process);

/** Whether it still maps its page: it has not exec'ed since. False also when that cannot be seen. */
bool rn_vprocess_has_page(const struct rn_vprocess *process);

/** It answers questions (SIGURG): its program has come up and is not about to become another. */
static inline bool rn_vprocess_is_examinable(const struct rn_vprocess *process)
{
	return atomic_load_explicit(&process->page->examinable, memory_order_acquire) == 1;
}

/** Where thread @n stands by its own word, as far as that is its to say (see the table above). */
static inline enum rn_time_state rn_vthread_state(const struct rn_vprocess *process, unsigned n)
{
	const uint32_t said =
		atomic_load_explicit(&process->page->slot[n].state, memory_order_acquire);

	if (said == RN_TIME_FREE)
		return RN_TIME_FREE;
	if (said == RN_TIME_WAITING)
		return RN_TIME_WAITING;
	switch (process->thread[n].life) {
	case RN_VTHREAD_WAITS:
		return RN_TIME_WAITING;
	case RN_VTHREAD_HOLDS:
		return RN_TIME_RUNNING;
	case RN_VTHREAD_OUTSIDE:
		return RN_TIME_OUTSIDE;
	case RN_VTHREAD_FREE:
		break;
	}
	return RN_TIME_FREE;
}

/** It has begun to wait and what for has not been copied yet. */
static inline bool rn_vthread_has_news(const struct rn_vprocess *process, unsigned n)
{
	return process->thread[n].life != RN_VTHREAD_WAITS &&
	       rn_vthread_state(process, n) == RN_TIME_WAITING;
}

/** Its clock at simulated time @sim_ps, between that and the farthest it may be ahead. */
uint64_t rn_vthread_clock_ps(const struct rn_vprocess *process, unsigned n, uint64_t sim_ps);

/** The thread to look at for slot @n: itself, the process's first where it is not known (any more), as after exec. */
pid_t rn_vthread_tid(const struct rn_vprocess *process, unsigned n);

/** Copy what a thread that has begun to wait waits for, at simulated time @sim_ps. */
void rn_vthread_copy(struct rn_vprocess *process, unsigned n, uint64_t sim_ps);

/** HOLDS -> OUTSIDE; false when it has given the baton back meanwhile. */
bool rn_vthread_leave_outside(struct rn_vprocess *process, unsigned n);

/** Its thread has ended without saying so. */
void rn_vthread_set_free(struct rn_vprocess *process, unsigned n);

/** Give slot @n the baton at virtual time @now_ps. Until @quiet_ps nothing comes that a look at memory may show; 0: unknown. */
void rn_vthread_grant(struct rn_vprocess *process, unsigned n, uint64_t now_ps, uint64_t quiet_ps);

#endif
