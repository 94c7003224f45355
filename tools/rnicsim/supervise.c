#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exit_status.h"
#include "signals.h"

#define LOOK_MS 100
#define PATIENCE_S 2.0 /* with what is blocked, when somebody wants the end of the run */

enum place { SIGNALS, CHILD, READY, START, OUT, ERR };

_Static_assert(ERR + 1 == RN_SUPERVISOR_FDS, "places");

double rn_supervisor_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool rn_supervisor_is_late(const struct rn_supervisor *s)
{
	return s->limit_at_s > 0 && rn_supervisor_now_s() >= s->limit_at_s;
}

static bool is_wanted_to_end(const struct rn_supervisor *s)
{
	return s->interrupted || rn_supervisor_is_late(s);
}

/* --- output --- */

static bool is_one_place(void)
{
	struct stat out, err;

	return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
	       out.st_dev == err.st_dev && out.st_ino == err.st_ino && out.st_rdev == err.st_rdev;
}

/* Lines of both stay in order where both can be seen together. */
static bool open_outlets(struct rn_supervisor *s)
{
	s->outlet[0] = rn_outlet_new(STDOUT_FILENO);
	s->outlet[1] = is_one_place() ? s->outlet[0] : rn_outlet_new(STDERR_FILENO);
	return s->outlet[0] && s->outlet[1];
}

static void note_output_error(struct rn_supervisor *s, unsigned stream)
{
	const int error = rn_outlet_error(s->outlet[stream]);

	if (error == EPIPE && !s->interrupted)
		s->interrupted = SIGPIPE;
	if (!error || error == EPIPE || s->output_failed)
		return;
	s->output_failed = true;
	rn_outlet_say(s->outlet[1], "rnicsim: standard %s: %s\n", stream ? "error" : "output",
		      strerror(error));
}

static bool is_drained(struct rn_supervisor *s)
{
	return rn_outlet_is_drained(s->outlet[0]) && rn_outlet_is_drained(s->outlet[1]);
}

/* --- listening --- */

static void take_signals(struct rn_supervisor *s)
{
	int signo;

	while ((signo = rn_signals_take(s->signal_fd))) {
		if (s->interrupted)
			s->insisted++;
		else
			s->interrupted = signo;
	}
}

int rn_supervisor_poll(struct rn_supervisor *s, struct pollfd *fds, nfds_t count, int wait_ms)
{
	const int own[RN_SUPERVISOR_FDS] = {
		[SIGNALS] = s->signal_fd,
		[CHILD] = s->child.pidfd,
		[READY] = s->child.ready_fd,
		[START] = s->listens_to_start ? s->child.start_fd : -1,
		[OUT] = rn_outlet_fd(s->outlet[0]),
		[ERR] = s->outlet[1] == s->outlet[0] ? -1 : rn_outlet_fd(s->outlet[1]),
	};
	int ready;

	for (unsigned i = 0; i < RN_SUPERVISOR_FDS; i++)
		fds[i] = (struct pollfd){.fd = own[i], .events = POLLIN};
	ready = poll(fds, count, wait_ms);
	if (ready <= 0)
		return ready;
	if (fds[SIGNALS].revents)
		take_signals(s);
	if (fds[CHILD].revents)
		rn_child_reap(&s->child);
	for (unsigned stream = 0; stream < 2; stream++) {
		if (!fds[OUT + stream].revents)
			continue;
		rn_outlet_look(s->outlet[stream]);
		note_output_error(s, stream);
	}
	return ready;
}

static void listen_once(struct rn_supervisor *s)
{
	struct pollfd fds[RN_SUPERVISOR_FDS];

	rn_supervisor_poll(s, fds, RN_SUPERVISOR_FDS, LOOK_MS);
}

/* --- coming up --- */

/* It is given the time to remove what it has made. */
static void end_child(struct rn_supervisor *s)
{
	const double until_s = rn_supervisor_now_s() + PATIENCE_S;

	rn_child_tell_end(&s->child);
	kill(s->child.pid, SIGTERM);
	while (!rn_child_is_gone(&s->child)) {
		listen_once(s);
		if (rn_supervisor_now_s() >= until_s || s->insisted)
			kill(s->child.pid, SIGKILL);
	}
}

