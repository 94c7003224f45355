/*
 * The thread that has the baton keeps simulated time still. Whether it spins on memory it is asked by a signal, and
 * answers by giving the baton back. What blocks in the kernel where the preload library does not see it, or computes
 * for longer than a window of processor time, is left outside: time then passes with the wall clock while it
 * sleeps and with its processor time while it computes, and the run is reported as not repeatable.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "virtual_state.h"

#define ASK_NS 100000u
#define BLOCKED_NS 200000000u /* asleep for so long, without a single switch */
#define WINDOW_CPU_NS 1000000000u
/* For a thread that has been outside before: the run cannot be repeated any more, but it can be quick. */
#define BLOCKED_AGAIN_NS 5000000u
#define WINDOW_AGAIN_CPU_NS 2000000u
/* A program that has just been exec'ed cannot be told from one that will not join. */
#define STARTING_FACTOR 5

/* --- leaving outside --- */

static void leave_outside(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	struct rn_vthread *thread = &process->thread[n];
	uint32_t running = RN_TIME_RUNNING;

	if (!atomic_compare_exchange_strong(&process->page->slot[n].state, &running,
					    RN_TIME_OUTSIDE))
		return;
	thread->was_outside = true;
	thread->outside_ps = rn_virtual_now_ps(v);
	thread->is_released = true;
	rn_place_release_thread(&v->place, process, process->page->slot[n].tid);
	rn_task_watch_start(&thread->watch);
	v->counts.outside++;
	v->outside++;
}

uint64_t rn_virtual_paced_ps(struct rn_virtual *v)
{
	uint64_t paced_ps = RN_TIME_NEVER;

	if (v->env.is_open)
		paced_ps = v->opened_ps + 1000u * (rn_wall_ns() - v->opened_ns);
	if (!v->outside)
		return paced_ps;
	for (unsigned i = 0; i < v->count; i++) {
		struct rn_vprocess *process = v->process[i];

		for (unsigned n = 0; n < rn_vprocess_threads(process); n++) {
			struct rn_vthread *thread = &process->thread[n];

			if (rn_vthread_state(process, n) != RN_TIME_OUTSIDE)
				continue;
			thread->outside_ps +=
				1000u * rn_task_watch_update(&thread->watch, process->pid,
							     process->page->slot[n].tid);
			paced_ps = rn_earlier(paced_ps, thread->outside_ps);
		}
	}
	return paced_ps;
}

/* --- who has the baton --- */

void rn_virtual_ask(const struct rn_vprocess *process, unsigned n)
{
	if (atomic_load(&process->page->examinable))
		syscall(SYS_tgkill, process->pid, process->page->slot[n].tid, SIGURG);
}

static bool is_new_holder(const struct rn_virtual *v, const struct rn_vprocess *process, unsigned n)
{
	return v->holder.process != process || v->holder.n != n ||
	       v->holder.grants != v->counts.grants;
}

/* Time stands still for whom a debugger from outside of the run looks at. */
static bool is_debugged(const struct rn_virtual *v, const struct rn_task_watch *watch)
{
	return watch->tracer && !rn_virtual_find(v, watch->tracer);
}

static void judge(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	const bool again = process->thread[n].was_outside;
	const unsigned factor = atomic_load(&process->page->examinable) ? 1 : STARTING_FACTOR;
	const struct rn_task_watch *watch = &v->holder.watch;

	if (rn_task_watch_cpu_ns(watch) > factor * (again ? WINDOW_AGAIN_CPU_NS : WINDOW_CPU_NS)) {
		v->counts.unproved++;
		leave_outside(v, process, n);
	} else if (!is_debugged(v, watch) &&
		   rn_task_watch_asleep_ns(watch) >
			   factor * (again ? BLOCKED_AGAIN_NS : BLOCKED_NS)) {
		leave_outside(v, process, n);
	} else if (rn_task_is_gone(process->pid, process->page->slot[n].tid) && factor == 1) {
		/* Ended by a bare system call. */
		atomic_store(&process->page->slot[n].state, RN_TIME_FREE);
		rn_virtual_act(v, rn_virtual_now_ps(v));
	}
}

static void watch_thread(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	struct rn_holder *holder = &v->holder;
	const int tid = process->page->slot[n].tid;

	if (is_new_holder(v, process, n)) {
		*holder =
			(struct rn_holder){.process = process, .n = n, .grants = v->counts.grants};
		rn_task_watch_start(&holder->watch);
		holder->ask_after_ns = ASK_NS;
		holder->ask_ns = holder->watch.at_ns + ASK_NS;
		return;
	}
	rn_task_watch_update(&holder->watch, process->pid, tid);
	if (holder->watch.at_ns > holder->ask_ns) {
		/* Who sleeps does not spin, and a signal would disturb it. */
		if (!holder->watch.is_asleep)
			rn_virtual_ask(process, n);
		holder->ask_after_ns *= 2;
		holder->ask_ns = holder->watch.at_ns + holder->ask_after_ns;
	}
	judge(v, process, n);
}

void rn_virtual_watch(struct rn_virtual *v)
{
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			if (rn_vthread_state(v->process[i], n) == RN_TIME_RUNNING) {
				watch_thread(v, v->process[i], n);
				return;
			}
}
