/*
 * PTE cache: memory protection (MPT) and translation (MTT) entries of the regions, cached from ICM, and
 * the checks that every access of the NIC to user memory passes. A cycle, in this order: base registers
 * (nothing else but releases and answers then) and one release are taken; an invalidation is taken or goes on;
 * one line is filled, if nobody waits for the line before; one request is looked up every interval_cycles,
 * replays before new ones, the clients in turn; one read goes to the DMA engine; each client gets one answer.
 * Exact: sets, ways, LRU, miss registers, every read of ICM, order of checks, epochs.
 * Approximated: nothing on purpose; this is the cycle behaviour an RTL of the block has at the same ports.
 * Left out: memory windows, page faults (ODP), multi-level tables (the MTT is one array).
 */
#include "nic/pte_cache/pte_cache.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/pte_cache/state.h"

#define RN_PARAM_OWNER rn_pte_cache_params
RN_PARAM_TABLE(rn_pte_cache_param_table, "pte_cache", RN_PTE_CACHE_PARAMS);

#define COUNTER_ROW(field, unit, help) RN_COUNTER_ROW(struct rn_pte_counters, field, unit, help)
static const struct rn_counter_desc counter_descs[] = {RN_PTE_CACHE_COUNTERS(COUNTER_ROW)};

#define MAX_LINES (1u << 22) /* of one cache */

static const struct rn_pte_list empty_list = {RN_PTE_NO_SLOT, RN_PTE_NO_SLOT};

const char *rn_pte_cache_check(const struct rn_pte_cache_params *params)
{
	if (!rn_is_pow2(params->mpt_sets) || !rn_is_pow2(params->mtt_sets))
		return "mpt_sets and mtt_sets must be powers of two";
	if (!rn_is_pow2(params->mtt_line_entries))
		return "mtt_line_entries must be a power of two";
	if ((uint64_t)params->mpt_sets * params->mpt_ways > MAX_LINES ||
	    (uint64_t)params->mtt_sets * params->mtt_ways > MAX_LINES)
		return "the MPT and the MTT cache have at most 2^22 lines (sets times ways)";
	return NULL;
}

void rn_pte_list_append(struct rn_pte_cache *cache, struct rn_pte_list *list, uint16_t slot)
{
	cache->slots[slot].next = RN_PTE_NO_SLOT;
	if (list->head == RN_PTE_NO_SLOT)
		list->head = slot;
	else
		cache->slots[list->tail].next = slot;
	list->tail = slot;
}

uint16_t rn_pte_list_take(struct rn_pte_cache *cache, struct rn_pte_list *list)
{
	uint16_t slot = list->head;

	RN_ASSERT(slot != RN_PTE_NO_SLOT);
	list->head = cache->slots[slot].next;
	return slot;
}

void rn_pte_list_move(struct rn_pte_cache *cache, struct rn_pte_list *from, struct rn_pte_list *to)
{
	if (rn_pte_list_is_empty(from))
		return;
	if (to->head == RN_PTE_NO_SLOT)
		to->head = from->head;
	else
		cache->slots[to->tail].next = from->head;
	to->tail = from->tail;
	*from = empty_list;
}

void rn_pte_log(struct rn_pte_cache *cache, enum rn_pte_unit_id id, uint64_t number,
		const char *result, uint64_t victim)
{
	const struct rn_pte_unit *unit = &cache->units[id];

	if (!cache->log)
		return;
	fprintf(cache->log, "%" PRIu64 " %s %" PRIu64 " %s %" PRIu32, rn_sim_now_ps(cache->env.sim),
		unit->name, number, result, rn_pte_tags_set(&unit->tags, number));
	if (victim == RN_PTE_NO_NUMBER)
		fprintf(cache->log, " - %" PRIu32 "\n", cache->env.host);
	else
		fprintf(cache->log, " %" PRIu64 " %" PRIu32 "\n", victim, cache->env.host);
}

