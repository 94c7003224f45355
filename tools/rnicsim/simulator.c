/*
 * The loop of the simulator process. Outside input (doorbell writes, driver calls) enters between two slices of
 * simulation; a slice runs up to the wall clock or for a bounded number of wakes, whichever is first. With nothing
 * due it yields, then sleeps until the next event's time or a client's ring.
 */
#include "simulator.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "attributes.h"
#include "base/bits.h"
#include "base/mem.h"
#include "descendants.h"
#include "driver/server.h"
#include "driver/uapi.h"
#include "exit_status.h"
#include "machine/machine.h"
#include "report_file.h"
#include "run_dir.h"
#include "systemc/cosim/fifo_fst.h"
#include "systemc/kernel.h"

#define SLICE_WAKES 400
#define BRING_UP_LIMIT_PS 1000000000000u /* 1 s of simulated time */
#define CLEAN_UP_LIMIT_PS 10000000000000u
#define STOP_LOOK_ROUNDS 256	   /* rounds between two looks at the stop descriptor while busy */
#define YIELD_ROUNDS 50		   /* idle rounds that yield before the first sleep */
#define YIELD_BELOW_PS 100000000u  /* an event nearer than this is not worth a sleep: 100 us */
#define MAX_SLEEP_PS 100000000000u /* 100 ms */
#define PS_PER_NS 1000u
#define ORPHAN_LOOK_MS 20
#define ORPHAN_LOOKS 250 /* 5 s in all */
#define ORPHAN_S 20	 /* to report in, for one whose supervisor has been killed */
#define PS_PER_S 1000000000000u
#define PS_PER_MS 1e9

struct simulator {
	const struct rn_options *options;
	const struct rn_scenario *scenario;
	struct rn_system *system;
	struct rn_cosim *cosim;
	struct rn_fifo_fst *fst;	    /* NULL: none */
	struct rn_report_file *report_file; /* NULL: none, or written */
	struct rn_sim *sim;
	struct rn_kernel *kernel;
	struct rn_driver **driver;
	struct rn_server *server;
	struct rn_virtual *virtual; /* NULL in free-run */
	unsigned ready;		    /* drivers that are up */
	int bring_up_error;
	int stop_fd;
	uint64_t start_ns; /* wall clock at the simulated time start_ps */
	uint64_t start_ps;
	uint64_t warmup_end_ps; /* 0: no warm-up any more */
	uint64_t measured_from_ps;
	uint64_t largest_lag_ps;
};

static volatile sig_atomic_t stop_signal;
static pid_t supervisor;

/* When the supervisor is gone nobody else would end a process that an output blocks. */
static void note_signal(int signal)
{
	stop_signal = signal;
	if (getppid() != supervisor)
		alarm(ORPHAN_S);
}

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Simulated time may go so far now (decision: never ahead of the wall clock since the start). */
static uint64_t limit_ps(const struct simulator *s)
{
	return s->start_ps + (wall_ns() - s->start_ns) * PS_PER_NS;
}

static void driver_is_up(void *arg, int error)
{
	struct simulator *s = arg;

	s->ready++;
	if (error)
		s->bring_up_error = error;
}

static void make_driver(struct simulator *s, unsigned host)
{
	struct rn_driver_env env = {
		.sim = s->sim,
		.root_complex = rn_system_root_complex(s->system, host),
		.stats = rn_system_stats(s->system),
		.stamps = rn_system_stamps(s->system),
		.seed = s->scenario->seed,
		.host = host,
		.hosts = s->scenario->hosts,
	};
	char *name = rn_asprintf("host%u.driver", host);

	env.name = name;
	if (s->virtual) {
		env.event = rn_virtual_event;
		env.event_arg = s->virtual;
	}
	rn_attributes_fill(s->scenario, host, &env.device, &env.port);
	s->driver[host] = rn_driver_new(&env);
	rn_driver_start(s->driver[host], driver_is_up, s);
	free(name);
}

