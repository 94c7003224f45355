/*
 * Reading a scenario. Sections of a NIC profile are the units' parameter tables plus "device".
 */
#include "system/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"

#define RN_PARAM_OWNER rn_device_params
RN_PARAM_TABLE(rn_device_param_table, "device", RN_DEVICE_PARAMS);
#undef RN_PARAM_OWNER

#define RN_PARAM_OWNER rn_cpu_params
RN_PARAM_TABLE(rn_cpu_param_table, "cpu", RN_CPU_PARAMS);
#undef RN_PARAM_OWNER

#define DEFAULT_HOSTS 2

#define SCENARIO_PARAMS(X)                                                                         \
	X(u64, seed, 1, 0, 9007199254740991, "", "seed of everything random: frame order, keys")

RN_PARAM_STRUCT(scenario_params, SCENARIO_PARAMS);
#define RN_PARAM_OWNER scenario_params
RN_PARAM_TABLE(rn_scenario_param_table, "", SCENARIO_PARAMS);
#undef RN_PARAM_OWNER

/* A fault rule; ANY_VALUE is written as -1. */
#define FAULT_PARAMS(X)                                                                            \
	X(u32, host, 0, 0, 63, "", "host that sends the frame")                                    \
	X(f64, connection, -1, -1, 1000000, "",                                                    \
	  "connection by its first frame on the fabric, from 0; -1: any")                          \
	X(f64, psn_offset, -1, -1, 16777215, "",                                                   \
	  "PSN minus the first request PSN of the frame's stream; -1: any")                        \
	X(u32, transmission, 1, 0, 1000000, "",                                                    \
	  "1: the first frame that fits, 2: the second, ...; 0: every one")                        \
	X(u64, delay_ps, 0, 0, 1000000000000, "ps", "of action delay")

RN_PARAM_STRUCT(fault_params, FAULT_PARAMS);
#define RN_PARAM_OWNER fault_params
RN_PARAM_TABLE(rn_scenario_fault_param_table, "", FAULT_PARAMS);
#undef RN_PARAM_OWNER

static void host_defaults(struct rn_scenario_host *host)
{
	rn_nic_params_init(&host->nic);
	rn_params_set_defaults(&rn_device_param_table, &host->device);
	rn_params_set_defaults(&rn_cpu_param_table, &host->cpu);
	rn_params_set_defaults(&rn_root_complex_param_table, &host->root_complex);
}

/* What changes no result is not part of what is compared. */
static void read_units(struct rn_config *config, struct rn_config_node *nic,
		       struct rn_scenario_host *host)
{
	struct rn_config_node *section = rn_config_section(
		config, nic, "unit", "C block (model), SystemVerilog (rtl), or both (lockstep)");

	rn_config_leave_out(section);
	for (unsigned unit = 0; unit < RN_UNITS; unit++)
		host->unit[unit] = (enum rn_unit_mode)rn_config_choose(
			config, section,
			&(struct rn_config_choice){rn_unit_name(unit), rn_unit_mode_names,
						   RN_UNIT_MODEL, "what stands for this unit"});
}

static void read_host(struct rn_config *config, struct rn_config_node *node,
		      struct rn_scenario_host *host)
{
	struct rn_config_node *nic = rn_config_section(config, node, "nic", "NIC profile");
	struct rn_config_node *profile = rn_config_section(config, node, "host", "host profile");
	struct rn_config_node *section;
	const char *problem;

	section = rn_config_section(config, nic, rn_device_param_table.section,
				    "what software sees of the device");
	rn_config_bind(config, section, &rn_device_param_table, &host->device);
	for (const struct rn_nic_section *s = rn_nic_sections; s->table; s++) {
		section = rn_config_section(config, nic, s->table->section, NULL);
		rn_config_bind(config, section, s->table, (char *)&host->nic + s->offset);
	}
	read_units(config, nic, host);
	problem = rn_nic_params_check(&host->nic);
	if (problem)
		rn_config_error(config, nic, NULL, "%s", problem);
	if (UINT64_C(1) << host->device.log_max_qp > host->nic.sched.max_qps)
		rn_config_error(config, nic, NULL,
				"device.log_max_qp: 2^%u queue pairs, but sched.max_qps is %u",
				host->device.log_max_qp, host->nic.sched.max_qps);
	if (UINT64_C(1) << host->device.log_max_cq > host->nic.cqe.max_cqs)
		rn_config_error(config, nic, NULL,
				"device.log_max_cq: 2^%u completion queues, but cqe.max_cqs is %u",
				host->device.log_max_cq, host->nic.cqe.max_cqs);
	if (host->device.comp_vectors >= host->nic.eq.max_eqs)
		rn_config_error(
			config, nic, NULL,
			"device.comp_vectors: %u completion event queues and one for commands, "
			"but eq.max_eqs is %u",
			host->device.comp_vectors, host->nic.eq.max_eqs);
	section = rn_config_section(config, profile, rn_root_complex_param_table.section,
				    "root complex and host memory");
	rn_config_bind(config, section, &rn_root_complex_param_table, &host->root_complex);
	section = rn_config_section(config, profile, rn_cpu_param_table.section,
				    "what calls cost the programs (virtual time)");
	rn_config_bind(config, section, &rn_cpu_param_table, &host->cpu);
}

