#include "report_limiter.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "wire/line.h"

#define BITS 8.0
#define PS_PER_S 1e12
#define PS_PER_NS 1e3
#define BITS_PER_MBIT 1e6

/* Waits for finite resources, from the host's memory up to where work comes in. */
enum rank {
	RANK_CREDITS,
	RANK_TAGS,
	RANK_DMA_BUFFERS,
	RANK_TRANSLATIONS,
	RANK_CONTEXTS,
	RANK_LOOKUPS,
	RANK_WINDOW,
	RANK_BUFFERS,
	RANK_SLOTS,
};

/*
 * What a block's stall stands for; the first row that fits. Without a unit, the block's is added to the name. Waiting for
 * a full fifo is the fault of what is behind it, waiting for a lock that of its holder: they are no rows.
 */
static const struct {
	const char *unit; /* NULL: any */
	enum rn_stall stall;
	enum rank rank;
	const char *name;
} wait_rows[] = {
	{"dma", RN_STALL_TAG, RANK_TAGS, "dma_tags"},
	{"dma", RN_STALL_CREDIT, RANK_CREDITS, "pcie_credits"},
	{"dma", RN_STALL_BUFFER, RANK_DMA_BUFFERS, "buffers:dma"},
	{"pte_cache", RN_STALL_MISS, RANK_TRANSLATIONS, "pte_misses"},
	{"pte_cache", RN_STALL_TAG, RANK_TRANSLATIONS, "pte_misses"},
	{"context_cache", RN_STALL_MISS, RANK_CONTEXTS, "context_misses"},
	{"context_cache", RN_STALL_TAG, RANK_CONTEXTS, "context_misses"},
	{NULL, RN_STALL_MISS, RANK_LOOKUPS, "lookups"},
	{NULL, RN_STALL_CREDIT, RANK_WINDOW, "window"},
	{NULL, RN_STALL_BUFFER, RANK_BUFFERS, "buffers"},
	{NULL, RN_STALL_TAG, RANK_SLOTS, "slots"},
};

/*
 * Pipelines: what went through times the initiation interval. Rows of one place add up: they share a pipeline. What a
 * block accounts as busy is a row of its own.
 */
#define STAGE(unit_, stage_, counter_, param_)                                                     \
	{                                                                                          \
		.unit = #unit_, .stage = #stage_, .counter = #counter_,                            \
		.offset = offsetof(struct rn_nic_params, param_),                                  \
	}

static const struct {
	const char *unit;
	const char *stage;
	const char *counter; /* of any unit of the NIC */
	size_t offset; /* of the interval, a uint32_t of core cycles, in struct rn_nic_params */
} stage_rows[] = {
	STAGE(doorbell, take, sq_doorbells, doorbell.interval_cycles),
	STAGE(doorbell, take, cq_arms, doorbell.interval_cycles),
	STAGE(doorbell, take, rq_kicks, doorbell.interval_cycles),
	STAGE(sched, grant, grants, sched.interval_cycles),
	STAGE(wqe_fetch, send, sq_wqes, wqe_fetch.decode_interval_cycles),
	STAGE(wqe_fetch, receive, rq_wqes, wqe_fetch.decode_interval_cycles),
	STAGE(transport.tx, engine, turns, transport.turn_cycles),
	STAGE(transport.tx, engine, rx_ack_packets, transport.completion_cycles),
	STAGE(transport.tx, engine, rx_nak_packets, transport.completion_cycles),
	STAGE(transport.tx, engine, rx_read_response_packets, transport.completion_cycles),
	STAGE(transport.tx, packet, tx_send_packets, transport.tx_packet_cycles),
	STAGE(transport.tx, packet, tx_write_packets, transport.tx_packet_cycles),
	STAGE(transport.tx, packet, tx_read_requests, transport.tx_packet_cycles),
	STAGE(transport.tx, reply, tx_ack_packets, transport.reply_packet_cycles),
	STAGE(transport.tx, reply, tx_nak_packets, transport.reply_packet_cycles),
	STAGE(transport.tx, reply, tx_read_response_packets, transport.reply_packet_cycles),
	STAGE(transport.rx, packet, rx_send_packets, transport.rx_packet_cycles),
	STAGE(transport.rx, packet, rx_write_packets, transport.rx_packet_cycles),
	STAGE(transport.rx, packet, rx_read_requests, transport.rx_packet_cycles),
	STAGE(transport.rx, packet, out_of_sequence, transport.rx_packet_cycles),
	STAGE(transport.rx, packet, duplicate_request, transport.rx_packet_cycles),
	STAGE(transport.rx, packet, out_of_buffer, transport.rx_packet_cycles),
	STAGE(cqe, write, cqes, cqe.interval_cycles),
	STAGE(eq, event, async_events, eq.interval_cycles),
	STAGE(eq, event, interrupts, eq.interval_cycles),
};

