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
#define BLOCKED_NS 200000000u /* asleep for so long, in one piece or in many */
#define ALL_BLOCKED_NS                                                                             \
	1000000000u /* all threads of the run: helpers that are started again and again */
#define SLEEP_FORGIVEN_NS 1000000u
#define WINDOW_CPU_NS 1000000000u
#define UNSEEN_NS 5000000000u /* nothing is known of the thread for so long */
/* For a thread that has been outside before: the run cannot be repeated any more, but it can be quick. */
#define BLOCKED_AGAIN_NS 5000000u
#define WINDOW_AGAIN_CPU_NS 2000000u
#define UNSEEN_AGAIN_NS 5000000u
/* A program that has just been exec'ed cannot be told from one that will not join. */
#define STARTING_FACTOR 5

/* --- leaving outside --- */

/* A process that has become one that does not join. */
static void note_stranger(struct rn_virtual *v, struct rn_vprocess *process)
{
	if (process->is_stranger)
		return;
	process->is_stranger = true;
	v->counts.strangers++;
}

static void leave_outside(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	struct rn_vthread *thread = &process->thread[n];

	if (!rn_vthread_leave_outside(process, n))
		return;
	if (!rn_vprocess_is_examinable(process))
		note_stranger(v, process);
	thread->was_outside = true;
	thread->outside_ps = rn_virtual_now_ps(v);
	thread->is_released = true;
	rn_place_release_thread(&v->place, process, rn_vthread_tid(process, n));
	rn_task_watch_start(&thread->watch);
	v->counts.outside++;
	v->outside++;
}

/* Ended by a bare system call. An exec may have taken its number away: then its process comes back. */
static bool has_ended(const struct rn_vprocess *process, unsigned n)
{
	return rn_vprocess_is_examinable(process) &&
	       rn_task_is_gone(process->pid, process->page->slot[n].tid);
}

static void end_thread(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	rn_vthread_set_free(process, n);
	rn_virtual_act(v, rn_virtual_now_ps(v));
}

/* Stopped by a program of the run (strace), which is to see that and to let it go on. */
static bool is_stopped_from_within(const struct rn_virtual *v, const struct rn_task_watch *watch)
{
	return watch->tracer && rn_virtual_find(v, watch->tracer);
}

/* Its tracer looks as soon as its clock allows; when it leaves it stopped for long, time goes on without them. */
static void wake_tracer(struct rn_virtual *v, struct rn_vthread *thread)
{
	thread->outside_ps = rn_later(thread->outside_ps, rn_virtual_now_ps(v));
	if (rn_wall_ns() - thread->stopped_ns < BLOCKED_NS)
		rn_virtual_act(v, rn_virtual_now_ps(v));
}

/* Up to where one that is outside lets time pass. */
static uint64_t outside_limit_ps(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	struct rn_vthread *thread = &process->thread[n];
	const uint64_t cpu_ns = thread->watch.cpu_ns;

	thread->outside_ps += 1000u * rn_task_watch_update(&thread->watch, process->pid,
							   rn_vthread_tid(process, n));
	/* Between two stops it has run, if ever so little. */
	if (thread->watch.cpu_ns != cpu_ns)
		thread->stopped_ns = thread->watch.at_ns;
	if (!is_stopped_from_within(v, &thread->watch))
		return thread->outside_ps;
	wake_tracer(v, thread);
	return RN_TIME_NEVER;
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
			if (rn_vthread_state(process, n) != RN_TIME_OUTSIDE)
				continue;
			if (has_ended(process, n))
				end_thread(v, process, n);
			else
				paced_ps = rn_earlier(paced_ps, outside_limit_ps(v, process, n));
		}
	}
	return paced_ps;
}

/* --- who has the baton --- */

void rn_virtual_ask(const struct rn_vprocess *process, unsigned n)
{
	if (rn_vprocess_is_examinable(process))
		syscall(SYS_tgkill, process->pid, process->page->slot[n].tid, SIGURG);
}

static bool is_new_holder(const struct rn_virtual *v, const struct rn_vprocess *process, unsigned n)
{
	return v->holder.process != process || v->holder.n != n ||
	       v->holder.grants != v->counts.grants;
}

static void judge(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	const struct rn_vthread *thread = &process->thread[n];
	const bool again = thread->was_outside || process->is_stranger;
	const bool is_quick = again || v->is_impatient;
	/* To start takes processor time, however impatient the sleeps of others have made us. */
	const uint64_t factor = again || rn_vprocess_is_examinable(process) ? 1 : STARTING_FACTOR;
	const struct rn_task_watch *watch = &v->holder.watch;

	if (rn_task_watch_cpu_ns(watch) > factor * (again ? WINDOW_AGAIN_CPU_NS : WINDOW_CPU_NS)) {
		v->counts.unproved++;
		leave_outside(v, process, n);
	} else if (has_ended(process, n)) {
		end_thread(v, process, n);
	} else if (thread->slept_ns > factor * (is_quick ? BLOCKED_AGAIN_NS : BLOCKED_NS) ||
		   watch->unseen_ns > (is_quick ? UNSEEN_AGAIN_NS : UNSEEN_NS) ||
		   is_stopped_from_within(v, watch)) {
		leave_outside(v, process, n);
	}
}

static void watch_thread(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	struct rn_holder *holder = &v->holder;
	uint64_t slept_ns;

	if (is_new_holder(v, process, n)) {
		*holder =
			(struct rn_holder){.process = process, .n = n, .grants = v->counts.grants};
		v->slept_ns -= rn_earlier(v->slept_ns, SLEEP_FORGIVEN_NS);
		rn_task_watch_start(&holder->watch);
		holder->ask_after_ns = ASK_NS;
		holder->ask_ns = holder->watch.at_ns + ASK_NS;
		return;
	}
	slept_ns = rn_task_watch_asleep_ns(&holder->watch);
	rn_task_watch_update(&holder->watch, process->pid, rn_vthread_tid(process, n));
	slept_ns = rn_task_watch_asleep_ns(&holder->watch) - slept_ns;
	process->thread[n].slept_ns += slept_ns;
	v->slept_ns += slept_ns;
	v->is_impatient |= v->slept_ns > ALL_BLOCKED_NS;
	if (holder->watch.at_ns > holder->ask_ns) {
		/* Who sleeps does not spin, and a signal would disturb it. */
		if (!holder->watch.is_asleep && !holder->watch.tracer)
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
