/*
 * Send side of the WQE fetcher: grants, BlueFlame, the send WQE cache, decoding into send slots.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "hw/gen/rnic_hw.h"
#include "nic/wqe_fetch/decode.h"
#include "nic/wqe_fetch/internal.h"
#include "sim/buffer.h"

/* Blocks of the longest WQE, and the blocks that a buffer must hold behind a batch. */
#define MAX_WQE_WQEBBS 16
_Static_assert((32 + MAX_WQE_WQEBBS) * RN_WQEBB_BYTES <= RN_BUFFER_BYTES, "a batch fits a buffer");

static struct send_job *job_at(struct rn_wqe_fetch *wf, uint16_t number)
{
	RN_ASSERT(number < wf->params.send_fetches);
	return &wf->send.job[number];
}

static void drop_data(struct rn_wqe_fetch *wf, struct send_job *job)
{
	rn_buffer_put(wf->env->buffers, job->buf);
	job->buf = RN_BUFFER_NONE;
	job->skip = 0;
	job->have = 0;
	job->is_cached = false;
}

/* From the start: read the context (again). */
static void start(struct rn_wqe_fetch *wf, uint16_t number)
{
	struct send_job *job = job_at(wf, number);

	drop_data(wf, job);
	job->state = JOB_CONTEXT;
	job->is_stale = false;
	job->status = RN_WORK_OK;
	rn_wqe_fetch_want_context(wf, number);
}

static void to_decode(struct rn_wqe_fetch *wf, uint16_t number, uint64_t cycle)
{
	struct send_job *job = job_at(wf, number);

	job->state = JOB_DECODE;
	job->ready_cycle = cycle + wf->params.decode_latency_cycles;
	rn_wqe_queue_push(&wf->send.decode, number);
}

static void to_read(struct rn_wqe_fetch *wf, uint16_t number, uint16_t want)
{
	struct send_job *job = job_at(wf, number);

	job->state = JOB_READ;
	job->want = want;
	rn_wqe_queue_push(&wf->send.read, number);
}

/* Context */

bool rn_wqe_send_can_take_context(struct rn_wqe_fetch *wf, uint16_t number)
{
	return !wf->ports.bind || !job_at(wf, number)->bind || rn_fifo_can_push(wf->ports.bind);
}

static bool sends(uint8_t state)
{
	return state == RN_QPS_RTS || state == RN_QPS_SQD || state == RN_QPS_SQE ||
	       state == RN_QPS_ERR;
}

static void answer_bind(struct rn_wqe_fetch *wf, struct send_job *job, uint32_t uar_page,
			bool exists)
{
	if (!job->bind || !wf->ports.bind)
		return;
	rn_fifo_push(wf->ports.bind,
		     &(struct rn_bind){.qpn = job->qpn, .uar_page = uar_page, .exists = exists});
	job->bind = false;
}

/* Where the WQE comes from. */
static void find_wqe(struct rn_wqe_fetch *wf, uint16_t number, uint64_t cycle)
{
	struct send_job *job = job_at(wf, number);
	struct rn_wqe_line *line = rn_wqe_cache_find(wf->send.cache, job->qpn);
	bool is_held = line && rn_wqe_cache_seek(wf->send.cache, line, job->idx);

	if (rn_wqe_blueflame_use(wf, job)) {
		wf->count.blueflame_hits++;
		to_decode(wf, number, cycle);
	} else if (is_held) {
		rn_buffer_hold(wf->env->buffers, line->buf);
		job->buf = line->buf;
		job->skip = line->skip;
		job->have = (uint16_t)rn_min_u64(line->count, job->avail);
		job->is_cached = true;
		wf->count.sq_cache_hits++;
		to_decode(wf, number, cycle);
	} else {
		uint32_t to_wrap = job->ring_mask + 1 - (job->idx & job->ring_mask);
		uint64_t want = rn_min_u64(job->avail, wf->params.batch_wqebbs);

		wf->count.sq_cache_misses++;
		to_read(wf, number, (uint16_t)rn_min_u64(want, to_wrap));
	}
}