/* Blocks that stand for a line or link with counters of its own, and the one that only control verbs use. */
static const char *const other_units[] = {"mac_tx", "mac_rx", "pcie_up", "pcie_down", "cmd"};

const char *rn_limit_kind_name(enum rn_limit_kind kind)
{
	static const char *const names[] = {
		[RN_LIMIT_SERIAL] = "serial",
		[RN_LIMIT_WAIT] = "wait",
		[RN_LIMIT_LATENCY] = "latency",
		[RN_LIMIT_IDLE] = "idle",
	};

	return names[kind];
}

/* "nic0.dma" */
static bool is_of_nic(const char *unit)
{
	return !strncmp(unit, "nic", 3) && unit[3] >= '0' && unit[3] <= '9' && strchr(unit, '.');
}

const char *rn_report_unit(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(name, prefix, len) || name[len] != '.' || is_of_nic(name + len + 1))
		return NULL;
	return name + len + 1;
}

/* "block:transport_tx": names of limiters do not depend on how units nest. */
static void name_limit(char name[RN_LIMIT_NAME_BYTES], const char *prefix, const char *unit)
{
	snprintf(name, RN_LIMIT_NAME_BYTES, "%s:%s", prefix, unit);
	for (char *dot = name; (dot = strchr(dot, '.'));)
		*dot = '_';
}

uint64_t rn_report_sum(const struct rn_stats *stats, const char *prefix, const char *counter)
{
	const struct rn_stats_counters *counters;
	uint64_t sum = 0;

	for (size_t i = 0; (counters = rn_stats_counters_at(stats, i)); i++) {
		if (!rn_report_unit(counters->instance, prefix))
			continue;
		for (size_t row = 0; row < counters->count; row++)
			if (!strcmp(counters->descs[row].name, counter))
				sum += *(const uint64_t *)((const char *)counters->values +
							   counters->descs[row].offset);
	}
	return sum;
}

double rn_report_block_ps(const struct rn_block *block, uint64_t cycles)
{
	return (double)cycles * (double)block->clock->num / (double)block->clock->den;
}

/* Add @share to the row of that name and place, and make it if there is none. */
static void add(struct rn_limits *limits, const struct rn_limit *row, double share)
{
	unsigned i = 0;

	while (i < limits->count && (strcmp(limits->limit[i].name, row->name) ||
				     strcmp(limits->limit[i].where, row->where)))
		i++;
	if (i == RN_LIMITS_MAX)
		return;
	if (i == limits->count) {
		limits->limit[limits->count++] = *row;
		limits->limit[i].share = 0;
	}
	share += limits->limit[i].share;
	limits->limit[i].share = share > 1 ? 1 : share;
}

static void add_serial(struct rn_limits *limits, const struct rn_limits_env *env, const char *name,
		       const char *where, double busy_ps)
{
	struct rn_limit row = {.kind = RN_LIMIT_SERIAL};

	snprintf(row.name, sizeof(row.name), "%s", name);
	snprintf(row.where, sizeof(row.where), "%s", where);
	add(limits, &row, busy_ps / (double)env->active_ps);
}

