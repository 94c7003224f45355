/*
 * State of the context caches, shared by the two files that make up the block: requests
 * (context_cache.c) and miss registers (miss.c).
 */
#ifndef RN_NIC_CONTEXT_CACHE_STATE_H
#define RN_NIC_CONTEXT_CACHE_STATE_H

#include "nic/context_cache/context_cache.h"
#include "nic/context_cache/lines.h"
#include "sim/block.h"
#include "sim/stats.h"

#define RN_CONTEXT_WAITERS 16 /* requests that one miss register can hold */
#define RN_CONTEXT_NO_NUMBER UINT32_MAX

#define RN_CONTEXT_CACHE_COUNTERS(X)                                                               \
	X(qpc_hits, "requests", "QP contexts found")                                               \
	X(qpc_misses, "requests", "QP contexts read from host memory")                             \
	X(qpc_merges, "requests", "QP contexts that were being read already")                      \
	X(cqc_hits, "requests", "CQ contexts found")                                               \
	X(cqc_misses, "requests", "CQ contexts read from host memory")                             \
	X(cqc_merges, "requests", "CQ contexts that were being read already")                      \
	X(srqc_hits, "requests", "SRQ contexts found")                                             \
	X(srqc_misses, "requests", "SRQ contexts read from host memory")                           \
	X(srqc_merges, "requests", "SRQ contexts that were being read already")                    \
	X(write_backs, "lines", "dirty lines written to host memory")                              \
	X(flushes, "requests", "lines flushed")                                                    \
	X(prefetches_dropped, "requests", "prefetches without a free miss register or way")        \
	X(bad_numbers, "requests", "numbers beyond the table")                                     \
	X(dma_errors, "requests", "lines that could not be read or written")

struct rn_context_counters {
	RN_CONTEXT_CACHE_COUNTERS(RN_COUNTER_FIELD)
};

struct rn_context_waiter {
	uint16_t token;
	uint8_t client;
};

enum rn_context_miss_state {
	RN_CONTEXT_MISS_FREE,
	RN_CONTEXT_MISS_WRITE,	 /* its write-back waits for the DMA port */
	RN_CONTEXT_MISS_WRITING, /* ... for the answer */
	RN_CONTEXT_MISS_READ,	 /* its read waits for the DMA port */
	RN_CONTEXT_MISS_READING,
	RN_CONTEXT_MISS_ANSWER, /* done; some waiter's response fifo is full */
};

struct rn_context_miss {
	uint64_t ready_cycle; /* of the first DMA request */
	uint32_t line;
	uint32_t number;  /* to be read; of a flush: to be written */
	uint32_t leaving; /* being written back, RN_CONTEXT_NO_NUMBER when nothing is */
	uint32_t buf;
	uint8_t state; /* enum rn_context_miss_state */
	uint8_t type;
	uint8_t is_flush;
	uint8_t exclusive; /* its one waiter keeps others out */
	uint8_t status;	   /* enum rn_context_status */
	uint8_t waiters_count;
	struct rn_context_waiter waiters[RN_CONTEXT_WAITERS];
};

/* One of the three caches. */
struct rn_context_unit {
	struct rn_context_lines lines;
	struct rn_context_sram *sram;
	uint64_t base_pa;
	uint64_t entries;    /* of the table in host memory; 0 before INIT_HCA */
	uint32_t first_miss; /* its registers in misses[] */
	uint32_t misses_count;
	uint64_t *hits; /* its counters */
	uint64_t *misses;
	uint64_t *merges;
};

struct rn_context_cache {
	struct rn_block block;
	struct rn_nic_env env;
	struct rn_context_cache_params params;
	struct rn_context_cache_ports ports;
	struct rn_context_unit units[RN_CONTEXT_TYPES];
	struct rn_context_miss *misses; /* of all types; DMA token = index */
	uint32_t misses_count;
	uint32_t misses_busy;
	uint32_t misses_answering; /* in state ANSWER */
	uint8_t *dma_queue; /* ring of misses_count: registers that wait for the DMA port, in order */
	uint32_t dma_head;
	uint32_t dma_waiting;
	uint32_t next_client; /* first in the arbiter's next round */
	uint64_t next_lookup_cycle;
	uint64_t wake_cycle; /* earliest cycle wanted; collected during a tick */
	FILE *log;
	char *name;
	struct rn_context_counters counters;
};

/** Ask for a tick in @cycle, after the present one. */
static inline void rn_context_want(struct rn_context_cache *cache, uint64_t cycle)
{
	if (cycle < cache->wake_cycle)
		cache->wake_cycle = cycle;
}

/** Log @result for @number; @victim RN_CONTEXT_NO_NUMBER: none. */
void rn_context_log(struct rn_context_cache *cache, const struct rn_context_req *req,
		    const char *result, uint32_t victim);

/** Push an answer, visible @delay_cycles and the fifo's latency from now. There is room. */
void rn_context_answer(struct rn_context_cache *cache, struct rn_context_waiter waiter,
		       const struct rn_context_rsp *rsp, uint32_t delay_cycles);

/**
 * Allocate a miss register for @req, whose number is in no line, and the line. RN_STALL_NONE when
 * it took effect, else why it has to wait.
 */
enum rn_stall rn_context_miss_start(struct rn_context_cache *cache, uint8_t client,
				    const struct rn_context_req *req, uint64_t cycle);

/** Let @req wait for the register that fills @line. */
enum rn_stall rn_context_miss_join(struct rn_context_cache *cache, uint8_t client,
				   const struct rn_context_req *req, uint32_t line);

/** Write the dirty unpinned @line back for a flush. */
enum rn_stall rn_context_miss_flush(struct rn_context_cache *cache, uint8_t client,
				    const struct rn_context_req *req, uint32_t line,
				    uint64_t cycle);

/** Whether @number is being written back. */
bool rn_context_miss_is_leaving(const struct rn_context_cache *cache, uint8_t type,
				uint32_t number);

/** One answer from the DMA engine, and answers to waiters. Returns whether something was done. */
bool rn_context_miss_receive(struct rn_context_cache *cache, uint64_t cycle);

/** One request to the DMA engine. */
void rn_context_miss_send(struct rn_context_cache *cache, uint64_t cycle);

#endif
