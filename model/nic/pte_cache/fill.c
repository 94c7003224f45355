/*
 * Miss registers of the MPT and the MTT: each reads one line from ICM. The line is allocated, and its
 * victim gone, when the miss is found; the data come later, in any order.
 */
#include <string.h>

#include "base/assert.h"
#include "nic/pte_cache/state.h"
#include "sim/buffer.h"

static struct rn_pte_miss *find_free(struct rn_pte_cache *cache, const struct rn_pte_unit *unit)
{
	for (uint32_t i = unit->first_miss; i < unit->first_miss + unit->misses_count; i++)
		if (!cache->misses[i].busy)
			return &cache->misses[i];
	return NULL;
}

bool rn_pte_miss_start(struct rn_pte_cache *cache, enum rn_pte_unit_id id, uint64_t number,
		       uint16_t slot, uint64_t ready_cycle)
{
	struct rn_pte_unit *unit = &cache->units[id];
	struct rn_pte_miss *miss = find_free(cache, unit);
	uint32_t line = rn_pte_tags_victim(&unit->tags, number);

	if (!miss || line == RN_PTE_NO_LINE)
		return false;
	rn_pte_log(cache, id, number, "miss",
		   unit->tags.state[line] == RN_PTE_TAG_VALID ? unit->tags.number[line]
							      : RN_PTE_NO_NUMBER);

	uint16_t miss_idx = (uint16_t)(miss - cache->misses);

	unit->tags.number[line] = number;
	unit->tags.state[line] = RN_PTE_TAG_FILLING;
	unit->tags.miss[line] = miss_idx;
	rn_pte_tags_touch(&unit->tags, line);
	++*unit->misses;
	*miss = (struct rn_pte_miss){
		.number = number,
		.ready_cycle = ready_cycle,
		.line = line,
		.buf = RN_BUFFER_NONE,
		.busy = 1,
		.waiters = {RN_PTE_NO_SLOT, RN_PTE_NO_SLOT},
	};
	rn_pte_list_append(cache, &miss->waiters, slot);
	unit->misses_busy++;
	cache->dma_queue[(cache->dma_head + cache->dma_waiting) % cache->misses_count] = miss_idx;
	cache->dma_waiting++;
	return true;
}

static bool is_mpt(const struct rn_pte_cache *cache, uint32_t miss_idx)
{
	return miss_idx < cache->units[RN_PTE_UNIT_MTT].first_miss;
}

static void push_read(struct rn_pte_cache *cache, uint16_t miss_idx)
{
	struct rn_pte_miss *miss = &cache->misses[miss_idx];
	uint32_t line_entries = cache->params.mtt_line_entries;
	struct rn_dma_req req = {
		.op = RN_DMA_READ,
		.flags = RN_DMA_PHYSICAL,
		.token = miss_idx,
	};

	if (is_mpt(cache, miss_idx)) {
		req.addr = cache->base.mpt_pa + miss->number * RN_MPT_BYTES;
		req.len = RN_MPT_BYTES;
	} else {
		uint64_t entries = 1ull << cache->base.log_mtts;

		/* A table smaller than a line is read whole. */
		req.addr = cache->base.mtt_pa + miss->number * line_entries * RN_MTT_BYTES;
		req.len =
			(uint32_t)(entries < line_entries ? entries : line_entries) * RN_MTT_BYTES;
	}
	miss->buf = rn_buffer_get(cache->env.buffers);
	req.buf = miss->buf;
	rn_fifo_push(cache->ports.dma_req, &req);
}

void rn_pte_miss_send(struct rn_pte_cache *cache, uint64_t cycle)
{
	if (!cache->dma_waiting)
		return;

	uint16_t miss_idx = cache->dma_queue[cache->dma_head];

	if (cycle < cache->misses[miss_idx].ready_cycle) {
		rn_pte_want(cache, cache->misses[miss_idx].ready_cycle);
		return;
	}
	if (!rn_fifo_can_push(cache->ports.dma_req))
		return;
	push_read(cache, miss_idx);
	cache->dma_head = (cache->dma_head + 1) % cache->misses_count;
	if (--cache->dma_waiting)
		rn_pte_want(cache, cycle + 1);
}

/* A free entry is not kept: CREATE_MKEY may make it live at any time. */
static uint8_t install(struct rn_pte_cache *cache, bool mpt, uint32_t line, const uint8_t *data)
{
	size_t line_entries = cache->params.mtt_line_entries;

	if (!mpt) {
		memcpy(&cache->mtt[line * line_entries], data, line_entries * RN_MTT_BYTES);
		return RN_PTE_OK;
	}
	memcpy(&cache->mpt[line], data, RN_MPT_BYTES);
	return cache->mpt[line].state ? RN_PTE_OK : RN_PTE_BAD_KEY;
}

/* What those that wait are refused with, or RN_PTE_OK. */
static uint8_t fill(struct rn_pte_cache *cache, uint16_t miss_idx, bool is_ok)
{
	struct rn_pte_miss *miss = &cache->misses[miss_idx];
	bool mpt = is_mpt(cache, miss_idx);
	struct rn_pte_tags *tags = &cache->units[mpt ? RN_PTE_UNIT_MPT : RN_PTE_UNIT_MTT].tags;
	uint8_t status = RN_PTE_ABORT;

	if (miss->stale) {
		cache->counters.stale_fills++;
		return RN_PTE_OK;
	}
	RN_ASSERT(tags->state[miss->line] == RN_PTE_TAG_FILLING &&
		  tags->number[miss->line] == miss->number);
	if (is_ok)
		status = install(cache, mpt, miss->line,
				 rn_buffer_data(cache->env.buffers, miss->buf));
	tags->state[miss->line] = status == RN_PTE_OK ? RN_PTE_TAG_VALID : RN_PTE_TAG_EMPTY;
	return status;
}

void rn_pte_miss_receive(struct rn_pte_cache *cache, uint64_t cycle)
{
	struct rn_dma_rsp rsp;

	if (!rn_fifo_pop(cache->ports.dma_rsp, &rsp))
		return;
	RN_ASSERT(rsp.token < cache->misses_count && cache->misses[rsp.token].busy &&
		  cache->misses[rsp.token].buf != RN_BUFFER_NONE);

	struct rn_pte_miss *miss = &cache->misses[rsp.token];
	struct rn_pte_unit *unit =
		&cache->units[is_mpt(cache, rsp.token) ? RN_PTE_UNIT_MPT : RN_PTE_UNIT_MTT];

	cache->replay_status = fill(cache, rsp.token, rsp.status == RN_DMA_OK);
	rn_buffer_put(cache->env.buffers, miss->buf);
	miss->busy = 0;
	unit->misses_busy--;
	unit->stalled_tries = unit->stalled_count;
	/* Those that the line was read for come first: they find it before anybody can evict it. */
	rn_pte_list_move(cache, &miss->waiters, &cache->replay);
	cache->replay_cycle = cycle + cache->params.fill_cycles;
}

void rn_pte_miss_make_stale(struct rn_pte_cache *cache, enum rn_pte_unit_id id, uint32_t line)
{
	struct rn_pte_tags *tags = &cache->units[id].tags;
	struct rn_pte_miss *miss = &cache->misses[tags->miss[line]];

	RN_ASSERT(tags->state[line] == RN_PTE_TAG_FILLING && miss->busy);
	tags->state[line] = RN_PTE_TAG_EMPTY;
	miss->stale = 1;
	for (uint16_t slot = miss->waiters.head; slot != RN_PTE_NO_SLOT;
	     slot = cache->slots[slot].next)
		cache->slots[slot].counted = 0;
}
