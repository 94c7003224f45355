/*
 * Processes of a run in virtual time: who joins, who is expected to join, who has ended.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "virtual_state.h"

/* A program that does not join has used so much processor time, or has slept for so long. */
#define STRANGER_CPU_NS 500000000u
#define STRANGER_ASLEEP_NS 1000000000u

struct rn_vprocess *rn_virtual_find(const struct rn_virtual *v, pid_t pid)
{
	for (unsigned i = 0; i < v->count; i++)
		if (v->process[i]->pid == pid)
			return v->process[i];
	return NULL;
}

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
	v->spinner = NULL;
	v->holder.process = NULL;
	rn_vprocess_free(process);
}

/* --- expected --- */

void rn_virtual_expect(struct rn_virtual *v, pid_t pid)
{
	struct rn_expected *e = &v->expected[v->expecting];

	if (v->expecting == RN_EXPECTED_MAX || rn_virtual_find(v, pid))
		return;
	e->pid = pid;
	e->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	rn_task_watch_start(&e->watch);
	v->expecting++;
}

static void stop_expecting(struct rn_virtual *v, unsigned i)
{
	if (v->expected[i].pidfd >= 0)
		close(v->expected[i].pidfd);
	v->expected[i] = v->expected[--v->expecting];
}

void rn_virtual_drop_all(struct rn_virtual *v)
{
	while (v->count)
		drop(v, v->process[v->count - 1]);
	while (v->expecting)
		stop_expecting(v, v->expecting - 1);
	for (unsigned i = 0; i < v->tops; i++)
		if (v->top_fd[i] >= 0)
			close(v->top_fd[i]);
}

static bool is_stranger(struct rn_expected *e)
{
	rn_task_watch_update(&e->watch, e->pid, e->pid);
	return rn_task_watch_cpu_ns(&e->watch) > STRANGER_CPU_NS ||
	       rn_task_watch_asleep_ns(&e->watch) > STRANGER_ASLEEP_NS;
}

void rn_virtual_look_at_expected(struct rn_virtual *v)
{
	for (unsigned i = v->expecting; i-- > 0;) {
		struct rn_expected *e = &v->expected[i];
		struct pollfd fd = {.fd = e->pidfd, .events = POLLIN};

		if (e->pidfd < 0 || poll(&fd, 1, 0) > 0) {
			rn_virtual_act(v, rn_virtual_now_ps(v));
			stop_expecting(v, i);
		} else if (is_stranger(e)) {
			v->counts.strangers++;
			stop_expecting(v, i);
		}
	}
}

/* --- the programs of the run --- */

void rn_virtual_add_top(struct rn_virtual *v, pid_t pid)
{
	if (v->tops < RN_TOPS_MAX)
		v->top_fd[v->tops++] = (int)syscall(SYS_pidfd_open, pid, 0);
}

void rn_virtual_look_at_tops(struct rn_virtual *v)
{
	if (v->phase != RN_ALL_STARTED || !v->tops)
		return;
	v->is_over = true;
	for (unsigned i = 0; i < v->tops; i++) {
		struct pollfd fd = {.fd = v->top_fd[i], .events = POLLIN};

		v->is_over = v->is_over && (fd.fd < 0 || poll(&fd, 1, 0) > 0);
	}
}

/* True when @pid was expected: what it does is in the order of the run. */
static bool meet_expected(struct rn_virtual *v, pid_t pid)
{
	for (unsigned i = v->expecting; i-- > 0;) {
		if (v->expected[i].pid != pid)
			continue;
		stop_expecting(v, i);
		return true;
	}
	return false;
}

/* --- joining --- */

/* Latest virtual time of a thread that has the baton. */
static uint64_t running_ps(const struct rn_virtual *v, const struct rn_vprocess *process)
{
	uint64_t at_ps = rn_virtual_now_ps(v);

	for (unsigned n = 0; n < rn_vprocess_threads(process); n++)
		if (rn_vthread_state(process, n) == RN_TIME_RUNNING)
			at_ps = rn_later(at_ps, process->page->slot[n].now_ps);
	return at_ps;
}

/* Somebody runs, or has run and not been heard yet: what it has started may join before it says so. */
static bool may_have_started(const struct rn_virtual *v)
{
	for (unsigned i = 0; i < v->count; i++) {
		const struct rn_vprocess *process = v->process[i];

		for (unsigned n = 0; n < rn_vprocess_threads(process); n++) {
			const enum rn_time_state state = rn_vthread_state(process, n);

			if (state == RN_TIME_RUNNING ||
			    (state == RN_TIME_WAITING && !process->thread[n].waiting))
				return true;
		}
	}
	return false;
}

/* Who joins by hand finds simulated time at the wall clock's pace from now on. */
static void open_anew(struct rn_virtual *v)
{
	v->opened_ns = rn_wall_ns();
	v->opened_ps = rn_virtual_now_ps(v);
}

static bool is_late(struct rn_virtual *v, pid_t pid)
{
	return !meet_expected(v, pid) && v->phase == RN_ALL_STARTED && v->count &&
	       !may_have_started(v);
}

static struct rn_vprocess *make_process(struct rn_virtual *v, pid_t pid,
					const struct rn_uapi_attach_time *request,
					const struct rn_vprocess *old, int *error)
{
	const unsigned ordinal = old ? old->ordinal : v->ordinals[request->host];
	const uint64_t at_ps =
		old ? running_ps(v, old) : rn_later(rn_virtual_now_ps(v), request->now_ps);
	struct rn_vprocess *process =
		rn_vprocess_new(pid, request->host, ordinal, v->env.scenario, error);
	struct rn_time_slot *slot;

	if (!process)
		return NULL;
	slot = &process->page->slot[0];
	slot->tid = (int32_t)request->tid;
	slot->now_ps = slot->until_ps = at_ps;
	atomic_store(&process->page->used, 1);
	atomic_store(&slot->state, old ? RN_TIME_RUNNING : RN_TIME_WAITING);
	return process;
}

/* A process that execs comes back with the baton that it had; a new one waits for it. */
int rn_virtual_attach(void *arg, pid_t pid, const struct rn_uapi_attach_time *request)
{
	struct rn_virtual *v = arg;
	struct rn_vprocess *old = rn_virtual_find(v, pid), *process;
	int error;

	process = make_process(v, pid, request, old, &error);
	if (!process)
		return -error;
	if (old) {
		rn_virtual_act(v, process->page->slot[0].now_ps);
		drop(v, old);
	} else {
		v->ordinals[request->host]++;
		if (v->env.is_open && !may_have_started(v))
			open_anew(v);
		v->counts.late += is_late(v, pid);
	}
	add(v, process);
	rn_place_take(&v->place, process);
	return process->page_fd;
}

void rn_virtual_bury_dead(struct rn_virtual *v)
{
	for (unsigned i = v->count; i-- > 0;) {
		struct rn_vprocess *process = v->process[i];
		struct pollfd fd = {.fd = process->pidfd, .events = POLLIN};

		if (poll(&fd, 1, 0) <= 0)
			continue;
		rn_virtual_act(v, running_ps(v, process));
		drop(v, process);
		/* Its connections to the driver end at the same simulated time. */
		rn_virtual_serve_sockets(v);
	}
}
