/*
 * The JSON report. Two parts: "result" says what the simulated hardware did, "run" what this run of the simulator was.
 * docs/results.md explains every field.
 */
#include <inttypes.h>
#include <jansson.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report_file.h"
#include "report_nic.h"
#include "report_units.h"
#include "report_wqes.h"

#define PS_PER_S 1e12
#define DUMP_FLAGS (JSON_INDENT(1) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9))

static double per(double amount, double of)
{
	return of > 0 ? amount / of : 0;
}

/* The canonical YAML as an object; as text where it does not convert. */
static json_t *configuration(const struct rn_config *config)
{
	char *yaml = rn_config_canonical(config);
	struct fy_document *document = fy_document_build_from_string(NULL, yaml, FY_NT);
	char *text =
		document ? fy_emit_document_to_string(document, FYECF_MODE_JSON_ONELINE) : NULL;
	json_t *object = text ? json_loads(text, 0, NULL) : NULL;

	if (!object)
		object = json_string(yaml);
	free(text);
	fy_document_destroy(document);
	free(yaml);
	return object;
}

static void put_configuration(json_t *result, const struct rn_config *config)
{
	char hash[20];

	if (!config)
		return;
	snprintf(hash, sizeof(hash), "%016" PRIx64, rn_config_hash(config));
	json_object_set_new(result, "configuration_hash", json_string(hash));
	json_object_set_new(result, "configuration", configuration(config));
}

static json_t *limiter(const struct rn_limiter *found)
{
	return json_pack("{s:s, s:s, s:s, s:f}", "name", found->name, "where", found->where, "kind",
			 rn_limit_kind_name(found->kind), "share", found->share);
}

static json_t *resources(const struct rn_limits *limits)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < limits->count; i++) {
		const struct rn_limit *row = &limits->limit[i];

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:f}", "name", row->name, "where",
						row->where, "kind", rn_limit_kind_name(row->kind),
						"share", row->share));
	}
	return rows;
}

/* Names of mlx5 that are made of other counters. */
static void put_derived(json_t *counters, const struct rn_report_nic *nic)
{
	uint64_t sent = rn_report_nic_bytes(nic, true);
	uint64_t received = rn_report_nic_bytes(nic, false);
	json_t *tx = json_object_get(counters, "tx_packets_phy");
	json_t *rx = json_object_get(counters, "rx_packets_phy");

	if (!tx || !rx)
		return;
	json_object_set(counters, "tx_packets", tx);
	json_object_set_new(counters, "tx_bytes", rn_report_integer(sent));
	json_object_set(counters, "rx_packets", rx);
	json_object_set_new(counters, "rx_bytes", rn_report_integer(received));
	json_object_set(counters, "port_xmit_packets", tx);
	json_object_set_new(counters, "port_xmit_data", rn_report_integer(sent / 4));
	json_object_set(counters, "port_rcv_packets", rx);
	json_object_set_new(counters, "port_rcv_data", rn_report_integer(received / 4));
}

static json_t *activity(const struct rn_report_nic *nic)
{
	return json_pack("{s:o, s:o, s:o}", "first_frame_ps", rn_report_integer(nic->first_ps),
			 "last_frame_ps", rn_report_integer(nic->last_ps), "active_ps",
			 rn_report_integer(nic->active_ps));
}

static json_t *nic_json(const struct rn_report_nic *nic)
{
	json_t *object = json_object();
	json_t *counters = rn_report_flat_counters(nic->stats, nic->name);

	put_derived(counters, nic);
	json_object_set_new(object, "name", json_string(strchr(nic->name, '.') + 1));
	json_object_set_new(object, "activity", activity(nic));
	json_object_set_new(object, "limiter", limiter(&nic->limiter));
	json_object_set_new(object, "resources", resources(&nic->limits));
	json_object_set_new(object, "counters", counters);
	json_object_set_new(object, "caches", rn_report_caches(nic->stats, nic->name));
	json_object_set_new(object, "blocks",
			    rn_report_units(nic->stats, nic->name, nic->active_ps));
	json_object_set_new(object, "fifos",
			    rn_report_fifos(nic->stats, nic->name, nic->active_ps));
	return object;
}

