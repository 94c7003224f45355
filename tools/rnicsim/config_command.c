/*
 * rnicsim config check|show: what a configuration says, without running it.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "exit_status.h"
#include "options.h"

struct look {
	struct rn_options options;
	const char *verb;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct look *look = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &look->options;
		return 0;
	case ARGP_KEY_ARG:
		if (!look->verb && (strcmp(arg, "check") == 0 || strcmp(arg, "show") == 0))
			look->verb = arg;
		else if (look->verb && !look->options.config_path)
			look->options.config_path = arg;
		else
			argp_error(state, "%s: use `config check` or `config show`, then a file",
				   arg);
		return 0;
	case ARGP_KEY_END:
		if (!look->verb)
			argp_error(state, "use `config check` or `config show`");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int rn_config_command(int argc, char **argv)
{
	static const struct argp_child children[] = {{&rn_options_scenario_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "check|show [FILE]",
		.doc = "check: read a configuration and report every mistake. show: also print every "
		       "parameter with its value, range, unit and meaning.",
		.children = children,
	};
	struct look look = {0};
	struct rn_config *config;
	struct rn_scenario *scenario;

	argp_parse(&argp, argc, argv, 0, NULL, &look);
	scenario = rn_options_load(&look.options, &config);
	rn_options_fini(&look.options);
	if (!scenario)
		return RN_EXIT_USAGE;
	if (strcmp(look.verb, "show") == 0)
		rn_config_print(config, stdout);
	else
		printf("%s: correct, %u hosts, hash %016" PRIx64 "\n",
		       look.options.config_path ? look.options.config_path : "default scenario",
		       scenario->hosts, rn_config_hash(config));
	rn_scenario_free(scenario);
	rn_config_free(config);
	return 0;
}