/* A counter of unit @unit under @prefix; 0 when there is none. */
static double value(const struct rn_limits_env *env, const char *prefix, const char *unit,
		    const char *counter)
{
	char instance[96];
	uint64_t found;

	snprintf(instance, sizeof(instance), "%s.%s", prefix, unit);
	found = rn_stats_value(env->stats, instance, counter);
	return found == UINT64_MAX ? 0 : (double)found;
}

/* The line in: its frames' bytes and what goes with each frame, at the line's rate. */
static double line_in_ps(const struct rn_limits_env *env)
{
	double bytes = value(env, env->nic, "mac", "rx_bytes_phy") +
		       value(env, env->nic, "mac", "rx_packets_phy") *
			       (RN_LINE_PREAMBLE_BYTES + RN_LINE_GAP_BYTES);

	return bytes * BITS * PS_PER_S / ((double)env->link_mbps * BITS_PER_MBIT);
}

static double memory_ps(const struct rn_limits_env *env, const char *bytes)
{
	return value(env, env->host, "root_complex", bytes) * BITS * PS_PER_NS /
	       (double)env->params->root_complex.memory_gbps;
}

/* A read holds a place in the root complex while it is served and while its completions leave. */
static double root_reads_ps(const struct rn_limits_env *env)
{
	const struct rn_root_complex_params *params = &env->params->root_complex;
	double held_ps =
		value(env, env->host, "root_complex", "reads") * (double)params->read_latency_ps +
		value(env, env->nic, "pcie_down", "busy_ps");

	return held_ps / params->outstanding_reads;
}

static void add_links(struct rn_limits *limits, const struct rn_limits_env *env)
{
	add_serial(limits, env, "ethernet_line", "mac.tx",
		   value(env, env->nic, "mac", "tx_busy_ps"));
	add_serial(limits, env, "ethernet_line", "mac.rx", line_in_ps(env));
	add_serial(limits, env, "pcie_up", "pcie_up", value(env, env->nic, "pcie_up", "busy_ps"));
	add_serial(limits, env, "pcie_down", "pcie_down",
		   value(env, env->nic, "pcie_down", "busy_ps"));
	add_serial(limits, env, "memory_bandwidth", "root_complex.read",
		   memory_ps(env, "read_bytes"));
	add_serial(limits, env, "memory_bandwidth", "root_complex.write",
		   memory_ps(env, "write_bytes"));
	add_serial(limits, env, "root_complex_reads", "root_complex", root_reads_ps(env));
}

static void add_stages(struct rn_limits *limits, const struct rn_limits_env *env)
{
	const struct rn_nic_params *nic = &env->params->nic;
	double cycle_ps = PS_PER_S / (double)nic->nic.core_hz;

	for (unsigned i = 0; i < RN_ARRAY_LEN(stage_rows); i++) {
		char name[RN_LIMIT_NAME_BYTES], where[RN_LIMIT_NAME_BYTES];
		double count = (double)rn_report_sum(env->stats, env->nic, stage_rows[i].counter);
		uint32_t cycles;

		memcpy(&cycles, (const char *)nic + stage_rows[i].offset, sizeof(cycles));
		name_limit(name, "block", stage_rows[i].unit);
		snprintf(where, sizeof(where), "%s.%s", stage_rows[i].unit, stage_rows[i].stage);
		add_serial(limits, env, name, where, count * cycles * cycle_ps);
	}
}

static void add_wait(struct rn_limits *limits, const struct rn_limits_env *env, enum rank rank,
		     const char *name, const char *where, double waited_ps)
{
	struct rn_limit row = {.kind = RN_LIMIT_WAIT, .rank = rank};

	snprintf(row.name, sizeof(row.name), "%s", name);
	snprintf(row.where, sizeof(row.where), "%s", where);
	add(limits, &row, waited_ps / (double)env->active_ps);
}