/* What programs have left behind with the driver. */
static json_t *live_objects(const struct rn_driver *driver)
{
	struct rn_driver_usage usage;

	rn_driver_get_usage(driver, &usage);
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "clients",
			 (json_int_t)usage.clients, "pds", (json_int_t)usage.pds, "mrs",
			 (json_int_t)usage.mrs, "cqs", (json_int_t)usage.cqs, "qps",
			 (json_int_t)usage.qps, "channels", (json_int_t)usage.channels,
			 "uar_groups", (json_int_t)usage.uar_groups, "mpts", (json_int_t)usage.mpts,
			 "mtts", rn_report_integer(usage.mtts), "frames",
			 rn_report_integer(usage.frames), "pinned_pages",
			 rn_report_integer(usage.pinned_pages));
}

/* Name, NIC, and the units beside the NIC: "root_complex" and so on. */
static json_t *host_json(const struct rn_outcome *outcome, const struct rn_report_nic *nic)
{
	json_t *host = json_object();
	json_t *units = rn_report_units(nic->stats, nic->host_name, nic->active_ps);

	json_object_set_new(host, "name", json_string(nic->host_name));
	json_object_set_new(host, "nic", nic_json(nic));
	json_object_update(host, units);
	json_decref(units);
	if (outcome->driver && outcome->driver[nic->host])
		json_object_set_new(host, "live", live_objects(outcome->driver[nic->host]));
	return host;
}

static json_t *hosts(const struct rn_outcome *outcome, const struct rn_report_nic *nics)
{
	json_t *array = json_array();
	unsigned count = rn_system_scenario(outcome->system)->hosts;

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(array, host_json(outcome, &nics[i]));
	return array;
}

static json_t *measured(const struct rn_outcome *outcome, const struct rn_report_nic *nics)
{
	unsigned count = rn_system_scenario(outcome->system)->hosts;
	uint64_t first_ps = UINT64_MAX, last_ps = 0, active_ps = 0;

	for (unsigned i = 0; i < count; i++) {
		if (!nics[i].active_ps)
			continue;
		first_ps = nics[i].first_ps < first_ps ? nics[i].first_ps : first_ps;
		last_ps = nics[i].last_ps > last_ps ? nics[i].last_ps : last_ps;
		active_ps = nics[i].active_ps > active_ps ? nics[i].active_ps : active_ps;
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "from_ps",
			 rn_report_integer(outcome->measured_from_ps), "to_ps",
			 rn_report_integer(outcome->end_ps), "simulated_ps",
			 rn_report_integer(outcome->end_ps - outcome->measured_from_ps),
			 "first_frame_ps", rn_report_integer(last_ps ? first_ps : 0),
			 "last_frame_ps", rn_report_integer(last_ps), "active_ps",
			 rn_report_integer(active_ps));
}

static json_t *any_or_number(uint32_t value)
{
	return value == RN_FAULT_ANY_VALUE ? json_string("any") : rn_report_integer(value);
}

static json_t *faults(const struct rn_outcome *outcome)
{
	const struct rn_faults *rules = rn_fabric_faults(rn_system_fabric(outcome->system));
	const struct rn_fault *rule;
	json_t *array = json_array();

	for (unsigned i = 0; (rule = rn_faults_at(rules, i)); i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
						"action", rn_fault_action_name(rule->action),
						"class", rn_fault_class_name(rule->class), "host",
						any_or_number(rule->host), "connection",
						any_or_number(rule->connection), "psn_offset",
						any_or_number(rule->psn_offset), "transmission",
						rn_report_integer(rule->transmission), "delay_ps",
						rn_report_integer(rule->delay_ps), "seen",
						rn_report_integer(rule->seen), "done",
						rn_report_integer(rule->done)));
	return array;
}

/* The whole run's limiter, with the host whose NIC it is in. */
static json_t *run_limiter(const struct rn_report_nic *nics, unsigned count)
{
	struct rn_limiter found = rn_report_limiter(nics, count);
	json_t *object = limiter(&found);

	if (found.kind == RN_LIMIT_SERIAL || found.kind == RN_LIMIT_WAIT)
		json_object_set_new(object, "host", json_string(nics[found.idx].host_name));
	return object;
}

