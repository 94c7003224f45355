/*
 * The benchmark under the scripted host: two hosts back to back, one RC QP, RDMA WRITEs without a pause.
 * Every frame's ICRC is computed where it leaves and again where it arrives; the buffers of both ends are
 * compared by hash. Prints one JSON object. See tools/bench --help.
 */
#include <argp.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "system/scripted/world.h"

#define MTU_BYTES 4096
#define DEPTH 16
#define WARMUP_MESSAGES 32
#define LIMIT_PS (100 * RN_SCRIPTED_SECOND_PS)
#define MAX_SETS 32
#define DRAIN_PS (WORLD_MS / 10)
#define ARENA_BYTES (UINT64_C(1) << 30) /* fits below valgrind too */

struct options {
	uint64_t packets; /* to send, at least */
	uint32_t message_bytes;
	uint8_t opcode;
	bool check_icrc;
	bool capture;
	bool details;
	uint64_t permute_seed;
	uint64_t poll_ps;	       /* between two looks of the host at its completion queue */
	const char *set[MAX_SETS + 2]; /* NULL-terminated */
	unsigned sets;
};

/* What it took, by the clocks of the machine and of the simulation. */
struct cost {
	double wall_s, cpu_s;
	uint64_t wakes;
	uint64_t ps; /* from the first post to the last completion */
};

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct cost now(struct world *world)
{
	return (struct cost){
		.wall_s = clock_s(CLOCK_MONOTONIC),
		.cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID),
		.wakes = rn_sim_wakes(world->sim),
	};
}

static struct cost since(struct world *world, const struct cost *start)
{
	struct cost cost = now(world);

	cost.wall_s -= start->wall_s;
	cost.cpu_s -= start->cpu_s;
	cost.wakes -= start->wakes;
	return cost;
}

static double per(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* FNV-1a over 64-bit words: the buffers are whole pages. */
static uint64_t hash(const uint8_t *data, uint64_t bytes)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325);
	uint64_t word;

	for (uint64_t i = 0; i < bytes; i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		value = (value ^ word) * UINT64_C(0x100000001b3);
	}
	return value;
}

/* Send @messages; true when all came through. */
static bool send_messages(struct world_link *link, const struct options *options, uint64_t messages,
			  struct rn_scripted_flow *flow)
{
	struct rn_scripted_flow_spec spec =
		world_flow(link, options->opcode, options->message_bytes, DEPTH, messages);
	bool done;

	spec.interval_ps = options->poll_ps;
	rn_scripted_flow_start(flow, &spec);
	done = rn_scripted_flow_run(flow, LIMIT_PS);
	rn_scripted_flow_stop(flow);
	return done;
}

static uint64_t sum_of_ports(struct world *world, const char *counter)
{
	return world_counter(world, "fabric.port0", counter) +
	       world_counter(world, "fabric.port1", counter);
}

static json_t *block_json(const struct rn_block *block, uint64_t packets)
{
	json_t *stalls = json_object();

	for (enum rn_stall stall = RN_STALL_NONE + 1; stall < RN_STALL_COUNT; stall++)
		json_object_set_new(stalls, rn_stall_name(stall),
				    json_integer((json_int_t)block->stall_ps[stall]));
	return json_pack("{s:f,s:I,s:o}", "wakes_per_packet",
			 per((double)block->ticks, (double)packets), "busy_cycles",
			 (json_int_t)block->busy_cycles, "stall_ps", stalls);
}

static json_t *counters_json(const struct rn_stats_counters *counters)
{
	json_t *values = json_object();

	for (size_t n = 0; n < counters->count; n++) {
		const char *at = (const char *)counters->values + counters->descs[n].offset;
		uint64_t value;

		memcpy(&value, at, sizeof(value));
		json_object_set_new(values, counters->descs[n].name,
				    json_integer((json_int_t)value));
	}
	return values;
}

/* Everything that was counted: two versions of the simulator must agree but for the wakes. */
static void add_details(struct world *world, uint64_t packets, json_t *json)
{
	const struct rn_stats *stats = rn_system_stats(world->system);
	json_t *blocks = json_object(), *fifos = json_object(), *counters = json_object();
	const struct rn_stats_counters *set;
	const struct rn_block *block;
	const struct rn_fifo *fifo;

	rn_stats_settle(rn_system_stats(world->system));
	for (size_t n = 0; (block = rn_stats_block_at(stats, n)); n++)
		json_object_set_new(blocks, block->name, block_json(block, packets));
	for (size_t n = 0; (fifo = rn_stats_fifo_at(stats, n)); n++)
		json_object_set_new(fifos, fifo->name,
				    json_pack("{s:I,s:i,s:I,s:I}", "pushes",
					      (json_int_t)fifo->pushes, "max_occupancy",
					      (int)fifo->max_occupancy, "full_ps",
					      (json_int_t)fifo->full_ps, "occupancy_ps",
					      (json_int_t)fifo->occupancy_ps));
	for (size_t n = 0; (set = rn_stats_counters_at(stats, n)); n++)
		json_object_set_new(counters, set->instance, counters_json(set));
	json_object_set_new(json, "blocks", blocks);
	json_object_set_new(json, "fifos", fifos);
	json_object_set_new(json, "counters", counters);
}

