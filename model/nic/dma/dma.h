/*
 * DMA engine: translates, splits, tags, orders and reassembles the NIC's accesses to host memory.
 */
#ifndef RN_NIC_DMA_DMA_H
#define RN_NIC_DMA_DMA_H

#include "nic/msg/dma.h"
#include "nic/msg/env.h"
#include "nic/msg/pcie.h"
#include "nic/msg/pte.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_DMA_PARAMS(X)                                                                           \
	X(u32, tags, 64, 1, 1024, "tags", "read TLPs outstanding")                                 \
	X(u32, reassembly_bytes, 65536, 64, 16777216, "bytes",                                     \
	  "buffer for completions: a read TLP needs room for all its data; at least one MRRS")     \
	X(u32, channel_requests, 16, 1, 64, "requests",                                            \
	  "of each channel, waiting for translation or for their turn")                            \
	X(u32, channel_reads, 32, 1, 256, "requests", "reads of each channel in progress")         \
	X(u32, translations, 32, 1, 704, "requests", "translations asked for and not answered")    \
	X(u32, burst_tlps, 4, 1, 64, "TLPs", "a channel sends in a row before others get a turn")  \
	X(u32, issue_interval_cycles, 1, 1, 64, "cycles", "from one TLP to the next")              \
	X(u32, issue_latency_cycles, 4, 1, 1024, "cycles", "from a channel's turn to its TLP")     \
	X(u32, completion_interval_cycles, 1, 1, 64, "cycles",                                     \
	  "from one completed read TLP to the next")                                               \
	X(u32, response_latency_cycles, 2, 1, 1024, "cycles",                                      \
	  "from the last completion, or the turn of a write's last TLP, to the answer")            \
	X(u32, weight_pte, 1, 1, 64, "bursts", "turns in a row of this channel")                   \
	X(u32, weight_context, 1, 1, 64, "bursts", "turns in a row of this channel")               \
	X(u32, weight_wqe_sq, 1, 1, 64, "bursts", "turns in a row of this channel")                \
	X(u32, weight_wqe_rq, 1, 1, 64, "bursts", "turns in a row of this channel")                \
	X(u32, weight_tx, 1, 1, 64, "bursts", "turns in a row of this channel")                    \
	X(u32, weight_resp, 1, 1, 64, "bursts", "turns in a row of this channel")                  \
	X(u32, weight_rx, 1, 1, 64, "bursts", "turns in a row of this channel")                    \
	X(u32, weight_read_data, 1, 1, 64, "bursts", "turns in a row of this channel")             \
	X(u32, weight_cqe, 1, 1, 64, "bursts", "turns in a row of this channel")                   \
	X(u32, weight_eq, 1, 1, 64, "bursts", "turns in a row of this channel")                    \
	X(u32, weight_cmd, 1, 1, 64, "bursts", "turns in a row of this channel")

RN_PARAM_STRUCT(rn_dma_params, RN_DMA_PARAMS);
extern const struct rn_param_table rn_dma_param_table;

struct rn_dma_ports {
	/* In. */
	struct rn_fifo *req[RN_DMA_CH_COUNT]; /* struct rn_dma_req */
	struct rn_fifo *pte_rsp;	      /* struct rn_pte_rsp */
	struct rn_fifo *completion; /* struct rn_tlp, from the link; as deep as there are tags */
	/* Out. */
	struct rn_fifo *
		rsp[RN_DMA_CH_COUNT]; /* struct rn_dma_rsp; reads in order of request, writes too */
	struct rn_fifo *pte_req;      /* struct rn_pte_req */
	struct rn_fifo *pte_release;  /* struct rn_pte_release */
	struct rn_fifo *posted;	      /* struct rn_tlp, to the link */
	struct rn_fifo *nonposted;    /* struct rn_tlp, to the link */
};

struct rn_dma;

/**
 * Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer,
 * rn_fifo_set_consumer). @pcie: MPS and MRRS, as in the device control register; copied, as is
 * @params.
 */
struct rn_dma *rn_dma_new(const struct rn_nic_env *env, const struct rn_dma_params *params,
			  const struct rn_pcie_params *pcie, const struct rn_dma_ports *ports);
void rn_dma_free(struct rn_dma *dma);

#endif