static json_t *result_json(const struct rn_outcome *outcome, const struct rn_report_nic *nics)
{
	unsigned count = rn_system_scenario(outcome->system)->hosts;
	json_t *result = json_object();

	put_configuration(result, outcome->config);
	json_object_set_new(result, "measured", measured(outcome, nics));
	json_object_set_new(result, "limiter", run_limiter(nics, count));
	json_object_set_new(result, "hosts", hosts(outcome, nics));
	json_object_set_new(result, "fabric",
			    rn_report_units(rn_system_stats(outcome->system), "fabric", 0));
	json_object_set_new(result, "faults", faults(outcome));
	return result;
}

/* {path, ...} of a file the run wrote, null when it wrote none. */
static json_t *file_json(const char *path)
{
	return path ? json_pack("{s:s}", "path", path) : json_null();
}

static json_t *files(const struct rn_outcome *outcome)
{
	const struct rn_options *options = outcome->options;
	json_t *object = json_object();
	json_t *capture = file_json(options->record.pcap_path);

	if (options->record.pcap_path) {
		json_object_set_new(capture, "frames",
				    rn_report_integer(rn_system_captured(outcome->system)));
		json_object_set_new(capture, "snap_bytes",
				    rn_report_integer(options->record.pcap_snap));
	}
	json_object_set_new(object, "capture", capture);
	json_object_set_new(object, "fst", file_json(options->fst_path));
	json_object_set_new(object, "report", file_json(options->report_path));
	json_object_set_new(object, "tlp_log", file_json(options->record.tlp_path));
	json_object_set_new(object, "lookup_log", file_json(options->record.lookup_path));
	return object;
}

