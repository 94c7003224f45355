/*
 * Whose turn it is: every waiting thread has a virtual time at which it goes on, and the lowest (time, host, process,
 * thread) does.
 */
#include "pcie/root_complex.h"
#include "virtual_state.h"

#define SETTLED_AFTER_PS 1000000000u /* who sleeps longer than 1 ms counts as waiting */
#define SETTLE_LIMIT_PS 10000000000u /* 10 ms: then it counts as waiting whatever it does */

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

			if (thread->waiting &&
			    (thread->on & (RN_TIME_ON_CHANGE | RN_TIME_ON_MESSAGE)))
				thread->changed_ps = rn_earlier(thread->changed_ps, at_ps);
		}
}

/* A thread that has run may have written what another of its process spins on. */
static void wake_spinners(struct rn_vprocess *process, uint64_t at_ps)
{
	for (unsigned n = 0; n < rn_vprocess_threads(process); n++) {
		struct rn_vthread *thread = &process->thread[n];

		if (thread->waiting && (thread->on & RN_TIME_ON_MESSAGE) &&
		    thread->changed_ps == RN_TIME_NO_LIMIT)
			thread->changed_ps = at_ps;
	}
}

static void collect_process(struct rn_virtual *v, struct rn_vprocess *process)
{
	const unsigned threads = rn_vprocess_threads(process);
	uint64_t at_ps = rn_virtual_now_ps(v);
	bool outside = false;

	for (unsigned n = 0; n < threads; n++)
		if (rn_vthread_state(process, n) == RN_TIME_WAITING && !process->thread[n].waiting)
			at_ps = rn_later(at_ps, process->page->slot[n].now_ps);
	if (atomic_load_explicit(&process->page->acted, memory_order_relaxed) &&
	    atomic_exchange(&process->page->acted, 0))
		rn_virtual_act(v, at_ps);
	if (atomic_load_explicit(&process->page->signalled, memory_order_relaxed) &&
	    atomic_exchange(&process->page->signalled, 0))
		v->signalled_ps = at_ps;
	if (atomic_load_explicit(&process->page->sockets, memory_order_relaxed) &&
	    atomic_exchange(&process->page->sockets, 0))
		rn_virtual_serve_sockets(v);
	for (unsigned n = 0; n < threads; n++) {
		const enum rn_time_state state = rn_vthread_state(process, n);

		outside |= state == RN_TIME_OUTSIDE;
		if (state != RN_TIME_WAITING || process->thread[n].waiting)
			continue;
		rn_vthread_copy(process, n, v->actions);
		if (process->thread[n].is_released)
			rn_place_take_thread(&v->place, process, process->page->slot[n].tid);
		process->thread[n].is_released = false;
		if (!(process->thread[n].on & RN_TIME_ON_MESSAGE))
			wake_spinners(process, process->thread[n].now_ps);
		if (process->thread[n].on & RN_TIME_ON_SPAWN)
			rn_virtual_expect(v, process->thread[n].pid);
	}
	v->outside += outside;
}

void rn_virtual_collect(struct rn_virtual *v)
{
	v->outside = 0;
	for (unsigned i = 0; i < v->count; i++)
		collect_process(v, v->process[i]);
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

	if ((thread->on & RN_TIME_ON_LOOK) && thread->seen != v->actions)
		at_ps = rn_earlier(at_ps, rn_later(thread->now_ps, v->acted_ps));
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

			if (!process->thread[n].waiting)
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
		if (n != turn->n && turn->process->thread[n].waiting)
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
	const uint64_t at_ps = wake_ps(v, process, thread);

	return !(thread->on & (RN_TIME_ON_CHANGE | RN_TIME_ON_ANSWER | RN_TIME_ON_MESSAGE)) &&
	       at_ps > rn_virtual_now_ps(v) + SETTLED_AFTER_PS;
}

bool rn_virtual_is_settled(const struct rn_virtual *v)
{
	if (rn_virtual_now_ps(v) - v->settle_from_ps > SETTLE_LIMIT_PS)
		return true;
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			if (v->process[i]->thread[n].waiting &&
			    !is_settled_thread(v, v->process[i], &v->process[i]->thread[n]))
				return false;
	return true;
}
