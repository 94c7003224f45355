/*
 * The context caches of the NIC (QPC, CQC, SRQC) behind one request pipeline. A cycle, in this order:
 * a base register is set; one answer of the DMA engine fills a line or ends a write-back, and the
 * requests that waited are answered; one client request is looked up (round robin over those that can
 * go on, every interval_cycles); one request goes to the DMA engine.
 * Exact: sets, ways, LRU, pins, miss registers, write-back before refill, every access to host memory.
 * Approximated: the three caches share the lookup port; a line moves to and from its SRAM in one cycle.
 * Left out: ECC, a cache for EQ contexts (they stay on the NIC).
 */
#include "nic/context_cache/context_cache.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "hw/gen/rnic_hw.h"
#include "nic/context_cache/state.h"

#define RN_PARAM_OWNER rn_context_cache_params
RN_PARAM_TABLE(rn_context_cache_param_table, "context_cache", RN_CONTEXT_CACHE_PARAMS);

#define COUNTER_ROW(field, unit, help) RN_COUNTER_ROW(struct rn_context_counters, field, unit, help)
static const struct rn_counter_desc counter_descs[] = {RN_CONTEXT_CACHE_COUNTERS(COUNTER_ROW)};

#define MAX_LINES (1u << 20) /* of one cache */

static const char *const type_names[RN_CONTEXT_TYPES] = {"qpc", "cqc", "srqc"};

/* Blocks that lock a line of the type: wqe_fetch, tx, rx and cmd; cqe and cmd; nobody yet. */
static const uint8_t lockers[RN_CONTEXT_TYPES] = {4, 2, 0};

struct geometry {
	uint32_t sets;
	uint32_t ways;
	uint32_t misses;
};

static struct geometry geometry_of(const struct rn_context_cache_params *params, unsigned type)
{
	const struct geometry all[RN_CONTEXT_TYPES] = {
		{params->qpc_sets, params->qpc_ways, params->qpc_misses},
		{params->cqc_sets, params->cqc_ways, params->cqc_misses},
		{params->srqc_sets, params->srqc_ways, params->srqc_misses},
	};

	RN_ASSERT(type < RN_CONTEXT_TYPES);
	return all[type];
}

uint32_t rn_context_cache_lines(const struct rn_context_cache_params *params, unsigned type)
{
	struct geometry geometry = geometry_of(params, type);

	return geometry.sets * geometry.ways;
}

uint32_t rn_context_cache_line_bytes(unsigned type)
{
	static const uint32_t bytes[RN_CONTEXT_TYPES] = {RN_QPC_BYTES, RN_CQC_BYTES, RN_SRQC_BYTES};

	RN_ASSERT(type < RN_CONTEXT_TYPES);
	return bytes[type];
}

const char *rn_context_cache_check(const struct rn_context_cache_params *params)
{
	static const char *const few_ways[RN_CONTEXT_TYPES] = {
		"qpc_ways must be more than 4: wqe_fetch, tx, rx and cmd may each lock a line",
		"cqc_ways must be more than 2: cqe and cmd may each lock a line",
		"srqc_ways must be at least 1",
	};

	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++) {
		struct geometry geometry = geometry_of(params, type);

		if (!rn_is_pow2(geometry.sets))
			return "qpc_sets, cqc_sets and srqc_sets must be powers of two";
		if (geometry.ways <= lockers[type])
			return few_ways[type];
		if (!geometry.misses)
			return "qpc_misses, cqc_misses and srqc_misses must be at least 1";
		if ((uint64_t)geometry.sets * geometry.ways > MAX_LINES)
			return "a context cache has at most 2^20 lines (sets times ways)";
	}
	return NULL;
}

void rn_context_log(struct rn_context_cache *cache, const struct rn_context_req *req,
		    const char *result, uint32_t victim)
{
	static const char *const ops[] = {"acquire", "release", "prefetch", "flush"};

	if (!cache->log)
		return;
	fprintf(cache->log, "%" PRIu64 " %s %s %" PRIu32 " %s %" PRIu32,
		rn_sim_now_ps(cache->env.sim), type_names[req->type], ops[req->op], req->number,
		result, rn_context_lines_set(&cache->units[req->type].lines, req->number));
	if (victim == RN_CONTEXT_NO_NUMBER)
		fprintf(cache->log, " - %" PRIu32 "\n", cache->env.host);
	else
		fprintf(cache->log, " %" PRIu32 " %" PRIu32 "\n", victim, cache->env.host);
}