/* False when there was none. */
static bool take_base(struct rn_pte_cache *cache)
{
	struct rn_pte_base base;

	if (!rn_fifo_pop(cache->ports.base, &base))
		return false;
	RN_ASSERT(base.log_mpts < 64 && base.log_mtts < 64);
	if (cache->has_base)
		rn_pte_inval_all(cache);
	cache->base = base;
	cache->has_base = true;
	return true;
}

static void take_release(struct rn_pte_cache *cache)
{
	struct rn_pte_release release;

	if (!rn_fifo_pop(cache->ports.release, &release))
		return;
	RN_ASSERT(release.epoch < 2 && cache->outstanding[release.epoch]);
	cache->outstanding[release.epoch]--;
}

static void take_fill(struct rn_pte_cache *cache, uint64_t cycle)
{
	if (cycle >= cache->tags_free_cycle && rn_pte_list_is_empty(&cache->replay))
		rn_pte_miss_receive(cache, cycle);
}

/* A slot for the next client's request, or RN_PTE_NO_SLOT. */
static uint16_t accept(struct rn_pte_cache *cache)
{
	for (uint32_t i = 0; i < RN_PTE_CLIENT_COUNT; i++) {
		uint32_t client = (cache->next_client + i) % RN_PTE_CLIENT_COUNT;
		const struct rn_pte_req *req = rn_fifo_peek(cache->ports.req[client]);

		if (!req)
			continue;

		uint16_t slot = rn_pte_list_take(cache, &cache->unused);

		cache->slots[slot] = (struct rn_pte_slot){
			.req = *req,
			.rsp = {.id = req->id},
			.client = (uint8_t)client,
		};
		rn_fifo_drop(cache->ports.req[client]);
		cache->next_client = (client + 1) % RN_PTE_CLIENT_COUNT;
		cache->taken_client = client;
		return slot;
	}
	return RN_PTE_NO_SLOT;
}

/* Somebody who found no miss register, or no way, the last time. */
static struct rn_pte_unit *find_stalled(struct rn_pte_cache *cache)
{
	for (unsigned id = RN_PTE_UNITS; id-- > 0;) {
		struct rn_pte_unit *unit = &cache->units[id];

		if (unit->stalled_tries && unit->misses_busy < unit->misses_count)
			return unit;
	}
	return NULL;
}

static uint16_t choose(struct rn_pte_cache *cache, uint64_t cycle)
{
	if (!rn_pte_list_is_empty(&cache->replay))
		return cycle < cache->replay_cycle ? RN_PTE_NO_SLOT
						   : rn_pte_list_take(cache, &cache->replay);

	struct rn_pte_unit *unit = find_stalled(cache);

	if (unit) {
		unit->stalled_tries--;
		unit->stalled_count--;
		return rn_pte_list_take(cache, &unit->stalled);
	}
	if (rn_pte_list_is_empty(&cache->unused))
		return RN_PTE_NO_SLOT;
	return accept(cache);
}

static bool issue(struct rn_pte_cache *cache, uint64_t cycle)
{
	if (cycle < cache->next_lookup_cycle || cycle < cache->tags_free_cycle)
		return false;

	bool is_refused =
		!rn_pte_list_is_empty(&cache->replay) && cache->replay_status != RN_PTE_OK;
	uint16_t slot = choose(cache, cycle);

	if (slot == RN_PTE_NO_SLOT)
		return false;
	if (is_refused)
		rn_pte_refuse(cache, slot, cache->replay_status, cycle);
	else
		rn_pte_look_up(cache, slot, cycle);
	cache->next_lookup_cycle = cycle + cache->params.interval_cycles;
	return true;
}

static void send_results(struct rn_pte_cache *cache, uint64_t cycle)
{
	for (uint32_t client = 0; client < RN_PTE_CLIENT_COUNT; client++) {
		struct rn_pte_list *list = &cache->results[client];

		if (rn_pte_list_is_empty(list))
			continue;
		if (cycle >= cache->slots[list->head].ready_cycle) {
			if (!rn_fifo_can_push(cache->ports.rsp[client])) {
				cache->is_blocked = true;
				continue;
			}

			uint16_t slot = rn_pte_list_take(cache, list);

			rn_fifo_push(cache->ports.rsp[client], &cache->slots[slot].rsp);
			rn_pte_list_append(cache, &cache->unused, slot);
		}
		if (!rn_pte_list_is_empty(list))
			rn_pte_want(cache,
				    rn_max_u64(cache->slots[list->head].ready_cycle, cycle + 1));
	}
}

