#include "block/common2/stub.h"

#include <string.h>

#include "base/assert.h"

static uint8_t *locate(struct stub_memory *memory, const struct rn_dma_req *req)
{
	if (req->flags & RN_DMA_PHYSICAL)
		return req->addr + req->len <= STUB_MEMORY_BYTES ? memory->bytes + req->addr : NULL;
	for (unsigned i = 0; i < memory->regions; i++) {
		const struct stub_region *region = &memory->region[i];

		if (region->key == req->key && region->pd == req->pd &&
		    req->addr + req->len <= region->bytes)
			return memory->bytes + region->base + req->addr;
	}
	return NULL;
}

static uint8_t act(struct stub_dma *dma, const struct rn_dma_req *req)
{
	if (req->op == RN_DMA_MSI)
		return RN_DMA_OK;

	uint8_t *memory = locate(dma->memory, req);
	uint8_t *data = rn_buffer_data(dma->bench->buffers, req->buf) + req->buf_off;

	RN_ASSERT(req->len && req->len + req->buf_off <= RN_BUFFER_BYTES);
	if (!memory)
		return RN_DMA_PROTECTION;
	if (req->op == RN_DMA_READ)
		memcpy(data, memory, req->len);
	else
		memcpy(memory, data, req->len);
	return RN_DMA_OK;
}

void stub_dma_serve(struct stub_dma *dma)
{
	struct rn_dma_req req;

	while (rn_fifo_pop(dma->req, &req)) {
		RN_ASSERT(dma->count < STUB_LOG);
		dma->log[dma->count] = req;
		dma->status[dma->count++] = act(dma, &req);
	}
	while (!dma->is_held && dma->answered < dma->count && rn_fifo_can_push(dma->rsp)) {
		struct rn_dma_rsp rsp = {.token = dma->log[dma->answered].token,
					 .status = dma->status[dma->answered]};

		rn_fifo_push(dma->rsp, &rsp);
		dma->answered++;
	}
}

void stub_context_serve(struct stub_context *context)
{
	const struct rn_context_req *req;

	while ((req = rn_fifo_peek(context->req))) {
		struct rn_context_rsp rsp = {.token = req->token, .line = req->number};

		if (req->op == RN_CONTEXT_RELEASE) {
			RN_ASSERT(context->held);
			context->held--;
			context->has_dirty = req->dirty;
			rn_fifo_drop(context->req);
			continue;
		}
		RN_ASSERT(req->op == RN_CONTEXT_ACQUIRE);
		if (context->is_held_back || !rn_fifo_can_push(context->rsp))
			return;
		if (req->number >= context->lines)
			rsp.status = RN_CONTEXT_BAD_NUMBER;
		else
			context->held++;
		context->acquires++;
		if (context->held > context->most_held)
			context->most_held = context->held;
		rn_fifo_push(context->rsp, &rsp);
		rn_fifo_drop(context->req);
	}
}