/* A link that has always TLPs to send carries one or waits for credits for one. */
static void add_credits(struct rn_limits *limits, const struct rn_limits_env *env)
{
	static const char *const ways[] = {"pcie_up", "pcie_down"};

	for (unsigned i = 0; i < RN_ARRAY_LEN(ways); i++) {
		double waited_ps = value(env, env->nic, ways[i], "credit_stall_ps");
		double wanted_ps = waited_ps + value(env, env->nic, ways[i], "busy_ps");

		add_wait(limits, env, RANK_CREDITS, "pcie_credits", ways[i], waited_ps);
		limits->limit[limits->count - 1].is_always_wanted =
			waited_ps > 0 &&
			wanted_ps >= RN_LIMIT_SATURATED_SHARE * (double)env->active_ps;
	}
}

static void add_stall(struct rn_limits *limits, const struct rn_limits_env *env,
		      const struct rn_block *block, const char *unit, enum rn_stall stall)
{
	char name[RN_LIMIT_NAME_BYTES];

	for (unsigned i = 0; i < RN_ARRAY_LEN(wait_rows); i++) {
		if (wait_rows[i].stall != stall ||
		    (wait_rows[i].unit && strcmp(wait_rows[i].unit, unit)))
			continue;
		if (wait_rows[i].unit)
			snprintf(name, sizeof(name), "%s", wait_rows[i].name);
		else
			name_limit(name, wait_rows[i].name, unit);
		add_wait(limits, env, wait_rows[i].rank, name, unit,
			 (double)block->stall_ps[stall]);
		return;
	}
}

static bool is_other(const char *unit)
{
	for (unsigned i = 0; i < RN_ARRAY_LEN(other_units); i++)
		if (!strcmp(unit, other_units[i]))
			return true;
	return false;
}

static void add_block(struct rn_limits *limits, const struct rn_limits_env *env,
		      const struct rn_block *block, const char *unit)
{
	char name[RN_LIMIT_NAME_BYTES];

	name_limit(name, "block", unit);
	add_serial(limits, env, name, unit, rn_report_block_ps(block, block->busy_cycles));
	for (unsigned stall = RN_STALL_NONE + 1; stall < RN_STALL_COUNT; stall++)
		add_stall(limits, env, block, unit, stall);
}

void rn_limits_find(struct rn_limits *limits, const struct rn_limits_env *env)
{
	const struct rn_block *block;

	limits->count = 0;
	if (!env->active_ps)
		return;
	add_links(limits, env);
	add_stages(limits, env);
	add_credits(limits, env);
	for (size_t i = 0; (block = rn_stats_block_at(env->stats, i)); i++) {
		const char *unit = rn_report_unit(block->name, env->nic);

		if (unit && !is_other(unit))
			add_block(limits, env, block, unit);
	}
}

/* Whether @limit is the limiter rather than @best. */
static bool is_better(const struct rn_limit *limit, const struct rn_limit *best)
{
	double least =
		limit->kind == RN_LIMIT_SERIAL ? RN_LIMIT_SATURATED_SHARE : RN_LIMIT_WAIT_SHARE;

	if (limit->share < least && !limit->is_always_wanted)
		return false;
	if (!best || limit->kind != best->kind)
		return !best || limit->kind == RN_LIMIT_SERIAL;
	if (limit->kind == RN_LIMIT_WAIT && limit->rank != best->rank)
		return limit->rank < best->rank;
	return limit->share > best->share;
}

struct rn_limiter rn_limits_choose(const struct rn_limits *const *limits, unsigned count)
{
	struct rn_limiter limiter = {.kind = RN_LIMIT_IDLE, .name = "idle", .where = ""};
	const struct rn_limit *best = NULL;

	for (unsigned i = 0; i < count; i++) {
		for (unsigned row = 0; row < limits[i]->count; row++) {
			if (!is_better(&limits[i]->limit[row], best))
				continue;
			best = &limits[i]->limit[row];
			limiter.idx = i;
		}
		if (limits[i]->count && limiter.kind == RN_LIMIT_IDLE) {
			limiter.kind = RN_LIMIT_LATENCY;
			limiter.name = "latency";
		}
	}
	if (best) {
		limiter.kind = best->kind;
		limiter.name = best->name;
		limiter.where = best->where;
		limiter.share = best->share;
	}
	return limiter;
}
