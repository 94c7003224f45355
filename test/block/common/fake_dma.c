#include "block/common/fake_dma.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

static uint8_t serve(struct fake_dma *dma, const struct rn_dma_req *req)
{
	uint8_t *data = rn_buffer_data(dma->buffers, req->buf) + req->buf_off;

	RN_ASSERT(req->flags & RN_DMA_PHYSICAL && req->len && req->op != RN_DMA_MSI);
	RN_ASSERT(req->len + req->buf_off <= RN_BUFFER_BYTES);
	if (req->addr > dma->memory.size || req->len > dma->memory.size - req->addr)
		return RN_DMA_ABORT;
	if (req->op == RN_DMA_READ)
		memcpy(data, dma->memory.bytes + req->addr, req->len);
	else
		memcpy(dma->memory.bytes + req->addr, data, req->len);
	return RN_DMA_OK;
}

static void take(struct fake_dma *dma, uint64_t cycle)
{
	struct rn_dma_req req;

	if (!rn_fifo_pop(dma->req, &req))
		return;
	RN_ASSERT(dma->pending_count < FAKE_DMA_PENDING);

	uint64_t due =
		cycle + dma->latency_cycles + rn_rng_below(&dma->rng, dma->spread_cycles + 1);
	uint32_t at = dma->pending_count++;

	for (; at && dma->pending[at - 1].due_cycle > due; at--)
		dma->pending[at] = dma->pending[at - 1];
	dma->pending[at].due_cycle = due;
	dma->pending[at].record = dma->log_count;
	dma->pending[at].rsp = (struct rn_dma_rsp){.token = req.token, .status = serve(dma, &req)};
	if (dma->log_count < FAKE_DMA_LOG)
		dma->log[dma->log_count] = (struct fake_dma_record){
			.taken_ps = rn_sim_now_ps(dma->block.sim),
			.req = req,
		};
	dma->log_count++;
}

static void answer(struct fake_dma *dma, uint64_t cycle)
{
	if (dma->is_held || !dma->pending_count)
		return;
	if (cycle < dma->pending[0].due_cycle) {
		rn_block_wake_in(&dma->block, dma->pending[0].due_cycle - cycle);
		return;
	}
	if (!rn_fifo_can_push(dma->rsp))
		return;
	rn_fifo_push(dma->rsp, &dma->pending[0].rsp);
	if (dma->pending[0].record < FAKE_DMA_LOG)
		dma->log[dma->pending[0].record].answered_ps = rn_sim_now_ps(dma->block.sim);
	memmove(&dma->pending[0], &dma->pending[1], --dma->pending_count * sizeof(dma->pending[0]));
	if (dma->pending_count)
		rn_block_wake_next(&dma->block);
}

static void tick(void *self, uint64_t cycle)
{
	struct fake_dma *dma = self;

	take(dma, cycle);
	answer(dma, cycle);
}

struct fake_dma *fake_dma_new(struct rn_sim *sim, const struct rn_clock *clock, const char *name,
			      struct rn_buffers *buffers, struct fake_memory memory,
			      struct rn_fifo *req, struct rn_fifo *rsp)
{
	struct fake_dma *dma = rn_calloc(1, sizeof(*dma));

	dma->req = req;
	dma->rsp = rsp;
	dma->buffers = buffers;
	dma->memory = memory;
	dma->latency_cycles = 1;
	rn_rng_init(&dma->rng, 1, name);
	rn_block_init(&dma->block, sim, clock, name, tick, dma);
	rn_fifo_set_consumer(req, &dma->block);
	rn_fifo_set_producer(rsp, &dma->block);
	return dma;
}

void fake_dma_hold(struct fake_dma *dma, bool is_held)
{
	dma->is_held = is_held;
	if (!is_held && dma->pending_count)
		rn_block_wake_next(&dma->block);
}