static uint32_t line_of(const struct rn_context_sram *sram, const struct rn_hw_qpc *qpc)
{
	return (uint32_t)((uint64_t)((const uint8_t *)(const void *)qpc - sram->lines) /
			  sram->bytes);
}

static enum rn_work_status read_context(struct send_job *job, const struct rn_hw_qpc *qpc,
					const struct rn_context_sram *sram, uint64_t now_ps)
{
	struct rn_hw_qpc_requester requester;

	if (!qpc || qpc->qpn != job->qpn || !sends(qpc->state) || qpc->uar_page != job->uar_page ||
	    qpc->log_sq_wqebbs > 15)
		return RN_WORK_BAD_QP;
	memcpy(&requester, qpc->requester, sizeof(requester));
	job->idx = (uint16_t)rn_context_read_sq_next(sram, line_of(sram, qpc), now_ps,
						     requester.sq_next);
	job->ring_mask = (UINT32_C(1) << qpc->log_sq_wqebbs) - 1;
	job->mkey = qpc->sq_mkey;
	job->pd = qpc->pd;
	/* A producer index beyond the ring is the program's lie; the ring bounds what it costs. */
	job->avail = (uint16_t)rn_min_u64((uint16_t)(job->pi - job->idx), job->ring_mask + 1);
	return job->avail ? RN_WORK_OK : RN_WORK_EMPTY;
}

void rn_wqe_send_take_context(struct rn_wqe_fetch *wf, uint16_t number, const void *qpc,
			      uint64_t cycle)
{
	struct send_job *job = job_at(wf, number);
	const struct rn_hw_qpc *context = qpc;

	RN_ASSERT(job->state == JOB_CONTEXT);
	/* Only a queue pair that is surely alive: a page learnt from a dead one would lock its heir out. */
	answer_bind(wf, job, context ? context->uar_page : 0,
		    context && context->qpn == job->qpn && sends(context->state));
	job->status = read_context(job, context, wf->ports.qpc, rn_sim_now_ps(wf->env->sim));
	if (job->status == RN_WORK_OK)
		find_wqe(wf, number, cycle);
	else
		to_decode(wf, number, cycle);
}

/* DMA */

static bool send_read(struct rn_wqe_fetch *wf)
{
	if (!wf->send.read.count)
		return false;
	uint16_t number = rn_wqe_queue_first(&wf->send.read);
	struct send_job *job = job_at(wf, number);

	if (!job->is_stale && !rn_fifo_can_push(wf->ports.sq_dma_req)) {
		wf->stall = RN_STALL_OUTPUT;
		return false;
	}
	rn_wqe_queue_drop(&wf->send.read);
	if (wf->send.read.count)
		rn_block_wake_next(&wf->block);
	if (job->is_stale) {
		start(wf, number);
		return true;
	}

	uint32_t at = (job->idx + job->have) & job->ring_mask;

	job->asked = (uint16_t)rn_min_u64(job->want - job->have, job->ring_mask + 1 - at);
	if (job->buf == RN_BUFFER_NONE)
		job->buf = rn_buffer_get(wf->env->buffers);
	rn_fifo_push(wf->ports.sq_dma_req,
		     &(struct rn_dma_req){.op = RN_DMA_READ,
					  .token = number,
					  .buf = job->buf,
					  .buf_off = (uint16_t)(job->have * RN_WQEBB_BYTES),
					  .len = job->asked * RN_WQEBB_BYTES,
					  .key = job->mkey,
					  .pd = job->pd,
					  .addr = (uint64_t)at * RN_WQEBB_BYTES});
	job->state = JOB_DMA;
	wf->count.sq_fetches++;
	wf->count.sq_fetched_wqebbs += job->asked;
	return true;
}

static bool take_data(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	struct rn_dma_rsp rsp;
	bool busy = false;

	for (; rn_fifo_pop(wf->ports.sq_dma_rsp, &rsp); busy = true) {
		struct send_job *job = job_at(wf, rsp.token);

		RN_ASSERT(job->state == JOB_DMA);
		job->have += job->asked;
		if (job->is_stale) {
			start(wf, rsp.token);
		} else if (rsp.status != RN_DMA_OK) {
			job->status = RN_WORK_DMA_ERROR;
			to_decode(wf, rsp.token, cycle);
		} else if (job->have < job->want) {
			to_read(wf, rsp.token, job->want);
		} else {
			to_decode(wf, rsp.token, cycle);
		}
	}
	return busy;
}

