/*
 * rnicsim serve: the simulator alone; programs join with `rnicsim exec` from other terminals.
 */
#include <argp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "child.h"
#include "commands.h"
#include "network.h"
#include "run_dir.h"

enum option_key { OPT_NAME = 0x200 };

static const struct argp_option option_rows[] = {
	{"name", OPT_NAME, "NAME", 0, "name by which `rnicsim exec` finds it (default: default)",
	 1},
	{0},
};

struct serve {
	struct rn_options options;
	const char *name;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct serve *serve = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &serve->options;
		state->child_inputs[1] = &serve->options;
		return 0;
	case OPT_NAME:
		serve->name = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "serve takes no command: use `rnicsim exec --host N COMMAND`");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Until a signal comes or the simulator dies. */
static int wait_for_end(struct rn_child *child)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = child->pidfd, .events = POLLIN}};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[0].fd = signalfd(-1, &set, SFD_CLOEXEC);
	while (poll(fds, 2, -1) < 0)
		;
	if (fds[1].revents) {
		rn_child_reap(child);
		if (child->status == RN_EXIT_DIVERGED)
			return RN_EXIT_DIVERGED;
		fprintf(stderr, "rnicsim: the simulator has died with status %d\n", child->status);
		return RN_EXIT_SIMULATOR;
	}
	rn_child_stop(child);
	return child->status;
}

static int serve_scenario(struct serve *serve)
{
	struct rn_config *config;
	struct rn_scenario *scenario = rn_options_load(&serve->options, &config);
	struct rn_child child;
	int status = RN_EXIT_USAGE;
	int network = -1;
	char *dir;

	if (!scenario)
		return RN_EXIT_USAGE;
	dir = rn_run_dir_make(serve->name);
	if (dir)
		network = rn_network_take(scenario->hosts);
	if (network >= 0 && rn_network_save(dir) == 0) {
		status = RN_EXIT_SIMULATOR;
		if (rn_child_start(&child, &serve->options, scenario, config, dir)) {
			printf("rnicsim: serving %u hosts as \"%s\"; join with: rnicsim exec%s%s "
			       "--host 0 COMMAND; Ctrl-C ends and reports\n",
			       scenario->hosts, serve->name,
			       strcmp(serve->name, "default") == 0 ? "" : " --name ",
			       strcmp(serve->name, "default") == 0 ? "" : serve->name);
			fflush(stdout);
			status = wait_for_end(&child);
		} else if (child.status) {
			status = child.status;
		}
	}
	if (network >= 0)
		close(network);
	if (dir)
		rn_run_dir_remove(dir);
	free(dir);
	rn_scenario_free(scenario);
	rn_config_free(config);
	return status;
}

int rn_serve_command(int argc, char **argv)
{
	static const struct argp_child children[] = {{&rn_options_scenario_argp, 0, NULL, 0},
						     {&rn_options_record_argp, 0, NULL, 0},
						     {0}};
	static const struct argp argp = {
		.options = option_rows,
		.parser = parse,
		.doc = "Simulate until Ctrl-C; programs join from other terminals with `rnicsim exec`.",
		.children = children,
	};
	struct serve serve = {.name = "default", .options.is_open = true};
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &serve);
	status = serve_scenario(&serve);
	rn_options_fini(&serve.options);
	return status;
}
