/*
 * Miss registers of the context caches. A register takes a line, writes its old contents back if they
 * are dirty, waits for the answer (decision: no refill before), reads the new contents and answers
 * everybody who waited. A flush uses one for its write-back.
 *
 *	FREE -> WRITE -> WRITING -> READ -> READING -> ANSWER -> FREE
 *	     `----- clean line -----^                 (flush: WRITING -> ANSWER)
 */
#include <string.h>

#include "base/assert.h"
#include "nic/context_cache/state.h"
#include "sim/buffer.h"

bool rn_context_miss_is_leaving(const struct rn_context_cache *cache, uint8_t type, uint32_t number)
{
	const struct rn_context_unit *unit = &cache->units[type];

	for (uint32_t i = 0; i < unit->misses_count; i++)
		if (cache->misses[unit->first_miss + i].leaving == number)
			return true;
	return false;
}

static struct rn_context_miss *find_free(struct rn_context_cache *cache, uint8_t type)
{
	struct rn_context_unit *unit = &cache->units[type];

	for (uint32_t i = 0; i < unit->misses_count; i++) {
		struct rn_context_miss *miss = &cache->misses[unit->first_miss + i];

		if (miss->state == RN_CONTEXT_MISS_FREE)
			return miss;
	}
	return NULL;
}

static void queue_dma(struct rn_context_cache *cache, struct rn_context_miss *miss, uint8_t state,
		      uint64_t ready_cycle)
{
	uint32_t tail = (cache->dma_head + cache->dma_waiting) % cache->misses_count;

	RN_ASSERT(cache->dma_waiting < cache->misses_count);
	miss->state = state;
	miss->ready_cycle = ready_cycle;
	cache->dma_queue[tail] = (uint8_t)(miss - cache->misses);
	cache->dma_waiting++;
}

/* The line's old contents leave it now; they go to host memory from a buffer. */
static void save_line(struct rn_context_cache *cache, struct rn_context_miss *miss)
{
	const struct rn_context_unit *unit = &cache->units[miss->type];
	struct rn_context_tag *tag = &unit->lines.tags[miss->line];

	miss->leaving = tag->number;
	miss->buf = rn_buffer_get(cache->env.buffers);
	memcpy(rn_buffer_data(cache->env.buffers, miss->buf),
	       rn_context_line(unit->sram, miss->line), unit->sram->bytes);
	tag->dirty = 0;
	cache->counters.write_backs++;
}

static void add_waiter(struct rn_context_cache *cache, struct rn_context_miss *miss, uint8_t client,
		       const struct rn_context_req *req)
{
	if (req->op == RN_CONTEXT_PREFETCH)
		return;
	RN_ASSERT(miss->waiters_count < RN_CONTEXT_WAITERS);
	if (req->op == RN_CONTEXT_ACQUIRE)
		cache->units[miss->type].lines.tags[miss->line].pins++;
	miss->waiters[miss->waiters_count++] =
		(struct rn_context_waiter){.token = req->token, .client = client};
	miss->exclusive = req->exclusive;
}

static void allocate(struct rn_context_cache *cache, struct rn_context_miss *miss,
		     const struct rn_context_req *req, uint32_t line)
{
	*miss = (struct rn_context_miss){
		.line = line,
		.number = req->number,
		.leaving = RN_CONTEXT_NO_NUMBER,
		.buf = RN_BUFFER_NONE,
		.type = req->type,
		.is_flush = req->op == RN_CONTEXT_FLUSH,
	};
	cache->misses_busy++;
}

