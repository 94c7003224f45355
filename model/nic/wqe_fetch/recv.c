/*
 * Receive side of the WQE fetcher: producer index from the doorbell record, receive WQEs in batches,
 * their cache, decoding into receive slots. Requests of one QP are served one after the other.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "hw/gen/rnic_hw.h"
#include "nic/wqe_fetch/decode.h"
#include "nic/wqe_fetch/internal.h"
#include "sim/buffer.h"

static struct recv_job *job_at(struct rn_wqe_fetch *wf, uint16_t number)
{
	RN_ASSERT(number < wf->params.recv_fetches);
	return &wf->recv.job[number];
}

static void drop_data(struct rn_wqe_fetch *wf, struct recv_job *job)
{
	rn_buffer_put(wf->env->buffers, job->buf);
	job->buf = RN_BUFFER_NONE;
	job->skip = 0;
}

static void start(struct rn_wqe_fetch *wf, uint16_t number)
{
	struct recv_job *job = job_at(wf, number);

	drop_data(wf, job);
	job->state = JOB_CONTEXT;
	job->is_stale = false;
	job->status = RN_WORK_OK;
	rn_wqe_fetch_want_context(wf, (uint16_t)(wf->params.send_fetches + number));
}

static void to_decode(struct rn_wqe_fetch *wf, uint16_t number, uint64_t cycle)
{
	struct recv_job *job = job_at(wf, number);

	job->state = JOB_DECODE;
	job->ready_cycle = cycle + wf->params.decode_latency_cycles;
	rn_wqe_queue_push(&wf->recv.decode, number);
}

static void fail(struct rn_wqe_fetch *wf, uint16_t number, enum rn_work_status status,
		 uint64_t cycle)
{
	job_at(wf, number)->status = (uint8_t)status;
	to_decode(wf, number, cycle);
}

static void to_read(struct rn_wqe_fetch *wf, uint16_t number, uint16_t wqes)
{
	struct recv_job *job = job_at(wf, number);

	job->state = JOB_READ;
	job->asked = wqes;
	rn_wqe_queue_push(&wf->recv.read, number);
}

/* The WQEs from the one asked for up to the producer index, as far as a batch and the ring go. */
static uint16_t batch(const struct rn_wqe_fetch *wf, const struct recv_job *job)
{
	uint32_t to_wrap = job->ring_mask + 1 - (job->request.idx & job->ring_mask);
	uint64_t wqes = rn_min_u64((uint16_t)(job->pi - job->request.idx), to_wrap);

	wqes = rn_min_u64(wqes, wf->params.recv_batch_wqes);
	return (uint16_t)rn_min_u64(wqes, RN_BUFFER_BYTES / job->stride_bytes);
}

/* The producer index is known afresh. */
static void use_pi(struct rn_wqe_fetch *wf, uint16_t number, uint64_t cycle)
{
	struct recv_job *job = job_at(wf, number);
	uint32_t posted = (uint16_t)(job->pi - job->request.idx);

	if (posted > job->ring_mask + 1) {
		wf->count.rq_bad_pi++;
		posted = 0;
	}
	if (!posted)
		fail(wf, number, RN_WORK_EMPTY, cycle);
	else if (job->request.pi_only)
		to_decode(wf, number, cycle);
	else
		to_read(wf, number, batch(wf, job));
}

/* Context */

static bool read_context(struct recv_job *job, const struct rn_hw_qpc *qpc)
{
	if (!qpc || qpc->qpn != job->request.qpn || qpc->state == RN_QPS_RESET ||
	    qpc->log_rq_wqes > 15 || qpc->log_rq_segments > 8)
		return false;
	job->mkey = qpc->rq_mkey;
	job->pd = qpc->pd;
	job->dbr_pa = qpc->dbr_pa;
	job->ring_mask = (UINT32_C(1) << qpc->log_rq_wqes) - 1;
	job->stride_bytes = (uint16_t)(RN_RQ_SEGMENT_BYTES << qpc->log_rq_segments);
	job->max_sge = (uint8_t)rn_min_u64(qpc->rq_max_sge, UINT64_C(1) << qpc->log_rq_segments);
	return true;
}

void rn_wqe_recv_take_context(struct rn_wqe_fetch *wf, uint16_t number, const void *qpc,
			      uint64_t cycle)
{
	number = (uint16_t)(number - wf->params.send_fetches);
	struct recv_job *job = job_at(wf, number);
	const struct rn_wqe_line *line = rn_wqe_cache_find(wf->recv.cache, job->request.qpn);

	RN_ASSERT(job->state == JOB_CONTEXT);
	if (!read_context(job, qpc)) {
		fail(wf, number, RN_WORK_BAD_QP, cycle);
		return;
	}
	uint32_t known = line ? (uint16_t)(line->pi - job->request.idx) : 0;

	if (!job->request.pi_only && known && known <= job->ring_mask + 1) {
		job->pi = line->pi;
		to_read(wf, number, batch(wf, job));
	} else {
		to_read(wf, number, 0);
	}
}

/* DMA */

