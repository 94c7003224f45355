/*
 * The loop of a run in virtual time. Exact: the order in which threads go on is (virtual time, host, process,
 * thread), and simulated time passes only while all of them wait. A thread that blocks where the preload library
 * cannot see it is left out of that order; until it is back, simulated time is paced against the wall clock.
 */
#include "virtual_time.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "pcie/host_memory.h"
#include "pcie/root_complex.h"
#include "virtual_process.h"

#define SLICE_WAKES 2000
#define HELD_RETRY_PS 10000u	     /* a doorbell write that found the host's queue full */
#define UNBOUNDED_STEP_PS 100000000u /* with nobody to wake: 100 us at a time */
#define SETTLED_AFTER_PS 1000000000u /* who sleeps longer than 1 ms counts as waiting */
#define SETTLE_LIMIT_PS 10000000000u /* 10 ms: then it counts as waiting whatever it does */
#define SPINS_BEFORE_LOOK 2000
#define SPINS_BEFORE_ASKING 150
#define YIELDS_PER_LOOK 16
#define LOOPS_PER_LOOK 1024
#define HIDDEN_AFTER_NS 20000000u /* a thread without sign of life for so long is examined */
#define HIDDEN_CPU_NS 200000u
#define WINDOW_CPU_NS 50000000u /* processor time that a thread may use without a call */
#define ASK_NS 100000u
#define EXPECT_LIMIT_NS 2000000000u
#define EXPECTED_MAX 64

struct expected {
	pid_t pid;
	int pidfd;
	uint64_t until_ns;
};

enum phase {
	AWAITING_START, /* simulated time stands still until the supervisor has started a program */
	SETTLING,	/* it passes until that program waits */
	ALL_STARTED
};

struct rn_virtual {
	struct rn_virtual_env env;
	struct rn_sim *sim;
	struct rn_server *server;
	struct rn_vprocess **process; /* by host and ordinal */
	unsigned count, room;
	unsigned *ordinals; /* next, one a host */
	struct host_hook {
		struct rn_virtual *virtual;
		unsigned host;
	} * hook;
	struct expected expected[EXPECTED_MAX];
	unsigned expecting;
	enum phase phase;
	bool more;
	uint64_t settle_from_ps;
	uint64_t actions, acted_ps;
	unsigned outside; /* threads */
	uint64_t pace_ns, pace_ps;
	struct {
		const struct rn_vprocess *process;
		unsigned n;
		uint64_t from_ns, cpu_ns, sampled_ns;
		uint64_t ask_ns, ask_after_ns;
		uint64_t grants;
	} holder; /* who has had the baton for long */
	/* Who has the baton, when it is known for spinning. */
	const struct rn_vprocess *spinner;
	unsigned spinner_n;
	struct rn_virtual_counts counts;
};

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t now_ps(const struct rn_virtual *v)
{
	return rn_sim_now_ps(v->sim);
}

static struct rn_vprocess *find(const struct rn_virtual *v, pid_t pid)
{
	for (unsigned i = 0; i < v->count; i++)
		if (v->process[i]->pid == pid)
			return v->process[i];
	return NULL;
}

/* Something has happened that a look may show, at @at_ps. */
static void act(struct rn_virtual *v, uint64_t at_ps)
{
	v->actions++;
	v->acted_ps = later(at_ps, now_ps(v));
}

/* --- who comes and goes --- */

static void add(struct rn_virtual *v, struct rn_vprocess *process)
{
	unsigned at = v->count;

	if (v->count == v->room) {
		v->room = v->room ? 2 * v->room : 16;
		v->process = rn_reallocarray(v->process, v->room, sizeof(*v->process));
	}
	for (; at > 0; at--) {
		const struct rn_vprocess *before = v->process[at - 1];

		if (before->host < process->host ||
		    (before->host == process->host && before->ordinal < process->ordinal))
			break;
		v->process[at] = v->process[at - 1];
	}
	v->process[at] = process;
	v->count++;
}

static void drop(struct rn_virtual *v, struct rn_vprocess *process)
{
	for (unsigned i = 0; i < v->count; i++) {
		if (v->process[i] != process)
			continue;
		memmove(&v->process[i], &v->process[i + 1],
			(v->count - i - 1) * sizeof(*v->process));
		v->count--;
		break;
	}
	rn_vprocess_free(process);
}

/* Latest virtual time of a thread that has the baton. */
static uint64_t running_ps(const struct rn_virtual *v, const struct rn_vprocess *process)
{
	uint64_t at_ps = now_ps(v);

	for (unsigned n = 0; n < rn_vprocess_threads(process); n++)
		if (rn_vthread_state(process, n) == RN_TIME_RUNNING)
			at_ps = later(at_ps, process->page->slot[n].now_ps);
	return at_ps;
}

