/*
 * The loop of a run in virtual time. Exact: the order in which threads go on is (virtual time, host, process,
 * thread), and simulated time passes only while all of them wait.
 */
#include "virtual_time.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "pcie/host_memory.h"
#include "pcie/root_complex.h"
#include "virtual_state.h"

#define SLICE_WAKES 2000
#define HELD_RETRY_PS 10000u	     /* a doorbell write that found the host's queue full */
#define UNBOUNDED_STEP_PS 100000000u /* with nobody to wake: 100 us at a time */
#define ASK_FIRST_NS 20000u	     /* who is known for spinning is asked so soon */
#define SLEEP_FIRST_NS 200000u
#define SLEEP_MAX_NS 2000000u
#define HOLD_NS 50000u
#define LOOPS_PER_LOOK 64
#define LOOK_NS 20000000u
#define SOCKET_ROUNDS 256

/* Who sends without end does not keep the others waiting: what is left comes in the next round. */
void rn_virtual_serve_sockets(struct rn_virtual *v)
{
	for (unsigned round = 0; round < SOCKET_ROUNDS && rn_server_poll_sockets(v->server);)
		round++;
}

/* --- what comes from the NIC and the driver --- */

static void answered(void *arg, pid_t pid)
{
	struct rn_virtual *v = arg;
	struct rn_vprocess *process = rn_virtual_find(v, pid);

	if (!process)
		return;
	process->answered = true;
	process->answered_ps = rn_virtual_now_ps(v);
	rn_sim_stop(v->sim);
}

void rn_virtual_event(void *arg, pid_t pid)
{
	struct rn_virtual *v = arg;

	(void)pid;
	rn_virtual_act(v, rn_virtual_now_ps(v));
	rn_sim_stop(v->sim);
}

static void change(const struct rn_host_hook *hook, uint64_t pa, unsigned on)
{
	struct rn_virtual *v = hook->virtual;
	const int arena = (int)(pa >> RN_PA_OFFSET_BITS);
	struct rn_vprocess *process;

	if (!arena)
		return;
	process = rn_virtual_find(v, rn_driver_arena_pid(v->env.driver[hook->host], arena));
	for (unsigned n = 0; process && n < rn_vprocess_threads(process); n++) {
		struct rn_vthread *thread = &process->thread[n];

		if (thread->life != RN_VTHREAD_WAITS || !(thread->on & on) ||
		    thread->changed_ps != RN_TIME_NO_LIMIT)
			continue;
		thread->changed_ps = rn_virtual_now_ps(v);
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

	if (v->env.start_fd < 0 ||
	    recv(v->env.start_fd, &start, sizeof(start), MSG_DONTWAIT) != sizeof(start))
		return;
	if (!start.pid) {
		v->counts.interrupted++;
		v->signalled_ps = rn_virtual_now_ps(v);
		rn_virtual_act(v, v->signalled_ps);
		return;
	}
	v->more = start.more;
	v->phase = RN_SETTLING;
	v->settle_from_ps = rn_virtual_now_ps(v);
	rn_virtual_add_top(v, start.pid, start.awaited);
	rn_virtual_expect(v, start.pid);
}

static void look_for_place(struct rn_virtual *v)
{
	if (!rn_place_look(&v->place))
		return;
	for (unsigned i = 0; i < v->count; i++)
		if (v->process[i]->has_affinity)
			rn_place_take(&v->place, v->process[i]);
}

/* Everything that comes by system calls. False: end the run. */
static bool look_around(struct rn_virtual *v)
{
	if (v->env.must_stop(v->env.arg))
		return false;
	rn_server_poll_sockets(v->server);
	rn_virtual_bury_dead(v);
	take_start(v);
	rn_virtual_look_at_expected(v);
	rn_virtual_look_at_tops(v);
	look_for_place(v);
	return true;
}

/* --- waiting for native code --- */

static struct rn_time_slot *running_slot(const struct rn_virtual *v)
{
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned n = 0; n < rn_vprocess_threads(v->process[i]); n++)
			if (rn_vthread_state(v->process[i], n) == RN_TIME_RUNNING)
				return &v->process[i]->page->slot[n];
	return NULL;
}

/* Until the thread gives the baton back, at most @ns. */
static void sleep_on(struct rn_time_slot *slot, uint64_t ns)
{
	const struct timespec limit = {.tv_nsec = (long)ns};

	atomic_store(&slot->watched, 1);
	if (atomic_load(&slot->state) == RN_TIME_RUNNING)
		syscall(SYS_futex, &slot->state, FUTEX_WAIT, RN_TIME_RUNNING, &limit, NULL, 0);
	atomic_store(&slot->watched, 0);
}

