/* See world.h. */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attributes.h"
#include "base/assert.h"
#include "base/mem.h"

#define WORLD_DIVERGED 71 /* exit status, as of rnicsim run */
#define BRING_UP_PS (10 * RN_SCRIPTED_SECOND_PS)

static void fail(const char *what)
{
	fprintf(stderr, "world: %s\n", what);
	abort();
}

/* --- scenario --- */

static void make_folder(struct world *world)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(world->folder, sizeof(world->folder), "%s/rnicsim-world-XXXXXX",
		 tmp && strlen(tmp) < 32 ? tmp : "/tmp");
	if (!mkdtemp(world->folder))
		fail("no folder for captures and logs");
}

void world_init_yaml(struct world *world, const char *text, const char *const *set)
{
	memset(world, 0, sizeof(*world));
	make_folder(world);
	world->diag = rn_diag_new();
	world->config = rn_config_new(world->diag);
	rn_config_add_search_dir(world->config, RN_SOURCE_DIR "/configs");
	rn_config_load_text(world->config, "test", text);
	for (; set && *set; set++)
		rn_config_set(world->config, *set);
	world->scenario = rn_scenario_read(world->config, rn_config_compose(world->config));
	if (!rn_config_finish(world->config)) {
		rn_diag_print(world->diag, stderr);
		fail("the scenario has mistakes");
	}
	world->hosts = world->scenario->hosts;
	if (world->hosts > WORLD_HOSTS_MAX)
		fail("too many hosts");
}

void world_init(struct world *world, unsigned hosts, const char *const *set)
{
	char *text = rn_asprintf("fabric:\n  switched: %s\nhosts:\n  - count: %u\n",
				 hosts == 2 ? "false" : "true", hosts);

	world_init_yaml(world, text, set);
	free(text);
}

/* What the environment says of units: only of those that the build has with these parameters. */
static void choose_units(struct world *world)
{
	const char *wanted = getenv("RN_UNIT_MODE");
	unsigned mode = 0;

	while (wanted && mode < RN_UNIT_MODES && strcmp(rn_unit_mode_names[mode], wanted) != 0)
		mode++;
	if (mode == RN_UNIT_MODES)
		fail("RN_UNIT_MODE is none of model, rtl, lockstep");
	for (unsigned n = 0; wanted && n < world->hosts; n++)
		for (unsigned unit = 0; unit < RN_UNITS; unit++)
			if (rn_cosim_has_geometry(&world->scenario->host[n], unit))
				world->scenario->host[n].unit[unit] = (enum rn_unit_mode)mode;
}

static void check_units(const struct world *world)
{
	char *problem = rn_cosim_check(world->scenario);

	if (problem)
		fail(problem);
}

/* --- life --- */

static void is_up(void *arg, int error)
{
	if (error)
		fail(strerror(error));
	((struct world *)arg)->ready++;
}

static void make_driver(struct world *world, unsigned host, uint64_t arena_bytes)
{
	char *name = rn_asprintf("host%u.driver", host);
	struct rn_driver_env env = {
		.sim = world->sim,
		.root_complex = rn_system_root_complex(world->system, host),
		.stats = rn_system_stats(world->system),
		.stamps = rn_system_stamps(world->system),
		.name = name,
		.seed = world->scenario->seed,
		.host = host,
		.hosts = world->hosts,
		.arena_bytes = arena_bytes,
	};

	rn_attributes_fill(world->scenario, host, &env.device, &env.port);
	world->driver[host] = rn_driver_new(&env);
	rn_driver_start(world->driver[host], is_up, world);
	free(name);
}

static void make_system(struct world *world, const struct world_options *options)
{
	struct rn_system_options record = {
		.permute_seed = options->permute_seed,
		.stamps = options->stamps,
		.pcap_path = options->capture ? world_path(world, "pcap") : NULL,
		.tlp_path = options->tlps ? world_path(world, "tlp.csv") : NULL,
		.lookup_path = options->lookups ? world_path(world, "lookup.csv") : NULL,
	};
	static const char *plusarg; /* borrowed by the units */
	const struct rn_cosim_options units = {
		.end_with = WORLD_DIVERGED,
		.plusargs = &plusarg,
		.plusargs_count = getenv("RN_PLUSARG") != NULL,
		.fst_path = getenv("RN_DIVERGENCE_FST"),
	};
	char *error = NULL;

	plusarg = getenv("RN_PLUSARG");
	choose_units(world);
	check_units(world);
	world->cosim = rn_cosim_new(world->scenario, &units, &error);
	record.units = rn_cosim_builder(world->cosim);
	world->system = rn_system_new(world->scenario, &record, &error);
	if (!world->system)
		fail(error);
	world->sim = rn_system_sim(world->system);
}

