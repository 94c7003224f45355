/*
 * Whose turn it is: every waiting thread has a virtual time at which it goes on, and the lowest (time, host, process,
 * thread) does.
 */
#include "pcie/root_complex.h"
#include "virtual_state.h"

#define SETTLED_AFTER_PS 1000000000u /* who sleeps longer than 1 ms counts as waiting */
#define SETTLE_LIMIT_PS 10000000000u /* 10 ms: then it counts as waiting whatever it does */
/* With threads that are outside it is the wall clock's time, as with --free-run: they wait when they have slept. */
#define SETTLE_OUTSIDE_PS 3000000000000u
#define SETTLED_ASLEEP_NS 300000000u

void rn_virtual_act(struct rn_virtual *v, uint64_t at_ps)
{
	at_ps = rn_later(at_ps, rn_virtual_now_ps(v));
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++) {
			struct rn_vthread *thread = &v->process[i]->thread[n];

			if (thread->life == RN_VTHREAD_WAITS && (thread->on & RN_TIME_ON_LOOK))
				thread->look_ps = rn_earlier(thread->look_ps, at_ps);
		}
}

/* A signal may have a handler in any thread, and may have ended a process. */
static void take_signal(struct rn_virtual *v)
{
	const uint64_t at_ps = v->signalled_ps;

	if (at_ps == RN_TIME_NEVER)
		return;
	v->signalled_ps = RN_TIME_NEVER;
	rn_virtual_bury_dead(v);
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++) {
			struct rn_vthread *thread = &v->process[i]->thread[n];

			if (thread->life == RN_VTHREAD_WAITS &&
			    (thread->on & (RN_TIME_ON_CHANGE | RN_TIME_ON_MESSAGE)))
				thread->changed_ps = rn_earlier(thread->changed_ps, at_ps);
		}
}

/* A thread that has run may have written what another of its process spins on. */
static void wake_spinners(struct rn_vprocess *process, uint64_t at_ps)
{
	for (unsigned n = 0; n < rn_vprocess_threads(process); n++) {
		struct rn_vthread *thread = &process->thread[n];

		if (thread->life == RN_VTHREAD_WAITS && (thread->on & RN_TIME_ON_MESSAGE) &&
		    thread->changed_ps == RN_TIME_NO_LIMIT)
			thread->changed_ps = at_ps;
	}
}

/* One of the process's own notes: true once for each time that it is set. */
static bool take_note(_Atomic uint32_t *note)
{
	return atomic_load_explicit(note, memory_order_relaxed) && atomic_exchange(note, 0);
}

/* What it has done while it had the baton, at the latest time of those that have given it back. True: its sockets wait. */
static bool take_notes(struct rn_virtual *v, struct rn_vprocess *process)
{
	const uint64_t now_ps = rn_virtual_now_ps(v);
	uint64_t at_ps = now_ps;

	for (unsigned n = 0; n < rn_vprocess_threads(process); n++)
		if (rn_vthread_has_news(process, n))
			at_ps = rn_later(at_ps, rn_vthread_clock_ps(process, n, now_ps));
	if (take_note(&process->page->acted))
		rn_virtual_act(v, at_ps);
	if (take_note(&process->page->signalled))
		v->signalled_ps = at_ps;
	return take_note(&process->page->sockets);
}

static void collect_thread(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	struct rn_vthread *thread = &process->thread[n];

	switch (rn_vthread_state(process, n)) {
	case RN_TIME_FREE:
		thread->life = RN_VTHREAD_FREE;
		break;
	case RN_TIME_OUTSIDE:
		v->outside++;
		break;
	case RN_TIME_RUNNING:
		break;
	case RN_TIME_WAITING:
		if (thread->life == RN_VTHREAD_WAITS)
			break;
		rn_vthread_copy(process, n, rn_virtual_now_ps(v));
		if (thread->is_released)
			rn_place_take_thread(&v->place, process, rn_vthread_tid(process, n));
		thread->is_released = false;
		if (!(thread->on & RN_TIME_ON_MESSAGE))
			wake_spinners(process, thread->now_ps);
		if (thread->on & RN_TIME_ON_SPAWN)
			rn_virtual_expect_child(v, process, thread->pid);
		break;
	}
}

/*
 * Sockets are served between the two walks: who attaches there is put among the processes, and may take the place of one.
 */