/* Nothing of the run will go on by itself: look at what comes from elsewhere. */
static void idle(struct rn_virtual *v, uint64_t ns)
{
	const struct timespec limit = {.tv_nsec = (long)ns};
	struct pollfd fds[3] = {{.fd = rn_server_epoll_fd(v->server), .events = POLLIN},
				{.fd = v->env.stop_fd, .events = POLLIN},
				{.fd = v->env.start_fd, .events = POLLIN}};

	ppoll(fds, 3, &limit, NULL);
}

/* A thread that is known for spinning is asked before anything else is looked at. */
static void ask_spinner(struct rn_virtual *v)
{
	struct rn_time_slot *slot = running_slot(v);

	if (!v->spinner || !slot)
		return;
	sleep_on(slot, ASK_FIRST_NS);
	if (running_slot(v) == slot)
		rn_virtual_ask(v->spinner, v->spinner_n);
}

/* It may take long, or not come back by itself. False: end the run. */
static bool wait_for_native(struct rn_virtual *v)
{
	uint64_t sleep_ns = SLEEP_FIRST_NS;

	ask_spinner(v);
	for (;;) {
		struct rn_time_slot *slot = running_slot(v);

		if (!slot && !v->expecting)
			return true;
		if (slot)
			sleep_on(slot, sleep_ns);
		else
			idle(v, sleep_ns);
		if (!running_slot(v) && !v->expecting)
			return true;
		if (!look_around(v))
			return false;
		rn_virtual_watch(v);
		sleep_ns = rn_earlier(2 * sleep_ns, SLEEP_MAX_NS);
	}
}

static void grant(struct rn_virtual *v, const struct rn_virtual_turn *turn)
{
	if (turn->process->thread[turn->n].on & RN_TIME_ON_ANSWER)
		turn->process->answered = false;
	v->counts.grants++;
	v->spinner = turn->process->page->slot[turn->n].spins ? turn->process : NULL;
	v->spinner_n = turn->n;
	rn_vthread_grant(turn->process, turn->n, turn->at_ps, rn_virtual_quiet_ps(v, turn));
}

/* The supervisor starts the programs one after the other, each when those before it wait. */
static void settle(struct rn_virtual *v)
{
	if (v->phase != RN_SETTLING || (v->more && !rn_virtual_is_settled(v)))
		return;
	v->phase = v->more ? RN_AWAITING_START : RN_ALL_STARTED;
	if (v->more)
		send(v->env.start_fd, "", 1, MSG_NOSIGNAL);
	else
		rn_virtual_look_at_tops(v);
}

/* --- advancing --- */

static uint64_t next_write_ps(struct rn_virtual *v)
{
	uint64_t at_ps;

	while (rn_server_poll_rings(v->server))
		;
	at_ps = rn_server_next_write_ps(v->server);
	return at_ps > rn_virtual_now_ps(v) ? at_ps : rn_virtual_now_ps(v) + HELD_RETRY_PS;
}

/* Let time pass up to @until_ps, or to something that may change whose turn it is. */
static void pass(struct rn_virtual *v, uint64_t until_ps)
{
	if (rn_sim_next_ps(v->sim) <= until_ps)
		rn_kernel_run(v->env.kernel, until_ps, SLICE_WAKES);
	else
		rn_sim_run(v->sim, until_ps, 0);
	if (!v->env.advanced(v->env.arg))
		v->ended = true;
}

/*
 * Time may not pass yet: the wall clock, or somebody outside of the run, decides when it goes on. What comes from there
 * comes unannounced.
 */
static void hold(struct rn_virtual *v, uint64_t ns)
{
	const uint64_t now_ns = rn_wall_ns();

	idle(v, ns);
	if (!v->outside && now_ns - v->acted_ns < SLEEP_MAX_NS)
		return;
	v->acted_ns = now_ns;
	rn_virtual_act(v, rn_virtual_now_ps(v));
}

static void step(struct rn_virtual *v)
{
	const uint64_t write_ps = next_write_ps(v);
	const struct rn_virtual_turn turn = rn_virtual_next_turn(v);
	const uint64_t next_ps = rn_sim_next_ps(v->sim), paced_ps = rn_virtual_paced_ps(v);
	uint64_t until_ps = rn_earlier(turn.at_ps, write_ps);

	if (turn.process && turn.at_ps <= rn_virtual_now_ps(v) && next_ps > rn_virtual_now_ps(v)) {
		grant(v, &turn);
		return;
	}
	if (until_ps == RN_TIME_NEVER && next_ps == RN_TIME_NEVER) {
		v->counts.outside_looks++;
		hold(v, SLEEP_MAX_NS);
		return;
	}
	if (until_ps == RN_TIME_NEVER)
		until_ps = next_ps + UNBOUNDED_STEP_PS;
	until_ps = rn_earlier(until_ps, paced_ps);
	if (until_ps <= rn_virtual_now_ps(v) && paced_ps <= rn_virtual_now_ps(v))
		hold(v, HOLD_NS);
	else
		pass(v, until_ps);
}

