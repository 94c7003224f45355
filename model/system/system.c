/*
 * Assembly of the modelled world. No behaviour.
 */
#include "system/system.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/output.h"
#include "nic/unit.h"
#include "pcie/tlp_log.h"
#include "wire/packet.h"

#define STAMPS_KEPT 4000000u /* 32 bytes each */
#define BITS_PER_MBIT 1000000u
#define PS_PER_S UINT64_C(1000000000000)
#define EDGE_CYCLES 3u

struct host {
	char *name;
	char *nic_name;
	struct rn_host_memory *memory;
	struct rn_nic *nic;
	struct rn_root_complex *root_complex;
};

struct rn_system {
	const struct rn_scenario *scenario;
	const struct rn_unit_builder *units;
	struct rn_sim *sim;
	struct rn_stats *stats;
	struct rn_stamps *stamps;
	struct rn_buffers *buffers;
	struct rn_packets *packets;
	struct rn_capture *capture;
	struct rn_output *tlp_output;
	struct rn_tlp_log *tlp_log;
	struct rn_output *lookup_output;
	FILE *lookup_file; /* of the output */
	struct host *host;
	struct rn_cable cable;
	struct rn_fabric *fabric;
};

void rn_system_mac(unsigned host, uint8_t mac[6])
{
	memset(mac, 0, 6);
	mac[0] = 0x02;
	mac[5] = (uint8_t)(host + 1);
}

static void identify(const struct rn_device_params *device, struct rn_doorbell_identity *identity)
{
	identity->vendor = device->vendor_id;
	identity->part = device->vendor_part_id;
	identity->hw_version = device->hw_ver;
	identity->cap_queues = device->log_max_qp | device->log_max_cq << 8 | 6u << 16;
	identity->cap_memory = device->log_max_mr | device->log_max_mtt << 8 | 12u << 16;
	identity->cap_wqe = device->max_sge | device->log_max_sq_wqebbs << 8 |
			    device->log_max_rq_wqes << 16 | device->log_max_cqes << 24;
}

/*
 * What a link's buffers have to allow for is known to those who configure both ends: a frame and then its pause pass
 * through PCS and PMA of the receiver, the pause through those of the sender, and an edge or two of each clock.
 */
static void describe_link(struct rn_system *system)
{
	const struct rn_scenario *scenario = system->scenario;
	struct rn_cable *cable = &system->cable;

	cable->bps = scenario->fabric.link_mbps * BITS_PER_MBIT;
	cable->delay_ps = scenario->fabric.link_delay_ps;
	cable->is_lossless = scenario->flow_control == RN_FLOW_CONTROL_PFC;
	for (unsigned i = 0; i < scenario->hosts; i++) {
		const struct rn_mac_params *mac = &scenario->host[i].nic.mac;
		uint64_t cycles = mac->rx_latency_cycles + mac->tx_latency_cycles + EDGE_CYCLES;

		cable->reaction_ps =
			rn_max_u64(cable->reaction_ps, 2 * cycles * PS_PER_S / mac->clock_hz);
	}
}

static void make_host(struct rn_system *system, unsigned idx)
{
	const struct rn_scenario_host *params = &system->scenario->host[idx];
	struct host *host = &system->host[idx];
	struct rn_doorbell_identity identity;
	struct rn_pcie_ports ports;
	struct rn_nic_env env = {
		.sim = system->sim,
		.stats = system->stats,
		.stamps = system->stamps,
		.buffers = system->buffers,
		.packets = system->packets,
		.host = idx,
		.seed = system->scenario->seed,
		.units = system->units,
	};

	host->name = rn_asprintf("host%u", idx);
	host->nic_name = rn_asprintf("host%u.nic0", idx);
	host->memory = rn_host_memory_new();
	env.name = host->nic_name;
	identify(&params->device, &identity);
	host->nic = rn_nic_new(&env, &params->nic, &identity, &system->cable);
	rn_nic_pcie_ports(host->nic, &ports);
	host->root_complex = rn_root_complex_new(&(struct rn_root_complex_env){
		.sim = system->sim,
		.stats = system->stats,
		.stamps = system->stamps,
		.buffers = system->buffers,
		.memory = host->memory,
		.log = system->tlp_log,
		.name = host->name,
		.nic_name = host->nic_name,
		.host = idx,
		.params = &params->root_complex,
		.pcie = &params->nic.pcie,
		.ports = &ports,
	});
	if (system->lookup_file) {
		rn_context_cache_set_log(rn_nic_context_cache(host->nic), system->lookup_file);
		if (rn_nic_pte_cache(host->nic))
			rn_pte_cache_set_log(rn_nic_pte_cache(host->nic), system->lookup_file);
	}
}

