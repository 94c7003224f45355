/*
 * The lookup pipeline: key check in the order of the InfiniBand specification (key, PD, access, bounds),
 * then translation of one page. A lookup counts (LRU, counters, log) once: when it hits, joins
 * a read under way or starts one. A replay finds its line without counting again, unless an
 * invalidation has taken the line from it.
 */
#include "nic/pte_cache/state.h"

void rn_pte_finish(struct rn_pte_cache *cache, uint16_t slot_idx, uint8_t status,
		   uint64_t ready_cycle)
{
	struct rn_pte_slot *slot = &cache->slots[slot_idx];
	uint64_t *const refused[] = {
		[RN_PTE_BAD_KEY] = &cache->counters.bad_key,
		[RN_PTE_BAD_PD] = &cache->counters.bad_pd,
		[RN_PTE_BAD_ACCESS] = &cache->counters.bad_access,
		[RN_PTE_BAD_BOUNDS] = &cache->counters.bad_bounds,
		[RN_PTE_ABORT] = &cache->counters.aborts,
	};

	slot->rsp.status = status;
	slot->ready_cycle = ready_cycle;
	slot->stage = RN_PTE_STAGE_DONE;
	rn_pte_list_append(cache, &cache->results[slot->client], slot_idx);
	if (status != RN_PTE_OK) {
		++*refused[status];
	} else if (slot->req.check_only) {
		cache->counters.checks++;
	} else {
		slot->rsp.epoch = cache->epoch;
		cache->outstanding[cache->epoch]++;
		cache->counters.translations++;
	}
}

/* The line of @number when it can be read now; else @slot is parked until it can. */
static uint32_t find_line(struct rn_pte_cache *cache, enum rn_pte_unit_id id, uint64_t number,
			  uint16_t slot_idx, uint64_t miss_cycle)
{
	struct rn_pte_unit *unit = &cache->units[id];
	struct rn_pte_slot *slot = &cache->slots[slot_idx];
	uint32_t line = rn_pte_tags_find(&unit->tags, number);

	if (line == RN_PTE_NO_LINE) {
		slot->counted = rn_pte_miss_start(cache, id, number, slot_idx, miss_cycle);
		if (!slot->counted) {
			rn_pte_list_append(cache, &unit->stalled, slot_idx);
			unit->stalled_count++;
		}
		return RN_PTE_NO_LINE;
	}

	bool is_valid = unit->tags.state[line] == RN_PTE_TAG_VALID;

	if (!slot->counted) {
		rn_pte_tags_touch(&unit->tags, line);
		++*(is_valid ? unit->hits : unit->merges);
		rn_pte_log(cache, id, number, is_valid ? "hit" : "merge", RN_PTE_NO_NUMBER);
		if (is_valid)
			slot->rsp.hit |= (uint8_t)(1u << id);
	}
	slot->counted = !is_valid;
	if (is_valid)
		return line;
	rn_pte_list_append(cache, &cache->misses[unit->tags.miss[line]].waiters, slot_idx);
	return RN_PTE_NO_LINE;
}

static uint8_t check(const struct rn_hw_mpt *mpt, const struct rn_pte_req *req)
{
	if (!mpt->state || mpt->key != req->key)
		return RN_PTE_BAD_KEY;
	if (mpt->pd != req->pd)
		return RN_PTE_BAD_PD;
	if ((mpt->access & req->access) != req->access)
		return RN_PTE_BAD_ACCESS;
	/* No sum of the client's that could wrap. */
	if (req->va < mpt->start_va || req->length > mpt->length ||
	    req->length > RN_MAX_MESSAGE_BYTES ||
	    req->va - mpt->start_va > mpt->length - req->length)
		return RN_PTE_BAD_BOUNDS;
	if (mpt->log_page_bytes < 12 || mpt->log_page_bytes > 30)
		return RN_PTE_ABORT;
	return RN_PTE_OK;
}

/* The MTT entry of the request's first page; false when it is beyond the table. */
static bool locate(const struct rn_pte_cache *cache, const struct rn_hw_mpt *mpt,
		   struct rn_pte_slot *slot)
{
	uint64_t entries = 1ull << cache->base.log_mtts;
	uint64_t page =
		(slot->req.va >> mpt->log_page_bytes) - (mpt->start_va >> mpt->log_page_bytes);

	if (mpt->mtt_index >= entries || page >= entries - mpt->mtt_index)
		return false;
	slot->entry = mpt->mtt_index + page;
	slot->log_page_bytes = mpt->log_page_bytes;
	return true;
}

/* True when the MTT is to be looked up next. */
static bool pass_mpt(struct rn_pte_cache *cache, uint16_t slot_idx, uint64_t done_cycle)
{
	struct rn_pte_slot *slot = &cache->slots[slot_idx];
	uint64_t number = slot->req.key >> 8;

	if (!cache->has_base || number >> cache->base.log_mpts) {
		rn_pte_finish(cache, slot_idx, RN_PTE_BAD_KEY, done_cycle);
		return false;
	}

	uint32_t line = find_line(cache, RN_PTE_UNIT_MPT, number, slot_idx, done_cycle);

	if (line == RN_PTE_NO_LINE)
		return false;

	uint8_t status = check(&cache->mpt[line], &slot->req);

	if (status == RN_PTE_OK && !slot->req.check_only && !locate(cache, &cache->mpt[line], slot))
		status = RN_PTE_ABORT;
	if (status != RN_PTE_OK || slot->req.check_only) {
		rn_pte_finish(cache, slot_idx, status, done_cycle);
		return false;
	}
	slot->stage = RN_PTE_STAGE_MTT;
	return true;
}

static void pass_mtt(struct rn_pte_cache *cache, uint16_t slot_idx, uint64_t done_cycle)
{
	struct rn_pte_slot *slot = &cache->slots[slot_idx];
	uint32_t line_entries = cache->params.mtt_line_entries;
	uint32_t line =
		find_line(cache, RN_PTE_UNIT_MTT, slot->entry / line_entries, slot_idx, done_cycle);

	if (line == RN_PTE_NO_LINE)
		return;

	uint64_t entry = cache->mtt[(size_t)line * line_entries + slot->entry % line_entries];
	uint64_t offset_mask = (1ull << slot->log_page_bytes) - 1;
	uint64_t offset = slot->req.va & offset_mask;
	uint64_t to_end = offset_mask + 1 - offset;

	slot->rsp.pa = (entry & ~offset_mask) | offset;
	slot->rsp.bytes = (uint32_t)(slot->req.length < to_end ? slot->req.length : to_end);
	rn_pte_finish(cache, slot_idx, entry & RN_MTT_PRESENT ? RN_PTE_OK : RN_PTE_ABORT,
		      done_cycle);
}

void rn_pte_refuse(struct rn_pte_cache *cache, uint16_t slot_idx, uint8_t status, uint64_t cycle)
{
	bool is_mpt = cache->slots[slot_idx].stage == RN_PTE_STAGE_MPT;

	rn_pte_finish(cache, slot_idx, status,
		      cycle + (is_mpt ? cache->params.mpt_cycles : cache->params.mtt_cycles));
}

void rn_pte_look_up(struct rn_pte_cache *cache, uint16_t slot_idx, uint64_t cycle)
{
	if (cache->slots[slot_idx].stage == RN_PTE_STAGE_MPT) {
		cycle += cache->params.mpt_cycles;
		if (!pass_mpt(cache, slot_idx, cycle))
			return;
	}
	pass_mtt(cache, slot_idx, cycle + cache->params.mtt_cycles);
}