static bool has_requests(struct rn_pte_cache *cache)
{
	for (uint32_t client = 0; client < RN_PTE_CLIENT_COUNT; client++)
		if (rn_fifo_peek(cache->ports.req[client]))
			return true;
	return false;
}

/* Come back for the next lookup, if there is one that need not wait for something else. */
static void want_lookup(struct rn_pte_cache *cache, uint64_t cycle)
{
	uint64_t first =
		rn_max_u64(cycle + 1, rn_max_u64(cache->next_lookup_cycle, cache->tags_free_cycle));

	if (!rn_pte_list_is_empty(&cache->replay)) {
		rn_pte_want(cache, rn_max_u64(first, cache->replay_cycle));
		return;
	}
	if (find_stalled(cache) || (!rn_pte_list_is_empty(&cache->unused) && has_requests(cache)))
		rn_pte_want(cache, first);
	if (rn_fifo_peek(cache->ports.dma_rsp))
		rn_pte_want(cache, rn_max_u64(cycle + 1, cache->tags_free_cycle));
}

/* A request at the ports, that this cycle did not take. */
static bool has_untaken(struct rn_pte_cache *cache)
{
	for (uint32_t client = 0; client < RN_PTE_CLIENT_COUNT; client++)
		if (client != cache->taken_client && rn_fifo_peek(cache->ports.req[client]))
			return true;
	return false;
}

static enum rn_stall find_stall(struct rn_pte_cache *cache)
{
	if (cache->is_blocked)
		return RN_STALL_OUTPUT;
	if (cache->units[RN_PTE_UNIT_MPT].stalled_count ||
	    cache->units[RN_PTE_UNIT_MTT].stalled_count ||
	    (rn_pte_list_is_empty(&cache->unused) && has_untaken(cache)))
		return RN_STALL_TAG;
	if (cache->units[RN_PTE_UNIT_MPT].misses_busy || cache->units[RN_PTE_UNIT_MTT].misses_busy)
		return RN_STALL_MISS;
	return cache->walk.is_active ? RN_STALL_LOCK : RN_STALL_NONE;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_pte_cache *cache = self;
	bool is_busy = false;

	cache->wake_cycle = UINT64_MAX;
	cache->taken_client = RN_PTE_CLIENT_COUNT;
	cache->is_blocked = false;

	bool is_moved = take_base(cache);

	take_release(cache);
	rn_pte_inval_walk(cache);
	if (is_moved) {
		rn_pte_want(cache, cycle + 1);
	} else {
		rn_pte_inval_take(cache, cycle);
		take_fill(cache, cycle);
		is_busy = issue(cache, cycle);
		rn_pte_miss_send(cache, cycle);
	}
	send_results(cache, cycle);
	rn_pte_inval_finish(cache, cycle);
	want_lookup(cache, cycle);
	rn_block_account(&cache->block, is_busy ? cache->params.interval_cycles : 0,
			 find_stall(cache));
	if (cache->wake_cycle != UINT64_MAX)
		rn_block_wake_in(&cache->block, cache->wake_cycle - cycle);
}

