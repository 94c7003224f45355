/*
 * Processes of a run in virtual time: who joins, who is expected to join, who has ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "virtual_state.h"

/* A program that does not join has used so much processor time, or has slept for so long. */
#define STRANGER_CPU_NS 500000000u
#define STRANGER_ASLEEP_NS 2000000000u
#define DEATH_MS 1000 /* of a process that has been sent a signal that ends it */
#define STRANGER_UNSEEN_NS 5000000000u
/* Once there has been one, the run cannot be repeated any more, but it can be quick. */
#define PATIENCE_LESS 10u

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

/* Nobody may be walking over the processes. */
static void drop(struct rn_virtual *v, struct rn_vprocess *process)
{
	RN_ASSERT(rn_virtual_find(v, process->pid) == process);
	if (process->has_run)
		rn_tsc_roll_add(&v->tsc, process->page, process->host, process->ordinal);
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

static void expect(struct rn_virtual *v, pid_t pid, pid_t parent)
{
	struct rn_expected *e = &v->expected[v->expecting];

	if (v->expecting == RN_EXPECTED_MAX || rn_virtual_find(v, pid))
		return;
	e->pid = pid;
	e->parent = parent;
	e->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	rn_task_watch_start(&e->watch);
	v->expecting++;
}

void rn_virtual_expect(struct rn_virtual *v, pid_t pid)
{
	expect(v, pid, 0);
}

/* What is no child of its process (any more) has ended, or the process lies. */
void rn_virtual_expect_child(struct rn_virtual *v, struct rn_vprocess *parent, pid_t pid)
{
	if (pid > 0 && rn_task_parent(pid) == parent->pid)
		expect(v, pid, parent->pid);
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
	v->tops = 0;
}

static bool is_stranger(const struct rn_virtual *v, struct rn_expected *e)
{
	const unsigned divisor = e->parent && v->counts.strangers ? PATIENCE_LESS : 1;

	rn_task_watch_update(&e->watch, e->pid, e->pid);
	/* To start takes processor time whatever the others do. */
	return rn_task_watch_cpu_ns(&e->watch) > STRANGER_CPU_NS ||
	       rn_task_watch_asleep_ns(&e->watch) > STRANGER_ASLEEP_NS / divisor ||
	       e->watch.unseen_ns > STRANGER_UNSEEN_NS / divisor;
}

/* A child that has ended before it has joined has run on the wall clock, if it has run at all. */
static void note_ended(struct rn_virtual *v, const struct rn_expected *e)
{
	v->counts.strangers += e->parent && !v->is_over && !v->counts.interrupted;
	rn_virtual_act(v, rn_virtual_now_ps(v));
}

void rn_virtual_look_at_expected(struct rn_virtual *v)
{
	for (unsigned i = v->expecting; i-- > 0;) {
		struct rn_expected *e = &v->expected[i];
		struct pollfd fd = {.fd = e->pidfd, .events = POLLIN};

		if (e->pidfd < 0 || poll(&fd, 1, 0) > 0) {
			note_ended(v, e);
			stop_expecting(v, i);
		} else if (is_stranger(v, e)) {
			v->counts.strangers++;
			stop_expecting(v, i);
		}
	}
}

/* --- the programs of the run --- */

void rn_virtual_add_top(struct rn_virtual *v, pid_t pid, bool awaited)
{
	if (v->tops == RN_TOPS_MAX)
		return;
	v->top_fd[v->tops] = (int)syscall(SYS_pidfd_open, pid, 0);
	v->top_awaited[v->tops++] = awaited;
}

static bool have_ended(const struct rn_virtual *v, bool only_awaited)
{
	for (unsigned i = 0; i < v->tops; i++) {
		struct pollfd fd = {.fd = v->top_fd[i], .events = POLLIN};

		if ((v->top_awaited[i] || !only_awaited) && fd.fd >= 0 && poll(&fd, 1, 0) <= 0)
			return false;
	}
	return true;
}

/* Whether SIGTERM ends @pid at once: it has no handler for it, and neither blocks nor ignores it. */
static bool dies_of_sigterm(pid_t pid)
{
	const uint64_t bit = UINT64_C(1) << (SIGTERM - 1);
	char path[64], line[128];
	uint64_t mask, all = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "SigBlk: %" SCNx64, &mask) == 1 ||
		    sscanf(line, "SigIgn: %" SCNx64, &mask) == 1 ||
		    sscanf(line, "SigCgt: %" SCNx64, &mask) == 1)
			all |= mask;
	if (file)
		fclose(file);
	return file && !(all & bit);
}

/* In the order of the roll, and each that dies of it is dead before time passes: every run has the same. */
static void end_servers(struct rn_virtual *v)
{
	v->servers_ended = true;
	rn_virtual_bury_dead(v);
	for (unsigned i = 0; i < v->count; i++) {
		const struct rn_vprocess *process = v->process[i];
		struct pollfd fd = {.fd = process->pidfd, .events = POLLIN};
		const bool dies = dies_of_sigterm(process->pid);

		if (kill(process->pid, SIGTERM) == 0 && dies)
			poll(&fd, 1, DEATH_MS);
	}
	rn_virtual_bury_dead(v);
	v->signalled_ps = rn_virtual_now_ps(v);
	rn_virtual_act(v, v->signalled_ps);
}

void rn_virtual_look_at_tops(struct rn_virtual *v)
{
	if (v->phase != RN_ALL_STARTED || !v->tops)
		return;
	v->is_over = have_ended(v, false);
	if (!v->is_over && !v->servers_ended && have_ended(v, true))
		end_servers(v);
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
	const uint64_t now_ps = rn_virtual_now_ps(v);
	uint64_t at_ps = now_ps;

	for (unsigned n = 0; n < rn_vprocess_threads(process); n++)
		if (rn_vthread_state(process, n) == RN_TIME_RUNNING)
			at_ps = rn_later(at_ps, rn_vthread_clock_ps(process, n, now_ps));
	return at_ps;
}