static void expect(struct rn_virtual *v, pid_t pid)
{
	if (v->expecting == EXPECTED_MAX || find(v, pid))
		return;
	v->expected[v->expecting++] = (struct expected){
		.pid = pid,
		.pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
		.until_ns = wall_ns() + EXPECT_LIMIT_NS,
	};
}

static void stop_expecting(struct rn_virtual *v, unsigned i)
{
	if (v->expected[i].pidfd >= 0)
		close(v->expected[i].pidfd);
	v->expected[i] = v->expected[--v->expecting];
}

static void look_at_expected(struct rn_virtual *v)
{
	for (unsigned i = v->expecting; i-- > 0;) {
		struct expected *e = &v->expected[i];
		struct pollfd fd = {.fd = e->pidfd, .events = POLLIN};
		const bool gone = e->pidfd < 0 || poll(&fd, 1, 0) > 0;

		if (gone)
			act(v, now_ps(v));
		if (gone || find(v, e->pid) || wall_ns() > e->until_ns)
			stop_expecting(v, i);
	}
}

/* A process that execs comes back with the baton that it had; a new one waits for it. */
static int attach_time(void *arg, pid_t pid, const struct rn_uapi_attach_time *request)
{
	struct rn_virtual *v = arg;
	struct rn_vprocess *old = find(v, pid), *process;
	uint64_t at_ps = old ? running_ps(v, old) : later(now_ps(v), request->now_ps);
	struct rn_time_slot *slot;
	int error;

	process =
		rn_vprocess_new(pid, request->host, old ? old->ordinal : v->ordinals[request->host],
				v->env.scenario, &error);
	if (!process)
		return -error;
	if (!old)
		v->ordinals[request->host]++;
	slot = &process->page->slot[0];
	slot->tid = (int32_t)request->tid;
	slot->now_ps = slot->until_ps = at_ps;
	atomic_store(&process->page->used, 1);
	atomic_store(&slot->state, old ? RN_TIME_RUNNING : RN_TIME_WAITING);
	v->spinner = NULL;
	if (old) {
		act(v, at_ps);
		drop(v, old);
	}
	add(v, process);
	for (unsigned i = v->expecting; i-- > 0;)
		if (v->expected[i].pid == pid)
			stop_expecting(v, i);
	return process->page_fd;
}

/* A connection, and then what came through it: all at this simulated time. */
static void serve_sockets(struct rn_virtual *v)
{
	while (rn_server_poll_sockets(v->server))
		;
}

static void bury_dead(struct rn_virtual *v)
{
	for (unsigned i = v->count; i-- > 0;) {
		struct rn_vprocess *process = v->process[i];
		struct pollfd fd = {.fd = process->pidfd, .events = POLLIN};

		if (poll(&fd, 1, 0) <= 0)
			continue;
		act(v, running_ps(v, process));
		v->spinner = NULL;
		drop(v, process);
		/* Its connections to the driver end at the same simulated time. */
		serve_sockets(v);
	}
}

static void answered(void *arg, pid_t pid)
{
	struct rn_virtual *v = arg;
	struct rn_vprocess *process = find(v, pid);

	if (!process)
		return;
	process->answered = true;
	process->answered_ps = now_ps(v);
	rn_sim_stop(v->sim);
}

void rn_virtual_event(void *arg, pid_t pid)
{
	struct rn_virtual *v = arg;

	(void)pid;
	act(v, now_ps(v));
	rn_sim_stop(v->sim);
}

static void change(const struct host_hook *hook, uint64_t pa, unsigned on)
{
	struct rn_virtual *v = hook->virtual;
	const int arena = (int)(pa >> RN_PA_OFFSET_BITS);
	struct rn_vprocess *process;

	if (!arena)
		return;
	process = find(v, rn_driver_arena_pid(v->env.driver[hook->host], arena));
	for (unsigned n = 0; process && n < rn_vprocess_threads(process); n++) {
		struct rn_vthread *thread = &process->thread[n];

		if (!thread->waiting || !(thread->on & on) ||
		    thread->changed_ps != RN_TIME_NO_LIMIT)
			continue;
		thread->changed_ps = now_ps(v);
		rn_sim_stop(v->sim);
	}
}

static void on_message(void *arg, uint64_t pa)
{
	change(arg, pa, RN_TIME_ON_CHANGE | RN_TIME_ON_MESSAGE);
}

static void on_completion(void *arg, uint64_t pa)
{
	change(arg, pa, RN_TIME_ON_CHANGE);
}