static bool bring_up(struct simulator *s, const char *dir)
{
	struct rn_server_env env = {
		.sim = s->sim,
		.stats = rn_system_stats(s->system),
		.drivers = s->driver,
		.hosts = s->scenario->hosts,
		.free_run = true,
	};
	char *path = rn_asprintf("%s/" RN_RUN_DIR_SOCKET, dir);
	int error = 0;

	for (unsigned i = 0; i < s->scenario->hosts; i++)
		make_driver(s, i);
	while (s->ready < s->scenario->hosts && rn_sim_next_ps(s->sim) < BRING_UP_LIMIT_PS &&
	       !rn_cosim_has_failed(s->cosim))
		rn_kernel_run(s->kernel, rn_sim_next_ps(s->sim), SLICE_WAKES);
	if (rn_cosim_has_failed(s->cosim)) {
		/* It has said why. */
	} else if (s->ready < s->scenario->hosts || s->bring_up_error) {
		fprintf(stderr, "rnicsim: a NIC did not come up: %s\n",
			strerror(s->bring_up_error ? s->bring_up_error : ETIMEDOUT));
		rn_cosim_print_sleepers(s->cosim);
	} else {
		env.path = path;
		if (s->virtual)
			rn_virtual_fill_server_env(s->virtual, &env);
		s->server = rn_server_new(&env, &error);
		if (!s->server)
			fprintf(stderr, "rnicsim: %s: %s\n", path, strerror(error));
	}
	free(path);
	return s->server != NULL;
}

static bool must_stop(const struct simulator *s)
{
	struct pollfd fd = {.fd = s->stop_fd, .events = POLLIN};

	return stop_signal || rn_cosim_has_failed(s->cosim) || poll(&fd, 1, 0) != 0;
}

/* Until a client rings, the stop descriptor changes, or @ps of wall time are over. */
static void sleep_for(struct simulator *s, uint64_t ps)
{
	struct pollfd fds[2] = {{.fd = rn_server_epoll_fd(s->server), .events = POLLIN},
				{.fd = s->stop_fd, .events = POLLIN}};
	struct timespec t = {.tv_sec = (time_t)(ps / PS_PER_S),
			     .tv_nsec = (long)(ps % PS_PER_S / PS_PER_NS)};

	if (rn_server_prepare_sleep(s->server))
		ppoll(fds, 2, &t, NULL);
	rn_server_wake(s->server);
}

static void idle(struct simulator *s, unsigned rounds)
{
	uint64_t next_ps = rn_sim_next_ps(s->sim);
	uint64_t now_ps = limit_ps(s);
	uint64_t ahead_ps = next_ps > now_ps ? next_ps - now_ps : 0;

	if (rounds < YIELD_ROUNDS)
		sched_yield();
	else
		sleep_for(s, ahead_ps < MAX_SLEEP_PS ? ahead_ps : MAX_SLEEP_PS);
}

static void end_warmup(struct simulator *s)
{
	if (!s->warmup_end_ps || rn_sim_now_ps(s->sim) < s->warmup_end_ps)
		return;
	rn_stats_clear(rn_system_stats(s->system));
	s->measured_from_ps = rn_sim_now_ps(s->sim);
	s->warmup_end_ps = 0;
}

/* One slice up to the wall clock; true when it ran anything. */
static bool run_slice(struct simulator *s)
{
	uint64_t until_ps = limit_ps(s);
	uint64_t ran = rn_kernel_run(s->kernel, until_ps, SLICE_WAKES);
	uint64_t now_ps = rn_sim_now_ps(s->sim);

	if (until_ps > now_ps && until_ps - now_ps > s->largest_lag_ps)
		s->largest_lag_ps = until_ps - now_ps;
	end_warmup(s);
	return ran > 0;
}

static void serve(struct simulator *s)
{
	unsigned idle_rounds = 0, rounds = 0;

	for (;;) {
		bool served = rn_server_poll(s->server);
		bool ran = run_slice(s);

		if (served || ran)
			idle_rounds = 0;
		else
			idle(s, idle_rounds++);
		if (rn_cosim_has_failed(s->cosim) ||
		    ((idle_rounds > 0 || ++rounds % STOP_LOOK_ROUNDS == 0) && must_stop(s)))
			return;
	}
}

static bool is_clean(const struct simulator *s)
{
	struct rn_driver_usage usage;

	for (unsigned i = 0; i < s->scenario->hosts; i++) {
		rn_driver_get_usage(s->driver[i], &usage);
		if (usage.clients)
			return false;
	}
	return true;
}