static bool has_baton(const struct rn_vprocess *process)
{
	for (unsigned n = 0; n < rn_vprocess_threads(process); n++)
		if (rn_vthread_state(process, n) == RN_TIME_RUNNING)
			return true;
	return false;
}

/* Somebody runs, or has run and not been heard yet: what it has started may join before it says so. */
static bool may_have_started(const struct rn_virtual *v)
{
	for (unsigned i = 0; i < v->count; i++) {
		const struct rn_vprocess *process = v->process[i];

		for (unsigned n = 0; n < rn_vprocess_threads(process); n++) {
			if (rn_vthread_state(process, n) == RN_TIME_RUNNING ||
			    rn_vthread_has_news(process, n))
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

/* A page whose only thread begins at @at_ps: with the baton of @old, or waiting for it. */
static struct rn_vprocess *make_process(struct rn_virtual *v, pid_t pid, uint32_t host,
					const struct rn_vprocess *old, uint64_t at_ps, int *error)
{
	const unsigned ordinal = old ? old->ordinal : v->ordinals[host];
	struct rn_vprocess *process =
		rn_vprocess_new(pid, host, ordinal, v->env.scenario, v->env.tsc_mode, error);
	struct rn_time_slot *slot;

	if (!process)
		return NULL;
	slot = &process->page->slot[0];
	process->has_run = old;
	slot->tid = (int32_t)pid;
	slot->until_ps = at_ps;
	atomic_store(&process->page->used, 1);
	atomic_store(&slot->state, RN_TIME_WAITING);
	slot->now_ps = at_ps;
	if (old && has_baton(old))
		rn_vthread_grant(process, 0, at_ps, 0);
	return process;
}

/* A process that execs comes back with the baton if it had it. */
static int come_back(struct rn_virtual *v, struct rn_vprocess *old, bool is_bare)
{
	const uint64_t at_ps = running_ps(v, old);
	struct rn_vprocess *process;
	int error;

	if (rn_vprocess_has_page(old))
		return -EBUSY;
	process = make_process(v, old->pid, old->host, old, at_ps, &error);
	if (!process)
		return -error;
	v->counts.strangers += is_bare;
	rn_virtual_act(v, at_ps);
	drop(v, old);
	add(v, process);
	/* The threads of a runtime of its own are not known: they may compute side by side. */
	if (!is_bare)
		rn_place_take(&v->place, process);
	return process->page_fd;
}

static int join(struct rn_virtual *v, pid_t pid, const struct rn_uapi_attach_time *request,
		bool is_bare)
{
	struct rn_vprocess *process;
	int error;

	process = make_process(v, pid, request->host, NULL, request->now_ps, &error);
	if (!process) {
		/* Its program runs on, by the wall clock. */
		v->counts.strangers++;
		return -error;
	}
	/* A parent's time: not farther ahead than a parent can be. */
	process->page->slot[0].until_ps = rn_vthread_clock_ps(process, 0, rn_virtual_now_ps(v));
	process->page->slot[0].now_ps = process->page->slot[0].until_ps;
	v->ordinals[request->host]++;
	v->counts.strangers += is_bare;
	if (v->env.is_open && !may_have_started(v))
		open_anew(v);
	v->counts.late += is_late(v, pid);
	add(v, process);
	/* The threads of a runtime of its own are not known: they may compute side by side. */
	if (!is_bare)
		rn_place_take(&v->place, process);
	return process->page_fd;
}

/*
 * A process has one page. It may ask again when its program has become another by exec, which the page does not
 * outlive; before, that is refused.
 */
int rn_virtual_attach(void *arg, pid_t pid, const struct rn_uapi_attach_time *request)
{
	struct rn_virtual *v = arg;
	struct rn_vprocess *old = rn_virtual_find(v, pid);

	const bool is_bare = request->flags & RN_UAPI_TIME_BARE;

	RN_ASSERT(request->host < v->env.scenario->hosts);
	return old ? come_back(v, old, is_bare) : join(v, pid, request, is_bare);
}

/* It had the baton and was about to become another program, which never joined. */
static bool has_become_stranger(const struct rn_vprocess *process)
{
	if (process->is_stranger || rn_vprocess_is_examinable(process))
		return false;
	for (unsigned n = 0; n < rn_vprocess_threads(process); n++)
		if (process->thread[n].life == RN_VTHREAD_HOLDS ||
		    process->thread[n].life == RN_VTHREAD_OUTSIDE)
			return true;
	return false;
}

void rn_virtual_bury_dead(struct rn_virtual *v)
{
	bool dropped = false;

	for (unsigned i = v->count; i-- > 0;) {
		struct rn_vprocess *process = v->process[i];
		struct pollfd fd = {.fd = process->pidfd, .events = POLLIN};

		if (poll(&fd, 1, 0) <= 0)
			continue;
		v->counts.strangers +=
			!v->is_over && !v->counts.interrupted && has_become_stranger(process);
		rn_virtual_act(v, running_ps(v, process));
		drop(v, process);
		dropped = true;
		/* Its connections to the driver end at the same simulated time. */
		rn_virtual_serve_sockets(v);
		/* Who attached there has changed the places of all. */
		i = v->count;
	}
	/* It may have been the last that is waited for: before time passes. */
	if (dropped)
		rn_virtual_look_at_tops(v);
}