/* --- the supervisor --- */

static void take_start(struct rn_virtual *v)
{
	struct rn_virtual_start start;

	if (v->phase != AWAITING_START ||
	    recv(v->env.start_fd, &start, sizeof(start), MSG_DONTWAIT) != sizeof(start))
		return;
	v->more = start.more;
	v->phase = SETTLING;
	v->settle_from_ps = now_ps(v);
	expect(v, start.pid);
}

/* --- hidden threads --- */

static void leave_outside(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	uint32_t running = RN_TIME_RUNNING;

	if (!atomic_compare_exchange_strong(&process->page->slot[n].state, &running,
					    RN_TIME_OUTSIDE))
		return;
	v->counts.outside++;
	if (v->outside++)
		return;
	v->pace_ns = wall_ns();
	v->pace_ps = now_ps(v);
}

/* Whether it spins on memory: if so it gives the baton back. */
static void ask(const struct rn_vprocess *process, unsigned n)
{
	if (atomic_load(&process->page->examinable))
		syscall(SYS_tgkill, process->pid, process->page->slot[n].tid, SIGURG);
}

static void examine(struct rn_virtual *v, struct rn_vprocess *process, unsigned n)
{
	const uint64_t wall = wall_ns();
	uint64_t cpu_ns;
	bool asleep;

	if (v->holder.process != process || v->holder.n != n ||
	    v->holder.grants != v->counts.grants) {
		v->holder.process = process;
		v->holder.n = n;
		v->holder.grants = v->counts.grants;
		v->holder.from_ns = v->holder.sampled_ns = wall;
		v->holder.cpu_ns = rn_vthread_cpu_ns(process, n, &asleep);
		v->holder.ask_after_ns = ASK_NS;
		v->holder.ask_ns = wall + v->holder.ask_after_ns;
		return;
	}
	if (wall > v->holder.ask_ns) {
		ask(process, n);
		v->holder.ask_after_ns *= 2;
		v->holder.ask_ns = wall + v->holder.ask_after_ns;
	}
	if (wall - v->holder.sampled_ns < HIDDEN_AFTER_NS)
		return;
	cpu_ns = rn_vthread_cpu_ns(process, n, &asleep);
	if (cpu_ns - v->holder.cpu_ns > WINDOW_CPU_NS) {
		v->counts.unproved++;
		leave_outside(v, process, n);
	} else if (asleep && atomic_load(&process->page->examinable) &&
		   cpu_ns - v->holder.cpu_ns < HIDDEN_CPU_NS) {
		leave_outside(v, process, n);
	}
	v->holder.sampled_ns = wall;
}

static void examine_running(struct rn_virtual *v)
{
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			if (rn_vthread_state(v->process[i], n) == RN_TIME_RUNNING) {
				examine(v, v->process[i], n);
				return;
			}
}

/* --- waiting for native code --- */

static bool native_code_runs(const struct rn_virtual *v)
{
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			if (rn_vthread_state(v->process[i], n) == RN_TIME_RUNNING)
				return true;
	return v->expecting > 0;
}

/* Everything that comes by system calls. False: end the run. */
static bool look_around(struct rn_virtual *v)
{
	if (v->env.must_stop(v->env.arg))
		return false;
	rn_server_poll_sockets(v->server);
	bury_dead(v);
	take_start(v);
	look_at_expected(v);
	return true;
}

static bool wait_for_native(struct rn_virtual *v)
{
	for (unsigned spins = 0; native_code_runs(v); spins++) {
		if (v->spinner && spins % SPINS_BEFORE_ASKING == SPINS_BEFORE_ASKING - 1)
			ask(v->spinner, v->spinner_n);
		if (spins < SPINS_BEFORE_LOOK) {
			__builtin_ia32_pause();
			continue;
		}
		if (spins % YIELDS_PER_LOOK == 0) {
			if (!look_around(v))
				return false;
			examine_running(v);
		}
		if (spins < 4 * SPINS_BEFORE_LOOK)
			sched_yield();
		else
			usleep(20);
	}
	return true;
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
	uint64_t at_ps = now_ps(v);
	bool outside = false;

	for (unsigned n = 0; n < threads; n++)
		if (rn_vthread_state(process, n) == RN_TIME_WAITING && !process->thread[n].waiting)
			at_ps = later(at_ps, process->page->slot[n].now_ps);
	if (atomic_load_explicit(&process->page->acted, memory_order_relaxed) &&
	    atomic_exchange(&process->page->acted, 0))
		act(v, at_ps);
	if (atomic_load_explicit(&process->page->sockets, memory_order_relaxed) &&
	    atomic_exchange(&process->page->sockets, 0))
		serve_sockets(v);
	for (unsigned n = 0; n < threads; n++) {
		const enum rn_time_state state = rn_vthread_state(process, n);

		outside |= state == RN_TIME_OUTSIDE;
		if (state != RN_TIME_WAITING || process->thread[n].waiting)
			continue;
		rn_vthread_copy(process, n, v->actions);
		if (!(process->thread[n].on & RN_TIME_ON_MESSAGE))
			wake_spinners(process, process->thread[n].now_ps);
		if (process->thread[n].on & RN_TIME_ON_SPAWN)
			expect(v, process->thread[n].pid);
	}
	v->outside += outside;
}