/* The programs are gone: let the driver free what they had, without regard to the wall clock. */
static void clean_up(struct simulator *s)
{
	uint64_t until_ps = rn_sim_now_ps(s->sim) + CLEAN_UP_LIMIT_PS;

	rn_server_poll(s->server);
	rn_server_disconnect_all(s->server);
	while (!is_clean(s) && rn_sim_next_ps(s->sim) < until_ps) {
		rn_kernel_run(s->kernel, rn_sim_next_ps(s->sim), SLICE_WAKES);
		rn_server_poll(s->server);
	}
	if (!is_clean(s))
		fprintf(stderr, "rnicsim: objects of ended programs could not be freed\n");
}

static bool report(struct simulator *s, const struct rn_config *config, uint64_t end_ps,
		   double run_s)
{
	struct rn_outcome outcome = {
		.options = s->options,
		.config = config,
		.system = s->system,
		.cosim = s->cosim,
		.driver = s->driver,
		.measured_from_ps = s->measured_from_ps,
		.end_ps = end_ps,
		.wall_s = run_s,
		.largest_lag_s = (double)s->largest_lag_ps / (double)PS_PER_S,
		.wakes = rn_sim_wakes(s->sim),
	};
	struct rn_virtual_counts counts;
	struct rn_report_file *file;

	if (s->virtual) {
		rn_virtual_get_counts(s->virtual, &counts);
		outcome.virtual_time = &counts;
	}

	rn_stats_settle(rn_system_stats(s->system));
	if (!s->options->quiet)
		rn_report_print_text(&outcome);
	if (!s->report_file)
		return true;
	file = s->report_file;
	s->report_file = NULL;
	return rn_report_write_json(file, &outcome);
}

/* Sleeps end when they should: events are often microseconds away. */
static void sharpen_timers(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = note_signal};

	supervisor = getppid();
	sigaction(SIGTERM, &action, NULL);
}

static bool virtual_must_stop(void *arg)
{
	return must_stop(arg);
}

static bool virtual_advanced(void *arg)
{
	const struct simulator *s = arg;

	end_warmup(arg);
	return !rn_cosim_has_failed(s->cosim);
}

static void make_virtual(struct simulator *s)
{
	const struct rn_virtual_env env = {
		.scenario = s->scenario,
		.tsc_mode = s->options->tsc_mode,
		.system = s->system,
		.kernel = s->kernel,
		.driver = s->driver,
		.stop_fd = s->stop_fd,
		.start_fd = s->options->start_fd,
		.is_open = s->options->is_open,
		.must_stop = virtual_must_stop,
		.advanced = virtual_advanced,
		.arg = s,
	};

	if (!s->options->free_run)
		s->virtual = rn_virtual_new(&env);
}

/*
 * A supervisor that wants the end writes a byte; of one that has been killed there is an end of file, when the last of
 * its threads is gone. Each thread that goes before sends a SIGTERM, which interrupts the wait for that.
 */
static bool is_orphan(const struct simulator *s)
{
	struct pollfd fd = {.fd = s->stop_fd, .events = POLLIN};
	unsigned looks = stop_signal ? ORPHAN_LOOKS : 1;
	char byte;
	int ready;

	do {
		ready = poll(&fd, 1, stop_signal ? ORPHAN_LOOK_MS : 0);
	} while (ready <= 0 && getppid() == supervisor && --looks);
	if (ready > 0)
		return read(s->stop_fd, &byte, 1) == 0;
	return getppid() != supervisor;
}

/* The supervisor has been killed: whatever process group its programs are in, they go with it. */
static void end_orphans(const struct simulator *s, const char *dir)
{
	char *path;

	if (s->options->is_open || !is_orphan(s))
		return;
	path = rn_asprintf("%s/" RN_RUN_DIR_SOCKET, dir);
	rn_descendants_kill_marked(RN_ENV_SOCKET, path);
	free(path);
}