enum rn_stall rn_context_miss_start(struct rn_context_cache *cache, uint8_t client,
				    const struct rn_context_req *req, uint64_t cycle)
{
	struct rn_context_unit *unit = &cache->units[req->type];
	struct rn_context_miss *miss = find_free(cache, req->type);
	uint32_t line = rn_context_lines_victim(&unit->lines, req->number);

	if (rn_context_miss_is_leaving(cache, req->type, req->number))
		return RN_STALL_MISS;
	if (!miss)
		return RN_STALL_TAG;
	if (line == RN_CONTEXT_NO_LINE)
		return RN_STALL_LOCK;

	struct rn_context_tag *tag = &unit->lines.tags[line];
	bool is_dirty = tag->dirty;

	rn_context_log(cache, req, "miss",
		       tag->state == RN_CONTEXT_LINE_VALID ? tag->number : RN_CONTEXT_NO_NUMBER);
	allocate(cache, miss, req, line);
	if (is_dirty)
		save_line(cache, miss);
	*tag = (struct rn_context_tag){
		.number = req->number,
		.state = RN_CONTEXT_LINE_FILLING,
		.miss = (uint8_t)(miss - cache->misses),
	};
	add_waiter(cache, miss, client, req);
	rn_context_lines_touch(&unit->lines, line);
	++*unit->misses;
	queue_dma(cache, miss, is_dirty ? RN_CONTEXT_MISS_WRITE : RN_CONTEXT_MISS_READ,
		  cycle + cache->params.hit_cycles);
	return RN_STALL_NONE;
}

enum rn_stall rn_context_miss_join(struct rn_context_cache *cache, uint8_t client,
				   const struct rn_context_req *req, uint32_t line)
{
	struct rn_context_unit *unit = &cache->units[req->type];
	struct rn_context_miss *miss = &cache->misses[unit->lines.tags[line].miss];

	if (req->op == RN_CONTEXT_ACQUIRE) {
		if (miss->exclusive || (req->exclusive && miss->waiters_count))
			return RN_STALL_LOCK;
		if (miss->waiters_count == RN_CONTEXT_WAITERS)
			return RN_STALL_TAG;
	}
	add_waiter(cache, miss, client, req);
	rn_context_lines_touch(&unit->lines, line);
	++*unit->merges;
	rn_context_log(cache, req, "merge", RN_CONTEXT_NO_NUMBER);
	return RN_STALL_NONE;
}

enum rn_stall rn_context_miss_flush(struct rn_context_cache *cache, uint8_t client,
				    const struct rn_context_req *req, uint32_t line, uint64_t cycle)
{
	struct rn_context_miss *miss = find_free(cache, req->type);

	if (!miss)
		return RN_STALL_TAG;
	allocate(cache, miss, req, line);
	add_waiter(cache, miss, client, req);
	save_line(cache, miss);
	cache->units[req->type].lines.tags[line].state = RN_CONTEXT_LINE_LEAVING;
	queue_dma(cache, miss, RN_CONTEXT_MISS_WRITE, cycle + cache->params.hit_cycles);
	return RN_STALL_NONE;
}

/* Answer as many waiters as there is room for; the register is free after the last. */
static void answer_waiters(struct rn_context_cache *cache, struct rn_context_miss *miss)
{
	struct rn_context_rsp rsp = {.status = miss->status, .line = miss->line};
	uint32_t kept = 0;

	for (uint32_t i = 0; i < miss->waiters_count; i++) {
		struct rn_context_waiter waiter = miss->waiters[i];

		if (rn_fifo_can_push(cache->ports.rsp[waiter.client]))
			rn_context_answer(cache, waiter, &rsp, cache->params.fill_cycles);
		else
			miss->waiters[kept++] = waiter;
	}
	miss->waiters_count = (uint8_t)kept;
	if (kept)
		return;
	miss->state = RN_CONTEXT_MISS_FREE;
	cache->misses_busy--;
	cache->misses_answering--;
}

static void finish(struct rn_context_cache *cache, struct rn_context_miss *miss)
{
	miss->state = RN_CONTEXT_MISS_ANSWER;
	cache->misses_answering++;
	answer_waiters(cache, miss);
}

static void written(struct rn_context_cache *cache, struct rn_context_miss *miss, bool is_ok,
		    uint64_t cycle)
{
	miss->leaving = RN_CONTEXT_NO_NUMBER;
	if (!is_ok && miss->is_flush)
		miss->status = RN_CONTEXT_ABORT;
	if (!miss->is_flush) {
		queue_dma(cache, miss, RN_CONTEXT_MISS_READ, cycle);
		return;
	}
	cache->units[miss->type].lines.tags[miss->line].state = RN_CONTEXT_LINE_EMPTY;
	finish(cache, miss);
}

