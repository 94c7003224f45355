/*
 * Event queues and MSI-X.
 */
#ifndef RN_NIC_EQ_EQ_H
#define RN_NIC_EQ_EQ_H

#include "nic/msg/completion.h"
#include "nic/msg/dma.h"
#include "nic/msg/env.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_EQ_PARAMS(X)                                                                            \
	X(u32, max_eqs, 64, 1, 256, "EQs", "event queues")                                         \
	X(u32, in_flight, 8, 1, 256, "events", "events being written at once")                     \
	X(u32, interval_cycles, 1, 1, 1000, "cycles", "least distance of two events taken")

RN_PARAM_STRUCT(rn_eq_params, RN_EQ_PARAMS);
extern const struct rn_param_table rn_eq_param_table;

struct rn_eq_ports {
	/* In. */
	struct rn_fifo *cqe_event; /* struct rn_event */
	struct rn_fifo *tx_event;  /* struct rn_event */
	struct rn_fifo *rx_event;  /* struct rn_event */
	struct rn_fifo *cmd_event; /* struct rn_event */
	struct rn_fifo *ctl;	   /* struct rn_eq_ctl, from cmd */
	struct rn_fifo *dma_rsp;   /* struct rn_dma_rsp, channel EQ */
	/* Out. */
	struct rn_fifo *ctl_done; /* struct rn_ctl_done (token = EQN), to cmd */
	struct rn_fifo *dma_req;  /* struct rn_dma_req */
};

struct rn_eq;

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_eq *rn_eq_new(const struct rn_nic_env *env, const struct rn_eq_params *params,
			const struct rn_eq_ports *ports);
void rn_eq_free(struct rn_eq *eq);

#endif