static int run(struct simulator *s, const struct rn_config *config, const char *dir, int ready_fd)
{
	uint64_t end_ps;
	double run_s;
	bool reported;

	if (!bring_up(s, dir))
		return rn_cosim_has_failed(s->cosim) ? RN_EXIT_DIVERGED : RN_EXIT_SIMULATOR;
	rn_stats_clear(rn_system_stats(s->system));
	s->start_ps = s->measured_from_ps = rn_sim_now_ps(s->sim);
	s->start_ns = wall_ns();
	if (s->options->warmup_ms > 0)
		s->warmup_end_ps = s->start_ps + (uint64_t)(s->options->warmup_ms * PS_PER_MS);
	if (write(ready_fd, "", 1) != 1)
		return RN_EXIT_SIMULATOR;
	close(ready_fd);
	if (s->virtual)
		rn_virtual_serve(s->virtual, s->server);
	else
		serve(s);
	end_orphans(s, dir);
	end_ps = rn_sim_now_ps(s->sim);
	if (s->warmup_end_ps)
		fprintf(stderr,
			"rnicsim: the run was over before its warm-up (--warmup-ms): nothing is "
			"left out of the figures\n");
	run_s = (double)(wall_ns() - s->start_ns) / 1e9;
	/* A NIC whose unit has stopped cleans nothing up. */
	if (!rn_cosim_has_failed(s->cosim))
		clean_up(s);
	reported = report(s, config, end_ps, run_s);
	rn_server_free(s->server);
	if (rn_cosim_has_failed(s->cosim))
		return RN_EXIT_DIVERGED;
	return reported ? 0 : RN_EXIT_USAGE;
}

/* The world; false with a message when a file cannot be written. */
static bool make_system(struct simulator *s)
{
	struct rn_system_options options = s->options->record;
	char *message = NULL;

	s->cosim = rn_cosim_new(s->scenario, &s->options->cosim, &message);
	if (s->cosim) {
		options.units = rn_cosim_builder(s->cosim);
		s->system = rn_system_new(s->scenario, &options, &message);
	}
	if (s->system && s->options->fst_path) {
		s->fst = rn_fifo_fst_new(rn_system_sim(s->system), rn_system_stats(s->system),
					 s->options->fst_path, &message);
		if (!s->fst) {
			rn_system_free(s->system, NULL);
			s->system = NULL;
		}
	}
	if (s->system)
		return true;
	fprintf(stderr, "rnicsim: %s\n", message);
	free(message);
	if (s->cosim)
		rn_cosim_free(s->cosim, NULL);
	return false;
}

/* Status of what could not be written whole. */
static int free_system(struct simulator *s)
{
	char *message[3] = {NULL};
	bool failed = false;

	rn_fifo_fst_free(s->fst, &message[0]);
	rn_system_free(s->system, &message[1]);
	rn_cosim_free(s->cosim, &message[2]);
	for (size_t i = 0; i < RN_ARRAY_LEN(message); i++) {
		if (message[i])
			fprintf(stderr, "rnicsim: %s\n", message[i]);
		failed = failed || message[i];
		free(message[i]);
	}
	return failed ? RN_EXIT_USAGE : 0;
}

int rn_simulator_run(const struct rn_options *options, const struct rn_scenario *scenario,
		     const struct rn_config *config, const char *dir, int ready_fd, int stop_fd)
{
	struct simulator s = {.options = options, .scenario = scenario, .stop_fd = stop_fd};
	int status, file_status;

	catch_signals();
	sharpen_timers();
	if (options->report_path && !(s.report_file = rn_report_file_new(options->report_path)))
		return RN_EXIT_USAGE;
	if (!make_system(&s)) {
		rn_report_file_free(s.report_file);
		return RN_EXIT_USAGE;
	}
	s.sim = rn_system_sim(s.system);
	s.kernel = rn_kernel_new(s.sim);
	s.driver = rn_calloc(scenario->hosts, sizeof(*s.driver));
	make_virtual(&s);
	status = run(&s, config, dir, ready_fd);
	if (s.virtual)
		rn_virtual_free(s.virtual);
	for (unsigned i = 0; i < scenario->hosts; i++)
		if (s.driver[i])
			rn_driver_free(s.driver[i]);
	free(s.driver);
	rn_kernel_free(s.kernel);
	file_status = free_system(&s);
	rn_report_file_free(s.report_file);
	return status ? status : file_status;
}
