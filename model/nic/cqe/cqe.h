/*
 * CQE writer: completions to completion queues in host memory, arming, overrun.
 */
#ifndef RN_NIC_CQE_CQE_H
#define RN_NIC_CQE_CQE_H

#include "nic/msg/completion.h"
#include "nic/msg/context.h"
#include "nic/msg/control.h"
#include "nic/msg/dma.h"
#include "nic/msg/doorbell.h"
#include "nic/msg/env.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_CQE_PARAMS(X)                                                                           \
	X(u32, in_flight, 16, 1, 256, "CQEs", "CQE writes in progress at once")                    \
	X(u32, max_cqs, 65536, 1, 1048576, "CQs", "CQs with pending arm state on the chip")        \
	X(u32, interval_cycles, 2, 1, 1000, "cycles", "least distance of two context requests")

RN_PARAM_STRUCT(rn_cqe_params, RN_CQE_PARAMS);
extern const struct rn_param_table rn_cqe_param_table;

struct rn_cqe_ports {
	/* In. */
	struct rn_fifo *tx_completion; /* struct rn_completion, from transport tx */
	struct rn_fifo *rx_completion; /* struct rn_completion, from transport rx */
	struct rn_fifo *cq_ring;       /* struct rn_cq_ring, from doorbell */
	struct rn_fifo *ctl;	       /* struct rn_cq_ctl, from cmd */
	struct rn_fifo *context_rsp;   /* struct rn_context_rsp */
	struct rn_fifo *dma_rsp;       /* struct rn_dma_rsp, channel CQE */
	/* Out. */
	struct rn_fifo *event;	     /* struct rn_event, to eq */
	struct rn_fifo *ctl_done;    /* struct rn_ctl_done, to cmd */
	struct rn_fifo *context_req; /* struct rn_context_req */
	struct rn_fifo *dma_req;     /* struct rn_dma_req */
	/* Shared memory. */
	const struct rn_context_sram *cqc; /* this block writes bytes 32..63 */
};

struct rn_cqe;

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_cqe *rn_cqe_new(const struct rn_nic_env *env, const struct rn_cqe_params *params,
			  const struct rn_cqe_ports *ports);
void rn_cqe_free(struct rn_cqe *cqe);

#endif
