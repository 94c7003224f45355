/*
 * PTE cache: memory protection (MPT) and translation (MTT) entries fetched from ICM.
 */
#ifndef RN_NIC_PTE_CACHE_PTE_CACHE_H
#define RN_NIC_PTE_CACHE_PTE_CACHE_H

#include <stdio.h>

#include "nic/msg/context.h"
#include "nic/msg/dma.h"
#include "nic/msg/env.h"
#include "nic/msg/pte.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_PTE_CACHE_PARAMS(X)                                                                     \
	X(u32, interval_cycles, 1, 1, 1024, "cycles", "initiation interval: one lookup each")      \
	X(u32, mpt_cycles, 2, 1, 1024, "cycles", "MPT lookup and the checks of key and range")     \
	X(u32, mtt_cycles, 2, 1, 1024, "cycles", "MTT lookup, behind the MPT's")                   \
	X(u32, fill_cycles, 1, 1, 1024, "cycles",                                                  \
	  "from the arrival of a missed line to the first lookup that waited for it")              \
	X(u32, request_slots, 64, 1, 4096, "requests", "requests inside, waiting or answered")     \
	X(u32, mpt_sets, 512, 1, 65536, "sets", "MPT cache, power of two")                         \
	X(u32, mpt_ways, 2, 1, 256, "ways", "MPT cache")                                           \
	X(u32, mpt_misses, 8, 1, 256, "registers", "MPT misses outstanding")                       \
	X(u32, mtt_sets, 512, 1, 65536, "sets", "MTT cache, power of two")                         \
	X(u32, mtt_ways, 2, 1, 256, "ways", "MTT cache")                                           \
	X(u32, mtt_line_entries, 8, 1, 64, "entries",                                              \
	  "translations of a line, read at once; power of two")                                    \
	X(u32, mtt_misses, 8, 1, 256, "registers", "MTT misses outstanding")

RN_PARAM_STRUCT(rn_pte_cache_params, RN_PTE_CACHE_PARAMS);
extern const struct rn_param_table rn_pte_cache_param_table;

struct rn_pte_cache_ports {
	/* In. */
	struct rn_fifo *req[RN_PTE_CLIENT_COUNT]; /* struct rn_pte_req */
	struct rn_fifo *release;		  /* struct rn_pte_release, from dma */
	struct rn_fifo *inval;			  /* struct rn_pte_inval, from cmd */
	struct rn_fifo *base;			  /* struct rn_pte_base, from cmd */
	struct rn_fifo *dma_rsp;		  /* struct rn_dma_rsp, channel PTE */
	/* Out. */
	struct rn_fifo *rsp[RN_PTE_CLIENT_COUNT]; /* struct rn_pte_rsp */
	struct rn_fifo *inval_done;		  /* struct rn_pte_inval_done */
	struct rn_fifo *dma_req;		  /* struct rn_dma_req */
};

struct rn_pte_cache;

/** Check what single ranges cannot (powers of two, size). Returns what is wrong, or NULL. */
const char *rn_pte_cache_check(const struct rn_pte_cache_params *params);

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_pte_cache *rn_pte_cache_new(const struct rn_nic_env *env,
				      const struct rn_pte_cache_params *params,
				      const struct rn_pte_cache_ports *ports);
void rn_pte_cache_free(struct rn_pte_cache *pte_cache);

/**
 * Log every lookup once, when it hits, misses or joins a miss, and every invalidation, to @log (borrowed,
 * NULL: off), one line each: "<time_ps> <mpt|mtt> <number> <hit|miss|merge|drop> <set> <victim>". The number is
 * the MPT index or the MTT line (entry / mtt_line_entries); victim the number that made room, - when none did.
 */
void rn_pte_cache_set_log(struct rn_pte_cache *pte_cache, FILE *log);

#endif
