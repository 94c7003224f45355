/*
 * Tags, completions and the answers of reads. Completions find their read by tag, in whatever
 * order they come. A tag and its part of the reassembly buffer are free when the last byte is
 * there, or an abort; a read is answered when no TLP of it is outstanding, after the reads of its
 * channel before it.
 */
#include "base/assert.h"
#include "nic/dma/engine.h"

static void settle_tags(struct rn_dma *dma)
{
	uint64_t now_ps = rn_sim_now_ps(dma->env.sim);

	dma->counters.tags_held_ps +=
		(dma->params.tags - dma->free_count) * (now_ps - dma->tags_since_ps);
	dma->tags_since_ps = now_ps;
}

uint16_t rn_dma_take_tag(struct rn_dma *dma, unsigned ch, uint16_t read_idx, uint32_t bytes)
{
	RN_ASSERT(dma->free_count && dma->free_bytes >= bytes);
	settle_tags(dma);

	uint16_t tag = dma->free_tags[--dma->free_count];
	uint32_t in_use = dma->params.tags - dma->free_count;
	uint32_t held_bytes = dma->params.reassembly_bytes - (dma->free_bytes -= bytes);

	dma->tags[tag] = (struct tag){
		.read = read_idx,
		.channel = (uint8_t)ch,
		.in_use = true,
		.left_bytes = bytes,
		.bytes = bytes,
	};
	if (in_use > dma->counters.tags_max)
		dma->counters.tags_max = in_use;
	if (held_bytes > dma->counters.reassembly_max)
		dma->counters.reassembly_max = held_bytes;
	return tag;
}

static void free_tag(struct rn_dma *dma, uint16_t idx)
{
	struct tag *tag = &dma->tags[idx];

	settle_tags(dma);
	dma->free_bytes += tag->bytes;
	tag->in_use = false;
	dma->free_tags[dma->free_count++] = idx;
}

/* The completer refused: nothing more is issued of this read. */
static void abort_read(struct rn_dma *dma, unsigned ch, const struct tag *tag)
{
	struct channel *channel = &dma->channels[ch];
	struct read *read = rn_dma_read(channel, tag->read);
	struct job *job = rn_dma_head(channel);

	if (read->is_issued) {
		if (read->status == RN_DMA_OK)
			dma->counters.aborts++;
		read->status = RN_DMA_ABORT;
		return;
	}
	/* Only the oldest job can have been issued in part. */
	RN_ASSERT(job && job->read == tag->read && job->issued_bytes);
	if (job->status != RN_DMA_OK)
		return;
	job->status = RN_DMA_ABORT;
	if (channel->untranslated & UINT64_C(1) << (channel->job_head % JOBS_MAX)) {
		channel->untranslated &= ~(UINT64_C(1) << (channel->job_head % JOBS_MAX));
		if (!channel->untranslated)
			dma->untranslated &= ~(UINT32_C(1) << ch);
	}
	rn_dma_update_ready(dma, ch);
}

static void finish_tlp(struct rn_dma *dma, uint16_t idx)
{
	const struct tag *tag = &dma->tags[idx];
	unsigned ch = tag->channel;
	struct read *read = rn_dma_read(&dma->channels[ch], tag->read);

	free_tag(dma, idx);
	RN_ASSERT(read->tlps);
	if (!--read->tlps && read->is_issued)
		dma->answering |= UINT32_C(1) << ch;
}

static void take(struct rn_dma *dma, const struct rn_tlp *tlp)
{
	struct tag *tag = tlp->tag < dma->params.tags ? &dma->tags[tlp->tag] : NULL;

	if (!tag || !tag->in_use || tlp->len > tag->left_bytes) {
		dma->counters.unexpected_completions++;
		return;
	}
	if (tlp->status != RN_TLP_OK)
		abort_read(dma, tag->channel, tag);
	tag->left_bytes = tlp->status != RN_TLP_OK ? 0 : tag->left_bytes - tlp->len;
	if (!tag->left_bytes)
		finish_tlp(dma, tlp->tag);
}

void rn_dma_complete(struct rn_dma *dma, uint64_t cycle)
{
	const struct rn_tlp *tlp = rn_fifo_peek(dma->ports.completion);

	if (!tlp)
		return;
	if (cycle < dma->completion_cycle) {
		rn_block_wake_in(&dma->block, dma->completion_cycle - cycle);
		return;
	}
	take(dma, tlp);
	rn_fifo_drop(dma->ports.completion);
	dma->completion_cycle = cycle + dma->params.completion_interval_cycles;
	rn_block_account(&dma->completion_block, dma->params.completion_interval_cycles,
			 RN_STALL_NONE);
}

static inline bool is_done(const struct read *read)
{
	return read->is_issued && !read->tlps;
}

void rn_dma_answer(struct rn_dma *dma, unsigned ch)
{
	struct channel *channel = &dma->channels[ch];
	uint64_t at_ps = rn_block_edge_in_ps(&dma->block, dma->params.response_latency_cycles);

	while (channel->read_head != channel->read_tail) {
		const struct read *read = rn_dma_read(channel, channel->read_head);

		if (!is_done(read))
			break;
		if (!rn_fifo_can_push(dma->ports.rsp[ch]))
			return;

		struct rn_dma_rsp rsp = {.token = read->token, .status = read->status};

		rn_fifo_push_at(dma->ports.rsp[ch], &rsp, at_ps);
		for (unsigned i = 0; i < read->epoch_count; i++)
			rn_dma_release(dma, read->epochs[i]);
		channel->read_head++;
		/*
		 * Its place may be what the channel's next read waits for; it is free from the
		 * next cycle.
		 */
		if (dma->ready & UINT32_C(1) << ch)
			rn_block_wake_next(&dma->block);
	}
	dma->answering &= ~(UINT32_C(1) << ch);
}
