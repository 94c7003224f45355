#include "cosim/pte_cache/coverage.h"

#include "nic/pte_cache/state.h"

#define COVERAGE_NAME(name) #name,
static const char *const names[] = {COVERAGE_POINTS(COVERAGE_NAME)};

/* Counters, in the order of the block's list. */
enum count {
	MPT_HITS,
	MPT_MISSES,
	MPT_MERGES,
	MTT_HITS,
	MTT_MISSES,
	MTT_MERGES,
	TRANSLATIONS,
	INVALIDATIONS = 13,
	INVALIDATED_LINES,
	STALE_FILLS
};

void coverage_init(struct coverage *coverage)
{
	*coverage = (struct coverage){.has_base = false};
	cosim_cover_init(&coverage->cover, names, COVERAGE_COUNT);
}

void coverage_fini(struct coverage *coverage)
{
	cosim_cover_fini(&coverage->cover);
}

static uint32_t list_length(const struct rn_pte_cache *model, const struct rn_pte_list *list)
{
	uint32_t length = 0;

	for (uint16_t slot = list->head; slot != RN_PTE_NO_SLOT && length < 4;
	     slot = model->slots[slot].next)
		length++;
	return length;
}

static bool has_passed(const struct rn_pte_cache *model)
{
	for (uint32_t i = 0; i < model->params.request_slots; i++)
		if (model->slots[i].stage == RN_PTE_STAGE_MTT)
			return true;
	return false;
}

void coverage_before(struct coverage *coverage, const struct rig *rig)
{
	const struct rn_pte_cache *model = rig->model;

	coverage->has_base = model->has_base;
	coverage->walks = model->walk.steps != 0;
	coverage->replays = !rn_pte_list_is_empty(&model->replay);
	coverage->replays_refused = coverage->replays && model->replay_status != RN_PTE_OK;
	for (unsigned i = 0; i < RN_PTE_UNITS; i++) {
		coverage->busy[i] = model->units[i].misses_busy;
		coverage->stalled[i] = model->units[i].stalled_count;
		coverage->tries[i] = model->units[i].stalled_tries;
	}
	coverage->outstanding = model->outstanding[model->walk.epoch];
	coverage->gated_cycles = rig->gated_cycles;
	coverage->restartable = model->walk.is_active ? 0 : has_passed(model);
}

static void cover_answers(struct coverage *coverage, const struct rig *rig)
{
	for (unsigned client = 0; client < 2; client++) {
		const struct cosim_out *out = &rig->out[OUT_RSP0 + client];
		const struct rn_pte_rsp *rsp =
			(const struct rn_pte_rsp *)(const void *)out->message;
		bool is_check = rsp->id & 1, is_ok = rsp->status == RN_PTE_OK;

		if (!out->pushed)
			continue;
		coverage_hit(coverage, rsp_ok_dma + 2 * rsp->status + client, true);
		coverage_hit(coverage, check_ok, is_check && is_ok);
		coverage_hit(coverage, check_refused, is_check && !is_ok);
		coverage_hit(coverage, entry_not_present,
			     rsp->status == RN_PTE_ABORT && rsp->bytes);
		if (is_check || !is_ok)
			continue;
		coverage_hit(coverage, translation_hit_none + rsp->hit, true);
		coverage_hit(coverage, translation_epoch_0 + rsp->epoch, true);
		coverage_hit(coverage, translation_to_page_end, !((rsp->pa + rsp->bytes) & 4095));
		coverage_hit(coverage, translation_within_page, (rsp->pa + rsp->bytes) & 4095);
	}
	coverage_hit(coverage, both_answers,
		     rig->out[OUT_RSP0].pushed && rig->out[OUT_RSP1].pushed);
}

static void cover_lookups(struct coverage *coverage, const struct rig *rig)
{
	const struct rn_pte_cache *model = rig->model;
	const uint64_t *counts = rig->outputs.counts;

	for (unsigned i = MPT_HITS; i <= MTT_MERGES; i++)
		coverage_hit(coverage, mpt_hit + i, counts[i]);
	coverage_hit(coverage, mpt_evicts, rig->outputs.has_victim && counts[MPT_MISSES]);
	coverage_hit(coverage, mtt_evicts, rig->outputs.has_victim && counts[MTT_MISSES]);
	for (unsigned i = 0; i < RN_PTE_UNITS; i++) {
		const struct rn_pte_unit *unit = &model->units[i];
		bool is_full = coverage->busy[i] == unit->misses_count;
		bool retries = unit->stalled_tries < coverage->tries[i];
		bool stalls = unit->stalled_count > coverage->stalled[i] ||
			      (retries && unit->stalled_count == coverage->stalled[i]);

		coverage_hit(coverage, mpt_stalls_without_register + 2 * i, stalls && is_full);
		coverage_hit(coverage, mpt_stalls_without_way + 2 * i, stalls && !is_full);
		coverage_hit(coverage, mpt_retries + i, retries);
		coverage_hit(coverage, mpt_registers_all_busy + i, is_full);
	}
	coverage_hit(coverage, mtt_retry_before_mpt_retry,
		     coverage->tries[0] && coverage->busy[0] < model->units[0].misses_count &&
			     model->units[1].stalled_tries < coverage->tries[1]);
	coverage_hit(coverage, slots_all_used, rn_pte_list_is_empty(&model->unused));
}