void rn_context_answer(struct rn_context_cache *cache, struct rn_context_waiter waiter,
		       const struct rn_context_rsp *rsp, uint32_t delay_cycles)
{
	struct rn_fifo *fifo = cache->ports.rsp[waiter.client];
	struct rn_context_rsp full = *rsp;

	full.token = waiter.token;
	rn_fifo_push_at(fifo, &full,
			rn_block_edge_in_ps(&cache->block, delay_cycles + fifo->latency_cycles));
}

static void answer_now(struct rn_context_cache *cache, uint8_t client,
		       const struct rn_context_req *req, const struct rn_context_rsp *rsp)
{
	rn_context_answer(cache, (struct rn_context_waiter){.token = req->token, .client = client},
			  rsp, cache->params.hit_cycles);
}

static enum rn_stall refuse(struct rn_context_cache *cache, uint8_t client,
			    const struct rn_context_req *req)
{
	cache->counters.bad_numbers++;
	rn_context_log(cache, req, "bad", RN_CONTEXT_NO_NUMBER);
	answer_now(cache, client, req, &(struct rn_context_rsp){.status = RN_CONTEXT_BAD_NUMBER});
	return RN_STALL_NONE;
}

static void count_hit(struct rn_context_cache *cache, const struct rn_context_req *req,
		      uint32_t line)
{
	struct rn_context_unit *unit = &cache->units[req->type];

	rn_context_lines_touch(&unit->lines, line);
	++*unit->hits;
	rn_context_log(cache, req, "hit", RN_CONTEXT_NO_NUMBER);
}

static enum rn_stall acquire(struct rn_context_cache *cache, uint8_t client,
			     const struct rn_context_req *req, uint64_t cycle)
{
	struct rn_context_unit *unit = &cache->units[req->type];

	if (!rn_fifo_can_push(cache->ports.rsp[client]))
		return RN_STALL_OUTPUT;
	if (req->number >= unit->entries)
		return refuse(cache, client, req);

	uint32_t line = rn_context_lines_find(&unit->lines, req->number);

	if (line == RN_CONTEXT_NO_LINE)
		return rn_context_miss_start(cache, client, req, cycle);

	struct rn_context_tag *tag = &unit->lines.tags[line];

	if (tag->state == RN_CONTEXT_LINE_FILLING)
		return rn_context_miss_join(cache, client, req, line);
	if (tag->state == RN_CONTEXT_LINE_LEAVING)
		return RN_STALL_MISS;
	if (tag->exclusive || (req->exclusive && tag->pins))
		return RN_STALL_LOCK;
	tag->pins++;
	tag->exclusive = req->exclusive;
	count_hit(cache, req, line);
	answer_now(cache, client, req, &(struct rn_context_rsp){.hit = 1, .line = line});
	return RN_STALL_NONE;
}

static enum rn_stall release(struct rn_context_cache *cache, const struct rn_context_req *req)
{
	struct rn_context_lines *lines = &cache->units[req->type].lines;
	uint32_t line = rn_context_lines_find(lines, req->number);

	RN_ASSERT(line != RN_CONTEXT_NO_LINE);

	struct rn_context_tag *tag = &lines->tags[line];

	RN_ASSERT(tag->state == RN_CONTEXT_LINE_VALID && tag->pins);
	tag->pins--;
	tag->exclusive = 0;
	if (req->dirty)
		tag->dirty = 1;
	rn_context_log(cache, req, "done", RN_CONTEXT_NO_NUMBER);
	return RN_STALL_NONE;
}

static enum rn_stall prefetch(struct rn_context_cache *cache, uint8_t client,
			      const struct rn_context_req *req, uint64_t cycle)
{
	struct rn_context_unit *unit = &cache->units[req->type];
	uint32_t line = rn_context_lines_find(&unit->lines, req->number);
	enum rn_stall stall = RN_STALL_NONE;

	if (req->number >= unit->entries)
		stall = RN_STALL_MISS;
	else if (line == RN_CONTEXT_NO_LINE)
		stall = rn_context_miss_start(cache, client, req, cycle);
	else if (unit->lines.tags[line].state == RN_CONTEXT_LINE_FILLING)
		stall = rn_context_miss_join(cache, client, req, line);
	else if (unit->lines.tags[line].state == RN_CONTEXT_LINE_VALID)
		count_hit(cache, req, line);
	else
		stall = RN_STALL_MISS;
	if (stall == RN_STALL_NONE)
		return stall;
	cache->counters.prefetches_dropped++;
	rn_context_log(cache, req, "drop", RN_CONTEXT_NO_NUMBER);
	return RN_STALL_NONE;
}