static double cpu_s(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static json_t *run_json(const struct rn_outcome *outcome, const struct rn_report_nic *nics)
{
	unsigned count = rn_system_scenario(outcome->system)->hosts;
	double simulated_s = (double)outcome->end_ps / PS_PER_S;
	double packets = (double)rn_report_packets(nics, count);
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return json_pack("{s:s, s:b, s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:o, s:o}",
			 "version", RN_VERSION, "free_run", !outcome->virtual_time, "pid",
			 (int)getpid(), "wall_s", outcome->wall_s, "simulated_s", simulated_s,
			 "slow_down", per(outcome->wall_s, simulated_s), "largest_lag_s",
			 outcome->largest_lag_s, "cpu_s", cpu_s(&usage), "peak_memory_bytes",
			 rn_report_integer((uint64_t)usage.ru_maxrss * 1024), "wakes",
			 rn_report_integer(outcome->wakes), "wakes_per_s",
			 per((double)outcome->wakes, outcome->wall_s), "packets_per_s",
			 per(packets, outcome->wall_s), "permute_seed",
			 rn_report_integer(outcome->options->record.permute_seed), "files",
			 files(outcome));
}

static void write_member(FILE *out, const char *gap, const char *key, const json_t *value)
{
	fprintf(out, "%s\"%s\": ", gap, key);
	json_dumpf(value, out, DUMP_FLAGS);
}

/* The timeline may be long: it is written as it is found, not built. */
static void write_timeline(FILE *out, const struct rn_outcome *outcome)
{
	struct rn_report_wqes wqes;
	json_t *stages;

	rn_report_wqes_init(&wqes, rn_system_stamps(outcome->system), outcome->measured_from_ps);
	stages = rn_report_wqes_statistics(&wqes);
	fprintf(out, ",\n\"stamps\": {\"recorded\": %zu, \"lost\": %" PRIu64 "}", wqes.count,
		wqes.lost);
	write_member(out, ",\n", "wqe_stages", stages);
	fputs(",\n\"wqes\": ", out);
	rn_report_wqes_write(&wqes, out);
	json_decref(stages);
}

static json_t *unseen_json(uint32_t unseen)
{
	json_t *names = json_array();

	for (unsigned n = 0; rn_tsc_unseen_name(n); n++)
		if (unseen & 1u << n)
			json_array_append_new(names, json_string(rn_tsc_unseen_name(n)));
	return names;
}

/* How reads of the processor's counter were caught in one process. */
static json_t *process_json(const struct rn_tsc_record *record)
{
	return json_pack("{s:I, s:I, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:o, s:b}", "host",
			 (json_int_t)record->host, "process", (json_int_t)record->ordinal,
			 "rewrite", (record->force & RN_TSC_REWRITE) != 0, "trap",
			 (record->force & RN_TSC_TRAP) != 0, "trap_works",
			 (record->force & RN_TSC_TRAP_WORKS) != 0, "fixed_addresses",
			 (record->force & RN_TSC_FIXED_ADDRESSES) != 0, "jumps",
			 (json_int_t)record->jumps, "ud2", (json_int_t)record->illegals, "traps",
			 (json_int_t)record->traps, "not_rewritten", unseen_json(record->unseen),
			 "may_be_unseen", rn_tsc_may_be_unseen(record));
}

static json_t *processes_json(const struct rn_tsc_roll *roll)
{
	json_t *processes = json_array();

	for (unsigned i = 0; roll && i < roll->count; i++)
		json_array_append_new(processes, process_json(&roll->record[i]));
	return processes;
}

/* What may have kept a run from being repeatable. */
static json_t *virtual_json(const struct rn_outcome *outcome)
{
	const struct rn_virtual_counts *counts = outcome->virtual_time;
	const char *lacking = outcome->options->lacking;

	return json_pack("{s:b, s:b, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
			 "deterministic", rn_virtual_is_repeatable(counts) && !lacking,
			 "address_randomisation", counts->random_addresses != 0, "machine_lacks",
			 lacking, "grants", (json_int_t)counts->grants, "outside",
			 (json_int_t)counts->outside, "unproved", (json_int_t)counts->unproved,
			 "outside_looks", (json_int_t)counts->outside_looks, "strangers",
			 (json_int_t)counts->strangers, "late", (json_int_t)counts->late,
			 "interrupted", (json_int_t)counts->interrupted, "unseen_reads",
			 (json_int_t)counts->unseen_reads, "random_addresses",
			 (json_int_t)counts->random_addresses, "counter",
			 processes_json(counts->tsc));
}

/* Which units were not, or not only, C blocks. */
static json_t *units_json(const struct rn_cosim *cosim)
{
	struct rn_cosim_unit_info info;
	json_t *units = json_object();

	for (unsigned i = 0; cosim && rn_cosim_unit_at(cosim, i, &info); i++)
		json_object_set_new(
			units, info.name,
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "mode",
				  rn_unit_mode_names[info.mode], "geometry", info.geometry, "rtl",
				  info.top, "rtl_is", info.is_own ? "own" : "rnicsim's",
				  "rtl_sources", info.digest, "model_ticks",
				  rn_report_integer(info.model_ticks), "rtl_evaluations",
				  rn_report_integer(info.evaluations)));
	return units;
}

static void write_report(FILE *out, void *arg)
{
	const struct rn_outcome *outcome = arg;
	struct rn_report_nic *nics = rn_report_nics(outcome);
	json_t *result = result_json(outcome, nics);
	json_t *run = run_json(outcome, nics);
	const char *gap = "\n";
	const char *key;
	json_t *value;

	json_object_set_new(run, "units", units_json(outcome->cosim));
	json_object_set_new(run, "ticks", rn_report_ticks(rn_system_stats(outcome->system)));
	if (outcome->virtual_time)
		json_object_set_new(run, "virtual_time", virtual_json(outcome));
	fputs("{\"result\": {", out);
	json_object_foreach(result, key, value)
	{
		write_member(out, gap, key, value);
		gap = ",\n";
	}
	if (outcome->options->wqe_timeline)
		write_timeline(out, outcome);
	write_member(out, "},\n", "run", run);
	fputs("}\n", out);
	json_decref(result);
	json_decref(run);
	free(nics);
}

bool rn_report_write_json(struct rn_report_file *file, const struct rn_outcome *outcome)
{
	struct rn_outcome copy = *outcome;

	return rn_report_file_write(file, write_report, &copy);
}