static void request_read(struct rn_wqe_fetch *wf, uint16_t number)
{
	struct recv_job *job = job_at(wf, number);
	struct rn_dma_req req = {.op = RN_DMA_READ, .token = number};

	drop_data(wf, job);
	job->buf = rn_buffer_get(wf->env->buffers);
	req.buf = job->buf;
	if (job->asked) {
		req.len = (uint32_t)job->asked * job->stride_bytes;
		req.key = job->mkey;
		req.pd = job->pd;
		req.addr = (uint64_t)(job->request.idx & job->ring_mask) * job->stride_bytes;
		wf->count.rq_fetches++;
		wf->count.rq_fetched_wqes += job->asked;
	} else {
		req.flags = RN_DMA_PHYSICAL;
		req.len = sizeof(uint32_t);
		req.addr = job->dbr_pa + offsetof(struct rn_hw_qp_dbr, rq_pi);
		wf->count.rq_pi_reads++;
	}
	rn_fifo_push(wf->ports.rq_dma_req, &req);
	job->state = JOB_DMA;
}

static bool send_read(struct rn_wqe_fetch *wf)
{
	struct job_queue *queue = &wf->recv.read;

	if (!queue->count)
		return false;
	uint16_t number = rn_wqe_queue_first(queue);
	bool is_stale = job_at(wf, number)->is_stale;

	if (!is_stale && !rn_fifo_can_push(wf->ports.rq_dma_req)) {
		wf->stall = RN_STALL_OUTPUT;
		return false;
	}
	rn_wqe_queue_drop(queue);
	if (queue->count)
		rn_block_wake_next(&wf->block);
	if (is_stale)
		start(wf, number);
	else
		request_read(wf, number);
	return true;
}

static void take_pi(struct rn_wqe_fetch *wf, uint16_t number, uint64_t cycle)
{
	struct recv_job *job = job_at(wf, number);

	job->pi = (uint16_t)rn_get_le32(rn_buffer_data(wf->env->buffers, job->buf));
	drop_data(wf, job);

	struct rn_wqe_line *line = rn_wqe_cache_find(wf->recv.cache, job->request.qpn);

	if (!line)
		line = rn_wqe_cache_claim(wf->recv.cache, job->request.qpn);
	line->pi = job->pi;
	use_pi(wf, number, cycle);
}

static void keep_data(struct rn_wqe_fetch *wf, struct recv_job *job)
{
	struct rn_wqe_line *line = rn_wqe_cache_claim(wf->recv.cache, job->request.qpn);

	rn_buffer_hold(wf->env->buffers, job->buf);
	rn_wqe_cache_fill(line, job->buf, job->request.idx, job->asked);
	line->pi = job->pi;
	line->stride_bytes = job->stride_bytes;
	line->max_sge = job->max_sge;
}

static bool take_data(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	struct rn_dma_rsp rsp;
	bool busy = false;

	for (; rn_fifo_pop(wf->ports.rq_dma_rsp, &rsp); busy = true) {
		struct recv_job *job = job_at(wf, rsp.token);

		RN_ASSERT(job->state == JOB_DMA);
		if (job->is_stale) {
			start(wf, rsp.token);
		} else if (rsp.status != RN_DMA_OK) {
			fail(wf, rsp.token, RN_WORK_DMA_ERROR, cycle);
		} else if (!job->asked) {
			take_pi(wf, rsp.token, cycle);
		} else {
			keep_data(wf, job);
			to_decode(wf, rsp.token, cycle);
		}
	}
	return busy;
}

/* Decoding */

static void count_failure(struct rn_wqe_fetch *wf, enum rn_work_status status)
{
	wf->count.rq_bad_qp += status == RN_WORK_BAD_QP;
	wf->count.rq_dma_errors += status == RN_WORK_DMA_ERROR;
	wf->count.rq_empty += status == RN_WORK_EMPTY;
}

static void finish(struct rn_wqe_fetch *wf, struct recv_job *job)
{
	const struct rn_rq_fetch *request = &job->request;
	struct rn_rq_fetch_rsp rsp = {
		.token = request->token, .pi = job->pi, .status = job->status, .slot = UINT32_MAX};

	if (job->status == RN_WORK_OK && !request->pi_only) {
		rsp.slot = rn_wqe_fetch_take_slot(&wf->recv.free);
		struct rn_wqe *wqe = &wf->recv.free.slots->slot[rsp.slot];
		const uint8_t *data = rn_buffer_data(wf->env->buffers, job->buf) +
				      (size_t)job->skip * job->stride_bytes;

		rn_wqe_decode_recv(data, job->max_sge, wqe);
		wqe->wqe_idx = request->idx;
		wf->count.rq_wqes++;
		rn_wqe_fetch_stamp(wf, request->qpn, request->idx, true);
	}
	count_failure(wf, job->status);
	rn_fifo_push(wf->ports.rq_fetch_rsp, &rsp);
	drop_data(wf, job);
	job->state = JOB_FREE;
	wf->recv.jobs_in_use--;
}