static enum rn_stall flush(struct rn_context_cache *cache, uint8_t client,
			   const struct rn_context_req *req, uint64_t cycle)
{
	struct rn_context_unit *unit = &cache->units[req->type];
	struct rn_context_tag *tag = NULL;

	if (!rn_fifo_can_push(cache->ports.rsp[client]))
		return RN_STALL_OUTPUT;
	if (req->number >= unit->entries)
		return refuse(cache, client, req);

	uint32_t line = rn_context_lines_find(&unit->lines, req->number);

	if (line == RN_CONTEXT_NO_LINE) {
		if (rn_context_miss_is_leaving(cache, req->type, req->number))
			return RN_STALL_MISS;
	} else {
		tag = &unit->lines.tags[line];
		if (tag->state != RN_CONTEXT_LINE_VALID)
			return RN_STALL_MISS;
		if (tag->pins)
			return RN_STALL_LOCK;
	}

	bool is_dirty = tag && tag->dirty;

	if (is_dirty && rn_context_miss_flush(cache, client, req, line, cycle) != RN_STALL_NONE)
		return RN_STALL_TAG;
	cache->counters.flushes++;
	rn_context_log(cache, req, tag ? "done" : "miss", RN_CONTEXT_NO_NUMBER);
	if (is_dirty)
		return RN_STALL_NONE;
	if (tag)
		tag->state = RN_CONTEXT_LINE_EMPTY;
	answer_now(cache, client, req, &(struct rn_context_rsp){.hit = tag != NULL});
	return RN_STALL_NONE;
}

/* RN_STALL_NONE when the request took effect, else why it has to wait. */
static enum rn_stall serve(struct rn_context_cache *cache, uint8_t client,
			   const struct rn_context_req *req, uint64_t cycle)
{
	RN_ASSERT(req->type < RN_CONTEXT_TYPES);
	switch (req->op) {
	case RN_CONTEXT_ACQUIRE:
		return acquire(cache, client, req, cycle);
	case RN_CONTEXT_RELEASE:
		return release(cache, req);
	case RN_CONTEXT_PREFETCH:
		return prefetch(cache, client, req, cycle);
	case RN_CONTEXT_FLUSH:
		return flush(cache, client, req, cycle);
	}
	RN_ASSERT(!"a context request has a known operation");
	return RN_STALL_NONE;
}

static bool has_requests(struct rn_context_cache *cache)
{
	for (uint32_t client = 0; client < RN_CONTEXT_CLIENT_COUNT; client++)
		if (rn_fifo_peek(cache->ports.req[client]))
			return true;
	return false;
}

/* One round of the arbiter: the first client from next_client whose request can go on. */
static bool look_up(struct rn_context_cache *cache, uint64_t cycle, enum rn_stall *stall)
{
	for (uint32_t i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++) {
		uint32_t client = (cache->next_client + i) % RN_CONTEXT_CLIENT_COUNT;
		const struct rn_context_req *req = rn_fifo_peek(cache->ports.req[client]);

		if (!req)
			continue;

		enum rn_stall why = serve(cache, (uint8_t)client, req, cycle);

		if (why == RN_STALL_NONE) {
			rn_fifo_drop(cache->ports.req[client]);
			cache->next_client = (client + 1) % RN_CONTEXT_CLIENT_COUNT;
			cache->next_lookup_cycle = cycle + cache->params.interval_cycles;
			return true;
		}
		if (*stall == RN_STALL_NONE)
			*stall = why;
	}
	return false;
}

