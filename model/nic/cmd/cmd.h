/*
 * Command unit: executes the driver's commands through the caches.
 */
#ifndef RN_NIC_CMD_CMD_H
#define RN_NIC_CMD_CMD_H

#include "nic/msg/completion.h"
#include "nic/msg/context.h"
#include "nic/msg/control.h"
#include "nic/msg/dma.h"
#include "nic/msg/doorbell.h"
#include "nic/msg/env.h"
#include "nic/msg/identity.h"
#include "nic/msg/pte.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_CMD_PARAMS(X)                                                                           \
	X(u32, init_ns, 10000, 0, 1000000000, "ns", "execution of INIT_HCA, beside its DMA")       \
	X(u32, create_ns, 2000, 0, 1000000000, "ns", "execution of a create (QP, CQ, EQ)")         \
	X(u32, modify_ns, 2000, 0, 1000000000, "ns", "execution of a modify (QP, CQ)")             \
	X(u32, query_ns, 1000, 0, 1000000000, "ns", "execution of a query (QP, CQ)")               \
	X(u32, destroy_ns, 2000, 0, 1000000000, "ns", "execution of a destroy (QP, CQ, EQ)")       \
	X(u32, mkey_ns, 2000, 0, 1000000000, "ns", "execution of CREATE_MKEY and DESTROY_MKEY")

RN_PARAM_STRUCT(rn_cmd_params, RN_CMD_PARAMS);
extern const struct rn_param_table rn_cmd_param_table;

struct rn_cmd_ports {
	/* In. */
	struct rn_fifo *cmd_ring;    /* struct rn_cmd_ring, from doorbell */
	struct rn_fifo *context_rsp; /* struct rn_context_rsp */
	struct rn_fifo *inval_done;  /* struct rn_pte_inval_done */
	struct rn_fifo *dma_rsp;     /* struct rn_dma_rsp, channel CMD */
	struct rn_fifo *tx_ctl_done; /* struct rn_ctl_done */
	struct rn_fifo *rx_ctl_done; /* struct rn_ctl_done */
	struct rn_fifo *cq_ctl_done; /* struct rn_ctl_done */
	struct rn_fifo *eq_ctl_done; /* struct rn_ctl_done */
	/* Out. */
	struct rn_fifo *context_req;  /* struct rn_context_req */
	struct rn_fifo *context_base; /* struct rn_context_base */
	struct rn_fifo *pte_base;     /* struct rn_pte_base */
	struct rn_fifo *inval;	      /* struct rn_pte_inval */
	struct rn_fifo *dma_req;      /* struct rn_dma_req */
	/* FORGET: tx tells sched and wqe_fetch, rx tells wqe_fetch, before they answer. */
	struct rn_fifo *tx_ctl; /* struct rn_qp_ctl */
	struct rn_fifo *rx_ctl; /* struct rn_qp_ctl */
	struct rn_fifo *cq_ctl; /* struct rn_cq_ctl */
	struct rn_fifo *eq_ctl; /* struct rn_eq_ctl */
	struct rn_fifo *event;	/* struct rn_event (RN_EQE_COMMAND, EQ 0), to eq */
	struct rn_fifo *status; /* uint32_t, new value of REG_STATUS, to doorbell; may be NULL */
	/* Shared memories. */
	struct rn_nic_identity *identity; /* this block writes it, on INIT_HCA */
	struct rn_context_sram *qpc;	  /* this block writes the config section */
	struct rn_context_sram *cqc;	  /* and bytes 0..31 */
	uint32_t eqs;			  /* event queues that eq has; 0: 256 */
};

struct rn_cmd;

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_cmd *rn_cmd_new(const struct rn_nic_env *env, const struct rn_cmd_params *params,
			  const struct rn_cmd_ports *ports);
void rn_cmd_free(struct rn_cmd *cmd);

#endif