void world_start(struct world *world, const struct world_options *options)
{
	static const struct world_options plain;

	make_system(world, options ? options : &plain);
	for (unsigned n = 0; n < world->hosts; n++)
		make_driver(world, n, options ? options->arena_bytes : 0);
	while (world->ready < world->hosts && rn_sim_next_ps(world->sim) < BRING_UP_PS)
		rn_sim_run(world->sim, rn_sim_next_ps(world->sim), 1);
	if (world->ready < world->hosts)
		fail("a NIC did not come up");
	for (unsigned n = 0; n < world->hosts; n++) {
		world->host[n] = rn_scripted_new(
			&(struct rn_scripted_env){.sim = world->sim, .driver = world->driver[n]});
		if (!world->host[n])
			fail("a process could not attach");
	}
	rn_stats_clear(rn_system_stats(world->system));
	/* A rule that fits nothing: PSN offsets count from the start of every connection. */
	world_fault(world, RN_FAULT_DROP, RN_FAULT_ANY, UINT32_MAX, 0, 1);
}

static void check_clean(struct world *world, unsigned host)
{
	struct rn_driver_usage usage;

	rn_driver_get_usage(world->driver[host], &usage);
	RN_ASSERT(usage.clients == 0);
	RN_ASSERT(usage.qps + usage.cqs + usage.mrs + usage.mpts + usage.pds == 0);
	RN_ASSERT(usage.channels == 0);
	RN_ASSERT(usage.frames + usage.mtts + usage.pinned_pages == 0);
}

/* A killed process is freed by the driver in simulated time. */
static bool is_clean(void *arg)
{
	const struct world *world = arg;
	struct rn_driver_usage usage;

	for (unsigned n = 0; n < world->hosts; n++) {
		rn_driver_get_usage(world->driver[n], &usage);
		if (usage.clients)
			return false;
	}
	return true;
}

void world_end(struct world *world)
{
	const uint64_t until_ps = rn_sim_now_ps(world->sim) + BRING_UP_PS;

	for (unsigned n = 0; n < world->hosts; n++)
		if (world->host[n])
			rn_scripted_free(world->host[n]);
	while (!is_clean(world) && rn_sim_next_ps(world->sim) < until_ps)
		rn_sim_run(world->sim, rn_sim_next_ps(world->sim), 1);
	/* What is still on the wire arrives. */
	rn_sim_run(world->sim, rn_sim_now_ps(world->sim) + WORLD_MS, UINT64_MAX);
	for (unsigned n = 0; n < world->hosts; n++)
		check_clean(world, n);
	RN_ASSERT(rn_packets_in_use(rn_system_packets(world->system)) == 0);
	for (unsigned n = 0; n < world->hosts; n++)
		rn_driver_free(world->driver[n]);
	if (rn_system_free(world->system, NULL))
		fail("a capture or log could not be written");
	world->system = NULL;
	rn_cosim_free(world->cosim, NULL);
	world->cosim = NULL;
}

static void remove_files(struct world *world)
{
	static const char *const files[] = {"pcap", "tlp.csv", "lookup.csv"};

	if (getenv("RN_KEEP")) {
		fprintf(stderr, "world: kept %s\n", world->folder);
		return;
	}
	for (unsigned n = 0; n < sizeof(files) / sizeof(files[0]); n++)
		unlink(world_path(world, files[n]));
	rmdir(world->folder);
}

void world_fini(struct world *world)
{
	if (world->system)
		world_end(world);
	rn_scenario_free(world->scenario);
	rn_config_free(world->config);
	rn_diag_free(world->diag);
	remove_files(world);
}

const char *world_path(struct world *world, const char *what)
{
	unsigned slot = what[0] == 'p' ? 0 : what[0] == 't' ? 1 : what[0] == 'l' ? 2 : 3;

	snprintf(world->path[slot], sizeof(world->path[slot]), "%s/%s", world->folder, what);
	return world->path[slot];
}

/* --- connections --- */

void world_connect_hosts(struct world *world, const unsigned host[2], uint64_t bytes,
			 const struct rn_scripted_path *path,
			 const struct rn_scripted_qp_spec *spec, struct world_link *link)
{
	struct rn_scripted_qp_spec own = spec ? *spec : (struct rn_scripted_qp_spec){0};

	own.recv_cq = NULL;
	for (unsigned n = 0; n < 2; n++) {
		link->host[n] = world->host[host[n]];
		if (!rn_scripted_alloc_mr(link->host[n], bytes, &link->buffer[n], &link->key[n]))
			fail("no buffer");
		link->cq[n] = rn_scripted_cq_new(link->host[n], 1024);
		own.send_cq = link->cq[n];
		link->qp[n] = link->cq[n] ? rn_scripted_qp_new(link->host[n], &own) : NULL;
		if (!link->qp[n])
			fail("no QP");
	}
	if (rn_scripted_connect(link->qp[0], link->qp[1], path))
		fail("QPs could not be connected");
}

void world_connect(struct world *world, uint64_t bytes, const struct rn_scripted_path *path,
		   struct world_link *link)
{
	world_connect_hosts(world, (const unsigned[]){0, 1}, bytes, path, NULL, link);
}

