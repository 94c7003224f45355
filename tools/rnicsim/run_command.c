/*
 * rnicsim run: its options; the network, the folder and the simulator of a run.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "commands.h"
#include "doctor.h"
#include "exit_status.h"
#include "network.h"
#include "run.h"
#include "run_dir.h"

#define DEFAULT_GRACE_S 10
#define ALL_HOSTS UINT64_MAX
#define HOSTS_MAX 64

enum option_key { OPT_RAW = 0x200, OPT_GRACE, OPT_TIMEOUT, OPT_END_WITH };

static const struct argp_option option_rows[] = {
	{"raw", OPT_RAW, NULL, 0, "pass the programs' output through as it is, without [hostN]", 1},
	{"grace", OPT_GRACE, "SECONDS", 0,
	 "after a program has failed, end the others when they still run so much later (default 10; "
	 "0: wait for them for ever)",
	 1},
	{"timeout", OPT_TIMEOUT, "SECONDS", 0, "end all programs after so long (default: never)",
	 1},
	{"end-with", OPT_END_WITH, "HOSTS", 0,
	 "the run is over when the programs of these hosts have ended: clients (all but host 0) or numbers "
	 "with commas; the others are then ended (SIGTERM), and how they end does not count. For servers that never end",
	 1},
	{0},
};

static double seconds(struct argp_state *state, const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value < 1e7))
		argp_error(state, "--%s: %s is not a number of seconds", option, text);
	return value;
}

/* "clients" or "1,3". */
static uint64_t hosts(struct argp_state *state, const char *text)
{
	const char *at = text;
	uint64_t found = 0;
	unsigned long host;
	char *end;

	if (strcmp(text, "clients") == 0)
		return ALL_HOSTS & ~UINT64_C(1);
	for (;; at = end + 1) {
		host = strtoul(at, &end, 10);
		if (end == at || *at == '-' || *at == '+' || (*end && *end != ',') ||
		    host >= HOSTS_MAX) {
			argp_error(state, "--end-with: %s is neither \"clients\" nor hosts as 1,3",
				   text);
			return 0;
		}
		found |= UINT64_C(1) << host;
		if (!*end)
			return found;
	}
}

static void take_commands(struct argp_state *state, struct rn_run *run)
{
	run->command = state->argv + state->next;
	run->commands = (unsigned)(state->argc - state->next);
	for (unsigned i = 0; i < run->commands; i++)
		if (run->command[i][0] == '-')
			argp_error(state, "%s: options come before the commands", run->command[i]);
	if (run->commands > HOSTS_MAX)
		argp_error(state, "%u commands: there are at most %d hosts", run->commands,
			   HOSTS_MAX);
}

/* Whoever names hosts names some that have a program. */
static void check_end_with(struct argp_state *state, const struct rn_run *run)
{
	const uint64_t there =
		run->commands < HOSTS_MAX ? (UINT64_C(1) << run->commands) - 1 : ALL_HOSTS;
	const bool is_list = run->end_with && strcmp(run->end_with, "clients") != 0;

	if (!(run->awaited & there))
		argp_error(state, "--end-with: %s: there is only host 0", run->end_with);
	if (is_list && (run->awaited & ~there))
		argp_error(state, "--end-with: %s: the hosts with commands are 0 to %u",
			   run->end_with, run->commands - 1);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rn_run *run = state->input;

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
	case OPT_END_WITH:
		run->end_with = arg;
		run->awaited = hosts(state, arg);
		return 0;
	case ARGP_KEY_ARGS:
		take_commands(state, run);
		check_end_with(state, run);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no command: give one for each host, e.g. 'ib_write_bw' "
				  "'ib_write_bw localhost'");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int run_in(struct rn_run *run, const struct rn_scenario *scenario,
		  const struct rn_config *config, const char *dir)
{
	int status;

	if (!rn_doctor_look(&run->options))
		return RN_EXIT_SIMULATOR;
	status = rn_supervisor_start(&run->supervisor, &run->options, scenario, config, dir,
				     run->timeout_s);

	if (!status)
		status = rn_run_programs(run, dir);
	return rn_supervisor_fini(&run->supervisor, status);
}

static int run_scenario(struct rn_run *run)
{
	struct rn_config *config;
	struct rn_scenario *scenario;
	struct rn_run_dir dir;
	int status = RN_EXIT_USAGE;
	int network = -1;

	if (!rn_supervisor_init(&run->supervisor))
		return RN_EXIT_SIMULATOR;
	run->options.hosts = run->commands;
	scenario = rn_options_load(&run->options, &config);
	if (!scenario)
		return RN_EXIT_USAGE;
	if (run->commands > scenario->hosts) {
		fprintf(stderr, "rnicsim: %u commands, but the scenario has %u hosts\n",
			run->commands, scenario->hosts);
	} else if ((network = rn_network_take(scenario->hosts)) < 0) {
		status = RN_EXIT_SIMULATOR;
	} else if (rn_run_dir_make(&dir, NULL)) {
		status = run_in(run, scenario, config, dir.path);
		rn_run_dir_remove(&dir);
	} else {
		status = RN_EXIT_SIMULATOR;
	}
	if (network >= 0)
		close(network);
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
		       "configuration run on a switch. What programs leave behind is ended with the run.",
		.children = children,
		.help_filter = rn_exit_status_help,
	};
	struct rn_run run = {.grace_s = DEFAULT_GRACE_S, .awaited = ALL_HOSTS};
	int status;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
	status = run_scenario(&run);
	rn_options_fini(&run.options);
	return status;
}
