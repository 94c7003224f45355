#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "descendants.h"
#include "exit_status.h"
#include "settle.h"
#include "virtual_time.h"

#define SETTLE_POLL_MS 5
#define SETTLE_SLEEP_MS 300 /* all asleep for so long: it waits for something */
#define SETTLE_LIMIT_MS 3000
#define KILL_AFTER_S 2.0
#define LOOK_MS 100
#define PROGRAMS_MAX 64

static bool is_awaited(const struct rn_run *run, const struct rn_program *program)
{
	return run->awaited >> program->host & 1;
}

static unsigned running(const struct rn_run *run, bool only_awaited)
{
	unsigned count = 0;

	for (unsigned i = 0; i < run->started; i++)
		count += rn_program_is_running(&run->program[i]) &&
			 (!only_awaited || is_awaited(run, &run->program[i]));
	return count;
}

/* --- ending them --- */

static void signal_programs(struct rn_run *run, int signal)
{
	if (rn_descendants_signal(signal, run->supervisor.child.pid) >= 0)
		return;
	for (unsigned i = 0; i < run->started; i++)
		if (rn_program_is_running(&run->program[i]))
			kill(-run->program[i].pid, signal);
}

static void end_programs(struct rn_run *run, const char *why)
{
	if (run->kill_at_s > 0)
		return;
	rn_outlet_say(run->supervisor.outlet[1], "rnicsim: %s: ending the programs\n", why);
	signal_programs(run, SIGTERM);
	rn_child_tell_end(&run->supervisor.child);
	run->kill_at_s = rn_supervisor_now_s() + KILL_AFTER_S;
	run->grace_at_s = 0;
}

/* The awaited programs have ended: in virtual time the simulator ends the others, at that simulated time. */
static void end_servers(struct rn_run *run)
{
	if (run->kill_at_s > 0 || running(run, true) || !running(run, false) ||
	    run->started < run->commands)
		return;
	if (run->options.free_run)
		signal_programs(run, SIGTERM);
	run->kill_at_s = rn_supervisor_now_s() + KILL_AFTER_S;
	run->grace_at_s = 0;
}

static void kill_programs(struct rn_run *run)
{
	rn_child_tell_end(&run->supervisor.child);
	signal_programs(run, SIGKILL);
	run->kill_at_s = rn_supervisor_now_s() + KILL_AFTER_S;
}

/* --- what can happen --- */

/* Who is not waited for may end as it likes once the others have ended. */
static void note_end(struct rn_run *run, const struct rn_program *program)
{
	if (!program->status || (!is_awaited(run, program) && !running(run, true)))
		return;
	rn_outlet_say(run->supervisor.outlet[1], "rnicsim: host %u: %s: exit status %d\n",
		      program->host, program->command, program->status);
	if (run->failed)
		return;
	run->failed = true;
	run->first_failure = program->status;
	if (run->grace_s > 0 && running(run, false) && run->kill_at_s <= 0)
		run->grace_at_s = rn_supervisor_now_s() + run->grace_s;
}

static void reap(struct rn_run *run, struct rn_program *program)
{
	if (!rn_program_is_running(program))
		return;
	rn_program_reap(program);
	if (!rn_program_is_running(program))
		note_end(run, program);
}

static void handle(struct rn_run *run, struct rn_program *program, unsigned what)
{
	if (what < 2) {
		rn_program_forward(program, what, run->supervisor.outlet[what]);
		return;
	}
	/* The simulator ends servers behind their clients: of two ends that are seen at once the clients' is the first. */
	if (!is_awaited(run, program))
		for (unsigned i = 0; i < run->started; i++)
			if (is_awaited(run, &run->program[i]))
				reap(run, &run->program[i]);
	reap(run, program);
}

static bool is_kept(void *arg, pid_t pid)
{
	const struct rn_run *run = arg;

	if (pid == run->supervisor.child.pid)
		return true;
	for (unsigned i = 0; i < run->started; i++)
		if (run->program[i].pid == pid && rn_program_is_running(&run->program[i]))
			return true;
	return false;
}

/* One round of everything that can happen, for at most @wait_ms. */
static void poll_once(struct rn_run *run, int wait_ms)
{
	struct pollfd fds[RN_SUPERVISOR_FDS + 3 * PROGRAMS_MAX];
	struct {
		struct rn_program *program;
		unsigned what; /* 0, 1: its output; 2: its end */
	} of[RN_SUPERVISOR_FDS + 3 * PROGRAMS_MAX];
	struct rn_supervisor *s = &run->supervisor;
	nfds_t count = RN_SUPERVISOR_FDS;

	for (unsigned i = 0; i < run->started; i++) {
		struct rn_program *program = &run->program[i];
		const int watch[3] = {program->out[0], program->out[1], program->pidfd};

		for (unsigned what = 0; what < 3; what++) {
			if (watch[what] < 0 || (what < 2 && !rn_outlet_has_room(s->outlet[what])))
				continue;
			of[count].program = program;
			of[count].what = what;
			fds[count++] = (struct pollfd){.fd = watch[what], .events = POLLIN};
		}
	}
	if (rn_supervisor_poll(s, fds, count, wait_ms) > 0)
		for (nfds_t i = RN_SUPERVISOR_FDS; i < count; i++)
			if (fds[i].revents)
				handle(run, of[i].program, of[i].what);
	rn_descendants_reap(is_kept, run);
}

