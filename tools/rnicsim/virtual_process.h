/*
 * The processes of a run in virtual time, as the simulator sees them: their time pages, and a copy of what
 * each waiting thread waits for.
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

struct rn_vthread {
	bool waiting; /* what follows has been copied */
	uint32_t on;
	pid_t pid; /* of ON_SPAWN */
	uint64_t now_ps, until_ps, grid_ps;
	uint64_t seen; /* count of actions when it last looked */
	uint64_t changed_ps;
	/* Since it was left outside: up to where it lets simulated time pass. */
	bool was_outside;
	bool is_released; /* it has its own processors */
	uint64_t outside_ps;
	struct rn_task_watch watch;
};

struct rn_vprocess {
	pid_t pid;
	int pidfd;
	unsigned host, ordinal;
	bool answered;
	uint64_t answered_ps;
	struct rn_time_page *page;
	int page_fd;
	bool has_affinity;
	cpu_set_t affinity; /* when it joined: where it may run when it is not part of the run */
	struct rn_vthread thread[RN_TIME_SLOTS];
};

/** A process with a time page of its own; NULL with *@error an errno. */
struct rn_vprocess *rn_vprocess_new(pid_t pid, unsigned host, unsigned ordinal,
				    const struct rn_scenario *scenario, int *error);
void rn_vprocess_free(struct rn_vprocess *process);

/** Slots that may be in use. */
unsigned rn_vprocess_threads(const struct rn_vprocess *process);

static inline enum rn_time_state rn_vthread_state(const struct rn_vprocess *process, unsigned n)
{
	return (enum rn_time_state)atomic_load_explicit(&process->page->slot[n].state,
							memory_order_acquire);
}

/** Copy what a thread that has begun to wait waits for. */
void rn_vthread_copy(struct rn_vprocess *process, unsigned n, uint64_t actions);

/** Give slot @n the baton at virtual time @now_ps. Until @quiet_ps nothing comes that a look at memory may show; 0: unknown. */
void rn_vthread_grant(struct rn_vprocess *process, unsigned n, uint64_t now_ps, uint64_t quiet_ps);

#endif