void rn_virtual_collect(struct rn_virtual *v)
{
	bool sockets_wait = false;

	v->outside = 0;
	for (unsigned i = 0; i < v->count; i++)
		sockets_wait |= take_notes(v, v->process[i]);
	if (sockets_wait)
		rn_virtual_serve_sockets(v);
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			collect_thread(v, v->process[i], n);
	take_signal(v);
}

/* --- whose turn it is --- */

static uint64_t on_grid(const struct rn_vthread *thread)
{
	const uint64_t behind_ps =
		thread->changed_ps > thread->now_ps ? thread->changed_ps - thread->now_ps : 0;

	if (!thread->grid_ps)
		return thread->now_ps + behind_ps;
	return thread->now_ps +
	       (behind_ps + thread->grid_ps - 1) / thread->grid_ps * thread->grid_ps;
}

static uint64_t wake_ps(const struct rn_virtual *v, const struct rn_vprocess *process,
			const struct rn_vthread *thread)
{
	uint64_t at_ps = rn_later(thread->until_ps, thread->now_ps);

	if (thread->look_ps != RN_TIME_NO_LIMIT)
		at_ps = rn_earlier(at_ps, rn_later(thread->now_ps, thread->look_ps));
	if (thread->changed_ps != RN_TIME_NO_LIMIT)
		at_ps = rn_earlier(at_ps, on_grid(thread));
	if ((thread->on & RN_TIME_ON_ANSWER) && process->answered)
		at_ps = rn_earlier(at_ps, rn_later(thread->now_ps, process->answered_ps));
	return rn_later(at_ps, rn_virtual_now_ps(v));
}

struct rn_virtual_turn rn_virtual_next_turn(const struct rn_virtual *v)
{
	struct rn_virtual_turn turn = {.at_ps = RN_TIME_NEVER};

	for (unsigned i = 0; i < v->count; i++) {
		struct rn_vprocess *process = v->process[i];

		for (unsigned n = 0; n < rn_vprocess_threads(process); n++) {
			uint64_t at_ps;

			if (process->thread[n].life != RN_VTHREAD_WAITS)
				continue;
			at_ps = wake_ps(v, process, &process->thread[n]);
			if (at_ps < turn.at_ps)
				turn = (struct rn_virtual_turn){process, n, at_ps};
		}
	}
	return turn;
}

/* --- how long no completion comes --- */

/* Threads of a process look at each other's memory: whose turn is earlier goes first. */
static bool is_alone(const struct rn_virtual_turn *turn)
{
	for (unsigned n = 0; n < rn_vprocess_threads(turn->process); n++)
		if (n != turn->n && turn->process->thread[n].life == RN_VTHREAD_WAITS)
			return false;
	return true;
}

uint64_t rn_virtual_quiet_ps(const struct rn_virtual *v, const struct rn_virtual_turn *turn)
{
	if (v->outside || v->signalled_ps != RN_TIME_NEVER || !is_alone(turn))
		return 0;
	return rn_root_complex_quiet_ps(rn_system_root_complex(v->env.system, turn->process->host));
}

/* --- starting the programs one after the other --- */

/* A thread that nothing in the simulated world will wake soon. */
static bool is_settled_thread(const struct rn_virtual *v, const struct rn_vprocess *process,
			      const struct rn_vthread *thread)
{
	uint64_t at_ps;

	if (thread->life == RN_VTHREAD_OUTSIDE)
		return rn_task_watch_asleep_ns(&thread->watch) > SETTLED_ASLEEP_NS;
	if (thread->life != RN_VTHREAD_WAITS)
		return true;
	at_ps = wake_ps(v, process, thread);
	return !(thread->on & (RN_TIME_ON_CHANGE | RN_TIME_ON_ANSWER | RN_TIME_ON_MESSAGE)) &&
	       at_ps > rn_virtual_now_ps(v) + SETTLED_AFTER_PS;
}

bool rn_virtual_is_settled(const struct rn_virtual *v)
{
	const uint64_t limit_ps = v->outside ? SETTLE_OUTSIDE_PS : SETTLE_LIMIT_PS;

	if (rn_virtual_now_ps(v) - v->settle_from_ps > limit_ps)
		return true;
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			if (!is_settled_thread(v, v->process[i], &v->process[i]->thread[n]))
				return false;
	return true;
}