static void look_at_signals(struct rn_run *run)
{
	struct rn_supervisor *s = &run->supervisor;

	if (s->interrupted && !run->interrupt_told) {
		run->interrupt_told = true;
		end_programs(run, strsignal(s->interrupted));
	}
	if (s->insisted) {
		s->insisted = 0;
		kill_programs(run);
	}
}

static void look_at_clock(struct rn_run *run)
{
	struct rn_supervisor *s = &run->supervisor;
	const double now_s = rn_supervisor_now_s();

	if (rn_child_is_gone(&s->child))
		end_programs(run, s->child.status == RN_EXIT_DIVERGED ? "co-verification has failed"
								      : "the simulator has died");
	if (rn_supervisor_is_late(s))
		end_programs(run, "the time limit is reached");
	if (run->grace_at_s > 0 && now_s >= run->grace_at_s)
		end_programs(run, "a program has failed and the grace time is over");
	if (run->kill_at_s > 0 && now_s >= run->kill_at_s)
		kill_programs(run);
}

static void look(struct rn_run *run, int wait_ms)
{
	poll_once(run, wait_ms);
	look_at_signals(run);
	look_at_clock(run);
	end_servers(run);
}

/* --- starting them --- */

static bool must_end(const struct rn_run *run)
{
	return run->kill_at_s > 0 || rn_child_is_gone(&run->supervisor.child);
}

/* Give the newest program time until it waits: for a peer, for its input, or for nothing any more. */
static void settle(struct rn_run *run)
{
	const struct rn_program *program = &run->program[run->started - 1];
	double from_s = rn_supervisor_now_s(), asleep_from_s = from_s;

	while (!must_end(run) && rn_program_is_running(program)) {
		enum rn_settle state = rn_settle_look(program->pid);
		double now_s = rn_supervisor_now_s();

		if (state == RN_SETTLE_BUSY)
			asleep_from_s = now_s;
		if (state == RN_SETTLE_LISTENING || state == RN_SETTLE_GONE ||
		    now_s - asleep_from_s > SETTLE_SLEEP_MS / 1e3 ||
		    now_s - from_s > SETTLE_LIMIT_MS / 1e3)
			return;
		look(run, SETTLE_POLL_MS);
	}
}

/* Virtual time: the simulator says when the newest program waits. */
static void settle_virtually(struct rn_run *run, bool is_last)
{
	const struct rn_program *program = &run->program[run->started - 1];
	const struct rn_virtual_start start = {
		.pid = program->pid, .more = !is_last, .awaited = is_awaited(run, program)};
	struct rn_supervisor *s = &run->supervisor;
	char byte;

	if (send(s->child.start_fd, &start, sizeof(start), MSG_NOSIGNAL) != sizeof(start))
		return;
	s->listens_to_start = true;
	while (!is_last && !must_end(run) && recv(s->child.start_fd, &byte, 1, MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EINTR))
		look(run, LOOK_MS);
	s->listens_to_start = false;
}

static bool start_programs(struct rn_run *run, const char *dir)
{
	run->program = rn_calloc(run->commands, sizeof(*run->program));
	for (unsigned i = 0; i < run->commands && !must_end(run); i++) {
		if (!rn_program_start(&run->program[i], i, run->command[i], dir, run->raw,
				      !run->options.free_run))
			return false;
		run->started++;
		if (run->supervisor.child.start_fd >= 0)
			settle_virtually(run, i + 1 == run->commands);
		else if (i + 1 < run->commands)
			settle(run);
	}
	return true;
}

/* --- the end --- */

static void end_leftovers(struct rn_run *run)
{
	for (unsigned i = 0; i < run->started; i++)
		rn_program_finish(&run->program[i], run->supervisor.outlet);
	if (!rn_descendants_end(run->supervisor.child.pid))
		rn_outlet_say(run->supervisor.outlet[1],
			      "rnicsim: some processes of the programs cannot be ended\n");
	rn_descendants_reap(is_kept, run);
}

static int status_of(const struct rn_run *run, bool died)
{
	const struct rn_supervisor *s = &run->supervisor;

	if (s->child.status == RN_EXIT_DIVERGED)
		return RN_EXIT_DIVERGED;
	if (died || run->start_failed)
		return RN_EXIT_SIMULATOR;
	if (s->interrupted)
		return RN_EXIT_SIGNAL + s->interrupted;
	if (run->failed)
		return run->first_failure;
	return s->gave_up ? RN_EXIT_SIMULATOR : s->child.status;
}

int rn_run_programs(struct rn_run *run, const char *dir)
{
	struct rn_supervisor *s = &run->supervisor;
	bool died;

	rn_descendants_adopt();
	if (!start_programs(run, dir)) {
		run->start_failed = true;
		end_programs(run, "a program could not be started");
	}
	while (running(run, false))
		look(run, LOOK_MS);
	end_leftovers(run);
	/* It may have been killed so lately that it is not gone yet: its status tells. */
	rn_child_reap(&s->child);
	died = rn_child_is_gone(&s->child);
	rn_supervisor_stop(s);
	died = died || (s->child.status > RN_EXIT_SIGNAL && !s->gave_up);
	if (died && s->child.status != RN_EXIT_DIVERGED)
		rn_outlet_say(s->outlet[1],
			      "rnicsim: the simulator died with status %d; there is no report\n",
			      s->child.status);
	return status_of(run, died);
}
