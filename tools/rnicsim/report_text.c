/*
 * The summary for people: a column for each host, rows that say nothing left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "report_nic.h"
#include "report_units.h"

#define PS_PER_S 1e12
#define LABEL_WIDTH 22
#define CELL_WIDTH 28
#define HOSTS_A_TABLE 2
#define HOSTS_SHOWN 8

struct cell {
	char text[64];
	bool is_empty; /* nothing to say */
};

struct row {
	const char *label;
	void (*fill)(struct cell *cell, const struct rn_report_nic *nic, const struct row *row);
	const char *unit; /* NULL: any */
	const char *counter;
};

/* @value with three digits or more and an SI prefix: "97.3 G" and the unit. */
static void scale(char *text, size_t size, double value, const char *unit)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
	unsigned prefix = 0;

	while (value >= 1000 && prefix + 1 < RN_ARRAY_LEN(prefixes)) {
		value /= 1000;
		prefix++;
	}
	snprintf(text, size, "%.*f %s%s", !prefix && value == (uint64_t)value ? 0 : 2, value,
		 prefixes[prefix], unit);
}

static void fill_count(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	uint64_t value = rn_report_nic_value(nic, row->unit, row->counter);

	snprintf(cell->text, sizeof(cell->text), "%" PRIu64, value);
	cell->is_empty = !value;
}

static void fill_flow(struct cell *cell, const struct rn_report_nic *nic, bool is_sent)
{
	uint64_t packets =
		rn_report_nic_value(nic, "mac", is_sent ? "tx_packets_phy" : "rx_packets_phy");
	double bytes = (double)rn_report_nic_bytes(nic, is_sent);
	char amount[24];

	scale(amount, sizeof(amount), bytes, "B");
	snprintf(cell->text, sizeof(cell->text), "%" PRIu64 " pkt, %s", packets, amount);
}

static void fill_sent(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	(void)row;
	fill_flow(cell, nic, true);
}

static void fill_received(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	(void)row;
	fill_flow(cell, nic, false);
}

/* Mean over the active time. */
static void fill_rate(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	double s = (double)nic->active_ps / PS_PER_S;
	double sent = (double)rn_report_nic_bytes(nic, true) * 8;
	double received = (double)rn_report_nic_bytes(nic, false) * 8;
	char out[24], in[24];

	(void)row;
	cell->is_empty = !nic->active_ps;
	scale(out, sizeof(out), cell->is_empty ? 0 : sent / s, "b/s");
	scale(in, sizeof(in), cell->is_empty ? 0 : received / s, "b/s");
	snprintf(cell->text, sizeof(cell->text), "%s / %s", out, in);
}

static void fill_active(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	(void)row;
	cell->is_empty = !nic->active_ps;
	snprintf(cell->text, sizeof(cell->text), "%.3f us", (double)nic->active_ps / 1e6);
}

/* row->counter is the cache's name: its counters are <name>_hits and so on. */
static void fill_hits(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	static const char *const endings[] = {"hits", "misses", "merges"};
	uint64_t value[3];

	for (unsigned i = 0; i < RN_ARRAY_LEN(endings); i++) {
		char counter[48];

		snprintf(counter, sizeof(counter), "%s_%s", row->counter, endings[i]);
		value[i] = rn_report_nic_value(nic, row->unit, counter);
	}
	cell->is_empty = !(value[0] + value[1] + value[2]);
	snprintf(cell->text, sizeof(cell->text), "%.2f %% of %" PRIu64,
		 100 * rn_report_hit_rate(value[0], value[1], value[2]),
		 value[0] + value[1] + value[2]);
}

static const struct rn_limit *busiest(const struct rn_limits *limits)
{
	const struct rn_limit *best = NULL;

	for (unsigned i = 0; i < limits->count; i++)
		if (limits->limit[i].kind == RN_LIMIT_SERIAL &&
		    (!best || limits->limit[i].share > best->share))
			best = &limits->limit[i];
	return best;
}

static void fill_busiest(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	const struct rn_limit *found = busiest(&nic->limits);

	(void)row;
	cell->is_empty = !found;
	if (found)
		snprintf(cell->text, sizeof(cell->text), "%s %.1f %%", found->name,
			 100 * found->share);
}

static void fill_limiter(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	(void)row;
	snprintf(cell->text, sizeof(cell->text), "%s", nic->limiter.name);
}

static void fill_faults(struct cell *cell, const struct rn_report_nic *nic, const struct row *row)
{
	char instance[32];
	uint64_t value;

	snprintf(instance, sizeof(instance), "fabric.port%u", nic->host);
	value = rn_stats_value(nic->stats, instance, row->counter);
	cell->is_empty = !value || value == UINT64_MAX;
	snprintf(cell->text, sizeof(cell->text), "%" PRIu64, cell->is_empty ? 0 : value);
}

