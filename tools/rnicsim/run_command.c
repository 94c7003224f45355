/*
 * rnicsim run: start the simulator, the programs one host after the other, pass their output on, wait, report.
 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "child.h"
#include "commands.h"
#include "network.h"
#include "programs.h"
#include "run_dir.h"
#include "settle.h"
#include "virtual_time.h"

#define SETTLE_POLL_MS 5
#define SETTLE_SLEEP_MS 300 /* all asleep for so long: it waits for something */
#define SETTLE_LIMIT_MS 3000
#define KILL_AFTER_MS 2000
#define DEFAULT_GRACE_S 10

enum option_key { OPT_RAW = 0x200, OPT_GRACE, OPT_TIMEOUT };

static const struct argp_option option_rows[] = {
	{"raw", OPT_RAW, NULL, 0, "pass the programs' output through as it is, without [hostN]", 1},
	{"grace", OPT_GRACE, "SECONDS", 0,
	 "after a program has failed, end the others when they still run so much later (default 10; "
	 "0: wait for them for ever)",
	 1},
	{"timeout", OPT_TIMEOUT, "SECONDS", 0, "end all programs after so long (default: never)",
	 1},
	{0},
};

struct run {
	struct rn_options options;
	bool raw;
	double grace_s;
	double timeout_s; /* 0: none */
	char **command;
	unsigned commands;
	struct rn_program *program;
	unsigned started;
	struct rn_child child;
	int signal_fd;
	int first_failure; /* status of the first program that failed */
	bool failed;
	int interrupted;   /* signal that ends the run, 0 none */
	double limit_at_s; /* --timeout ends the programs then; 0 never */
	double grace_at_s; /* --grace does, after a failure; 0 never */
	double kill_at_s;  /* SIGKILL what is left then; 0 never */
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(struct argp_state *state, const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value < 1e7))
		argp_error(state, "--%s: %s is not a number of seconds", option, text);
	return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &run->options;
		state->child_inputs[1] = &run->options;
		return 0;
	case OPT_RAW:
		run->raw = true;
		return 0;
	case OPT_GRACE:
		run->grace_s = seconds(state, "grace", arg);
		return 0;
	case OPT_TIMEOUT:
		run->timeout_s = seconds(state, "timeout", arg);
		return 0;
	case ARGP_KEY_ARGS:
		run->command = state->argv + state->next;
		run->commands = (unsigned)(state->argc - state->next);
		for (unsigned i = 0; i < run->commands; i++)
			if (run->command[i][0] == '-')
				argp_error(state, "%s: options come before the commands",
					   run->command[i]);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no command: give one for each host, e.g. 'ib_write_bw' "
				  "'ib_write_bw localhost'");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void signal_programs(struct run *run, int signal)
{
	for (unsigned i = 0; i < run->started; i++)
		if (rn_program_is_running(&run->program[i]))
			kill(-run->program[i].pid, signal);
}

static void end_programs(struct run *run, const char *why)
{
	const struct rn_virtual_start told = {.pid = 0};

	if (run->kill_at_s > 0)
		return;
	fprintf(stderr, "rnicsim: %s: ending the programs\n", why);
	signal_programs(run, SIGTERM);
	if (run->child.start_fd >= 0)
		send(run->child.start_fd, &told, sizeof(told), MSG_NOSIGNAL | MSG_DONTWAIT);
	run->kill_at_s = now_s() + KILL_AFTER_MS / 1e3;
	run->limit_at_s = 0;
	run->grace_at_s = 0;
}

static unsigned running(const struct run *run)
{
	unsigned count = 0;

	for (unsigned i = 0; i < run->started; i++)
		count += rn_program_is_running(&run->program[i]);
	return count;
}

static void note_end(struct run *run, const struct rn_program *program)
{
	if (!program->status)
		return;
	fprintf(stderr, "rnicsim: host %u: %s: exit status %d\n", program->host, program->command,
		program->status);
	if (run->failed)
		return;
	run->failed = true;
	run->first_failure = program->status;
	if (run->grace_s > 0 && running(run) && run->kill_at_s <= 0)
		run->grace_at_s = now_s() + run->grace_s;
}

