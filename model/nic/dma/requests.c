/*
 * Acceptance and translation. Every channel has its own places, so a channel whose requests wait
 * for translations cannot keep another one's requests out. A page's translation is asked for as
 * soon as its request is accepted; the second page's when the first answer shows that there is
 * one.
 */
#include "base/assert.h"
#include "base/bits.h"
#include "nic/dma/engine.h"
#include "sim/buffer.h"
#include "sim/stamp.h"

#define PAGE_BYTES 4096 /* the smallest */

void rn_dma_update_ready(struct rn_dma *dma, unsigned ch)
{
	const struct job *job = rn_dma_head(&dma->channels[ch]);
	bool is_ready = job && (job->status != RN_DMA_OK ? !job->is_asking : job->run_count > 0);

	if (is_ready)
		dma->ready |= UINT32_C(1) << ch;
	else
		dma->ready &= ~(UINT32_C(1) << ch);
}

static void count(struct rn_dma *dma, const struct rn_dma_req *req)
{
	if (req->op == RN_DMA_READ)
		dma->counters.read_requests++;
	else if (req->op == RN_DMA_WRITE)
		dma->counters.write_requests++;
	else
		dma->counters.msi_requests++;
}

static void accept_one(struct rn_dma *dma, unsigned ch, const struct rn_dma_req *req)
{
	struct channel *channel = &dma->channels[ch];
	uint32_t idx = channel->job_tail++ % JOBS_MAX;
	struct job *job = &channel->jobs[idx];

	RN_ASSERT(req->op <= RN_DMA_MSI);
	RN_ASSERT(req->op == RN_DMA_MSI || (req->len >= 1 && req->len <= RN_BUFFER_BYTES &&
					    req->buf_off <= RN_BUFFER_BYTES - req->len));
	job->req = *req;
	job->known_bytes = 0;
	job->issued_bytes = 0;
	job->is_asking = false;
	job->status = RN_DMA_OK;
	job->run_count = 0;
	count(dma, req);
	if (req->op == RN_DMA_MSI || (req->flags & RN_DMA_PHYSICAL)) {
		job->known_bytes = req->len;
		job->run_count = 1;
		job->runs[0] = (struct run){.pa = req->addr, .bytes = req->len};
	} else {
		channel->untranslated |= UINT64_C(1) << idx;
		dma->untranslated |= UINT32_C(1) << ch;
	}
	if (channel->job_tail - channel->job_head == 1)
		rn_dma_update_ready(dma, ch);
}

void rn_dma_accept(struct rn_dma *dma)
{
	for (uint32_t left = dma->arrivals; left; left &= left - 1) {
		const unsigned ch = (unsigned)__builtin_ctz(left);
		struct rn_fifo *fifo = dma->ports.req[ch];
		const struct channel *channel = &dma->channels[ch];

		if (channel->job_tail - channel->job_head == dma->params.channel_requests)
			continue; /* rn_dma_pop_job() wakes */

		const struct rn_dma_req *req = rn_fifo_peek(fifo);

		if (!req)
			continue;
		accept_one(dma, ch, req);
		rn_fifo_drop(fifo);
		if (!rn_fifo_occupancy(fifo))
			dma->arrivals &= ~(UINT32_C(1) << ch);
	}
}

void rn_dma_pop_job(struct rn_dma *dma, unsigned ch)
{
	struct channel *channel = &dma->channels[ch];
	const struct rn_fifo *fifo = dma->ports.req[ch];

	RN_ASSERT(!rn_dma_head(channel)->is_asking);
	channel->job_head++;
	if (fifo->head != fifo->tail)
		rn_block_wake_next(&dma->block);
	rn_dma_update_ready(dma, ch);
}

static void record_translation(const struct rn_dma *dma, const struct rn_dma_req *req)
{
	rn_stamps_record(dma->env.stamps, &(struct rn_stamp){
						  .at_ps = rn_sim_now_ps(dma->env.sim),
						  .host = dma->env.host,
						  .qpn = req->trace_qpn,
						  .wqe_idx = req->trace_wqe,
						  .stage = RN_STAMP_TRANSLATION,
						  .receive = req->trace_receive,
					  });
}