static void make_fabric(struct rn_system *system)
{
	const struct rn_scenario *scenario = system->scenario;
	struct rn_fabric_port *port = rn_calloc(scenario->hosts, sizeof(*port));

	for (unsigned i = 0; i < scenario->hosts; i++) {
		port[i].out = rn_nic_line_out(system->host[i].nic);
		port[i].in = rn_nic_line_in(system->host[i].nic);
		port[i].discard = rn_nic_count_discard;
		port[i].arg = system->host[i].nic;
		rn_system_mac(i, port[i].mac);
	}
	system->fabric =
		rn_fabric_new(system->sim, system->stats, system->packets, &scenario->fabric,
			      &system->cable, port, scenario->hosts, system->capture);
	free(port);
	for (unsigned i = 0; i < scenario->faults; i++)
		rn_faults_add(rn_fabric_faults(system->fabric), &scenario->fault[i]);
}

static bool open_files(struct rn_system *system, const struct rn_system_options *options,
		       char **error)
{
	if (options->pcap_path) {
		system->capture = rn_capture_open(options->pcap_path, options->pcap_snap,
						  system->packets, error);
		if (!system->capture)
			return false;
	}
	if (options->tlp_path) {
		system->tlp_output = rn_output_open(options->tlp_path, "a log", error);
		if (!system->tlp_output)
			return false;
		system->tlp_log =
			rn_tlp_log_new(system->sim, rn_output_stream(system->tlp_output), true);
	}
	if (!options->lookup_path)
		return true;
	system->lookup_output = rn_output_open(options->lookup_path, "a log", error);
	if (system->lookup_output)
		system->lookup_file = rn_output_stream(system->lookup_output);
	return system->lookup_output != NULL;
}

struct rn_system *rn_system_new(const struct rn_scenario *scenario,
				const struct rn_system_options *options, char **error)
{
	struct rn_system *system = rn_calloc(1, sizeof(*system));

	system->scenario = scenario;
	system->units = options->units;
	system->sim = rn_sim_new(options->permute_seed);
	system->stats = rn_stats_new();
	system->stamps = rn_stamps_new(options->stamps, STAMPS_KEPT);
	system->buffers = rn_buffers_new();
	system->packets = rn_packets_new(system->buffers);
	if (!open_files(system, options, error)) {
		rn_system_free(system, NULL);
		return NULL;
	}
	describe_link(system);
	system->host = rn_calloc(scenario->hosts, sizeof(*system->host));
	for (unsigned i = 0; i < scenario->hosts; i++)
		make_host(system, i);
	if (system->units && system->lookup_file)
		system->units->set_log(system->units->arg, system->lookup_file);
	make_fabric(system);
	return system;
}

static void free_host(struct host *host)
{
	rn_root_complex_free(host->root_complex);
	rn_nic_free(host->nic);
	rn_host_memory_free(host->memory);
	free(host->nic_name);
	free(host->name);
}

static int first_error(int a, int b)
{
	return a ? a : b;
}

int rn_system_free(struct rn_system *system, char **message)
{
	int error;

	rn_fabric_free(system->fabric);
	if (system->host)
		for (unsigned i = 0; i < system->scenario->hosts; i++)
			free_host(&system->host[i]);
	free(system->host);
	error = rn_capture_close(system->capture, message);
	rn_tlp_log_free(system->tlp_log);
	error = first_error(error, rn_output_close(system->tlp_output, message));
	error = first_error(error, rn_output_close(system->lookup_output, message));
	rn_packets_free(system->packets);
	rn_buffers_free(system->buffers);
	rn_stamps_free(system->stamps);
	rn_stats_free(system->stats);
	rn_sim_free(system->sim);
	free(system);
	return error;
}

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

struct rn_packets *rn_system_packets(struct rn_system *system)
{
	return system->packets;
}

struct rn_buffers *rn_system_buffers(struct rn_system *system)
{
	return system->buffers;
}

struct rn_fabric *rn_system_fabric(struct rn_system *system)
{
	return system->fabric;
}

struct rn_root_complex *rn_system_root_complex(struct rn_system *system, unsigned host)
{
	return system->host[host].root_complex;
}

const struct rn_scenario *rn_system_scenario(const struct rn_system *system)
{
	return system->scenario;
}

uint64_t rn_system_captured(const struct rn_system *system)
{
	return system->capture ? rn_capture_frames(system->capture) : 0;
}