static void filled(struct rn_context_cache *cache, struct rn_context_miss *miss,
		   const uint8_t *data)
{
	struct rn_context_unit *unit = &cache->units[miss->type];
	struct rn_context_tag *tag = &unit->lines.tags[miss->line];

	RN_ASSERT(tag->state == RN_CONTEXT_LINE_FILLING && tag->number == miss->number);
	if (data) {
		memcpy(rn_context_line(unit->sram, miss->line), data, unit->sram->bytes);
		tag->state = RN_CONTEXT_LINE_VALID;
		RN_ASSERT(tag->pins == miss->waiters_count);
		tag->exclusive = miss->exclusive;
	} else {
		tag->state = RN_CONTEXT_LINE_EMPTY;
		tag->pins = 0;
		miss->status = RN_CONTEXT_ABORT;
	}
	finish(cache, miss);
}

static bool receive_dma(struct rn_context_cache *cache, uint64_t cycle)
{
	struct rn_dma_rsp rsp;

	if (!rn_fifo_pop(cache->ports.dma_rsp, &rsp))
		return false;
	RN_ASSERT(rsp.token < cache->misses_count);

	struct rn_context_miss *miss = &cache->misses[rsp.token];
	bool is_ok = rsp.status == RN_DMA_OK;
	uint32_t buf = miss->buf;

	miss->buf = RN_BUFFER_NONE;
	if (!is_ok)
		cache->counters.dma_errors++;
	if (miss->state == RN_CONTEXT_MISS_WRITING) {
		written(cache, miss, is_ok, cycle);
	} else {
		RN_ASSERT(miss->state == RN_CONTEXT_MISS_READING);
		filled(cache, miss, is_ok ? rn_buffer_data(cache->env.buffers, buf) : NULL);
	}
	rn_buffer_put(cache->env.buffers, buf);
	return true;
}

bool rn_context_miss_receive(struct rn_context_cache *cache, uint64_t cycle)
{
	for (uint32_t i = 0; cache->misses_answering && i < cache->misses_count; i++)
		if (cache->misses[i].state == RN_CONTEXT_MISS_ANSWER)
			answer_waiters(cache, &cache->misses[i]);
	return receive_dma(cache, cycle);
}

static void push_dma(struct rn_context_cache *cache, struct rn_context_miss *miss)
{
	const struct rn_context_unit *unit = &cache->units[miss->type];
	bool is_write = miss->state == RN_CONTEXT_MISS_WRITE;
	uint32_t number = is_write ? miss->leaving : miss->number;

	if (!is_write)
		miss->buf = rn_buffer_get(cache->env.buffers);
	miss->state = is_write ? RN_CONTEXT_MISS_WRITING : RN_CONTEXT_MISS_READING;
	rn_fifo_push(cache->ports.dma_req,
		     &(struct rn_dma_req){
			     .op = is_write ? RN_DMA_WRITE : RN_DMA_READ,
			     .flags = RN_DMA_PHYSICAL,
			     .token = (uint16_t)(miss - cache->misses),
			     .buf = miss->buf,
			     .len = unit->sram->bytes,
			     .addr = unit->base_pa + (uint64_t)number * unit->sram->bytes,
		     });
}

void rn_context_miss_send(struct rn_context_cache *cache, uint64_t cycle)
{
	if (!cache->dma_waiting)
		return;

	struct rn_context_miss *miss = &cache->misses[cache->dma_queue[cache->dma_head]];

	if (cycle < miss->ready_cycle) {
		rn_context_want(cache, miss->ready_cycle);
		return;
	}
	if (!rn_fifo_can_push(cache->ports.dma_req))
		return;
	push_dma(cache, miss);
	cache->dma_head = (cache->dma_head + 1) % cache->misses_count;
	if (--cache->dma_waiting)
		rn_context_want(cache, cycle + 1);
}