static void add_run(struct rn_dma *dma, struct job *job, const struct rn_pte_rsp *rsp)
{
	uint32_t wanted = job->req.len - job->known_bytes;

	RN_ASSERT(rsp->bytes >= 1 && rsp->bytes <= wanted && job->run_count < RUNS_MAX);
	if ((job->req.trace & RN_DMA_TRACE_TRANSLATION) && !job->known_bytes)
		record_translation(dma, &job->req);
	job->runs[job->run_count++] =
		(struct run){.pa = rsp->pa, .bytes = rsp->bytes, .epoch = rsp->epoch};
	job->known_bytes += rsp->bytes;
}

static void take_answer(struct rn_dma *dma, const struct rn_pte_rsp *rsp)
{
	unsigned ch = rsp->id / JOBS_MAX;
	uint32_t idx = rsp->id % JOBS_MAX;

	RN_ASSERT(ch < RN_DMA_CH_COUNT);
	struct channel *channel = &dma->channels[ch];
	struct job *job = &channel->jobs[idx];

	RN_ASSERT(job->is_asking);
	job->is_asking = false;
	dma->asked_count--;
	if (rsp->status == RN_PTE_OK && job->status != RN_DMA_OK) {
		rn_dma_release(dma, rsp->epoch); /* aborted meanwhile */
	} else if (rsp->status == RN_PTE_OK) {
		add_run(dma, job, rsp);
		if (job->known_bytes < job->req.len) {
			channel->untranslated |= UINT64_C(1) << idx;
			dma->untranslated |= UINT32_C(1) << ch;
		}
	} else if (job->status == RN_DMA_OK) {
		job->status = rsp->status == RN_PTE_ABORT ? RN_DMA_ABORT : RN_DMA_PROTECTION;
	}
	if (job == rn_dma_head(channel))
		rn_dma_update_ready(dma, ch);
}

/* The oldest untranslated job of the channel: the first set bit at or after the ring's head. */
static uint32_t oldest_untranslated(const struct channel *channel)
{
	unsigned head = channel->job_head % JOBS_MAX;
	uint64_t bits = channel->untranslated;
	uint64_t from_head = head ? bits >> head | bits << (JOBS_MAX - head) : bits;

	return (head + (unsigned)__builtin_ctzll(from_head)) % JOBS_MAX;
}

static void ask(struct rn_dma *dma, unsigned ch)
{
	struct channel *channel = &dma->channels[ch];
	uint32_t idx = oldest_untranslated(channel);
	struct job *job = &channel->jobs[idx];
	struct rn_pte_req req = {
		.id = (uint16_t)(ch * JOBS_MAX + idx),
		.access = job->req.access,
		.key = job->req.key,
		.pd = job->req.pd,
		.length = job->req.len - job->known_bytes,
		.va = job->req.addr + job->known_bytes,
	};

	rn_fifo_push(dma->ports.pte_req, &req);
	job->is_asking = true;
	dma->asked_count++;
	dma->counters.translations++;
	channel->untranslated &= ~(UINT64_C(1) << idx);
	if (!channel->untranslated)
		dma->untranslated &= ~(UINT32_C(1) << ch);
}

/* First set bit of @bits at or after @from, going round. */
static unsigned next_channel(uint32_t bits, unsigned from)
{
	uint32_t later = bits >> from << from;

	return (unsigned)__builtin_ctz(later ? later : bits);
}

void rn_dma_translate(struct rn_dma *dma)
{
	const struct rn_pte_rsp *rsp = rn_fifo_peek(dma->ports.pte_rsp);

	if (rsp) {
		take_answer(dma, rsp);
		rn_fifo_drop(dma->ports.pte_rsp);
	}
	if (!dma->untranslated || dma->asked_count == dma->params.translations ||
	    !rn_fifo_can_push(dma->ports.pte_req))
		return;

	unsigned ch = next_channel(dma->untranslated, dma->ask_turn);

	ask(dma, ch);
	dma->ask_turn = (ch + 1) % RN_DMA_CH_COUNT;
	if (dma->untranslated)
		rn_block_wake_next(&dma->block);
}

void rn_dma_release(struct rn_dma *dma, uint8_t epoch)
{
	RN_ASSERT(dma->release_tail - dma->release_head <= dma->release_mask);
	dma->releases[dma->release_tail++ & dma->release_mask] = epoch;
}

void rn_dma_flush_releases(struct rn_dma *dma)
{
	while (dma->release_head != dma->release_tail && rn_fifo_can_push(dma->ports.pte_release)) {
		struct rn_pte_release release = {
			.epoch = dma->releases[dma->release_head++ & dma->release_mask],
		};

		rn_fifo_push(dma->ports.pte_release, &release);
	}
}