static void read_hosts(struct rn_config *config, struct rn_config_node *root,
		       struct rn_scenario *scenario)
{
	struct rn_config_node *list = rn_config_list(config, root, "hosts", "one entry a host");
	unsigned least = scenario->fabric.switched ? 1 : 2;
	unsigned most = scenario->fabric.switched ? RN_FABRIC_MAX_PORTS : 2;
	size_t count = rn_config_length(list);

	if (!rn_config_has(root, "hosts")) {
		rn_config_fill(config, list, DEFAULT_HOSTS);
		count = DEFAULT_HOSTS;
	} else if (count < least || count > most) {
		rn_config_error(config, root, "hosts", "%zu hosts: legal are %u to %u on %s", count,
				least, most,
				scenario->fabric.switched ? "a switch" : "a back-to-back fabric");
	}
	if (count < 1 || count > RN_FABRIC_MAX_PORTS)
		count = DEFAULT_HOSTS;
	scenario->hosts = (unsigned)count;
	scenario->host = rn_calloc(count, sizeof(*scenario->host));
	for (size_t i = 0; i < count; i++) {
		host_defaults(&scenario->host[i]);
		if (i < rn_config_length(list))
			read_host(config, rn_config_at(config, list, i), &scenario->host[i]);
	}
}

static uint32_t or_any(double value)
{
	return value < 0 ? RN_FAULT_ANY_VALUE : (uint32_t)value;
}

static void read_fault(struct rn_config *config, struct rn_config_node *node, unsigned hosts,
		       struct rn_fault *fault)
{
	static const char *actions[RN_FAULT_DELAY + 2];
	static const char *classes[RN_FAULT_CLASSES + 1];
	struct fault_params params;

	for (unsigned i = 0; i <= RN_FAULT_DELAY; i++)
		actions[i] = rn_fault_action_name(i);
	for (unsigned i = 0; i < RN_FAULT_CLASSES; i++)
		classes[i] = rn_fault_class_name(i);
	rn_config_bind(config, node, &rn_scenario_fault_param_table, &params);
	fault->action = (enum rn_fault_action)rn_config_choose(
		config, node,
		&(struct rn_config_choice){"action", actions, RN_FAULT_DROP,
					   "what happens to the frame"});
	fault->class = (enum rn_fault_class)rn_config_choose(
		config, node,
		&(struct rn_config_choice){"class", classes, RN_FAULT_ANY, "kind of frame"});
	if (params.host >= hosts)
		rn_config_error(config, node, "host", "host %u: there are %u hosts", params.host,
				hosts);
	fault->host = params.host;
	fault->connection = or_any(params.connection);
	fault->psn_offset = or_any(params.psn_offset);
	fault->transmission = params.transmission;
	fault->delay_ps = params.delay_ps;
}

static void read_faults(struct rn_config *config, struct rn_config_node *root,
			struct rn_scenario *scenario)
{
	struct rn_config_node *list =
		rn_config_list(config, root, "faults", "scripted faults on the wire");

	scenario->faults = (unsigned)rn_config_length(list);
	scenario->fault = rn_calloc(scenario->faults + 1, sizeof(*scenario->fault));
	for (unsigned i = 0; i < scenario->faults; i++)
		read_fault(config, rn_config_at(config, list, i), scenario->hosts,
			   &scenario->fault[i]);
}

static void read_fabric(struct rn_config *config, struct rn_config_node *section,
			struct rn_scenario *scenario)
{
	const char *problem;

	rn_config_bind(config, section, &rn_fabric_param_table, &scenario->fabric);
	scenario->flow_control = (enum rn_flow_control)rn_config_choose(
		config, section,
		&(struct rn_config_choice){
			"flow_control", rn_flow_control_names, RN_FLOW_CONTROL_PFC,
			"what has no room holds its sender back (pfc) or is dropped (none)"});
	problem = rn_fabric_check(&scenario->fabric);
	if (problem)
		rn_config_error(config, section, NULL, "%s", problem);
}

struct rn_scenario *rn_scenario_read(struct rn_config *config, struct rn_config_node *root)
{
	struct rn_scenario *scenario = rn_calloc(1, sizeof(*scenario));
	struct scenario_params params;

	rn_config_bind(config, root, &rn_scenario_param_table, &params);
	scenario->seed = params.seed;
	read_fabric(config, rn_config_section(config, root, "fabric", "links and switch"),
		    scenario);
	read_hosts(config, root, scenario);
	read_faults(config, root, scenario);
	return scenario;
}

struct rn_scenario *rn_scenario_default(unsigned hosts)
{
	struct rn_scenario *scenario = rn_calloc(1, sizeof(*scenario));
	struct scenario_params params;

	rn_params_set_defaults(&rn_scenario_param_table, &params);
	scenario->seed = params.seed;
	rn_params_set_defaults(&rn_fabric_param_table, &scenario->fabric);
	scenario->fabric.switched = hosts != 2;
	scenario->hosts = hosts;
	scenario->host = rn_calloc(hosts, sizeof(*scenario->host));
	for (unsigned i = 0; i < hosts; i++)
		host_defaults(&scenario->host[i]);
	return scenario;
}

void rn_scenario_free(struct rn_scenario *scenario)
{
	if (!scenario)
		return;
	free(scenario->host);
	free(scenario->fault);
	free(scenario);
}