static const struct row rows[] = {
	{"sent", fill_sent, NULL, NULL},
	{"received", fill_received, NULL, NULL},
	{"mean rate out / in", fill_rate, NULL, NULL},
	{"active for", fill_active, NULL, NULL},
	{"completions (CQEs)", fill_count, "cqe", "cqes"},
	{"  with an error", fill_count, "cqe", "error_cqes"},
	{"retransmitted", fill_count, NULL, "tx_retransmitted_packets"},
	{"ACK timeouts", fill_count, NULL, "local_ack_timeout_err"},
	{"sequence NAKs taken", fill_count, NULL, "packet_seq_err"},
	{"implied NAKs", fill_count, NULL, "implied_nak_seq_err"},
	{"RNR NAKs taken", fill_count, NULL, "rnr_nak_retry_err"},
	{"out of sequence", fill_count, NULL, "out_of_sequence"},
	{"duplicate requests", fill_count, NULL, "duplicate_request"},
	{"no receive buffer", fill_count, NULL, "out_of_buffer"},
	{"ICRC errors", fill_count, NULL, "rx_icrc_encapsulated"},
	{"receive discards", fill_count, "mac", "rx_discards_phy"},
	{"dropped by a fault", fill_faults, NULL, "fault_dropped"},
	{"otherwise by a fault", fill_faults, NULL, "fault_other"},
	{"dropped by the switch", fill_faults, NULL, "switch_discards"},
	{"no such destination", fill_faults, NULL, "unknown_destination"},
	{"QP context hits", fill_hits, "context_cache", "qpc"},
	{"CQ context hits", fill_hits, "context_cache", "cqc"},
	{"protection hits (MPT)", fill_hits, "pte_cache", "mpt"},
	{"translation hits (MTT)", fill_hits, "pte_cache", "mtt"},
	{"busiest", fill_busiest, NULL, NULL},
	{"limited by", fill_limiter, NULL, NULL},
};

static void print_row(const struct row *row, const struct rn_report_nic *nics, unsigned count)
{
	struct cell cell[HOSTS_A_TABLE] = {0};
	bool is_empty = true;

	for (unsigned i = 0; i < count; i++) {
		row->fill(&cell[i], &nics[i], row);
		is_empty &= cell[i].is_empty;
	}
	if (is_empty)
		return;
	fprintf(stderr, "  %-*s", LABEL_WIDTH, row->label);
	for (unsigned i = 0; i < count; i++)
		fprintf(stderr, " %*s", CELL_WIDTH, cell[i].text);
	fputc('\n', stderr);
}

static void print_table(const struct rn_report_nic *nics, unsigned count)
{
	fprintf(stderr, "  %-*s", LABEL_WIDTH, "");
	for (unsigned i = 0; i < count; i++)
		fprintf(stderr, " %*s", CELL_WIDTH, nics[i].host_name);
	fputc('\n', stderr);
	for (unsigned i = 0; i < RN_ARRAY_LEN(rows); i++)
		print_row(&rows[i], nics, count);
}

static void print_head(const struct rn_outcome *outcome, const struct rn_report_nic *nics,
		       unsigned count)
{
	double packets = (double)rn_report_packets(nics, count);
	char rate[24];

	scale(rate, sizeof(rate), outcome->wall_s > 0 ? packets / outcome->wall_s : 0, "packets/s");
	fprintf(stderr,
		"rnicsim: %.3f ms simulated in %.2f s; %.0f packets sent (%s of wall time)\n",
		(double)outcome->end_ps / 1e9, outcome->wall_s, packets, rate);
	if (outcome->options->warmup_ms > 0)
		fprintf(stderr, "  measured from %.3f ms on: what was before is left out\n",
			(double)outcome->measured_from_ps / 1e9);
}

static void print_limiter(const struct rn_report_nic *nics, unsigned count)
{
	struct rn_limiter found = rn_report_limiter(nics, count);

	if (found.kind == RN_LIMIT_SERIAL)
		fprintf(stderr, "  limiter: %s at %s, busy %.1f %% of the active time\n",
			found.name, nics[found.idx].host_name, 100 * found.share);
	else if (found.kind == RN_LIMIT_WAIT)
		fprintf(stderr, "  limiter: %s at %s, waited for %.1f %% of the active time\n",
			found.name, nics[found.idx].host_name, 100 * found.share);
	else if (found.kind == RN_LIMIT_LATENCY)
		fputs("  limiter: latency; no resource is used up\n", stderr);
}