static void collect(struct rn_virtual *v)
{
	v->outside = 0;
	for (unsigned i = 0; i < v->count; i++)
		collect_process(v, v->process[i]);
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
	uint64_t at_ps = later(thread->until_ps, thread->now_ps);

	if ((thread->on & RN_TIME_ON_LOOK) && thread->seen != v->actions)
		at_ps = earlier(at_ps, later(thread->now_ps, v->acted_ps));
	if (thread->changed_ps != RN_TIME_NO_LIMIT)
		at_ps = earlier(at_ps, on_grid(thread));
	if ((thread->on & RN_TIME_ON_ANSWER) && process->answered)
		at_ps = earlier(at_ps, later(thread->now_ps, process->answered_ps));
	return later(at_ps, now_ps(v));
}

struct turn {
	struct rn_vprocess *process;
	unsigned n;
	uint64_t at_ps;
};

static struct turn next_turn(const struct rn_virtual *v)
{
	struct turn turn = {.at_ps = RN_TIME_NEVER};

	for (unsigned i = 0; i < v->count; i++) {
		struct rn_vprocess *process = v->process[i];

		for (unsigned n = 0; n < rn_vprocess_threads(process); n++) {
			uint64_t at_ps;

			if (!process->thread[n].waiting)
				continue;
			at_ps = wake_ps(v, process, &process->thread[n]);
			if (at_ps < turn.at_ps)
				turn = (struct turn){process, n, at_ps};
		}
	}
	return turn;
}

static void grant(struct rn_virtual *v, const struct turn *turn)
{
	if (turn->process->thread[turn->n].on & RN_TIME_ON_ANSWER)
		turn->process->answered = false;
	v->counts.grants++;
	v->spinner = turn->process->page->slot[turn->n].spins ? turn->process : NULL;
	v->spinner_n = turn->n;
	rn_vthread_grant(turn->process, turn->n, turn->at_ps);
}

/* --- starting the programs one after the other --- */

/* A thread that nothing in the simulated world will wake soon. */
static bool is_settled_thread(const struct rn_virtual *v, const struct rn_vprocess *process,
			      const struct rn_vthread *thread)
{
	const uint64_t at_ps = wake_ps(v, process, thread);

	return !(thread->on & (RN_TIME_ON_CHANGE | RN_TIME_ON_ANSWER | RN_TIME_ON_MESSAGE)) &&
	       at_ps > now_ps(v) + SETTLED_AFTER_PS;
}

static bool is_settled(const struct rn_virtual *v)
{
	if (now_ps(v) - v->settle_from_ps > SETTLE_LIMIT_PS)
		return true;
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			if (v->process[i]->thread[n].waiting &&
			    !is_settled_thread(v, v->process[i], &v->process[i]->thread[n]))
				return false;
	return true;
}

static void settle(struct rn_virtual *v)
{
	if (v->phase != SETTLING || (v->more && !is_settled(v)))
		return;
	v->phase = v->more ? AWAITING_START : ALL_STARTED;
	if (v->more)
		send(v->env.start_fd, "", 1, MSG_NOSIGNAL);
}

/* --- advancing --- */

/* Nothing of the run will go on by itself: look at what comes from elsewhere. */
static void idle(struct rn_virtual *v, unsigned wait_ms)
{
	struct pollfd fds[3] = {{.fd = rn_server_epoll_fd(v->server), .events = POLLIN},
				{.fd = v->env.stop_fd, .events = POLLIN},
				{.fd = v->env.start_fd, .events = POLLIN}};

	poll(fds, 3, (int)wait_ms);
}

static uint64_t paced_ps(struct rn_virtual *v)
{
	return v->outside ? v->pace_ps + (wall_ns() - v->pace_ns) * 1000u : RN_TIME_NEVER;
}

static uint64_t next_write_ps(struct rn_virtual *v)
{
	uint64_t at_ps;

	while (rn_server_poll_rings(v->server))
		;
	at_ps = rn_server_next_write_ps(v->server);
	return at_ps > now_ps(v) ? at_ps : now_ps(v) + HELD_RETRY_PS;
}