/* Nobody waits for the simulator any more. A run that was killed takes its programs along: one that spins would go on for ever. */
static void release_all(struct rn_virtual *v)
{
	const bool orphaned = v->env.start_fd >= 0 && getppid() != v->parent;

	for (unsigned i = 0; i < v->count; i++) {
		struct rn_vprocess *process = v->process[i];

		if (orphaned)
			syscall(SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0);
		atomic_store(&process->page->dead, 1);
		rn_place_release(&v->place, process);
		for (unsigned n = 0; n < RN_TIME_SLOTS; n++)
			if (rn_vthread_state(process, n) == RN_TIME_WAITING)
				rn_vthread_grant(process, n, process->page->slot[n].now_ps, 0);
	}
}

/* A grant takes microseconds, on a crowded machine milliseconds: neither shall make it deaf. */
static bool look_is_due(struct rn_virtual *v, unsigned loops)
{
	uint64_t now_ns;

	if (loops % LOOPS_PER_LOOK)
		return false;
	now_ns = rn_wall_ns();
	if (now_ns - v->looked_ns < LOOK_NS)
		return false;
	v->looked_ns = now_ns;
	return true;
}

void rn_virtual_serve(struct rn_virtual *v, struct rn_server *server)
{
	v->server = server;
	v->opened_ns = rn_wall_ns();
	v->opened_ps = rn_virtual_now_ps(v);
	rn_place_choose(&v->place);
	for (unsigned loops = 1;; loops++) {
		const bool idles =
			v->phase == RN_AWAITING_START || v->is_over || (!v->count && !v->expecting);

		if (idles)
			idle(v, SLEEP_MAX_NS);
		if ((idles || v->outside || look_is_due(v, loops)) && !look_around(v))
			break;
		if (!wait_for_native(v))
			break;
		rn_virtual_collect(v);
		if (v->expecting)
			continue;
		settle(v);
		if (v->phase != RN_AWAITING_START && v->count && !v->is_over)
			step(v);
		if (v->ended)
			break;
	}
	take_start(v);
	release_all(v);
	rn_virtual_drop_all(v);
	rn_place_leave(&v->place);
}

/* --- life --- */

struct rn_virtual *rn_virtual_new(const struct rn_virtual_env *env)
{
	struct rn_virtual *v = rn_calloc(1, sizeof(*v));

	v->env = *env;
	v->sim = rn_system_sim(env->system);
	v->parent = getppid();
	v->signalled_ps = RN_TIME_NEVER;
	v->ordinals = rn_calloc(env->scenario->hosts, sizeof(*v->ordinals));
	v->hook = rn_calloc(env->scenario->hosts, sizeof(*v->hook));
	v->phase = env->start_fd >= 0 ? RN_AWAITING_START : RN_ALL_STARTED;
	for (unsigned i = 0; i < env->scenario->hosts; i++) {
		struct rn_root_complex *rc = rn_system_root_complex(env->system, i);

		v->hook[i] = (struct rn_host_hook){v, i};
		rn_root_complex_set_write_hook(rc, on_message, &v->hook[i]);
		rn_root_complex_set_completion_hook(rc, on_completion, &v->hook[i]);
	}
	return v;
}

void rn_virtual_free(struct rn_virtual *v)
{
	rn_virtual_drop_all(v);
	for (unsigned i = 0; i < v->env.scenario->hosts; i++) {
		struct rn_root_complex *rc = rn_system_root_complex(v->env.system, i);

		rn_root_complex_set_write_hook(rc, NULL, NULL);
		rn_root_complex_set_completion_hook(rc, NULL, NULL);
	}
	rn_tsc_roll_fini(&v->tsc);
	free(v->process);
	free(v->ordinals);
	free(v->hook);
	free(v);
}

void rn_virtual_fill_server_env(struct rn_virtual *v, struct rn_server_env *env)
{
	env->free_run = false;
	env->attach_time = rn_virtual_attach;
	env->answered = answered;
	env->time_arg = v;
}

void rn_virtual_get_counts(const struct rn_virtual *v, struct rn_virtual_counts *counts)
{
	*counts = v->counts;
	counts->unseen_reads = rn_tsc_roll_unseen(&v->tsc);
	counts->random_addresses = rn_tsc_roll_random(&v->tsc);
	counts->tsc = &v->tsc;
}