static int status_of_dead(struct rn_supervisor *s)
{
	const int status = s->child.status;

	if (status > RN_EXIT_SIGNAL)
		rn_outlet_say(s->outlet[1], "rnicsim: the simulator died while it came up: %s\n",
			      strsignal(status - RN_EXIT_SIGNAL));
	else
		rn_outlet_say(s->outlet[1], "rnicsim: the simulator did not start\n");
	return status > 0 && status < RN_EXIT_SIGNAL ? status : RN_EXIT_SIMULATOR;
}

static int wait_until_up(struct rn_supervisor *s)
{
	struct pollfd fds[RN_SUPERVISOR_FDS];

	while (!is_wanted_to_end(s) && !rn_child_is_gone(&s->child)) {
		if (rn_supervisor_poll(s, fds, RN_SUPERVISOR_FDS, LOOK_MS) <= 0 ||
		    !fds[READY].revents)
			continue;
		if (rn_child_is_up(&s->child))
			return 0;
	}
	if (rn_child_is_gone(&s->child))
		return status_of_dead(s);
	rn_outlet_say(s->outlet[1], "rnicsim: %s while the simulator came up\n",
		      s->interrupted ? strsignal(s->interrupted) : "the time limit was reached");
	end_child(s);
	return s->interrupted ? RN_EXIT_SIGNAL + s->interrupted : RN_EXIT_SIMULATOR;
}

bool rn_supervisor_init(struct rn_supervisor *s)
{
	*s = (struct rn_supervisor){
		.child = {.pidfd = -1, .ready_fd = -1, .start_fd = -1, .stop_fd = -1}};
	s->signal_fd = rn_signals_open();
	return s->signal_fd >= 0;
}

int rn_supervisor_start(struct rn_supervisor *s, const struct rn_options *options,
			const struct rn_scenario *scenario, const struct rn_config *config,
			const char *dir, double limit_s)
{
	s->limit_at_s = limit_s > 0 ? rn_supervisor_now_s() + limit_s : 0;
	/* The simulator comes first: threads would not come along. */
	if (!rn_child_start(&s->child, options, scenario, config, dir))
		return RN_EXIT_SIMULATOR;
	if (!open_outlets(s)) {
		kill(s->child.pid, SIGKILL);
		return RN_EXIT_SIMULATOR;
	}
	return wait_until_up(s);
}

/* --- going down --- */

static void drain(struct rn_supervisor *s)
{
	double wanted_from_s = 0;

	while (!is_drained(s)) {
		listen_once(s);
		if (!is_wanted_to_end(s))
			continue;
		if (wanted_from_s <= 0)
			wanted_from_s = rn_supervisor_now_s();
		if (s->insisted || rn_supervisor_now_s() > wanted_from_s + PATIENCE_S)
			return;
	}
}

/* Blocked: asleep without having run for as long as the patience lasts. */
struct block {
	long ticks;
	double since_s;
};

static bool is_blocked(const struct rn_supervisor *s, struct block *block)
{
	const long ticks = rn_child_ticks_asleep(&s->child);
	const double now_s = rn_supervisor_now_s();

	if (ticks < 0 || ticks != block->ticks) {
		block->ticks = ticks;
		block->since_s = now_s;
	}
	return ticks >= 0 && now_s > block->since_s + PATIENCE_S;
}

void rn_supervisor_stop(struct rn_supervisor *s)
{
	struct block block = {.ticks = -1};
	unsigned insisted;

	drain(s);
	insisted = s->insisted;
	rn_child_stop(&s->child);
	while (!rn_child_is_gone(&s->child)) {
		listen_once(s);
		if (!is_wanted_to_end(s) || (s->insisted == insisted && !is_blocked(s, &block)))
			continue;
		if (!s->gave_up)
			rn_outlet_say(
				s->outlet[1],
				"rnicsim: the simulator is ended before its outputs are whole\n");
		s->gave_up = true;
		kill(s->child.pid, SIGKILL);
	}
}

int rn_supervisor_fini(struct rn_supervisor *s, int status)
{
	if (s->outlet[0] && s->outlet[1]) {
		drain(s);
		note_output_error(s, 0);
		note_output_error(s, 1);
	}
	rn_outlet_free(s->outlet[0]);
	if (s->outlet[1] != s->outlet[0])
		rn_outlet_free(s->outlet[1]);
	rn_child_fini(&s->child);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	return status ? status : s->output_failed ? RN_EXIT_USAGE : 0;
}