/* Let time pass up to @until_ps, or to something that may change whose turn it is. */
static void pass(struct rn_virtual *v, uint64_t until_ps)
{
	if (rn_sim_next_ps(v->sim) <= until_ps)
		rn_kernel_run(v->env.kernel, until_ps, SLICE_WAKES);
	else
		rn_sim_run(v->sim, until_ps, 0);
	v->env.advanced(v->env.arg);
}

static void step(struct rn_virtual *v)
{
	const uint64_t write_ps = next_write_ps(v);
	const struct turn turn = next_turn(v);
	const uint64_t paced = paced_ps(v);
	uint64_t until_ps = earlier(turn.at_ps, write_ps);

	if (turn.process && turn.at_ps <= now_ps(v) && rn_sim_next_ps(v->sim) > now_ps(v)) {
		grant(v, &turn);
		return;
	}
	if (until_ps == RN_TIME_NEVER && rn_sim_next_ps(v->sim) == RN_TIME_NEVER) {
		idle(v, 2);
		v->counts.outside_looks++;
		act(v, now_ps(v));
		return;
	}
	if (until_ps == RN_TIME_NEVER)
		until_ps = rn_sim_next_ps(v->sim) + UNBOUNDED_STEP_PS;
	if (paced < until_ps) {
		until_ps = paced;
		if (until_ps <= now_ps(v)) {
			idle(v, 0);
			usleep(50);
			act(v, now_ps(v));
			return;
		}
	}
	pass(v, until_ps);
}

static void release_all(struct rn_virtual *v)
{
	for (unsigned i = 0; i < v->count; i++) {
		struct rn_vprocess *process = v->process[i];

		atomic_store(&process->page->dead, 1);
		for (unsigned n = 0; n < RN_TIME_SLOTS; n++)
			if (rn_vthread_state(process, n) == RN_TIME_WAITING)
				rn_vthread_grant(process, n, process->page->slot[n].now_ps);
	}
}

void rn_virtual_serve(struct rn_virtual *v, struct rn_server *server)
{
	v->server = server;
	for (unsigned loops = 1;; loops++) {
		const bool idles = v->phase == AWAITING_START || (!v->count && !v->expecting);

		if (idles)
			idle(v, 2);
		if ((idles || v->outside || loops % LOOPS_PER_LOOK == 0) && !look_around(v))
			break;
		if (!wait_for_native(v))
			break;
		collect(v);
		if (v->expecting)
			continue;
		settle(v);
		if (v->phase != AWAITING_START && v->count)
			step(v);
	}
	release_all(v);
}

/* --- life --- */

struct rn_virtual *rn_virtual_new(const struct rn_virtual_env *env)
{
	struct rn_virtual *v = rn_calloc(1, sizeof(*v));

	v->env = *env;
	v->sim = rn_system_sim(env->system);
	v->ordinals = rn_calloc(env->scenario->hosts, sizeof(*v->ordinals));
	v->hook = rn_calloc(env->scenario->hosts, sizeof(*v->hook));
	v->phase = env->start_fd >= 0 ? AWAITING_START : ALL_STARTED;
	for (unsigned i = 0; i < env->scenario->hosts; i++) {
		struct rn_root_complex *rc = rn_system_root_complex(env->system, i);

		v->hook[i] = (struct host_hook){v, i};
		rn_root_complex_set_write_hook(rc, on_message, &v->hook[i]);
		rn_root_complex_set_completion_hook(rc, on_completion, &v->hook[i]);
	}
	return v;
}

void rn_virtual_free(struct rn_virtual *v)
{
	while (v->count)
		drop(v, v->process[v->count - 1]);
	while (v->expecting)
		stop_expecting(v, v->expecting - 1);
	for (unsigned i = 0; i < v->env.scenario->hosts; i++) {
		struct rn_root_complex *rc = rn_system_root_complex(v->env.system, i);

		rn_root_complex_set_write_hook(rc, NULL, NULL);
		rn_root_complex_set_completion_hook(rc, NULL, NULL);
	}
	free(v->process);
	free(v->ordinals);
	free(v->hook);
	free(v);
}

void rn_virtual_fill_server_env(struct rn_virtual *v, struct rn_server_env *env)
{
	env->free_run = false;
	env->attach_time = attach_time;
	env->answered = answered;
	env->time_arg = v;
}

void rn_virtual_get_counts(const struct rn_virtual *v, struct rn_virtual_counts *counts)
{
	*counts = v->counts;
}