static void init_units(struct rn_pte_cache *cache)
{
	const struct rn_pte_cache_params *params = &cache->params;
	struct rn_pte_unit *mpt = &cache->units[RN_PTE_UNIT_MPT];
	struct rn_pte_unit *mtt = &cache->units[RN_PTE_UNIT_MTT];

	rn_pte_tags_init(&mpt->tags, params->mpt_sets, params->mpt_ways);
	rn_pte_tags_init(&mtt->tags, params->mtt_sets, params->mtt_ways);
	mpt->stalled = mtt->stalled = empty_list;
	mpt->name = "mpt";
	mpt->misses_count = params->mpt_misses;
	mpt->hits = &cache->counters.mpt_hits;
	mpt->misses = &cache->counters.mpt_misses;
	mpt->merges = &cache->counters.mpt_merges;
	mtt->name = "mtt";
	mtt->first_miss = params->mpt_misses;
	mtt->misses_count = params->mtt_misses;
	mtt->hits = &cache->counters.mtt_hits;
	mtt->misses = &cache->counters.mtt_misses;
	mtt->merges = &cache->counters.mtt_merges;
	cache->misses_count = params->mpt_misses + params->mtt_misses;
}

static void init_storage(struct rn_pte_cache *cache)
{
	const struct rn_pte_cache_params *params = &cache->params;
	size_t mpt_lines = (size_t)params->mpt_sets * params->mpt_ways;
	size_t mtt_lines = (size_t)params->mtt_sets * params->mtt_ways;

	cache->mpt = rn_calloc(mpt_lines, sizeof(*cache->mpt));
	cache->mtt = rn_calloc(mtt_lines * params->mtt_line_entries, sizeof(*cache->mtt));
	cache->slots = rn_calloc(params->request_slots, sizeof(*cache->slots));
	cache->misses = rn_calloc(cache->misses_count, sizeof(*cache->misses));
	cache->dma_queue = rn_calloc(cache->misses_count, sizeof(*cache->dma_queue));
	cache->unused = cache->replay = empty_list;
	for (uint32_t client = 0; client < RN_PTE_CLIENT_COUNT; client++)
		cache->results[client] = empty_list;
	for (uint32_t slot = 0; slot < params->request_slots; slot++) {
		cache->slots[slot].stage = RN_PTE_STAGE_DONE;
		rn_pte_list_append(cache, &cache->unused, (uint16_t)slot);
	}
}

static void connect(struct rn_pte_cache *cache)
{
	for (uint32_t client = 0; client < RN_PTE_CLIENT_COUNT; client++) {
		rn_fifo_set_consumer(cache->ports.req[client], &cache->block);
		rn_fifo_set_producer(cache->ports.rsp[client], &cache->block);
	}
	rn_fifo_set_consumer(cache->ports.release, &cache->block);
	rn_fifo_set_consumer(cache->ports.inval, &cache->block);
	rn_fifo_set_consumer(cache->ports.base, &cache->block);
	rn_fifo_set_consumer(cache->ports.dma_rsp, &cache->block);
	rn_fifo_set_producer(cache->ports.inval_done, &cache->block);
	rn_fifo_set_producer(cache->ports.dma_req, &cache->block);
}

struct rn_pte_cache *rn_pte_cache_new(const struct rn_nic_env *env,
				      const struct rn_pte_cache_params *params,
				      const struct rn_pte_cache_ports *ports)
{
	struct rn_pte_cache *cache = rn_calloc(1, sizeof(*cache));

	RN_ASSERT(!rn_pte_cache_check(params));
	cache->env = *env;
	cache->params = *params;
	cache->ports = *ports;
	cache->name = rn_asprintf("%s.pte_cache", env->name);
	init_units(cache);
	init_storage(cache);
	rn_block_init(&cache->block, env->sim, env->core, cache->name, tick, cache);
	connect(cache);
	rn_stats_add_block(env->stats, &cache->block);
	rn_stats_add_counters(env->stats, cache->name, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &cache->counters);
	return cache;
}

void rn_pte_cache_free(struct rn_pte_cache *cache)
{
	if (!cache)
		return;
	rn_pte_tags_fini(&cache->units[RN_PTE_UNIT_MPT].tags);
	rn_pte_tags_fini(&cache->units[RN_PTE_UNIT_MTT].tags);
	free(cache->mpt);
	free(cache->mtt);
	free(cache->slots);
	free(cache->misses);
	free(cache->dma_queue);
	free(cache->name);
	free(cache);
}

void rn_pte_cache_set_log(struct rn_pte_cache *cache, FILE *log)
{
	cache->log = log;
}