static bool decode(struct rn_wqe_fetch *wf, uint16_t number)
{
	struct recv_job *job = job_at(wf, number);

	if (job->is_stale) {
		start(wf, number);
		return true;
	}
	if (job->status == RN_WORK_OK && !job->request.pi_only && !wf->recv.free.count)
		wf->stall = RN_STALL_BUFFER;
	else if (!rn_fifo_can_push(wf->ports.rq_fetch_rsp))
		wf->stall = RN_STALL_OUTPUT;
	else
		finish(wf, job);
	return job->state == JOB_FREE;
}

static bool decode_oldest(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	struct job_queue *queue = &wf->recv.decode;

	if (!queue->count)
		return false;
	uint16_t number = rn_wqe_queue_first(queue);
	uint64_t due = rn_max_u64(job_at(wf, number)->ready_cycle, wf->recv.next_decode_cycle);

	if (due > cycle) {
		rn_wqe_fetch_wake(wf, cycle, due);
		return false;
	}
	if (!decode(wf, number))
		return false;
	rn_wqe_queue_drop(queue);
	wf->recv.next_decode_cycle = cycle + wf->params.decode_interval_cycles;
	if (queue->count)
		rn_wqe_fetch_wake(wf, cycle,
				  rn_max_u64(wf->recv.next_decode_cycle,
					     job_at(wf, rn_wqe_queue_first(queue))->ready_cycle));
	return true;
}

/* Intake */

static struct recv_job *find_job(struct rn_wqe_fetch *wf, uint32_t qpn)
{
	for (uint32_t i = 0; i < wf->params.recv_fetches; i++)
		if (wf->recv.job[i].state != JOB_FREE && wf->recv.job[i].request.qpn == qpn)
			return &wf->recv.job[i];
	return NULL;
}

static void forget(struct rn_wqe_fetch *wf, uint32_t qpn)
{
	struct recv_job *job = find_job(wf, qpn);

	rn_wqe_cache_drop(wf->recv.cache, qpn);
	if (job && job->state > JOB_CONTEXT)
		job->is_stale = true;
}

static void begin(struct rn_wqe_fetch *wf, const struct rn_rq_fetch *request, uint64_t cycle)
{
	struct rn_wqe_line *line = rn_wqe_cache_find(wf->recv.cache, request->qpn);
	uint16_t number = 0;

	while (wf->recv.job[number].state != JOB_FREE)
		number++;
	struct recv_job *job = job_at(wf, number);

	job->request = *request;
	job->pi = request->idx;
	wf->recv.jobs_in_use++;
	if (request->pi_only || !line || !rn_wqe_cache_seek(wf->recv.cache, line, request->idx)) {
		start(wf, number);
		return;
	}
	rn_buffer_hold(wf->env->buffers, line->buf);
	job->buf = line->buf;
	job->skip = line->skip;
	job->pi = line->pi;
	job->stride_bytes = line->stride_bytes;
	job->max_sge = line->max_sge;
	job->is_stale = false;
	job->status = RN_WORK_OK;
	wf->count.rq_cache_hits++;
	to_decode(wf, number, cycle);
	/* The decoder has looked already in this cycle. */
	rn_wqe_fetch_wake(wf, cycle, job->ready_cycle);
}

static bool take_request(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	const struct rn_rq_fetch *request = rn_fifo_peek(wf->ports.rq_fetch);

	if (!request)
		return false;
	if (request->forget) {
		forget(wf, request->qpn);
	} else if (wf->recv.jobs_in_use == wf->params.recv_fetches || find_job(wf, request->qpn)) {
		if (!wf->stall)
			wf->stall = RN_STALL_MISS;
		return false;
	} else {
		begin(wf, request, cycle);
	}
	rn_fifo_drop(wf->ports.rq_fetch);
	return true;
}

bool rn_wqe_recv_tick(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	bool busy = take_data(wf, cycle);

	busy |= decode_oldest(wf, cycle);
	busy |= take_request(wf, cycle);
	busy |= send_read(wf);
	return busy;
}

void rn_wqe_recv_init(struct rn_wqe_fetch *wf)
{
	const struct rn_wqe_fetch_params *params = &wf->params;
	struct recv_side *recv = &wf->recv;

	recv->job = rn_calloc(params->recv_fetches, sizeof(struct recv_job));
	for (uint32_t i = 0; i < params->recv_fetches; i++)
		recv->job[i].buf = RN_BUFFER_NONE;
	rn_wqe_queue_init(&recv->read, params->recv_fetches);
	rn_wqe_queue_init(&recv->decode, params->recv_fetches);
	recv->cache = rn_wqe_cache_new(wf->env->buffers, params->recv_cache_sets,
				       params->recv_cache_ways);
}

void rn_wqe_recv_fini(struct rn_wqe_fetch *wf)
{
	struct recv_side *recv = &wf->recv;

	for (uint32_t i = 0; i < wf->params.recv_fetches; i++)
		rn_buffer_put(wf->env->buffers, recv->job[i].buf);
	rn_wqe_cache_free(recv->cache);
	free(recv->read.job);
	free(recv->decode.job);
	free(recv->job);
}