static void take_signal(struct run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGCHLD)
		return;
	if (run->interrupted) {
		signal_programs(run, SIGKILL);
		return;
	}
	run->interrupted = (int)info.ssi_signo;
	end_programs(run, strsignal(run->interrupted));
}

/* One round of everything that can happen, for at most @wait_ms. */
static void poll_once(struct run *run, int wait_ms)
{
	struct pollfd fds[2 + 3 * 64];
	struct {
		struct rn_program *program;
		int stream; /* 2: pidfd */
	} of[2 + 3 * 64];
	nfds_t count = 2;

	fds[0] = (struct pollfd){.fd = run->signal_fd, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = run->child.pidfd, .events = POLLIN};
	for (unsigned i = 0; i < run->started; i++) {
		struct rn_program *program = &run->program[i];
		const int watch[3] = {program->out[0], program->out[1], program->pidfd};

		for (int stream = 0; stream < 3; stream++) {
			if (watch[stream] < 0)
				continue;
			of[count].program = program;
			of[count].stream = stream;
			fds[count++] = (struct pollfd){.fd = watch[stream], .events = POLLIN};
		}
	}
	if (poll(fds, count, wait_ms) <= 0)
		return;
	if (fds[0].revents)
		take_signal(run);
	if (fds[1].revents && run->child.pidfd >= 0)
		rn_child_reap(&run->child);
	for (nfds_t i = 2; i < count; i++) {
		if (!fds[i].revents)
			continue;
		if (of[i].stream < 2) {
			rn_program_forward(of[i].program, (unsigned)of[i].stream);
			continue;
		}
		rn_program_reap(of[i].program);
		if (!rn_program_is_running(of[i].program))
			note_end(run, of[i].program);
	}
}

static void check_clock(struct run *run)
{
	double now = now_s();

	if (run->child.pidfd < 0)
		end_programs(run, run->child.status == RN_EXIT_DIVERGED
					  ? "co-verification has failed"
					  : "the simulator has died");
	if (run->limit_at_s > 0 && now >= run->limit_at_s)
		end_programs(run, "the time limit is reached");
	if (run->grace_at_s > 0 && now >= run->grace_at_s)
		end_programs(run, "a program has failed and the grace time is over");
	if (run->kill_at_s > 0 && now >= run->kill_at_s) {
		signal_programs(run, SIGKILL);
		run->kill_at_s = now + KILL_AFTER_MS / 1e3;
	}
}

/* Give the newest program time until it waits: for a peer, for its input, or for nothing any more. */
static void settle(struct run *run)
{
	const struct rn_program *program = &run->program[run->started - 1];
	double from = now_s(), asleep_from = from;

	while (run->child.pidfd >= 0 && !run->interrupted && rn_program_is_running(program)) {
		enum rn_settle look = rn_settle_look(program->pid);
		double now = now_s();

		if (look == RN_SETTLE_BUSY)
			asleep_from = now;
		if (look == RN_SETTLE_LISTENING || look == RN_SETTLE_GONE ||
		    now - asleep_from > SETTLE_SLEEP_MS / 1e3 || now - from > SETTLE_LIMIT_MS / 1e3)
			return;
		poll_once(run, SETTLE_POLL_MS);
		check_clock(run);
	}
}

/* Virtual time: the simulator says when the newest program waits. */
static void settle_virtually(struct run *run, bool is_last)
{
	const struct rn_virtual_start start = {run->program[run->started - 1].pid, !is_last};
	char byte;

	if (send(run->child.start_fd, &start, sizeof(start), MSG_NOSIGNAL) != sizeof(start))
		return;
	while (!is_last && run->child.pidfd >= 0 && !run->interrupted &&
	       recv(run->child.start_fd, &byte, 1, MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EINTR)) {
		poll_once(run, SETTLE_POLL_MS);
		check_clock(run);
	}
}