static json_t *results(struct world *world, const struct world_link *link,
		       const struct options *options, uint64_t packets, const struct cost *cost)
{
	const double simulated_s = (double)cost->ps / 1e12;
	const double data_packets = (double)packets;
	struct rusage usage;
	char hashes[2][24];
	json_t *json;

	getrusage(RUSAGE_SELF, &usage);
	for (unsigned n = 0; n < 2; n++)
		snprintf(hashes[n], sizeof(hashes[n]), "%016" PRIx64,
			 hash(link->buffer[n].data, link->buffer[n].bytes));
	json = json_pack("{s:I,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:I}", "data_packets",
			 (json_int_t)packets, "message_bytes", (int)options->message_bytes,
			 "wall_s", cost->wall_s, "cpu_s", cost->cpu_s, "simulated_s", simulated_s,
			 "packets_per_wall_s", per(data_packets, cost->wall_s), "packets_per_cpu_s",
			 per(data_packets, cost->cpu_s), "cpu_us_per_packet",
			 per(cost->cpu_s * 1e6, data_packets), "slow_down",
			 per(cost->wall_s, simulated_s), "simulated_gbps",
			 per(data_packets *
				     (options->message_bytes < MTU_BYTES ? options->message_bytes
									 : MTU_BYTES) *
				     8 / 1e9,
			     simulated_s),
			 "wakes_per_packet", per((double)cost->wakes, data_packets),
			 "peak_memory_bytes", (json_int_t)usage.ru_maxrss * 1024);
	json_object_set_new(json, "frames",
			    json_integer((json_int_t)sum_of_ports(world, "frames")));
	json_object_set_new(json, "icrc_computed",
			    json_integer((json_int_t)sum_of_ports(world, "icrc_computed")));
	json_object_set_new(json, "icrc_verified",
			    json_integer((json_int_t)sum_of_ports(world, "icrc_verified")));
	json_object_set_new(json, "payload_hash", json_pack("[s,s]", hashes[0], hashes[1]));
	if (options->details)
		add_details(world, packets, json);
	return json;
}

/*
 * Frames on the wire when all messages are through still have to arrive. Up to a round time, so that what follows
 * does not depend on the number of wakes.
 */
static void drain(struct world *world)
{
	const uint64_t periods = rn_sim_now_ps(world->sim) / DRAIN_PS + 2;

	rn_sim_run(world->sim, periods * DRAIN_PS, UINT64_MAX);
}

static json_t *measure(struct world *world, const struct options *options)
{
	const uint64_t of_message = (options->message_bytes + MTU_BYTES - 1) / MTU_BYTES;
	const uint64_t messages = (options->packets + of_message - 1) / of_message;
	struct rn_scripted_flow flow;
	struct world_link link;
	struct cost start, cost;
	unsigned source = options->opcode == RN_WQE_RDMA_READ;

	world_connect(world, (uint64_t)DEPTH * options->message_bytes, &RN_SCRIPTED_PATH, &link);
	if (!send_messages(&link, options, WARMUP_MESSAGES, &flow))
		return NULL;
	drain(world);
	rn_scripted_fill(link.buffer[source].data, link.buffer[source].bytes, 7);
	rn_stats_clear(rn_system_stats(world->system));
	start = now(world);
	if (!send_messages(&link, options, messages, &flow))
		return NULL;
	cost = since(world, &start);
	cost.ps = flow.end_ps - flow.start_ps;
	drain(world);
	return results(world, &link, options, messages * of_message, &cost);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'n':
		options->packets = strtoull(arg, NULL, 0);
		return 0;
	case 's':
		options->message_bytes = (uint32_t)strtoul(arg, NULL, 0);
		return 0;
	case 'r':
		options->opcode = RN_WQE_RDMA_READ;
		return 0;
	case 'x':
		options->check_icrc = false;
		return 0;
	case 'c':
		options->capture = true;
		return 0;
	case 'b':
		options->details = true;
		return 0;
	case 'p':
		options->permute_seed = strtoull(arg, NULL, 0);
		return 0;
	case 'i':
		options->poll_ps = strtoull(arg, NULL, 0) * 1000;
		return 0;
	case 'S':
		if (options->sets == MAX_SETS)
			argp_error(state, "too many --set");
		options->set[options->sets++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option option_rows[] = {
	{"packets", 'n', "N", 0, "data packets to send (default 100000)", 0},
	{"size", 's', "BYTES", 0, "of a message (default 65536)", 0},
	{"read", 'r', NULL, 0, "RDMA READ instead of RDMA WRITE", 0},
	{"no-icrc", 'x', NULL, 0, "compute and verify no ICRC", 0},
	{"capture", 'c', NULL, 0,
	 "also capture every frame (RN_KEEP=1 in the environment keeps the file)", 0},
	{"details", 'b', NULL, 0, "also every block, fifo and counter", 0},
	{"permute", 'p', "SEED", 0, "another order of blocks due at one instant", 0},
	{"poll-ns", 'i', "NS", 0, "the host looks for completions so often (default 1000)", 0},
	{"set", 'S', "KEY=VALUE", 0, "set one parameter; repeatable", 0},
	{0},
};

int main(int argc, char **argv)
{
	static const struct argp argp = {.options = option_rows,
					 .parser = parse,
					 .doc = "rnicsim's benchmark under the scripted host"};
	struct options options = {.packets = 100000,
				  .message_bytes = 65536,
				  .opcode = RN_WQE_RDMA_WRITE,
				  .check_icrc = true,
				  .poll_ps = 1000000};
	struct world world;
	json_t *json;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (options.check_icrc)
		options.set[options.sets] = "fabric.check_icrc=true";
	world_init(&world, 2, options.set);
	world_start(&world, &(struct world_options){.permute_seed = options.permute_seed,
						    .arena_bytes = ARENA_BYTES,
						    .capture = options.capture});
	json = measure(&world, &options);
	world_fini(&world);
	if (!json) {
		fprintf(stderr, "scripted_bench: not all messages came through\n");
		return 1;
	}
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(7));
	putchar('\n');
	json_decref(json);
	return 0;
}
