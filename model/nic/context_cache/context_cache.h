/*
 * Context caches: QPC, CQC and SRQC lines fetched from ICM in host memory.
 */
#ifndef RN_NIC_CONTEXT_CACHE_CONTEXT_CACHE_H
#define RN_NIC_CONTEXT_CACHE_CONTEXT_CACHE_H

#include <stdio.h>

#include "nic/msg/context.h"
#include "nic/msg/dma.h"
#include "nic/msg/env.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_CONTEXT_CACHE_PARAMS(X)                                                                 \
	X(u32, interval_cycles, 1, 1, 1024, "cycles", "initiation interval: one request each")     \
	X(u32, hit_cycles, 3, 1, 1024, "cycles",                                                   \
	  "lookup: answer of a hit, or first DMA request of a miss")                               \
	X(u32, fill_cycles, 2, 1, 1024, "cycles",                                                  \
	  "from the arrival of a missed line to the answers")                                      \
	X(u32, qpc_sets, 128, 1, 65536, "sets", "QP contexts, power of two")                       \
	X(u32, qpc_ways, 8, 1, 1024, "ways", "QP contexts; more than the 4 blocks that lock one")  \
	X(u32, qpc_misses, 8, 1, 64, "registers", "QP context misses outstanding")                 \
	X(u32, cqc_sets, 128, 1, 65536, "sets", "CQ contexts, power of two")                       \
	X(u32, cqc_ways, 4, 1, 1024, "ways", "CQ contexts; more than the 2 blocks that lock one")  \
	X(u32, cqc_misses, 4, 1, 64, "registers", "CQ context misses outstanding")                 \
	X(u32, srqc_sets, 16, 1, 65536, "sets", "SRQ contexts, power of two")                      \
	X(u32, srqc_ways, 2, 1, 1024, "ways", "SRQ contexts")                                      \
	X(u32, srqc_misses, 2, 1, 64, "registers", "SRQ context misses outstanding")

RN_PARAM_STRUCT(rn_context_cache_params, RN_CONTEXT_CACHE_PARAMS);
extern const struct rn_param_table rn_context_cache_param_table;

struct rn_context_cache_ports {
	/* In. */
	struct rn_fifo *req[RN_CONTEXT_CLIENT_COUNT]; /* struct rn_context_req */
	struct rn_fifo *base;			      /* struct rn_context_base, from cmd */
	struct rn_fifo *dma_rsp;		      /* struct rn_dma_rsp, channel CONTEXT */
	/* Out. */
	struct rn_fifo *rsp[RN_CONTEXT_CLIENT_COUNT]; /* struct rn_context_rsp */
	struct rn_fifo *dma_req;		      /* struct rn_dma_req */
	/* Shared memories: lines are filled by this block. */
	struct rn_context_sram *sram[RN_CONTEXT_TYPES];
};

struct rn_context_cache;

/** Lines that the SRAM of @type (enum rn_context_type) must have: sets * ways. */
uint32_t rn_context_cache_lines(const struct rn_context_cache_params *params, unsigned type);

/** Bytes of a line of @type: the size of its context in the hardware interface. */
uint32_t rn_context_cache_line_bytes(unsigned type);

/**
 * Check what single ranges cannot: powers of two, more ways than blocks that lock a line (each holds at
 * most one, so a miss always finds a way in the end), size. Returns what is wrong, or NULL.
 */
const char *rn_context_cache_check(const struct rn_context_cache_params *params);

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_context_cache *rn_context_cache_new(const struct rn_nic_env *env,
					      const struct rn_context_cache_params *params,
					      const struct rn_context_cache_ports *ports);
void rn_context_cache_free(struct rn_context_cache *context_cache);

/**
 * Log every request that takes effect to @log (borrowed, NULL: off), one line each:
 * "<time_ps> <qpc|cqc|srqc> <acquire|release|prefetch|flush> <number> <result> <set> <victim>" with result
 * hit, miss, merge, drop, done or bad and victim the number that made room, - when none did.
 */
void rn_context_cache_set_log(struct rn_context_cache *context_cache, FILE *log);

#endif
