/*
 * rnicsim exec: run one program on a host of a running `rnicsim serve`.
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "base/mem.h"
#include "commands.h"
#include "environment.h"
#include "exit_status.h"
#include "network.h"
#include "run_dir.h"
#include "virtual_tsc.h"

enum option_key { OPT_NAME = 0x200, OPT_HOST, OPT_TSC };

static const struct argp_option option_rows[] = {
	{"host", OPT_HOST, "N", 0, "host to run on, from 0 (required)", 0},
	{"name", OPT_NAME, "NAME", 0, "name that serve was given (default: default)", 0},
	{"tsc", OPT_TSC, "MODE", 0,
	 "how reads of the processor's counter are caught: auto, trap, rewrite (default: as serve was told)",
	 0},
	{0},
};

struct join {
	const char *tsc; /* NULL: as serve was told */
	const char *name;
	long host; /* -1: not given */
	char **command;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct join *join = state->input;
	enum rn_tsc_mode mode;
	char *end;

	switch (key) {
	case OPT_NAME:
		join->name = arg;
		return 0;
	case OPT_HOST:
		join->host = strtol(arg, &end, 10);
		if (end == arg || *end || join->host < 0 || join->host > 63)
			argp_error(state, "--host: %s is not a host number from 0 to 63", arg);
		return 0;
	case OPT_TSC:
		if (!rn_tsc_mode_find(arg, &mode))
			argp_error(state, "--tsc: %s is none of auto, trap, rewrite", arg);
		join->tsc = arg;
		return 0;
	case ARGP_KEY_ARGS:
		join->command = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (join->host < 0)
			argp_error(state, "--host is missing");
		if (!join->command)
			argp_error(state, "no command");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int rn_exec_command(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_rows,
		.parser = parse,
		.args_doc = "COMMAND [ARGUMENT ...]",
		.doc = "Run one program on a host of a running `rnicsim serve`. The exit status is the program's, 127 when it "
		       "is not found, or:",
		.help_filter = rn_exit_status_help,
	};
	struct join join = {.name = "default", .host = -1};
	char *dir, *socket;
	char **environment;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &join);
	if (!rn_run_dir_is_name(join.name))
		return RN_EXIT_USAGE;
	dir = rn_run_dir_find(join.name);
	socket = rn_asprintf("%s/socket", dir);
	if (access(socket, F_OK) != 0) {
		fprintf(stderr, "rnicsim: there is no `rnicsim serve` named %s (%s: %s)\n",
			join.name, socket, strerror(errno));
		free(socket);
		free(dir);
		return RN_EXIT_USAGE;
	}
	free(socket);
	if (rn_network_load(dir) != 0)
		return RN_EXIT_SIMULATOR;
	if ((unsigned)join.host >= rn_network_hosts()) {
		fprintf(stderr, "rnicsim: no host %ld: %s has hosts 0 to %u\n", join.host,
			join.name, rn_network_hosts() - 1);
		return RN_EXIT_USAGE;
	}
	if (join.tsc)
		setenv(RN_ENV_TSC, join.tsc, 1);
	environment = rn_environment_new(dir, (unsigned)join.host, STDOUT_FILENO, STDERR_FILENO);
	if (!environment)
		return RN_EXIT_SIMULATOR;
	free(dir);
	/* Addresses are in what programs print and send. */
	personality(ADDR_NO_RANDOMIZE);
	signal(SIGXFSZ, SIG_DFL);
	execvpe(join.command[0], join.command, environment);
	fprintf(stderr, "rnicsim: %s: %s\n", join.command[0], strerror(errno));
	return 127;
}
