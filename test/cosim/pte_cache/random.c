#include "cosim/pte_cache/random.h"

#include <string.h>

#include "base/bits.h"
#include "cosim/pte_cache/tables.h"
#include "nic/pte_cache/state.h"

static uint64_t below(struct random *random, uint64_t bound)
{
	return rn_rng_below(&random->rng, bound);
}

static bool chance(struct random *random, uint32_t of, uint32_t rate)
{
	return below(random, of) < rate;
}

static uint64_t pick_index(struct random *random)
{
	const struct random_phase *phase = &random->phase;
	uint64_t key = below(random, phase->keys);

	if (chance(random, 64, 1))
		return below(random, 1 << 24);
	return phase->high + key % phase->sets + random->rig->params.mpt_sets * (key / phase->sets);
}

/* --- phases --- */

static uint32_t pick(struct random *random, const uint32_t *values, uint32_t count)
{
	return values[below(random, count)];
}

#define PICK(random, ...)                                                                          \
	pick(random, (const uint32_t[]){__VA_ARGS__},                                              \
	     sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Keys that stay in the cache, so that the translations are what is missed. */
static void look_at_mtt(struct random *random)
{
	struct random_phase *phase = &random->phase;

	phase->keys = PICK(random, 2, 4, 16);
	phase->sets = 16;
	phase->pages = PICK(random, 16, 64);
	phase->error_rate = 0;
	phase->inval_rate = PICK(random, 0, 0, 2);
	phase->base_rate = 0;
	phase->req_rate[0] = 16;
	phase->ready_rate[OUT_DMA_REQ] = 16;
}

static void next_phase(struct random *random)
{
	bool is_silent = chance(random, 16, 1);
	struct random_phase *phase = &random->phase;
	/* Long enough to fill what can be filled. */
	uint64_t long_cycles = 4000 + 8 * (uint64_t)random->rig->params.request_slots *
					      random->rig->params.interval_cycles;

	*phase = (struct random_phase){
		.end_cycle = random->rig->cycle + 20 +
			     below(random, chance(random, 4, 1) ? long_cycles : 500),
		.release_rate = PICK(random, 16, 16, 12, 4, 1, 0),
		.inval_rate = is_silent ? 0 : PICK(random, 0, 2, 8, 40, 200),
		.base_rate = is_silent ? 0 : PICK(random, 0, 0, 0, 0, 2, 20),
		.error_rate = PICK(random, 0, 0, 1, 3, 8),
		.abort_rate = PICK(random, 0, 0, 0, 1, 6),
		.latency_cycles = PICK(random, 1, 4, 30, 200, 800),
		.keys = PICK(random, 1, 2, 4, 6, 16, 64),
		.sets = PICK(random, 1, 1, 2, 4, 16),
		.pages = PICK(random, 1, 4, 16, 64),
		.high = chance(random, 2, 1) ? 0 : (uint32_t)below(random, 256) << 16,
	};
	for (unsigned i = 0; i < 2; i++)
		phase->req_rate[i] = is_silent ? 0 : PICK(random, 0, 2, 8, 16, 16);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		phase->ready_rate[i] = PICK(random, 16, 16, 16, 8, 2, 0);
	if (chance(random, 3, 1))
		look_at_mtt(random);
}

/* --- inputs --- */

/* Where in the region, and how much of it. */
static void pick_range(struct random *random, const struct rn_hw_mpt *mpt, struct rn_pte_req *req)
{
	uint64_t page = UINT64_C(1) << (mpt->log_page_bytes < 40 ? mpt->log_page_bytes : 40);
	uint64_t offset = below(random, random->phase.pages) * page;

	/* At the beginning of a page, at its end, or within. */
	if (chance(random, 16, 1))
		offset += page - 1;
	else if (chance(random, 16, 12))
		offset += below(random, page);
	if (chance(random, 16, 1))
		offset = rn_rng_next(&random->rng);
	if (mpt->length)
		offset %= mpt->length;
	req->va = mpt->start_va + offset;
	req->length = (uint32_t)(1 + below(random, chance(random, 2, 1) ? 64 : 70000));
	if (chance(random, 8, 1))
		req->length = (uint32_t)(1 + below(random, RN_MAX_MESSAGE_BYTES));
	if (req->length > mpt->length - offset)
		req->length = (uint32_t)(mpt->length - offset);
}

/* At the edges of the region. */
static void pick_edge(struct random *random, const struct rn_hw_mpt *mpt, struct rn_pte_req *req)
{
	uint32_t kind = (uint32_t)below(random, 7);

	req->va = mpt->start_va;
	switch (kind) {
	case 0:
		req->va--;
		break;
	case 1:
		req->va = mpt->start_va + mpt->length - req->length;
		break;
	case 2:
		req->va = mpt->start_va + mpt->length - req->length + 1;
		break;
	case 3:
		req->va = mpt->start_va + mpt->length;
		break;
	case 4:
		req->length = RN_MAX_MESSAGE_BYTES;
		break;
	case 5:
		req->length = RN_MAX_MESSAGE_BYTES + 1;
		break;
	default:
		req->length = (uint32_t)mpt->length;
		break;
	}
	coverage_hit(random->coverage, (enum point)(asked_before + kind), true);
}

static void spoil(struct random *random, const struct rn_hw_mpt *mpt, struct rn_pte_req *req)
{
	switch (below(random, 7)) {
	case 0:
		req->key ^= 1u << below(random, 8);
		break;
	case 1:
		req->pd ^= 1u << below(random, 32);
		break;
	case 2:
	case 6:
		req->access = (uint8_t)(mpt->access | 1u << below(random, 8));
		break;
	case 3:
		req->key = (uint32_t)rn_rng_next(&random->rng);
		break;
	default:
		pick_edge(random, mpt, req);
		break;
	}
}

static void push_request(struct random *random, unsigned client)
{
	struct rn_hw_mpt mpt = tables_mpt(random, pick_index(random));
	/* The lowest bit of the id tells translations from checks. */
	struct rn_pte_req req = {
		.check_only =
			chance(random, 16, client ? 13 : 2) ? (uint8_t)(1 + below(random, 255)) : 0,
		.access = (uint8_t)(mpt.access & below(random, 256)),
		.key = mpt.key,
		.pd = mpt.pd,
	};

	req.id = (uint16_t)(random->next_id++ << 1 | (req.check_only != 0));
	pick_range(random, &mpt, &req);
	if (chance(random, 16, random->phase.error_rate))
		spoil(random, &mpt, &req);
	rig_push(random->rig, client ? IN_REQ1 : IN_REQ0, &req);
}

/* Almost what is being read: but for one bit of its number. */
static void alias_read(struct random *random, struct rn_pte_inval *inval)
{
	const struct rn_pte_cache *model = random->rig->model;
	uint32_t at = (uint32_t)below(random, model->misses_count);

	if (!model->misses[at].busy)
		return;
	if (at < model->params.mpt_misses)
		inval->key = (uint32_t)(model->misses[at].number ^ UINT64_C(1) << below(random, 24))
			     << 8;
	else
		inval->mtt_index = (model->misses[at].number ^ UINT64_C(1) << below(random, 38)) *
				   model->params.mtt_line_entries;
}

static void push_inval(struct random *random)
{
	const struct rn_pte_cache_params *params = &random->rig->params;
	uint64_t index = pick_index(random);
	struct rn_hw_mpt mpt = tables_mpt(random, index);
	struct rn_pte_inval inval = {
		.token = (uint32_t)rn_rng_next(&random->rng),
		.key = (uint32_t)(index << 8 | below(random, 256)),
		.mtt_index = mpt.mtt_index,
		.mtt_count = 1 + below(random, 2 * random->phase.pages),
	};

	switch (below(random, 10)) {
	case 0:
		inval.mtt_count = 0;
		break;
	case 1:
		inval.mtt_count = (uint64_t)params->mtt_line_entries *
				  (params->mtt_sets + below(random, params->mtt_sets));
		break;
	case 2: /* as many lines as there are sets, and one less */
		inval.mtt_index -= inval.mtt_index % params->mtt_line_entries;
		inval.mtt_count =
			(uint64_t)params->mtt_line_entries * (params->mtt_sets + below(random, 2)) -
			below(random, 2);
		break;
	case 3:
		inval.mtt_index = UINT64_MAX - below(random, 8);
		break;
	case 4: /* beyond every table, but for one bit */
		inval.mtt_index ^= UINT64_C(1) << (38 + below(random, 26));
		inval.mtt_count += chance(random, 2, 1) ? UINT64_C(1) << 20 : 0;
		break;
	case 5:
		alias_read(random, &inval);
		break;
	case 6:
		inval.mtt_index = 0;
		inval.mtt_count = chance(random, 2, 1) ? UINT64_MAX : UINT64_C(1) << 40;
		break;
	}
	if (chance(random, 2, 1))
		random->versions[index % RANDOM_VERSIONS]++;
	rig_push(random->rig, IN_INVAL, &inval);
}

static void push_base(struct random *random, uint8_t log_mpts, uint8_t log_mtts)
{
	struct rn_pte_base base = {
		.mpt_pa = rn_rng_next(&random->rng) & ~UINT64_C(63),
		.mtt_pa = rn_rng_next(&random->rng) & ~UINT64_C(7),
		.log_mpts = log_mpts,
		.log_mtts = log_mtts,
	};

	random->base = base;
	rig_push(random->rig, IN_BASE, &base);
}

/* Some tables are too small for the keys in use, or smaller than a line. */
static void push_some_base(struct random *random)
{
	uint64_t log_mpts = chance(random, 2, 1) ? 24 : 16 + below(random, 9);
	uint64_t log_mtts = 12 + below(random, 29);

	if (chance(random, 4, 1))
		log_mpts = below(random, 25);
	if (chance(random, 3, 1))
		log_mtts = below(random, chance(random, 2, 1) ? 2 : 8);
	push_base(random, (uint8_t)log_mpts, (uint8_t)log_mtts);
}

void random_hoard(struct random *random, uint64_t cycles)
{
	struct random_phase *phase = &random->phase;

	push_base(random, 24, 40);
	*phase = (struct random_phase){
		.end_cycle = random->rig->cycle + cycles,
		.req_rate = {16, 0},
		.latency_cycles = 1,
		.keys = 4,
		.sets = 2,
		.pages = 1,
	};
	for (unsigned i = 0; i < OUT_COUNT; i++)
		phase->ready_rate[i] = 16;
}

static void push_release(struct random *random)
{
	struct rn_pte_release release = {.epoch = (uint8_t)below(random, 2)};

	if (!random->held[release.epoch])
		release.epoch ^= 1;
	if (!random->held[release.epoch])
		return;
	random->held[release.epoch]--;
	rig_push(random->rig, IN_RELEASE, &release);
}

/* --- the DMA engine --- */

static void take_read(struct random *random)
{
	const struct rn_dma_req *req =
		(const struct rn_dma_req *)(const void *)random->rig->out[OUT_DMA_REQ].message;
	struct random_read *read = &random->reads[random->reads_count++];

	*read = (struct random_read){
		.due_cycle = random->rig->cycle + below(random, random->phase.latency_cycles),
		.token = req->token,
		.is_mpt = req->token < random->rig->params.mpt_misses,
	};
	read->index = (req->addr - random->rig->model->base.mpt_pa) / RN_MPT_BYTES;
	coverage_hit(random->coverage, read_of_short_table,
		     !read->is_mpt &&
			     req->len < random->rig->params.mtt_line_entries * RN_MTT_BYTES);
}

static void push_answer(struct random *random)
{
	uint32_t at = (uint32_t)below(random, random->reads_count);
	struct random_read read = random->reads[at];
	uint8_t data[RIG_DATA_BYTES];
	uint8_t status = RN_DMA_OK;

	if (read.due_cycle > random->rig->cycle)
		return;
	coverage_hit(random->coverage, answers_out_of_order, at != 0);
	memmove(&random->reads[at], &random->reads[at + 1],
		(--random->reads_count - at) * sizeof(read));
	for (uint32_t i = 0; i < RIG_DATA_BYTES; i += 8)
		rn_put_le64(data + i, rn_rng_next(&random->rng) |
					      (chance(random, 8, 7) ? RN_MTT_PRESENT : 0));
	if (read.is_mpt) {
		struct rn_hw_mpt mpt = tables_mpt(random, read.index);

		memcpy(data, &mpt, sizeof(mpt));
	}
	if (chance(random, 16, random->phase.abort_rate))
		status = chance(random, 2, 1) ? RN_DMA_ABORT : RN_DMA_PROTECTION;
	rig_answer(random->rig, read.token, status, data);
}

/* --- a cycle --- */

static void note_answers(struct random *random)
{
	for (unsigned client = 0; client < 2; client++) {
		const struct cosim_out *out = &random->rig->out[OUT_RSP0 + client];
		const struct rn_pte_rsp *rsp =
			(const struct rn_pte_rsp *)(const void *)out->message;

		if (out->pushed && rsp->status == RN_PTE_OK && !(rsp->id & 1))
			random->held[rsp->epoch]++;
	}
	if (random->rig->out[OUT_DMA_REQ].pushed)
		take_read(random);
}

/* A few at most wait in front of the block: what is to come should fit the present phase. */
static bool can_push(struct random *random, enum dut_in port)
{
	return rn_fifo_occupancy(random->rig->in[port].fifo) < 6;
}

static void push_inputs(struct random *random)
{
	const struct random_phase *phase = &random->phase;

	for (unsigned client = 0; client < 2; client++)
		if (chance(random, 16, phase->req_rate[client]) &&
		    can_push(random, client ? IN_REQ1 : IN_REQ0))
			push_request(random, client);
	if (chance(random, 16, phase->release_rate) && can_push(random, IN_RELEASE))
		push_release(random);
	if (chance(random, 1024, phase->inval_rate) && can_push(random, IN_INVAL))
		push_inval(random);
	if (chance(random, 1024, phase->base_rate + !random->base.mpt_pa * 20) &&
	    can_push(random, IN_BASE))
		push_some_base(random);
	if (random->reads_count && can_push(random, IN_DMA_RSP))
		push_answer(random);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		rig_ready(random->rig, i, chance(random, 16, phase->ready_rate[i]));
}

uint64_t random_first_cycle(uint64_t seed)
{
	return 1000 + seed % 1000;
}

void random_init(struct random *random, struct rig *rig, struct coverage *coverage, uint64_t seed)
{
	memset(random, 0, sizeof(*random));
	random->rig = rig;
	random->coverage = coverage;
	random->seed = seed;
	rn_rng_init(&random->rng, seed, "pte_cache");
}

/* Nothing is under way, and nothing will be without new input: time may pass. */
static bool is_quiet(const struct random *random)
{
	const struct dut_outputs *outputs = &random->rig->outputs;
	bool is = outputs->is_idle && outputs->wake_cycles == UINT32_MAX && !random->reads_count;

	for (unsigned i = 0; i < IN_COUNT; i++)
		is &= !rn_fifo_occupancy(random->rig->in[i].fifo);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		is &= !outputs->valid[i];
	return is;
}

/* Long ones as well as short ones, so that every bit of the cycle number changes; 2^64 ps are never reached. */
static void skip_time(struct random *random)
{
	uint64_t cycles = 1 + (rn_rng_next(&random->rng) >> (12 + below(random, 50)));

	if (random->rig->record || random->rig->cycle > UINT64_C(12) << 50)
		return;
	rig_skip(random->rig, cycles);
	random->phase.end_cycle += cycles;
}

/* In whatever state both are; the cycle numbers behind it are smaller or larger than those before. */
static void reset(struct random *random)
{
	uint64_t first_cycle = 1 + below(random, chance(random, 2, 1) ? 100 : 1 << 20);

	rig_restart(random->rig, first_cycle);
	random->base = (struct rn_pte_base){.mpt_pa = 0};
	random->reads_count = 0;
	memset(random->held, 0, sizeof(random->held));
	next_phase(random);
}

static void change_phase(struct random *random)
{
	if (chance(random, 64, 1))
		random_hoard(random, 6000);
	else if (chance(random, 24, 1) && !random->rig->record)
		reset(random);
	else
		next_phase(random);
}

bool random_run(struct random *random, uint64_t cycles)
{
	for (uint64_t i = 0; i < cycles; i++) {
		if (is_quiet(random) && chance(random, 32, 1))
			skip_time(random);
		if (random->rig->cycle >= random->phase.end_cycle)
			change_phase(random);
		push_inputs(random);
		coverage_before(random->coverage, random->rig);
		if (!rig_cycle(random->rig))
			return false;
		coverage_after(random->coverage, random->rig);
		note_answers(random);
	}
	return true;
}