static bool start_programs(struct run *run, const char *dir)
{
	run->program = rn_calloc(run->commands, sizeof(*run->program));
	for (unsigned i = 0; i < run->commands && !run->interrupted && run->child.pidfd >= 0; i++) {
		if (!rn_program_start(&run->program[i], i, run->command[i], dir, run->raw,
				      !run->options.free_run))
			return false;
		run->started++;
		if (run->child.start_fd >= 0)
			settle_virtually(run, i + 1 == run->commands);
		else if (i + 1 < run->commands)
			settle(run);
	}
	return true;
}

static int exit_status(const struct run *run, bool died)
{
	if (died)
		return RN_EXIT_SIMULATOR;
	if (run->interrupted)
		return 128 + run->interrupted;
	if (run->failed)
		return run->first_failure;
	return run->child.status;
}

static int supervise(struct run *run, const char *dir)
{
	bool died;

	if (run->timeout_s > 0)
		run->limit_at_s = now_s() + run->timeout_s;
	if (!start_programs(run, dir))
		end_programs(run, "a program could not be started");
	while (running(run)) {
		poll_once(run, 100);
		check_clock(run);
	}
	for (unsigned i = 0; i < run->started; i++) {
		rn_program_finish(&run->program[i]);
		kill(-run->program[i].pid, SIGKILL); /* what it has left behind */
	}
	/* It may have been killed so lately that it is not gone yet: its status tells. */
	rn_child_reap(&run->child);
	died = run->child.pidfd < 0;
	rn_child_stop(&run->child);
	died = died || run->child.status > 128;
	if (run->child.status == RN_EXIT_DIVERGED)
		return RN_EXIT_DIVERGED;
	if (died)
		fprintf(stderr, "rnicsim: the simulator died with status %d; there is no report\n",
			run->child.status);
	return exit_status(run, died);
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run_scenario(struct run *run)
{
	struct rn_config *config;
	struct rn_scenario *scenario;
	int status = RN_EXIT_USAGE;
	char *dir = NULL;
	int network = -1;

	run->options.hosts = run->commands;
	scenario = rn_options_load(&run->options, &config);
	if (!scenario)
		return RN_EXIT_USAGE;
	if (run->commands > scenario->hosts) {
		fprintf(stderr, "rnicsim: %u commands, but the scenario has %u hosts\n",
			run->commands, scenario->hosts);
	} else if ((network = rn_network_take(scenario->hosts)) >= 0 &&
		   (dir = rn_run_dir_make(NULL))) {
		status = RN_EXIT_SIMULATOR;
		run->signal_fd = open_signals();
		if (rn_child_start(&run->child, &run->options, scenario, config, dir))
			status = supervise(run, dir);
		else if (run->child.status)
			status = run->child.status;
		rn_run_dir_remove(dir);
	}
	if (network >= 0)
		close(network);
	free(dir);
	free(run->program);
	rn_scenario_free(scenario);
	rn_config_free(config);
	return status;
}

int rn_run_command(int argc, char **argv)
{
	static const struct argp_child children[] = {{&rn_options_scenario_argp, 0, NULL, 0},
						     {&rn_options_record_argp, 0, NULL, 0},
						     {0}};
	static const struct argp argp = {
		.options = option_rows,
		.parser = parse,
		.args_doc = "'COMMAND FOR HOST 0' ['COMMAND FOR HOST 1' ...]",
		.doc = "Run programs on simulated hosts and report what their NICs did.\v"
		       "Each command goes to sh -c. Host 1's starts when host 0's waits, and so on, so that\n"
		       "  rnicsim run 'ib_write_bw' 'ib_write_bw localhost'\n"
		       "works as typed. Programs have no standard input. Three commands or more without a\n"
		       "configuration run on a switch. The exit status is that of the first program that failed, 2 for a "
		       "mistake in options or configuration, 70 when the simulator could not go on, 71 when "
		       "co-verification failed (RTL and model differ, or an assertion of the RTL), 128 + the "
		       "signal when one ended the run.",
		.children = children,
	};
	struct run run = {.grace_s = DEFAULT_GRACE_S};
	int status;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
	status = run_scenario(&run);
	rn_options_fini(&run.options);
	return status;
}