struct rn_scripted_wr world_wr(const struct world_link *link, uint8_t opcode, uint32_t bytes)
{
	return (struct rn_scripted_wr){
		.opcode = opcode,
		.flags = RN_WQE_SIGNALED,
		.va = link->buffer[0].va,
		.bytes = bytes,
		.lkey = link->key[0],
		.raddr = link->buffer[1].va,
		.rkey = link->key[1],
		.imm_be = 0x11223344,
	};
}

void world_post_recv(struct world_link *link, uint32_t count, uint32_t bytes)
{
	for (uint32_t n = 0; n < count; n++)
		if (rn_scripted_post_recv(link->qp[1], n, link->buffer[1].va, bytes, link->key[1]))
			fail("no room in the receive queue");
}

uint8_t world_transfer(struct world_link *link, const struct rn_scripted_wr *wr)
{
	struct rn_scripted_wr signaled = *wr;
	struct rn_scripted_wc wc;

	signaled.flags |= RN_WQE_SIGNALED;
	if (rn_scripted_post(link->qp[0], &signaled) != RN_POST_OK)
		fail("no room in the send queue");
	rn_scripted_ring(link->qp[0]);
	return rn_scripted_wait(link->cq[0], &wc, 1, 10 * RN_SCRIPTED_SECOND_PS) ? wc.status : 255;
}

struct rn_scripted_flow_spec world_flow(const struct world_link *link, uint8_t opcode,
					uint32_t bytes, uint32_t depth, uint64_t count)
{
	return (struct rn_scripted_flow_spec){
		.from = link->qp[0],
		.to = link->qp[1],
		.from_cq = link->cq[0],
		.to_cq = link->cq[1],
		.opcode = opcode,
		.bytes = bytes,
		.depth = depth,
		.count = count,
		.va = link->buffer[0].va,
		.lkey = link->key[0],
		.remote_va = link->buffer[1].va,
		.rkey = link->key[1],
		.stride = (uint64_t)bytes * depth <= link->buffer[0].bytes ? bytes : 0,
	};
}

/* --- faults, counters, stamps --- */

unsigned world_fault_add(struct world *world, const struct rn_fault *fault)
{
	return rn_faults_add(rn_fabric_faults(rn_system_fabric(world->system)), fault);
}

unsigned world_fault(struct world *world, enum rn_fault_action action, enum rn_fault_class class,
		     uint32_t host, uint32_t psn_offset, uint32_t transmission)
{
	return world_fault_add(world, &(struct rn_fault){
					      .action = action,
					      .class = class,
					      .host = host,
					      .connection = RN_FAULT_ANY_VALUE,
					      .psn_offset = psn_offset,
					      .transmission = transmission,
				      });
}

uint64_t world_fault_done(struct world *world, unsigned fault)
{
	return rn_faults_at(rn_fabric_faults(rn_system_fabric(world->system)), fault)->done;
}

uint64_t world_counter(struct world *world, const char *instance, const char *counter)
{
	const uint64_t value = rn_stats_value(rn_system_stats(world->system), instance, counter);

	if (value == UINT64_MAX) {
		fprintf(stderr, "world: no counter %s.%s\n", instance, counter);
		abort();
	}
	return value;
}

static bool is_of_nic(const char *instance, unsigned host)
{
	char name[32];

	snprintf(name, sizeof(name), "host%u.nic0", host);
	return strncmp(instance, name, strlen(name)) == 0;
}

uint64_t world_nic_counter(struct world *world, unsigned host, const char *counter)
{
	const struct rn_stats *stats = rn_system_stats(world->system);
	const struct rn_stats_counters *counters;
	uint64_t sum = 0;
	bool found = false;

	for (size_t n = 0; (counters = rn_stats_counters_at(stats, n)); n++) {
		for (size_t i = 0; is_of_nic(counters->instance, host) && i < counters->count;
		     i++) {
			const struct rn_counter_desc *desc = &counters->descs[i];

			if (strcmp(desc->name, counter) != 0)
				continue;
			sum += *(const uint64_t *)(const void *)((const char *)counters->values +
								 desc->offset);
			found = true;
		}
	}
	if (!found) {
		fprintf(stderr, "world: no counter %s\n", counter);
		abort();
	}
	return sum;
}

uint64_t world_stamp(struct world *world, unsigned host, const struct rn_scripted_qp *qp,
		     uint32_t wqe_idx, enum rn_stamp_stage stage, unsigned count)
{
	size_t stamps;
	uint64_t lost;
	const struct rn_stamp *stamp =
		rn_stamps_sorted(rn_system_stamps(world->system), &stamps, &lost);

	for (size_t n = 0; n < stamps; n++)
		if (stamp[n].host == host && stamp[n].qpn == rn_scripted_qpn(qp) &&
		    stamp[n].wqe_idx == wqe_idx && stamp[n].stage == stage && !stamp[n].receive &&
		    count-- == 0)
			return stamp[n].at_ps;
	return RN_TIME_NEVER;
}
