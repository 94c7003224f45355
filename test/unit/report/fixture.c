#include "unit/report/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ENTRIES_MAX 400

struct entry {
	char *instance;
	char *name;
	struct rn_counter_desc desc;
	uint64_t value;
};

/* What the model's own would be, as far as a report asks. */
struct rn_system {
	const struct rn_scenario *scenario;
	struct rn_sim *sim;
	struct rn_clock clock;
	struct rn_stats *stats;
	struct rn_stamps *stamps;
	struct rn_faults *faults;
	struct entry entry[ENTRIES_MAX];
	unsigned entries;
	struct rn_block *block[ENTRIES_MAX];
	unsigned blocks;
	struct rn_fifo *fifo[ENTRIES_MAX];
	unsigned fifos;
};

struct rn_sim *rn_system_sim(struct rn_system *system)
{
	return system->sim;
}

struct rn_stats *rn_system_stats(struct rn_system *system)
{
	return system->stats;
}

struct rn_stamps *rn_system_stamps(struct rn_system *system)
{
	return system->stamps;
}

struct rn_fabric *rn_system_fabric(struct rn_system *system)
{
	return (struct rn_fabric *)system;
}

struct rn_faults *rn_fabric_faults(struct rn_fabric *fabric)
{
	return ((struct rn_system *)fabric)->faults;
}

const struct rn_scenario *rn_system_scenario(const struct rn_system *system)
{
	return system->scenario;
}

uint64_t rn_system_captured(const struct rn_system *system)
{
	(void)system;
	return 77;
}

const char *rn_driver_program_without_grh(const struct rn_driver *driver)
{
	(void)driver;
	return "";
}

void rn_driver_get_usage(const struct rn_driver *driver, struct rn_driver_usage *usage)
{
	(void)driver;
	*usage = (struct rn_driver_usage){.clients = 1, .qps = 2, .pinned_pages = 3};
}

static void set_host(struct rn_scenario_host *host)
{
	host->root_complex.memory_gbps = 400;
	host->root_complex.outstanding_reads = 64;
	host->root_complex.read_latency_ps = 300000;
	host->nic.nic.core_hz = 500000000;
	host->nic.doorbell.interval_cycles = 1;
	host->nic.sched.interval_cycles = 1;
	host->nic.wqe_fetch.decode_interval_cycles = 1;
	host->nic.transport.turn_cycles = 1;
	host->nic.transport.completion_cycles = 1;
	host->nic.transport.tx_packet_cycles = 1;
	host->nic.transport.rx_packet_cycles = 1;
	host->nic.transport.reply_packet_cycles = 1;
	host->nic.cqe.interval_cycles = 1;
	host->nic.eq.interval_cycles = 1;
}

static struct rn_system *new_system(const struct rn_scenario *scenario)
{
	struct rn_system *system = rn_calloc(1, sizeof(*system));

	system->scenario = scenario;
	system->sim = rn_sim_new(0);
	system->stats = rn_stats_new();
	system->stamps = rn_stamps_new(true, 10000);
	system->faults = rn_faults_new();
	rn_clock_init(&system->clock, "core", 500000000);
	return system;
}

struct fixture *fixture_new(unsigned hosts)
{
	struct fixture *fixture = rn_calloc(1, sizeof(*fixture));

	fixture->scenario.hosts = hosts;
	fixture->scenario.host = fixture->host;
	fixture->scenario.fabric.link_mbps = 100000;
	for (unsigned i = 0; i < hosts; i++)
		set_host(&fixture->host[i]);
	static struct rn_driver *const drivers[64];

	fixture->outcome = (struct rn_outcome){
		.driver = drivers,
		.options = &fixture->options,
		.system = new_system(&fixture->scenario),
		.measured_from_ps = 1000000000,
		.end_ps = 11000000000,
		.wall_s = 2,
		.largest_lag_s = 0.25,
		.wakes = 5000,
	};
	return fixture;
}

void fixture_free(struct fixture *fixture)
{
	struct rn_system *system = fixture->outcome.system;

	rn_stats_free(system->stats);
	for (unsigned i = 0; i < system->entries; i++) {
		free(system->entry[i].instance);
		free(system->entry[i].name);
	}
	for (unsigned i = 0; i < system->blocks; i++) {
		free((char *)system->block[i]->name);
		free(system->block[i]);
	}
	for (unsigned i = 0; i < system->fifos; i++) {
		rn_fifo_fini(system->fifo[i]);
		free(system->fifo[i]);
	}
	rn_faults_free(system->faults);
	rn_stamps_free(system->stamps);
	rn_sim_free(system->sim);
	free(system);
	free(fixture);
}

void fixture_set(struct fixture *fixture, const char *instance, const char *counter, uint64_t value)
{
	struct rn_system *system = fixture->outcome.system;
	struct entry *entry = system->entry;

	while (entry < system->entry + system->entries &&
	       (strcmp(entry->instance, instance) || strcmp(entry->name, counter)))
		entry++;
	if (entry == system->entry + system->entries) {
		system->entries++;
		entry->instance = rn_strdup(instance);
		entry->name = rn_strdup(counter);
		entry->desc.name = entry->name;
		rn_stats_add_counters(system->stats, instance, &entry->desc, 1, &entry->value);
	}
	entry->value = value;
}

void fixture_set_active(struct fixture *fixture, unsigned host, uint64_t active_ps)
{
	char *mac = rn_asprintf("host%u.nic0.mac", host);

	fixture_set(fixture, mac, "first_frame_ps", 3000000000);
	fixture_set(fixture, mac, "last_frame_ps", 5000000000);
	fixture_set(fixture, mac, "active_ps", active_ps);
	fixture_set(fixture, mac, "tx_packets_phy", 10);
	fixture_set(fixture, mac, "rx_packets_phy", 4);
	fixture_set(fixture, mac, "tx_bytes_phy", 10 * 1004);
	fixture_set(fixture, mac, "rx_bytes_phy", 4 * 66);
	free(mac);
}

static void tick(void *self, uint64_t cycle)
{
	(void)self;
	(void)cycle;
}

struct rn_block *fixture_block(struct fixture *fixture, const char *name)
{
	struct rn_system *system = fixture->outcome.system;
	struct rn_block *block = rn_calloc(1, sizeof(*block));

	rn_block_init(block, system->sim, &system->clock, rn_strdup(name), tick, NULL);
	rn_stats_add_block(system->stats, block);
	system->block[system->blocks++] = block;
	return block;
}

struct rn_fifo *fixture_fifo(struct fixture *fixture, const char *name, uint32_t depth)
{
	struct rn_system *system = fixture->outcome.system;
	struct rn_fifo *fifo = rn_calloc(1, sizeof(*fifo));

	rn_fifo_init(fifo, system->sim, name, depth, 8, 1);
	rn_stats_add_fifo(system->stats, fifo);
	system->fifo[system->fifos++] = fifo;
	return fifo;
}

void fixture_stamp(struct fixture *fixture, const struct rn_stamp *stamp)
{
	rn_stamps_record(fixture->outcome.system->stamps, stamp);
}

/* No unit of the fixture's is RTL. */
bool rn_cosim_unit_at(const struct rn_cosim *cosim, unsigned idx, struct rn_cosim_unit_info *info)
{
	(void)cosim;
	(void)idx;
	(void)info;
	return false;
}