static void take_base(struct rn_context_cache *cache)
{
	struct rn_context_base base;

	if (!rn_fifo_pop(cache->ports.base, &base))
		return;
	RN_ASSERT(base.type < RN_CONTEXT_TYPES && base.log_entries < 32);
	cache->units[base.type].base_pa = base.base_pa;
	cache->units[base.type].entries = 1ull << base.log_entries;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_context_cache *cache = self;
	enum rn_stall stall = RN_STALL_NONE;
	bool has_looked_up = false;

	cache->wake_cycle = UINT64_MAX;
	take_base(cache);
	rn_context_miss_receive(cache, cycle);
	if (cycle >= cache->next_lookup_cycle)
		has_looked_up = look_up(cache, cycle, &stall);
	/* Requests that could not go on are tried again when something has changed. */
	if (cycle < cache->next_lookup_cycle && has_requests(cache))
		rn_context_want(cache, cache->next_lookup_cycle);
	rn_context_miss_send(cache, cycle);
	if (stall == RN_STALL_NONE && cache->misses_busy)
		stall = RN_STALL_MISS;
	rn_block_account(&cache->block, has_looked_up ? cache->params.interval_cycles : 0, stall);
	if (cache->wake_cycle != UINT64_MAX)
		rn_block_wake_in(&cache->block, cache->wake_cycle - cycle);
}

static void init_unit(struct rn_context_cache *cache, unsigned type)
{
	struct rn_context_unit *unit = &cache->units[type];
	struct geometry geometry = geometry_of(&cache->params, type);
	struct rn_context_counters *counters = &cache->counters;
	uint64_t *const hits[] = {&counters->qpc_hits, &counters->cqc_hits, &counters->srqc_hits};
	uint64_t *const misses[] = {&counters->qpc_misses, &counters->cqc_misses,
				    &counters->srqc_misses};
	uint64_t *const merges[] = {&counters->qpc_merges, &counters->cqc_merges,
				    &counters->srqc_merges};

	rn_context_lines_init(&unit->lines, geometry.sets, geometry.ways);
	unit->sram = cache->ports.sram[type];
	RN_ASSERT(unit->sram->count == geometry.sets * geometry.ways &&
		  unit->sram->bytes == rn_context_cache_line_bytes(type));
	unit->first_miss = cache->misses_count;
	unit->misses_count = geometry.misses;
	cache->misses_count += geometry.misses;
	unit->hits = hits[type];
	unit->misses = misses[type];
	unit->merges = merges[type];
}

static void connect(struct rn_context_cache *cache)
{
	for (uint32_t client = 0; client < RN_CONTEXT_CLIENT_COUNT; client++) {
		rn_fifo_set_consumer(cache->ports.req[client], &cache->block);
		rn_fifo_set_producer(cache->ports.rsp[client], &cache->block);
	}
	rn_fifo_set_consumer(cache->ports.base, &cache->block);
	rn_fifo_set_consumer(cache->ports.dma_rsp, &cache->block);
	rn_fifo_set_producer(cache->ports.dma_req, &cache->block);
}

struct rn_context_cache *rn_context_cache_new(const struct rn_nic_env *env,
					      const struct rn_context_cache_params *params,
					      const struct rn_context_cache_ports *ports)
{
	struct rn_context_cache *cache = rn_calloc(1, sizeof(*cache));

	cache->env = *env;
	cache->params = *params;
	cache->ports = *ports;
	cache->name = rn_asprintf("%s.context_cache", env->name);
	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++)
		init_unit(cache, type);
	RN_ASSERT(cache->misses_count <= UINT8_MAX + 1);
	cache->misses = rn_calloc(cache->misses_count, sizeof(*cache->misses));
	for (uint32_t i = 0; i < cache->misses_count; i++)
		cache->misses[i].leaving = RN_CONTEXT_NO_NUMBER;
	cache->dma_queue = rn_calloc(cache->misses_count, sizeof(*cache->dma_queue));
	rn_block_init(&cache->block, env->sim, env->core, cache->name, tick, cache);
	connect(cache);
	rn_stats_add_block(env->stats, &cache->block);
	rn_stats_add_counters(env->stats, cache->name, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &cache->counters);
	return cache;
}

void rn_context_cache_free(struct rn_context_cache *cache)
{
	if (!cache)
		return;
	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++)
		rn_context_lines_fini(&cache->units[type].lines);
	free(cache->misses);
	free(cache->dma_queue);
	free(cache->name);
	free(cache);
}

void rn_context_cache_set_log(struct rn_context_cache *cache, FILE *log)
{
	cache->log = log;
}
