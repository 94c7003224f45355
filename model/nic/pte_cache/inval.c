/*
 * Invalidation of a key: its MPT entry and the MTT lines of its region go, reads of them that are under
 * way become stale, requests that had passed the key check start again from there, and the answer
 * waits for every translation handed out before. Two epochs do, since one invalidation is in hand at a
 * time: translations handed out afterwards count in the other one.
 * The tags are walked a set a cycle (whole MTT, or the sets of the region if these are fewer), and nothing
 * is looked up or filled meanwhile; so it does not matter that the model does it all in the first cycle.
 */
#include "base/assert.h"
#include "nic/pte_cache/state.h"

static void drop_line(struct rn_pte_cache *cache, enum rn_pte_unit_id id, uint32_t line)
{
	struct rn_pte_tags *tags = &cache->units[id].tags;

	if (tags->state[line] == RN_PTE_TAG_EMPTY)
		return;
	rn_pte_log(cache, id, tags->number[line], "drop", RN_PTE_NO_NUMBER);
	cache->counters.invalidated_lines++;
	if (tags->state[line] == RN_PTE_TAG_FILLING)
		rn_pte_miss_make_stale(cache, id, line);
	tags->state[line] = RN_PTE_TAG_EMPTY;
}

/* Returns the cycles it takes. */
static uint64_t drop_mtt(struct rn_pte_cache *cache, uint64_t first_entry, uint64_t count)
{
	struct rn_pte_tags *tags = &cache->units[RN_PTE_UNIT_MTT].tags;

	if (!count)
		return 0;

	uint64_t last_entry =
		count - 1 > UINT64_MAX - first_entry ? UINT64_MAX : first_entry + count - 1;
	uint64_t first = first_entry / cache->params.mtt_line_entries;
	uint64_t last = last_entry / cache->params.mtt_line_entries;

	if (last - first >= tags->sets) {
		for (uint32_t line = 0; line < tags->sets * tags->ways; line++)
			if (tags->number[line] >= first && tags->number[line] <= last)
				drop_line(cache, RN_PTE_UNIT_MTT, line);
		return tags->sets;
	}
	for (uint64_t number = first; number <= last; number++) {
		uint32_t line = rn_pte_tags_find(tags, number);

		if (line != RN_PTE_NO_LINE)
			drop_line(cache, RN_PTE_UNIT_MTT, line);
	}
	return last - first + 1;
}

static void restart(struct rn_pte_slot *slot)
{
	slot->stage = RN_PTE_STAGE_MPT;
	slot->counted = 0;
	slot->rsp.hit = 0;
}

/* Requests that wait for a line under this key go through the key check again. */
static void restart_requests(struct rn_pte_cache *cache, uint32_t index)
{
	for (uint32_t i = 0; i < cache->params.request_slots; i++) {
		struct rn_pte_slot *slot = &cache->slots[i];

		if (slot->stage != RN_PTE_STAGE_DONE && slot->req.key >> 8 == index)
			restart(slot);
	}
}

void rn_pte_inval_take(struct rn_pte_cache *cache, uint64_t cycle)
{
	struct rn_pte_inval inval;

	if (cache->walk.is_active || cycle < cache->tags_free_cycle ||
	    !rn_fifo_pop(cache->ports.inval, &inval))
		return;

	uint32_t index = inval.key >> 8;
	uint32_t line = rn_pte_tags_find(&cache->units[RN_PTE_UNIT_MPT].tags, index);

	if (line != RN_PTE_NO_LINE)
		drop_line(cache, RN_PTE_UNIT_MPT, line);

	uint64_t walk_cycles = drop_mtt(cache, inval.mtt_index, inval.mtt_count);

	restart_requests(cache, index);
	cache->counters.invalidations++;
	cache->tags_free_cycle = cycle + 1 + walk_cycles;
	cache->walk = (struct rn_pte_walk){
		.token = inval.token,
		.is_active = 1,
		.epoch = cache->epoch,
	};
	cache->epoch ^= 1;
	RN_ASSERT(!cache->outstanding[cache->epoch]);
}

void rn_pte_inval_finish(struct rn_pte_cache *cache, uint64_t cycle)
{
	if (!cache->walk.is_active)
		return;
	if (cycle < cache->tags_free_cycle) {
		rn_pte_want(cache, cache->tags_free_cycle);
		return;
	}
	if (cache->outstanding[cache->walk.epoch] || !rn_fifo_can_push(cache->ports.inval_done))
		return;
	rn_fifo_push(cache->ports.inval_done,
		     &(struct rn_pte_inval_done){.token = cache->walk.token});
	cache->walk.is_active = 0;
	if (rn_fifo_occupancy(cache->ports.inval))
		rn_pte_want(cache, cycle + 1);
}

void rn_pte_inval_all(struct rn_pte_cache *cache)
{
	for (unsigned id = 0; id < RN_PTE_UNITS; id++) {
		const struct rn_pte_tags *tags = &cache->units[id].tags;

		for (uint32_t line = 0; line < tags->sets * tags->ways; line++)
			drop_line(cache, id, line);
	}
	for (uint32_t i = 0; i < cache->params.request_slots; i++)
		if (cache->slots[i].stage != RN_PTE_STAGE_DONE)
			restart(&cache->slots[i]);
}
