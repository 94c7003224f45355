/*
 * One RNIC: all blocks, the fifos between them, the shared SRAMs. Its two ends are the PCIe link and
 * the Ethernet line.
 */
#ifndef RN_NIC_NIC_H
#define RN_NIC_NIC_H

#include "nic/cmd/cmd.h"
#include "nic/context_cache/context_cache.h"
#include "nic/cqe/cqe.h"
#include "nic/dma/dma.h"
#include "nic/doorbell/doorbell.h"
#include "nic/eq/eq.h"
#include "nic/mac/mac.h"
#include "nic/msg/pcie.h"
#include "nic/pte_cache/pte_cache.h"
#include "nic/sched/sched.h"
#include "nic/transport/transport.h"
#include "nic/wqe_fetch/wqe_fetch.h"

/* Parameters of the NIC as a whole: its clock and the depths of the fifos between blocks. */
#define RN_NIC_PARAMS(X)                                                                           \
	X(u64, core_hz, 500000000, 1000000, 10000000000, "Hz", "clock of every block but the MAC") \
	X(u32, mmio_fifo_depth, 64, 1, 65536, "entries",                                           \
	  "BAR writes waiting for the doorbell unit")                                              \
	X(u32, ring_fifo_depth, 64, 1, 65536, "entries",                                           \
	  "decoded doorbells waiting for scheduler, WQE fetcher, CQE writer, command unit")        \
	X(u32, work_fifo_depth, 16, 1, 65536, "entries", "grants, work items and turns")           \
	X(u32, recv_fifo_depth, 16, 1, 65536, "entries", "receive WQE requests and answers")       \
	X(u32, context_fifo_depth, 4, 1, 65536, "entries", "context requests and answers")         \
	X(u32, pte_fifo_depth, 16, 1, 65536, "entries", "translation requests, answers, releases") \
	X(u32, tlp_fifo_depth, 16, 1, 65536, "entries", "TLP bursts waiting for the PCIe link")    \
	X(u32, dma_req_fifo_depth, 8, 1, 65536, "entries", "DMA requests of a channel")            \
	X(u32, dma_rsp_fifo_depth, 16, 1, 65536, "entries", "DMA answers of a channel")            \
	X(u32, completion_fifo_depth, 16, 1, 65536, "entries", "completions of tx and rx")         \
	X(u32, event_fifo_depth, 16, 1, 65536, "entries", "events waiting for the EQ writer")      \
	X(u32, ctl_fifo_depth, 2, 1, 65536, "entries", "control requests and answers")             \
	X(u32, sq_slots, 64, 1, 65536, "WQEs", "decoded send WQEs held at once")                   \
	X(u32, rq_slots, 64, 1, 65536, "WQEs", "decoded receive WQEs held at once")

RN_PARAM_STRUCT(rn_nic_core_params, RN_NIC_PARAMS);
extern const struct rn_param_table rn_nic_param_table;

/* All parameters of a NIC profile; one member a section. */
struct rn_nic_params {
	struct rn_nic_core_params nic;
	struct rn_pcie_params pcie;
	struct rn_doorbell_params doorbell;
	struct rn_sched_params sched;
	struct rn_wqe_fetch_params wqe_fetch;
	struct rn_context_cache_params context_cache;
	struct rn_pte_cache_params pte_cache;
	struct rn_dma_params dma;
	struct rn_transport_params transport;
	struct rn_cqe_params cqe;
	struct rn_eq_params eq;
	struct rn_cmd_params cmd;
	struct rn_mac_params mac;
};

struct rn_nic_section {
	const struct rn_param_table *table;
	size_t offset; /* in struct rn_nic_params */
};

/** The sections in the order in which they are printed; ends with a NULL table. */
extern const struct rn_nic_section rn_nic_sections[];

/** Every parameter at its default. */
void rn_nic_params_init(struct rn_nic_params *params);

/** What does not fit together across parameters, as a text, or NULL when all is well. */
const char *rn_nic_params_check(const struct rn_nic_params *params);

struct rn_nic;

/**
 * Build a NIC. @env's clocks are ignored: the NIC makes its own from @params. Its fifos towards PCIe link and
 * Ethernet line are read with rn_nic_pcie_ports() and rn_nic_line_*(). @env is borrowed, @params, @identity and
 * @cable are copied.
 */
struct rn_nic *rn_nic_new(const struct rn_nic_env *env, const struct rn_nic_params *params,
			  const struct rn_doorbell_identity *identity,
			  const struct rn_cable *cable);
void rn_nic_free(struct rn_nic *nic);

/** The NIC's side of the PCIe link, for the root complex. */
void rn_nic_pcie_ports(struct rn_nic *nic, struct rn_pcie_ports *ports);

/** The ends of the Ethernet line: frames out of and into the MAC. */
struct rn_fifo *rn_nic_line_out(struct rn_nic *nic);
struct rn_fifo *rn_nic_line_in(struct rn_nic *nic);
/** For the fabric: count a frame that found line_in full. */
void rn_nic_count_discard(void *nic);

/** The blocks that take an option of their own (lookup logs); the PTE cache's is NULL when RTL stands in its place. */
struct rn_context_cache *rn_nic_context_cache(struct rn_nic *nic);
struct rn_pte_cache *rn_nic_pte_cache(struct rn_nic *nic);

#endif