static void cover_arrivals(struct coverage *coverage, const struct rig *rig)
{
	const struct cosim_in *in = &rig->in[IN_DMA_RSP];
	const struct rn_pte_cache *model = rig->model;

	coverage_hit(coverage, fill_waits_for_replay, in->valid && coverage->replays);
	if (!in->popped)
		return;

	struct rn_dma_rsp rsp;

	in->desc->unpack(in->words, &rsp);
	bool is_mpt = rsp.token < rig->params.mpt_misses;
	bool is_stale = rig->outputs.counts[STALE_FILLS], is_ok = rsp.status == RN_DMA_OK;

	coverage_hit(coverage, is_mpt ? fill_stale_mpt : fill_stale_mtt, is_stale);
	coverage_hit(coverage, fill_stale_aborted, is_stale && !is_ok);
	coverage_hit(coverage, is_mpt ? fill_mpt : fill_mtt, !is_stale && is_ok);
	coverage_hit(coverage, is_mpt ? fill_mpt_aborted : fill_mtt_aborted, !is_stale && !is_ok);
	coverage_hit(coverage, fill_free_entry, model->replay_status == RN_PTE_BAD_KEY);
	bool is_several = list_length(model, &model->replay) > 2;

	coverage_hit(coverage, replay_of_several, is_several);
	coverage_hit(coverage, replay_refused_several,
		     is_several && model->replay_status != RN_PTE_OK);
}

/* The region's end is beyond all numbers. */
static bool is_wrapping(const struct cosim_in *in)
{
	struct rn_pte_inval inval;

	in->desc->unpack(in->words, &inval);
	return inval.mtt_count && inval.mtt_count - 1 > UINT64_MAX - inval.mtt_index;
}

static void cover_invalidations(struct coverage *coverage, const struct rig *rig)
{
	const struct rn_pte_cache *model = rig->model;
	uint64_t dropped = rig->outputs.counts[INVALIDATED_LINES];
	bool stalls = coverage->stalled[0] || coverage->stalled[1];

	if (rig->outputs.counts[INVALIDATIONS]) {
		coverage_hit(coverage, inval_idle, !coverage->busy[0] && !coverage->busy[1]);
		coverage_hit(coverage, inval_during_mpt_read, coverage->busy[0]);
		coverage_hit(coverage, inval_during_mtt_read, coverage->busy[1]);
		coverage_hit(coverage, inval_during_replay, coverage->replays);
		coverage_hit(coverage, inval_with_stalled, stalls);
		coverage_hit(coverage, inval_restarts, coverage->restartable && !has_passed(model));
		coverage_hit(coverage, inval_drops_mpt_line, dropped);
		coverage_hit(coverage, inval_wraps, is_wrapping(&rig->in[IN_INVAL]));
		coverage_hit(coverage, walk_none, !model->walk.steps);
		coverage_hit(coverage, walk_by_line, model->walk.steps && !model->walk.by_set);
		coverage_hit(coverage, walk_by_set, model->walk.by_set);
	}
	coverage_hit(coverage, inval_waits_for_one,
		     rig->in[IN_INVAL].valid && model->walk.is_active);
	coverage_hit(coverage, walk_drops_line, coverage->walks && dropped == 1);
	coverage_hit(coverage, walk_drops_two, coverage->walks && dropped == 2);
	coverage_hit(coverage, done_waits_for_release,
		     model->walk.is_active && !model->walk.steps && coverage->outstanding);
	coverage_hit(coverage, done_with_last_release,
		     rig->out[OUT_DONE].pushed && rig->in[IN_RELEASE].popped);
	coverage_hit(coverage, release_with_hand_out,
		     rig->in[IN_RELEASE].popped && rig->outputs.counts[TRANSLATIONS]);
	if (!rig->in[IN_BASE].popped)
		return;
	coverage_hit(coverage, base_first, !coverage->has_base);
	coverage_hit(coverage, base_again, coverage->has_base);
	coverage_hit(coverage, base_during_read, coverage->busy[0] || coverage->busy[1]);
	coverage_hit(coverage, base_during_walk, coverage->walks);
	coverage_hit(coverage, base_during_replay, coverage->replays);
	coverage_hit(coverage, base_with_stalled, stalls);
}

static void cover_ports(struct coverage *coverage, const struct rig *rig)
{
	static const uint8_t stall_points[RN_STALL_COUNT] = {
		[RN_STALL_NONE] = stall_none, [RN_STALL_OUTPUT] = stall_output,
		[RN_STALL_TAG] = stall_tag,   [RN_STALL_MISS] = stall_miss,
		[RN_STALL_LOCK] = stall_lock,
	};
	bool has_both = rig->in[IN_REQ0].valid && rig->in[IN_REQ1].valid;

	for (unsigned i = 0; i < OUT_COUNT; i++)
		coverage_hit(coverage, blocked_rsp_dma + i,
			     rig->outputs.valid[i] && !rig->out[i].ready);
	for (unsigned i = 0; i < 2; i++) {
		coverage_hit(coverage, waits_req_dma + i, rig->in[i].valid && !rig->in[i].popped);
		coverage_hit(coverage, both_requests_dma_first + i, has_both && rig->in[i].popped);
		coverage_hit(coverage, request_before_base,
			     rig->in[i].popped && !coverage->has_base);
	}
	coverage_hit(coverage, stall_points[rig->outputs.stall % RN_STALL_COUNT], true);
	coverage_hit(coverage, clock_stopped, rig->gated_cycles == coverage->gated_cycles);
}

void coverage_after(struct coverage *coverage, const struct rig *rig)
{
	cover_answers(coverage, rig);
	cover_lookups(coverage, rig);
	cover_arrivals(coverage, rig);
	cover_invalidations(coverage, rig);
	cover_ports(coverage, rig);
}