/* Decoding */

static const uint8_t *job_data(struct rn_wqe_fetch *wf, const struct send_job *job)
{
	return rn_buffer_data(wf->env->buffers, job->buf) + job->skip * RN_WQEBB_BYTES;
}

/* The WQE goes on behind the data at hand: read the rest. */
static void read_on(struct rn_wqe_fetch *wf, uint16_t number, unsigned wqebbs)
{
	/* A cache line's data cannot grow. */
	if (job_at(wf, number)->is_cached)
		drop_data(wf, job_at(wf, number));
	to_read(wf, number, (uint16_t)wqebbs);
}

/* Data that came for this job stays in the cache, the WQE itself included: it may need more turns. */
static void keep_data(struct rn_wqe_fetch *wf, struct send_job *job)
{
	if (job->is_cached)
		return;
	struct rn_wqe_line *line = rn_wqe_cache_claim(wf->send.cache, job->qpn);

	rn_buffer_hold(wf->env->buffers, job->buf);
	rn_wqe_cache_fill(line, job->buf, job->idx, job->have);
}

static void decode_into(struct rn_wqe_fetch *wf, struct send_job *job, unsigned wqebbs,
			struct rn_wqe *wqe)
{
	const uint8_t *inline_data = rn_wqe_decode_send(job_data(wf, job), wqebbs, wqe);

	if (inline_data) {
		wqe->inline_buf = rn_buffer_get(wf->env->buffers);
		memcpy(rn_buffer_data(wf->env->buffers, wqe->inline_buf), inline_data,
		       wqe->total_bytes);
	}
	if (wqe->valid)
		keep_data(wf, job);
	else
		wf->count.sq_malformed++;
	wf->count.sq_wqes++;
}

static void count_failure(struct rn_wqe_fetch *wf, enum rn_work_status status)
{
	wf->count.sq_bad_qp += status == RN_WORK_BAD_QP;
	wf->count.sq_dma_errors += status == RN_WORK_DMA_ERROR;
}

static void finish(struct rn_wqe_fetch *wf, struct send_job *job, unsigned wqebbs)
{
	struct rn_work work = {.qpn = job->qpn, .pi = job->pi, .status = job->status};

	if (job->status == RN_WORK_OK) {
		work.slot = rn_wqe_fetch_take_slot(&wf->send.free);
		struct rn_wqe *wqe = &wf->send.free.slots->slot[work.slot];

		decode_into(wf, job, wqebbs, wqe);
		wqe->wqe_idx = job->idx;
		rn_wqe_fetch_stamp(wf, job->qpn, job->idx, false);
	}
	count_failure(wf, job->status);
	rn_fifo_push(wf->ports.work, &work);
	drop_data(wf, job);
	job->state = JOB_FREE;
	wf->send.jobs_in_use--;
}

/* The oldest job that is ready. True when it has been dealt with, false when it has to wait. */
static bool decode(struct rn_wqe_fetch *wf, uint16_t number)
{
	struct send_job *job = job_at(wf, number);
	bool has_wqe = job->status == RN_WORK_OK;
	unsigned wqebbs = 0;

	if (job->is_stale) {
		start(wf, number);
		return true;
	}
	if (has_wqe)
		wqebbs = rn_wqe_send_wqebbs(job_data(wf, job), job->qpn, job->idx);
	if (wqebbs > job->avail)
		wqebbs = 0;
	if (wqebbs > job->have) {
		read_on(wf, number, wqebbs);
		return true;
	}
	if (job->status == RN_WORK_OK && !wf->send.free.count)
		wf->stall = RN_STALL_BUFFER;
	else if (!rn_fifo_can_push(wf->ports.work))
		wf->stall = RN_STALL_OUTPUT;
	else
		finish(wf, job, wqebbs);
	return job->state == JOB_FREE;
}

