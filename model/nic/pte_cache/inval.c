/*
 * Invalidation of a key: its MPT entry and the MTT lines of its region go, reads of them that are under
 * way become stale, requests that had passed the key check start again from there, and the answer
 * waits for every translation handed out before. Two epochs do, since one invalidation is in hand at a
 * time: translations handed out afterwards count in the other one.
 * The MPT line goes in the cycle in which the invalidation is taken. Then the MTT cache is walked, a line of the
 * region a cycle, or a set a cycle where the region has as many lines as there are sets; nothing is
 * looked up or filled meanwhile.
 */
#include "base/assert.h"
#include "nic/pte_cache/state.h"

static void drop_line(struct rn_pte_cache *cache, enum rn_pte_unit_id id, uint32_t line)
{
	struct rn_pte_tags *tags = &cache->units[id].tags;

	cache->counters.invalidated_lines++;
	if (tags->state[line] == RN_PTE_TAG_FILLING)
		rn_pte_miss_make_stale(cache, id, line);
	tags->state[line] = RN_PTE_TAG_EMPTY;
}

static void log_and_drop(struct rn_pte_cache *cache, enum rn_pte_unit_id id, uint32_t line)
{
	rn_pte_log(cache, id, cache->units[id].tags.number[line], "drop", RN_PTE_NO_NUMBER);
	drop_line(cache, id, line);
}

static void prepare_walk(struct rn_pte_cache *cache, uint64_t first_entry, uint64_t count)
{
	struct rn_pte_walk *walk = &cache->walk;
	uint64_t sets = cache->units[RN_PTE_UNIT_MTT].tags.sets;

	if (!count)
		return;

	uint64_t last_entry =
		count - 1 > UINT64_MAX - first_entry ? UINT64_MAX : first_entry + count - 1;

	walk->first = first_entry / cache->params.mtt_line_entries;
	walk->last = last_entry / cache->params.mtt_line_entries;
	walk->by_set = walk->last - walk->first >= sets;
	walk->next = walk->by_set ? 0 : walk->first;
	walk->steps = walk->by_set ? sets : walk->last - walk->first + 1;
}

void rn_pte_inval_walk(struct rn_pte_cache *cache)
{
	const struct rn_pte_tags *tags = &cache->units[RN_PTE_UNIT_MTT].tags;
	struct rn_pte_walk *walk = &cache->walk;

	if (!walk->steps)
		return;

	uint64_t first = walk->by_set ? walk->first : walk->next;
	uint64_t last = walk->by_set ? walk->last : walk->next;
	uint32_t line = rn_pte_tags_set(tags, walk->next) * tags->ways;

	for (uint32_t end = line + tags->ways; line < end; line++)
		if (tags->state[line] != RN_PTE_TAG_EMPTY && tags->number[line] >= first &&
		    tags->number[line] <= last)
			log_and_drop(cache, RN_PTE_UNIT_MTT, line);
	walk->next++;
	walk->steps--;
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
		log_and_drop(cache, RN_PTE_UNIT_MPT, line);
	restart_requests(cache, index);
	cache->counters.invalidations++;
	cache->walk = (struct rn_pte_walk){
		.token = inval.token,
		.is_active = 1,
		.epoch = cache->epoch,
	};
	prepare_walk(cache, inval.mtt_index, inval.mtt_count);
	cache->tags_free_cycle = cycle + 1 + cache->walk.steps;
	cache->epoch ^= 1;
	RN_ASSERT(!cache->outstanding[cache->epoch]);
}

void rn_pte_inval_finish(struct rn_pte_cache *cache, uint64_t cycle)
{
	if (!cache->walk.is_active)
		return;
	if (cycle < cache->tags_free_cycle) {
		rn_pte_want(cache, cycle + 1);
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
			if (tags->state[line] != RN_PTE_TAG_EMPTY)
				drop_line(cache, id, line);
	}
	for (uint32_t i = 0; i < cache->params.request_slots; i++)
		if (cache->slots[i].stage != RN_PTE_STAGE_DONE)
			restart(&cache->slots[i]);
}
