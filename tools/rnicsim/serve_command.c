/*
 * rnicsim serve: the simulator alone; programs join with `rnicsim exec` from other terminals.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "doctor.h"
#include "exit_status.h"
#include "network.h"
#include "run_dir.h"
#include "supervise.h"

enum option_key { OPT_NAME = 0x200 };

static const struct argp_option option_rows[] = {
	{"name", OPT_NAME, "NAME", 0, "name by which `rnicsim exec` finds it (default: default)",
	 1},
	{0},
};

struct serve {
	struct rn_options options;
	const char *name;
	struct rn_supervisor supervisor;
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
static int wait_for_end(struct rn_supervisor *s)
{
	struct pollfd fds[RN_SUPERVISOR_FDS];

	while (!s->interrupted && !rn_child_is_gone(&s->child))
		rn_supervisor_poll(s, fds, RN_SUPERVISOR_FDS, -1);
	if (rn_child_is_gone(&s->child)) {
		if (s->child.status == RN_EXIT_DIVERGED)
			return RN_EXIT_DIVERGED;
		rn_outlet_say(s->outlet[1], "rnicsim: the simulator has died with status %d\n",
			      s->child.status);
		return RN_EXIT_SIMULATOR;
	}
	rn_supervisor_stop(s);
	/* It is meant to be ended by a signal. */
	return s->gave_up ? RN_EXIT_SIMULATOR : s->child.status;
}

static void say_so(struct rn_supervisor *s, const struct serve *serve, unsigned hosts)
{
	const bool has_name = strcmp(serve->name, "default") != 0;

	rn_outlet_say(s->outlet[0],
		      "rnicsim: serving %u hosts as \"%s\"; join with: rnicsim exec%s%s "
		      "--host 0 COMMAND; Ctrl-C ends and reports\n",
		      hosts, serve->name, has_name ? " --name " : "", has_name ? serve->name : "");
}

static int serve_in(struct serve *serve, const struct rn_scenario *scenario,
		    const struct rn_config *config, const char *dir)
{
	struct rn_supervisor *s = &serve->supervisor;
	int status;

	if (!rn_doctor_look(&serve->options))
		return RN_EXIT_SIMULATOR;
	status = rn_supervisor_start(s, &serve->options, scenario, config, dir, 0);

	if (!status) {
		say_so(s, serve, scenario->hosts);
		status = wait_for_end(s);
	}
	return rn_supervisor_fini(s, status);
}

static int serve_scenario(struct serve *serve)
{
	struct rn_config *config;
	struct rn_scenario *scenario = rn_options_load(&serve->options, &config);
	struct rn_run_dir dir;
	int status = RN_EXIT_USAGE;
	int network = -1;

	if (!scenario)
		return RN_EXIT_USAGE;
	if (rn_supervisor_init(&serve->supervisor) && rn_run_dir_make(&dir, serve->name)) {
		status = RN_EXIT_SIMULATOR;
		network = rn_network_take(scenario->hosts);
		if (network >= 0 && rn_network_save(dir.path) == 0)
			status = serve_in(serve, scenario, config, dir.path);
		rn_run_dir_remove(&dir);
	}
	if (network >= 0)
		close(network);
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
		.help_filter = rn_exit_status_help,
	};
	struct serve serve = {.name = "default", .options.is_open = true};
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &serve);
	status = serve_scenario(&serve);
	rn_options_fini(&serve.options);
	return status;
}
