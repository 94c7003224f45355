/*
 * A scenario: everything that a configuration says about a run, as structs. Read from YAML through
 * sim/config.h; the built-in defaults are the default scenario.
 */
#ifndef RN_SYSTEM_SCENARIO_H
#define RN_SYSTEM_SCENARIO_H

#include "fabric/fabric.h"
#include "fabric/fault.h"
#include "nic/nic.h"
#include "nic/unit.h"
#include "pcie/root_complex.h"
#include "sim/config.h"

/* What software sees of the device; section "device" of a NIC profile. */
#define RN_DEVICE_PARAMS(X)                                                                          \
	X(u32, vendor_id, 0x524e43, 0, 0xffffff, "",                                                 \
	  "vendor id (verbs: vendor_id); the default is nobody's. Programs expect of a known one "   \
	  "what its driver offers: of 0x02c9 that mlx5dv works")                                     \
	X(u32, vendor_part_id, 4119, 0, 0xffffffff, "",                                              \
	  "part id; programs take decisions on it (4119: ConnectX-5, perftest then uses inline and " \
	  "ibv_wr_*; 0: neutral)")                                                                   \
	X(u32, hw_ver, 0, 0, 0xffffffff, "", "hardware revision")                                    \
	X(u32, log_max_qp, 14, 7, 20, "log2 QPs", "queue pairs")                                     \
	X(u32, log_max_cq, 14, 7, 20, "log2 CQs", "completion queues")                               \
	X(u32, log_max_mr, 17, 7, 22, "log2 entries", "memory keys (MPT entries)")                   \
	X(u32, log_max_mtt, 22, 10, 28, "log2 entries", "translation entries (MTT), 4 KiB pages")    \
	X(u32, max_pd, 32768, 1, 1048576, "PDs", "protection domains")                               \
	X(u32, log_max_sq_wqebbs, 15, 1, 15, "log2 WQEBBs", "largest send queue, 64-byte blocks")    \
	X(u32, log_max_rq_wqes, 15, 1, 15, "log2 WQEs", "largest receive queue")                     \
	X(u32, log_max_cqes, 22, 1, 22, "log2 CQEs", "largest completion queue")                     \
	X(u32, max_sge, 30, 1, 30, "SGEs", "scatter/gather entries of a WQE")                        \
	X(u32, max_inline_bytes, 828, 0, 900, "bytes", "inline data of a WQE")                       \
	X(u32, max_rd_atomic, 16, 1, 128, "READs", "READs outstanding per QP, each side")            \
	X(u32, max_mtu_bytes, 4096, 256, 4096, "bytes", "largest path MTU")                          \
	X(u32, active_mtu_bytes, 4096, 256, 4096, "bytes", "path MTU of the port")                   \
	X(u32, comp_vectors, 4, 1, 32, "vectors", "completion vectors (EQs)")                        \
	X(u32, local_ca_ack_delay, 16, 0, 31, "log2 4.096 us", "as ibv_devinfo shows it")            \
	X(u32, blueflame_max_bytes, 256, 0, 256, "bytes",                                            \
	  "largest WQE that the library sends by BlueFlame; 0: doorbells only")                      \
	X(bool, allow_no_grh, true, 0, 1, "",                                                        \
	  "accept RC without GRH: LID n means host n-1 (ibv_rc_pingpong without -g)")

RN_PARAM_STRUCT(rn_device_params, RN_DEVICE_PARAMS);
extern const struct rn_param_table rn_device_param_table;

/* What the host's software costs; section "cpu" of a host profile. Native code costs nothing else. */
#define RN_CPU_PARAMS(X)                                                                           \
	X(u64, post_send_ps, 90000, 0, 1000000000, "ps", "ibv_post_send of one work request")      \
	X(u64, post_send_next_ps, 16000, 0, 1000000000, "ps", "each further request of one list")  \
	X(u64, post_recv_ps, 16000, 0, 1000000000, "ps", "ibv_post_recv of one work request")      \
	X(u64, post_recv_next_ps, 7000, 0, 1000000000, "ps", "each further request of one list")   \
	X(u64, poll_hit_ps, 52000, 0, 1000000000, "ps", "ibv_poll_cq that returns completions")    \
	X(u64, poll_miss_ps, 20000, 1000, 1000000000, "ps", "ibv_poll_cq that returns nothing")    \
	X(u64, doorbell_ps, 20000, 0, 1000000000, "ps", "uncached store of a doorbell")            \
	X(u64, blueflame_64b_ps, 10000, 0, 1000000000, "ps", "write-combined store of 64 bytes")   \
	X(u64, cq_event_ps, 1000000, 0, 1000000000, "ps",                                          \
	  "ibv_get_cq_event, beside the interrupt")                                                \
	X(u64, clock_read_ps, 25000, 1000, 1000000000, "ps", "clock_gettime and its kin, rdtsc")   \
	X(u64, system_call_ps, 300000, 1000, 1000000000, "ps", "a system call on a descriptor")    \
	X(u64, memory_poll_ps, 50000, 0, 1000000000, "ps",                                         \
	  "a loop that spins on memory sees a byte that the NIC has written")                      \
	X(u64, tsc_hz, 2500000000, 1000000, 100000000000, "Hz", "frequency of rdtsc, cpu MHz")     \
	X(u64, poll_horizon_ps, 1000000000, 1000000, 1000000000000, "ps",                          \
	  "an empty CQ is looked at again after so long whatever happens")                         \
	X(u64, epoch_s, 1700000000, 0, 4000000000, "s", "CLOCK_REALTIME when simulated time begins")

RN_PARAM_STRUCT(rn_cpu_params, RN_CPU_PARAMS);
extern const struct rn_param_table rn_cpu_param_table;

struct rn_scenario_host {
	struct rn_nic_params nic;
	enum rn_unit_mode unit[RN_UNITS]; /* C block or RTL; no result depends on it */
	struct rn_device_params device;
	struct rn_cpu_params cpu;
	struct rn_root_complex_params root_complex;
};

struct rn_scenario {
	uint64_t seed;
	struct rn_fabric_params fabric;
	enum rn_flow_control flow_control;
	unsigned hosts; /* 2 to 64 (1 is legal on a switch) */
	struct rn_scenario_host *host;
	struct rn_fault *fault;
	unsigned faults;
};

/**
 * Read a scenario out of a composed configuration. Mistakes go to the configuration's diagnostics. Always returns
 * a scenario (defaults where there were mistakes); the caller frees it with rn_scenario_free() and must not run it
 * when there were mistakes.
 */
struct rn_scenario *rn_scenario_read(struct rn_config *config, struct rn_config_node *root);

/** The default scenario: @hosts hosts with every parameter at its default. */
struct rn_scenario *rn_scenario_default(unsigned hosts);
void rn_scenario_free(struct rn_scenario *scenario);

#endif