static bool decode_oldest(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	struct job_queue *queue = &wf->send.decode;

	if (!queue->count)
		return false;
	uint16_t number = rn_wqe_queue_first(queue);
	uint64_t due = rn_max_u64(job_at(wf, number)->ready_cycle, wf->send.next_decode_cycle);

	if (due > cycle) {
		rn_wqe_fetch_wake(wf, cycle, due);
		return false;
	}
	if (!decode(wf, number))
		return false;
	rn_wqe_queue_drop(queue);
	wf->send.next_decode_cycle = cycle + wf->params.decode_interval_cycles;
	if (queue->count)
		rn_wqe_fetch_wake(wf, cycle,
				  rn_max_u64(wf->send.next_decode_cycle,
					     job_at(wf, rn_wqe_queue_first(queue))->ready_cycle));
	return true;
}

/* Intake */

bool rn_wqe_send_take_forgets(struct rn_wqe_fetch *wf)
{
	struct rn_wqe_forget forget;
	bool busy = false;

	for (; rn_fifo_pop(wf->ports.sq_forget, &forget); busy = true) {
		wf->count.sq_forgets++;
		rn_wqe_cache_drop(wf->send.cache, forget.qpn);
		rn_wqe_blueflame_forget(wf, forget.qpn);
		for (uint32_t i = 0; i < wf->params.send_fetches; i++) {
			struct send_job *job = &wf->send.job[i];

			if (job->qpn == forget.qpn && job->state > JOB_CONTEXT)
				job->is_stale = true;
		}
	}
	return busy;
}

static bool take_grant(struct rn_wqe_fetch *wf)
{
	const struct rn_grant *grant = rn_fifo_peek(wf->ports.grant);
	uint16_t number = 0;

	if (!grant)
		return false;
	if (wf->send.jobs_in_use == wf->params.send_fetches) {
		if (!wf->stall)
			wf->stall = RN_STALL_MISS;
		return false;
	}
	while (wf->send.job[number].state != JOB_FREE)
		number++;
	struct send_job *job = job_at(wf, number);

	job->qpn = grant->qpn;
	job->uar_page = grant->uar_page;
	job->pi = grant->pi;
	job->bind = grant->bind;
	wf->send.jobs_in_use++;
	start(wf, number);
	rn_fifo_drop(wf->ports.grant);
	return true;
}

bool rn_wqe_send_tick(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	bool busy = rn_wqe_blueflame_take(wf);

	busy |= take_data(wf, cycle);
	busy |= decode_oldest(wf, cycle);
	busy |= send_read(wf);
	busy |= take_grant(wf);
	return busy;
}

void rn_wqe_send_init(struct rn_wqe_fetch *wf)
{
	const struct rn_wqe_fetch_params *params = &wf->params;
	struct send_side *send = &wf->send;

	send->job = rn_calloc(params->send_fetches, sizeof(struct send_job));
	for (uint32_t i = 0; i < params->send_fetches; i++)
		send->job[i].buf = RN_BUFFER_NONE;
	send->blueflame = rn_calloc(params->blueflame_slots + 1, sizeof(struct blueflame_slot));
	for (uint32_t i = 0; i < params->blueflame_slots; i++)
		send->blueflame[i].wqe.buf = RN_BUFFER_NONE;
	rn_wqe_queue_init(&send->read, params->send_fetches);
	rn_wqe_queue_init(&send->decode, params->send_fetches);
	send->cache = rn_wqe_cache_new(wf->env->buffers, params->cache_sets, params->cache_ways);
}

void rn_wqe_send_fini(struct rn_wqe_fetch *wf)
{
	struct send_side *send = &wf->send;

	for (uint32_t i = 0; i < wf->params.send_fetches; i++)
		rn_buffer_put(wf->env->buffers, send->job[i].buf);
	for (uint32_t i = 0; i < wf->params.blueflame_slots; i++)
		rn_buffer_put(wf->env->buffers, send->blueflame[i].wqe.buf);
	rn_wqe_cache_free(send->cache);
	free(send->blueflame);
	free(send->read.job);
	free(send->decode.job);
	free(send->job);
}
