/*
 * A stand-in for one channel of the DMA engine and the memory behind it, for tests of single blocks. Memory
 * is an array at physical address 0. A request acts on it when it is taken (one a cycle) and is
 * answered a number of cycles later; with a spread, answers come out of order. Only physical
 * addresses; what lies outside of the memory is aborted.
 */
#ifndef RN_TEST_BLOCK_COMMON_FAKE_DMA_H
#define RN_TEST_BLOCK_COMMON_FAKE_DMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "nic/msg/dma.h"
#include "sim/block.h"
#include "sim/buffer.h"
#include "sim/fifo.h"

#define FAKE_DMA_PENDING 1024
#define FAKE_DMA_LOG 65536

struct fake_memory {
	uint8_t *bytes;
	uint64_t size;
};

struct fake_dma_record {
	uint64_t taken_ps;
	uint64_t answered_ps; /* 0: not yet */
	struct rn_dma_req req;
};

struct fake_dma {
	struct rn_block block;
	struct rn_fifo *req;
	struct rn_fifo *rsp;
	struct rn_buffers *buffers;
	struct fake_memory memory;
	struct rn_rng rng;
	uint64_t latency_cycles; /* from taking a request to pushing the answer, >= 1 */
	uint64_t spread_cycles;	 /* up to so many more, at random */
	bool is_held;		 /* no answer leaves */
	uint32_t pending_count;
	struct {
		uint64_t due_cycle;
		uint32_t record;
		struct rn_dma_rsp rsp;
	} pending[FAKE_DMA_PENDING]; /* by due cycle, then order of requests */
	uint32_t log_count;	     /* requests taken; the first FAKE_DMA_LOG are kept */
	struct fake_dma_record log[FAKE_DMA_LOG];
};

/** @memory's bytes are borrowed. Connects itself to both fifos. Free with free(). */
struct fake_dma *fake_dma_new(struct rn_sim *sim, const struct rn_clock *clock, const char *name,
			      struct rn_buffers *buffers, struct fake_memory memory,
			      struct rn_fifo *req, struct rn_fifo *rsp);

/** Hold answers back from now on, or let them go. */
void fake_dma_hold(struct fake_dma *dma, bool is_held);

#endif
