/*
 * Stand-ins for a DMA channel with keys and for the context cache, without a clock: the test calls serve
 * between cycles. Memory is one array; a key names a region of it, addressed from 0; physical
 * addresses are offsets in the array.
 */
#ifndef RN_TEST_BLOCK_COMMON2_STUB_H
#define RN_TEST_BLOCK_COMMON2_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "block/common/bench.h"
#include "nic/msg/context.h"
#include "nic/msg/dma.h"

#define STUB_MEMORY_BYTES (1u << 20)
#define STUB_LOG 4096

struct stub_region {
	uint32_t key;
	uint32_t pd;
	uint32_t base;
	uint32_t bytes;
};

struct stub_memory {
	uint8_t bytes[STUB_MEMORY_BYTES];
	struct stub_region region[8];
	unsigned regions;
};

struct stub_dma {
	struct bench *bench;
	struct stub_memory *memory;
	struct rn_fifo *req;
	struct rn_fifo *rsp;
	bool is_held; /* requests are taken in, answers wait */
	uint32_t answered;
	uint32_t count;
	struct rn_dma_req log[STUB_LOG];
	uint8_t status[STUB_LOG];
};

/** Take every visible request, act on memory, and answer unless held. */
void stub_dma_serve(struct stub_dma *dma);

struct stub_context {
	struct bench *bench;
	struct rn_fifo *req;
	struct rn_fifo *rsp;
	uint32_t lines; /* numbers below have the line of their number; others are refused */
	uint32_t held;	/* lines acquired and not released */
	uint32_t most_held;
	uint32_t acquires;
	bool is_held_back; /* acquires wait */
	bool has_dirty;	   /* the last release was dirty */
};

/** Answer every visible request. */
void stub_context_serve(struct stub_context *context);

#endif
