#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "install.h"

enum option_key {
	OPT_SET = 0x100,
	OPT_PCAP,
	OPT_SNAP,
	OPT_REPORT,
	OPT_TLP_LOG,
	OPT_LOOKUP_LOG,
	OPT_TIMELINE,
	OPT_WARMUP,
	OPT_PERMUTE,
	OPT_QUIET,
	OPT_VIRTUAL,
	OPT_FREE_RUN,
};

static const struct argp_option scenario_rows[] = {
	{"config", 'c', "FILE", 0, "scenario to run (default: scenarios/two-hosts.yaml)", 0},
	{"set", OPT_SET, "KEY=VALUE", 0,
	 "set one parameter, e.g. hosts.0.nic.dma.tags=1 or hosts.*.nic.pcie.lanes=4; repeatable",
	 0},
	{0},
};

static const struct argp_option record_rows[] = {
	{"pcap", OPT_PCAP, "FILE", 0, "capture all ports (nanosecond pcap, simulated time)", 0},
	{"snap", OPT_SNAP, "BYTES", 0, "bytes kept of each captured frame; 0: all (default)", 0},
	{"report", OPT_REPORT, "FILE", 0, "write all results as JSON", 0},
	{"timeline", OPT_TIMELINE, NULL, 0, "stamp the stages of every WQE; they go in the report",
	 0},
	{"tlp-log", OPT_TLP_LOG, "FILE", 0, "log every PCIe TLP", 0},
	{"lookup-log", OPT_LOOKUP_LOG, "FILE", 0, "log every lookup of context and PTE caches", 0},
	{"warmup-ms", OPT_WARMUP, "MS", 0,
	 "leave the first MS milliseconds of simulated time out of the statistics", 0},
	{"permute", OPT_PERMUTE, "SEED", 0,
	 "run blocks that are due at one instant in another order (results must not change)", 0},
	{"virtual-time", OPT_VIRTUAL, NULL, 0,
	 "programs read the simulated clock; two runs give the same bytes (default)", 0},
	{"free-run", OPT_FREE_RUN, NULL, 0,
	 "programs read the wall clock, which simulated time never passes", 0},
	{"quiet", OPT_QUIET, NULL, 0, "print no summary", 0},
	{0},
};

/* A number of @text in @least .. @most, or an error that ends the program. */
static double number(struct argp_state *state, const char *option, const char *text, double least,
		     double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= least && value <= most))
		argp_error(state, "--%s: %s is not a number from %.0f to %.0f", option, text, least,
			   most);
	return value;
}

static void add_set(struct rn_options *options, const char *assignment)
{
	options->set = rn_reallocarray(options->set, options->sets + 2, sizeof(*options->set));
	options->set[options->sets++] = assignment;
	options->set[options->sets] = NULL;
}

/* No two outputs may go to one file. */
static void check_paths(struct argp_state *state, const struct rn_options *options)
{
	const char *const path[] = {options->record.pcap_path, options->report_path,
				    options->record.tlp_path, options->record.lookup_path};

	for (size_t i = 0; i < RN_ARRAY_LEN(path); i++)
		for (size_t j = i + 1; j < RN_ARRAY_LEN(path); j++)
			if (path[i] && path[j] && strcmp(path[i], path[j]) == 0 &&
			    strncmp(path[i], "/dev/", 5) != 0)
				argp_error(state, "%s: two outputs cannot go to one file", path[i]);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rn_options *options = state->input;

	switch (key) {
	case 'c':
		options->config_path = arg;
		return 0;
	case OPT_SET:
		if (!strchr(arg, '=') || *arg == '=')
			argp_error(state, "--set: %s is not KEY=VALUE", arg);
		add_set(options, arg);
		return 0;
	case OPT_PCAP:
		options->record.pcap_path = arg;
		return 0;
	case OPT_SNAP:
		options->record.pcap_snap = (uint32_t)number(state, "snap", arg, 0, 65535);
		return 0;
	case OPT_REPORT:
		options->report_path = arg;
		return 0;
	case OPT_TIMELINE:
		options->wqe_timeline = true;
		options->record.stamps = true;
		return 0;
	case OPT_TLP_LOG:
		options->record.tlp_path = arg;
		return 0;
	case OPT_LOOKUP_LOG:
		options->record.lookup_path = arg;
		return 0;
	case OPT_WARMUP:
		options->warmup_ms = number(state, "warmup-ms", arg, 0, 1e9);
		return 0;
	case OPT_PERMUTE:
		options->record.permute_seed = (uint64_t)number(state, "permute", arg, 0, 1e15);
		return 0;
	case OPT_VIRTUAL:
		options->free_run = false;
		return 0;
	case OPT_FREE_RUN:
		options->free_run = true;
		return 0;
	case OPT_QUIET:
		options->quiet = true;
		return 0;
	case ARGP_KEY_END:
		check_paths(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rn_options_scenario_argp = {.options = scenario_rows, .parser = parse};
const struct argp rn_options_record_argp = {.options = record_rows, .parser = parse};

void rn_options_fini(struct rn_options *options)
{
	free(options->set);
}

/* Without a configuration and with a number of hosts other than the default's: a switch. */
static void set_hosts(struct rn_config *config, const struct rn_options *options)
{
	char *text;

	if (options->config_path || !options->hosts || options->hosts == 2)
		return;
	rn_config_set(config, "fabric.switched=true");
	text = rn_asprintf(
		"hosts=[{nic: nic/generic-100g.yaml, host: host/generic.yaml, count: %u}]",
		options->hosts);
	rn_config_set(config, text);
	free(text);
}

struct rn_scenario *rn_options_load(const struct rn_options *options, struct rn_config **config)
{
	const char *path = options->config_path ? options->config_path : "scenarios/two-hosts.yaml";
	struct rn_diag *diag = rn_diag_new();
	struct rn_scenario *scenario = NULL;
	const char *dir = rn_install_config_dir();

	*config = rn_config_new(diag);
	if (dir)
		rn_config_add_search_dir(*config, dir);
	if (rn_config_load_file(*config, path)) {
		set_hosts(*config, options);
		for (unsigned i = 0; i < options->sets; i++)
			rn_config_set(*config, options->set[i]);
		scenario = rn_scenario_read(*config, rn_config_compose(*config));
		rn_config_finish(*config);
	}
	if (rn_diag_count(diag)) {
		rn_diag_print(diag, stderr);
		rn_scenario_free(scenario);
		rn_config_free(*config);
		*config = NULL;
		scenario = NULL;
	}
	rn_diag_free(diag);
	return scenario;
}
