/*
 * WQE fetcher: reads, caches and decodes send and receive WQEs.
 */
#ifndef RN_NIC_WQE_FETCH_WQE_FETCH_H
#define RN_NIC_WQE_FETCH_WQE_FETCH_H

#include "nic/msg/context.h"
#include "nic/msg/dma.h"
#include "nic/msg/env.h"
#include "nic/msg/work.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_WQE_FETCH_PARAMS(X)                                                                     \
	X(u32, send_fetches, 16, 1, 256, "fetches", "send WQE fetches in progress at once")        \
	X(u32, recv_fetches, 8, 1, 256, "fetches", "receive WQE fetches in progress at once")      \
	X(u32, batch_wqebbs, 8, 1, 32, "WQEBBs", "send queue blocks read by one fetch")            \
	X(u32, cache_sets, 16, 1, 4096, "sets", "send WQE cache: sets, indexed by QPN")            \
	X(u32, cache_ways, 4, 1, 16, "ways", "send WQE cache: ways, each a batch of one QP")       \
	X(u32, recv_batch_wqes, 8, 1, 64, "WQEs", "receive WQEs read by one fetch")                \
	X(u32, recv_cache_sets, 16, 1, 4096, "sets", "receive WQE cache: sets, indexed by QPN")    \
	X(u32, recv_cache_ways, 4, 1, 16, "ways", "receive WQE cache: ways")                       \
	X(u32, blueflame_slots, 16, 0, 256, "WQEs", "BlueFlame WQEs waiting for their grant")      \
	X(u32, decode_latency_cycles, 6, 1, 1000, "cycles", "from a WQE's data to its work")       \
	X(u32, decode_interval_cycles, 2, 1, 1000, "cycles", "least distance of two decoded WQEs")

RN_PARAM_STRUCT(rn_wqe_fetch_params, RN_WQE_FETCH_PARAMS);
extern const struct rn_param_table rn_wqe_fetch_param_table;

struct rn_wqe_fetch_ports {
	/* In. */
	struct rn_fifo *grant;	     /* struct rn_grant, from sched */
	struct rn_fifo *blueflame;   /* struct rn_blueflame, from doorbell */
	struct rn_fifo *sq_free;     /* struct rn_slot_free, from transport tx */
	struct rn_fifo *sq_forget;   /* struct rn_wqe_forget, from transport tx */
	struct rn_fifo *rq_fetch;    /* struct rn_rq_fetch, from transport rx */
	struct rn_fifo *rq_free;     /* struct rn_slot_free, from transport rx */
	struct rn_fifo *context_rsp; /* struct rn_context_rsp */
	struct rn_fifo *sq_dma_rsp;  /* struct rn_dma_rsp, channel WQE_SQ */
	struct rn_fifo *rq_dma_rsp;  /* struct rn_dma_rsp, channel WQE_RQ */
	/* Out. */
	struct rn_fifo *bind; /* struct rn_bind, to sched; NULL: not asked for (unit tests) */
	struct rn_fifo *work; /* struct rn_work, to transport tx */
	struct rn_fifo *rq_fetch_rsp; /* struct rn_rq_fetch_rsp, to transport rx */
	struct rn_fifo *context_req;  /* struct rn_context_req */
	struct rn_fifo *sq_dma_req;   /* struct rn_dma_req */
	struct rn_fifo *rq_dma_req;   /* struct rn_dma_req */
	/* Shared memories. */
	const struct rn_context_sram *qpc; /* read: config and sq_next */
	struct rn_wqe_slots *sq_slots;	   /* this block owns the free list */
	struct rn_wqe_slots *rq_slots;
};

struct rn_wqe_fetch;

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_wqe_fetch *rn_wqe_fetch_new(const struct rn_nic_env *env,
				      const struct rn_wqe_fetch_params *params,
				      const struct rn_wqe_fetch_ports *ports);
void rn_wqe_fetch_free(struct rn_wqe_fetch *wqe_fetch);

#endif
