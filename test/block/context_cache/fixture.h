/* A context cache with clients and memory, for its tests. */
#ifndef RN_TEST_BLOCK_CONTEXT_CACHE_FIXTURE_H
#define RN_TEST_BLOCK_CONTEXT_CACHE_FIXTURE_H

#include "block/common/bench.h"
#include "block/common/fake_dma.h"
#include "hw/gen/rnic_hw.h"
#include "nic/context_cache/context_cache.h"

#define LOG_NUMBERS 12
#define QPC_PA UINT64_C(0x1000)
#define CQC_PA (QPC_PA + ((uint64_t)RN_QPC_BYTES << LOG_NUMBERS))
#define SRQC_PA (CQC_PA + ((uint64_t)RN_CQC_BYTES << LOG_NUMBERS))
#define MEMORY_BYTES (SRQC_PA + ((uint64_t)RN_SRQC_BYTES << LOG_NUMBERS))

struct fixture {
	struct bench bench;
	struct rn_context_cache_params params; /* change between prepare and build */
	struct fake_memory memory;
	struct fake_dma *dma;
	struct rn_context_sram sram[RN_CONTEXT_TYPES];
	struct rn_context_cache_ports ports;
	struct rn_context_cache *cache;
};

/** Bench, memory and default parameters. */
void fixture_prepare(struct fixture *f, uint64_t permute_seed);
/** The cache, and the base registers set. */
void fixture_build(struct fixture *f);
void fixture_free(struct fixture *f);

/** Push a request of @client. */
void request(struct fixture *f, unsigned client, uint8_t op, uint8_t type, uint32_t number,
	     uint16_t token);
/** Push a release. */
void give_back(struct fixture *f, unsigned client, uint8_t type, uint32_t number, bool dirty);
/** Wait for an answer to @client; fails the test after 10,000 cycles. */
struct rn_context_rsp answer(struct fixture *f, unsigned client);
/** Acquire, wait, release clean; whether it hit. */
bool touch(struct fixture *f, unsigned client, uint8_t type, uint32_t number);
uint8_t *line_at(struct fixture *f, uint8_t type, uint32_t line);

#endif