/* A fault that was asked for and did not happen must not look like one that was survived. */
static void print_idle_faults(const struct rn_outcome *outcome)
{
	const struct rn_faults *rules = rn_fabric_faults(rn_system_fabric(outcome->system));
	const struct rn_fault *rule;

	for (unsigned i = 0; (rule = rn_faults_at(rules, i)); i++)
		if (!rule->done)
			fprintf(stderr,
				"  fault %u (%s, class %s, sent by host %u) did not happen: %" PRIu64
				" frames fitted\n",
				i, rn_fault_action_name(rule->action),
				rn_fault_class_name(rule->class), rule->host, rule->seen);
}

/* What works here alone is said once. */
static void print_without_grh(const struct rn_outcome *outcome, unsigned hosts)
{
	for (unsigned i = 0; outcome->driver && i < hosts; i++) {
		const char *program = rn_driver_program_without_grh(outcome->driver[i]);

		if (!program[0])
			continue;
		fprintf(stderr,
			"  warning: %s on host %u connected without GRH (no GID), which real RoCE refuses. ibv_*_pingpong\n"
			"  take a GID index, -g 0. hosts.*.nic.device.allow_no_grh=false refuses it here, too\n",
			program, i);
		return;
	}
}

/* A path that a shell takes as one word is printed as it is. */
static const char *quote_for(const char *path)
{
	return strpbrk(path, " \t\n'\"\\$`&;|<>()*?[]#~!{}") ? "'" : "";
}

static void print_files(const struct rn_outcome *outcome)
{
	const struct rn_system_options *record = &outcome->options->record;

	if (record->pcap_path) {
		const char *quote = quote_for(record->pcap_path);

		fprintf(stderr,
			"  capture: %s, %" PRIu64 " frames. Open it with\n"
			"    wireshark %s%s%s\n"
			"    tshark -r %s%s%s --disable-protocol rpcordma --disable-heuristic mellanox_eoib\n",
			record->pcap_path, rn_system_captured(outcome->system), quote,
			record->pcap_path, quote, quote, record->pcap_path, quote);
	}
	if (outcome->options->report_path)
		fprintf(stderr, "  report: %s\n", outcome->options->report_path);
	if (record->tlp_path)
		fprintf(stderr, "  PCIe TLPs: %s\n", record->tlp_path);
	if (record->lookup_path)
		fprintf(stderr, "  cache lookups: %s\n", record->lookup_path);
}

static void print_virtual(const struct rn_outcome *outcome)
{
	const struct rn_virtual_counts *counts = outcome->virtual_time;
	const struct {
		uint64_t count;
		const char *what;
	} reasons[] = {
		{counts->outside - counts->unproved,
		 "threads blocked where nothing tells when they go on"},
		{counts->unproved, "threads computed for long without a call"},
		{counts->outside_looks, "waits for something that is not part of the run"},
		{counts->strangers, "programs started that do not join virtual time"},
		{counts->late, "programs that joined while others ran"},
		{counts->interrupted, "the programs were ended by the wall clock or by a signal"},
		{counts->unseen_reads,
		 "processes in which a read of the processor's counter may have gone unseen"},
		{counts->random_addresses,
		 "processes whose addresses are random: the system does not switch that off"},
	};

	if (outcome->options->lacking)
		fprintf(stderr,
			"  virtual time: another run may differ, since this machine lacks %s\n",
			outcome->options->lacking);
	if (rn_virtual_is_repeatable(counts)) {
		if (!outcome->options->lacking)
			fputs("  virtual time: the programs read the simulated clock; another run gives the same\n",
			      stderr);
		return;
	}
	fputs("  virtual time, NOT repeatable, since the wall clock or the system had a say:\n",
	      stderr);
	for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].count)
			fprintf(stderr, "    %s: %" PRIu64 "\n", reasons[i].what, reasons[i].count);
}

void rn_report_print_text(const struct rn_outcome *outcome)
{
	struct rn_report_nic *nics = rn_report_nics(outcome);
	unsigned count = rn_system_scenario(outcome->system)->hosts;
	unsigned shown = count < HOSTS_SHOWN ? count : HOSTS_SHOWN;

	print_head(outcome, nics, count);
	for (unsigned i = 0; i < shown; i += HOSTS_A_TABLE)
		print_table(&nics[i], shown - i < HOSTS_A_TABLE ? shown - i : HOSTS_A_TABLE);
	if (count > shown)
		fprintf(stderr, "  and %u more hosts: see the report (--report)\n", count - shown);
	print_limiter(nics, count);
	print_idle_faults(outcome);
	print_without_grh(outcome, count);
	print_files(outcome);
	if (outcome->virtual_time) {
		print_virtual(outcome);
		free(nics);
		return;
	}
	fprintf(stderr,
		"  free-run: rates and times above are simulated; what the programs print they measured by\n"
		"  the wall clock, which simulated time was behind by up to %.3f s\n",
		outcome->largest_lag_s);
	free(nics);
}
