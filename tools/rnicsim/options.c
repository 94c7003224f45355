#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "install.h"
#include "virtual_tsc.h"

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
	OPT_UNIT,
	OPT_RECORD_UNIT,
	OPT_PLUSARG,
	OPT_DIVERGENCE,
	OPT_FST,
	OPT_VIRTUAL,
	OPT_FREE_RUN,
	OPT_TSC,
};

static const struct argp_option scenario_rows[] = {
	{"config", 'c', "FILE", 0, "scenario to run (default: scenarios/two-hosts.yaml)", 0},
	{"set", OPT_SET, "KEY=VALUE", 0,
	 "set one parameter, e.g. hosts.0.nic.dma.tags=1 or hosts.*.nic.pcie.lanes=4; repeatable",
	 0},
	{"unit", OPT_UNIT, "[hostN:]UNIT=MODE", 0,
	 "what stands for a unit (doorbell, pte_cache): model (C), rtl (SystemVerilog), lockstep (both, compared "
	 "in every cycle); of one host's NIC or of all; several with commas; repeatable",
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
	{"fst", OPT_FST, "FILE", 0, "write a waveform of all fifos between blocks (gtkwave)", 0},
	{"record-unit", OPT_RECORD_UNIT, "[hostN:]UNIT=FILE", 0,
	 "record what passes at a unit's boundary (host0 when none is named), for the unit's own bench; repeatable",
	 0},
	{"plusarg", OPT_PLUSARG, "NAME=VALUE", 0, "for $value$plusargs of the RTL; repeatable", 0},
	{"divergence-fst", OPT_DIVERGENCE, "FILE", 0,
	 "where the waveform before a difference in lockstep goes (default: rnicsim-divergence.fst)",
	 0},
	{"warmup-ms", OPT_WARMUP, "MS", 0,
	 "leave the first MS milliseconds of simulated time out of the statistics", 0},
	{"permute", OPT_PERMUTE, "SEED", 0,
	 "run blocks that are due at one instant in another order (results must not change)", 0},
	{"virtual-time", OPT_VIRTUAL, NULL, 0,
	 "programs read the simulated clock; two runs give the same bytes (default)", 0},
	{"free-run", OPT_FREE_RUN, NULL, 0,
	 "programs read the wall clock, which simulated time never passes", 0},
	{"tsc", OPT_TSC, "MODE", 0,
	 "how programs' reads of the processor's counter (rdtsc) are caught: rewrite (in their code), trap (by the "
	 "processor), auto (both, the trap where it works; default)",
	 0},
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

/* Text that lives as long as the options. */
static char *keep(struct rn_options *options, char *text)
{
	options->owned =
		rn_reallocarray(options->owned, options->owneds + 1, sizeof(*options->owned));
	options->owned[options->owneds++] = text;
	return text;
}

/* The host of "hostN:..." and what follows; -1 and all of it when no host is named. */
static int named_host(struct argp_state *state, const char *option, char **text)
{
	char *colon = strchr(*text, ':');
	char *equals = strchr(*text, '=');
	char *end;
	long host;

	if (!colon || (equals && colon > equals))
		return -1;
	host = strncmp(*text, "host", 4) == 0 ? strtol(*text + 4, &end, 10) : -1;
	if (host < 0 || host > 63 || end != colon || end == *text + 4)
		argp_error(state, "--%s: %.*s is no host: host0 to host63", option,
			   (int)(colon - *text), *text);
	*text = colon + 1;
	return (int)host;
}

/* Split "UNIT=VALUE"; the value. */
static char *named_unit(struct argp_state *state, const char *option, char *text,
			enum rn_unit *unit)
{
	char *equals = strchr(text, '=');

	if (!equals || !equals[1])
		argp_error(state, "--%s: \"%s\" is not UNIT=...", option, text);
	*equals = 0;
	*unit = rn_unit_find(text);
	if (*unit == RN_UNITS)
		argp_error(state, "--%s: %s is no unit with RTL: there are %s and %s", option, text,
			   rn_unit_name(RN_UNIT_DOORBELL), rn_unit_name(RN_UNIT_PTE_CACHE));
	return equals + 1;
}

static void choose_unit(struct argp_state *state, struct rn_options *options, char *text)
{
	int host = named_host(state, "unit", &text);
	enum rn_unit unit;
	const char *mode = named_unit(state, "unit", text, &unit);
	unsigned known = 0;
	char *set;

	while (known < RN_UNIT_MODES && strcmp(rn_unit_mode_names[known], mode) != 0)
		known++;
	if (known == RN_UNIT_MODES)
		argp_error(state, "--unit: %s=%s: legal are model, rtl, lockstep",
			   rn_unit_name(unit), mode);
	if (host < 0)
		set = rn_asprintf("hosts.*.nic.unit.%s=%s", rn_unit_name(unit), mode);
	else
		set = rn_asprintf("hosts.%d.nic.unit.%s=%s", host, rn_unit_name(unit), mode);
	add_set(options, keep(options, set));
}

static void choose_units(struct argp_state *state, struct rn_options *options, const char *arg)
{
	char *rest = keep(options, rn_strdup(arg));
	char *one;

	while ((one = strsep(&rest, ",")))
		choose_unit(state, options, one);
}

static void record_unit(struct argp_state *state, struct rn_options *options, const char *arg)
{
	char *text = keep(options, rn_strdup(arg));
	struct rn_cosim_options *cosim = &options->cosim;
	int host = named_host(state, "record-unit", &text);
	struct rn_cosim_record *record;

	options->unit_record = rn_reallocarray(options->unit_record, cosim->records + 1,
					       sizeof(*options->unit_record));
	record = &options->unit_record[cosim->records++];
	record->host = host < 0 ? 0 : (unsigned)host;
	record->path = named_unit(state, "record-unit", text, &record->unit);
	cosim->record = options->unit_record;
	for (const struct rn_cosim_record *other = options->unit_record; other < record; other++)
		if (other->host == record->host && other->unit == record->unit)
			argp_error(state, "--record-unit: %s of host%u is recorded twice",
				   rn_unit_name(record->unit), record->host);
}

static void add_plusarg(struct argp_state *state, struct rn_options *options, const char *arg)
{
	struct rn_cosim_options *cosim = &options->cosim;

	if (!*arg || *arg == '=' || *arg == '+')
		argp_error(state, "--plusarg: %s is not NAME=VALUE", arg);
	options->plusarg = rn_reallocarray(options->plusarg, cosim->plusargs_count + 1,
					   sizeof(*options->plusarg));
	options->plusarg[cosim->plusargs_count++] = keep(options, rn_asprintf("+%s", arg));
	cosim->plusargs = options->plusarg;
}

/* Output number @i: one of @path, then the recordings. */
static const char *output(const struct rn_options *options, const char *const *path, unsigned paths,
			  unsigned i)
{
	return i < paths ? path[i] : options->cosim.record[i - paths].path;
}

/* No two outputs may go to one file. */
static void check_paths(struct argp_state *state, const struct rn_options *options)
{
	const char *const path[] = {options->record.pcap_path, options->report_path,
				    options->record.tlp_path,  options->record.lookup_path,
				    options->fst_path,	       options->cosim.fst_path};
	unsigned count = RN_ARRAY_LEN(path) + options->cosim.records;

	for (unsigned i = 0; i < count; i++)
		for (unsigned j = i + 1; j < count; j++) {
			const char *a = output(options, path, RN_ARRAY_LEN(path), i);
			const char *b = output(options, path, RN_ARRAY_LEN(path), j);

			if (a && b && strcmp(a, b) == 0 && strncmp(a, "/dev/", 5) != 0)
				argp_error(state, "%s: two outputs cannot go to one file", a);
		}
}

static error_t parse_unit(int key, char *arg, struct argp_state *state)
{
	struct rn_options *options = state->input;

	switch (key) {
	case OPT_UNIT:
		choose_units(state, options, arg);
		return 0;
	case OPT_RECORD_UNIT:
		record_unit(state, options, arg);
		return 0;
	case OPT_PLUSARG:
		add_plusarg(state, options, arg);
		return 0;
	case OPT_DIVERGENCE:
		options->cosim.fst_path = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
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
	case OPT_FST:
		options->fst_path = arg;
		return 0;
	case OPT_VIRTUAL:
		options->free_run = false;
		return 0;
	case OPT_FREE_RUN:
		options->free_run = true;
		return 0;
	case OPT_TSC:
		if (!rn_tsc_mode_find(arg, &options->tsc_mode))
			argp_error(state, "--tsc: %s is none of auto, trap, rewrite", arg);
		return 0;
	case OPT_QUIET:
		options->quiet = true;
		return 0;
	case ARGP_KEY_END:
		check_paths(state, options);
		return 0;
	default:
		return parse_unit(key, arg, state);
	}
}

const struct argp rn_options_scenario_argp = {.options = scenario_rows, .parser = parse};
const struct argp rn_options_record_argp = {.options = record_rows, .parser = parse};

void rn_options_fini(struct rn_options *options)
{
	free(options->set);
	for (unsigned i = 0; i < options->owneds; i++)
		free(options->owned[i]);
	free(options->owned);
	free(options->unit_record);
	free(options->plusarg);
	free(options->lacking);
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

/* What units can be had depends on the build, and who can be recorded on the number of hosts. */
static void check_units(struct rn_diag *diag, const struct rn_scenario *scenario,
			const struct rn_options *options)
{
	char *problem = rn_cosim_check(scenario);

	if (problem)
		rn_diag_add(diag, NULL, 0, 0, "%s", problem);
	free(problem);
	for (unsigned i = 0; i < options->cosim.records; i++)
		if (options->cosim.record[i].host >= scenario->hosts)
			rn_diag_add(diag, NULL, 0, 0, "--record-unit: host%u: there are %u hosts",
				    options->cosim.record[i].host, scenario->hosts);
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
	if (!rn_diag_count(diag))
		check_units(diag, scenario, options);
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
