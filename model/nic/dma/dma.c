/*
 * DMA engine. A request passes acceptance (a queue per channel), translation (a page at a time,
 * several requests at once), its channel's turn, and for reads the wait for completions. Exact:
 * splitting by MPS, MRRS and 4 KiB, tags, reassembly space, order within a channel, answers.
 * Approximated: the TLPs of a burst are handed to the link together and the engine is busy for
 * all of them; data moves with them, not beat by beat.
 */
#include "nic/dma/dma.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/dma/engine.h"

#define RN_PARAM_OWNER rn_dma_params
RN_PARAM_TABLE(rn_dma_param_table, "dma", RN_DMA_PARAMS);

static const struct rn_counter_desc counter_descs[] = {
#define DMA_COUNTER(field, unit, help) RN_COUNTER_ROW(struct rn_dma_counters, field, unit, help)
	RN_DMA_COUNTERS(DMA_COUNTER)
#undef DMA_COUNTER
};

/* A request that waits for its translation although nothing else holds it up. */
static bool is_missing(const struct rn_dma *dma)
{
	return dma->asked_count && !dma->ready;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_dma *dma = self;
	enum rn_stall stall;

	rn_dma_complete(dma, cycle);
	rn_dma_accept(dma);
	rn_dma_translate(dma);

	uint32_t cycles = rn_dma_issue(dma, cycle, &stall);

	for (uint32_t left = dma->answering; left; left &= left - 1)
		rn_dma_answer(dma, (unsigned)__builtin_ctz(left));
	rn_dma_flush_releases(dma);
	if (stall == RN_STALL_NONE && is_missing(dma))
		stall = RN_STALL_MISS;
	rn_block_account(&dma->block, cycles, stall);
}

static void completion_never_ticks(void *self, uint64_t cycle)
{
	(void)self;
	(void)cycle;
	RN_ASSERT(!"an account has no work of its own");
}

static uint32_t weight(const struct rn_dma_params *params, unsigned ch)
{
	switch ((enum rn_dma_channel)ch) {
	case RN_DMA_CH_PTE:
		return params->weight_pte;
	case RN_DMA_CH_CONTEXT:
		return params->weight_context;
	case RN_DMA_CH_WQE_SQ:
		return params->weight_wqe_sq;
	case RN_DMA_CH_WQE_RQ:
		return params->weight_wqe_rq;
	case RN_DMA_CH_TX:
		return params->weight_tx;
	case RN_DMA_CH_RESP:
		return params->weight_resp;
	case RN_DMA_CH_RX:
		return params->weight_rx;
	case RN_DMA_CH_READ_DATA:
		return params->weight_read_data;
	case RN_DMA_CH_CQE:
		return params->weight_cqe;
	case RN_DMA_CH_EQ:
		return params->weight_eq;
	case RN_DMA_CH_CMD:
		return params->weight_cmd;
	case RN_DMA_CH_COUNT:
		break;
	}
	RN_ASSERT(!"every channel has a weight");
	return 1;
}

static void connect(struct rn_dma *dma)
{
	const struct rn_dma_ports *ports = &dma->ports;

	for (unsigned ch = 0; ch < RN_DMA_CH_COUNT; ch++) {
		rn_fifo_set_consumer(ports->req[ch], &dma->block);
		rn_fifo_set_producer(ports->rsp[ch], &dma->block);
		rn_fifo_note_arrivals(ports->req[ch], &dma->arrivals, UINT32_C(1) << ch);
	}
	rn_fifo_set_consumer(ports->pte_rsp, &dma->block);
	rn_fifo_set_consumer(ports->completion, &dma->block);
	rn_fifo_set_producer(ports->pte_req, &dma->block);
	rn_fifo_set_producer(ports->pte_release, &dma->block);
	rn_fifo_set_producer(ports->posted, &dma->block);
	rn_fifo_set_producer(ports->nonposted, &dma->block);
}

static void init_storage(struct rn_dma *dma)
{
	const struct rn_dma_params *params = &dma->params;
	uint32_t most_releases = RN_DMA_CH_COUNT * (JOBS_MAX + READS_MAX) * RUNS_MAX;

	for (unsigned ch = 0; ch < RN_DMA_CH_COUNT; ch++) {
		dma->channels[ch].jobs = rn_calloc(JOBS_MAX, sizeof(struct job));
		dma->channels[ch].reads = rn_calloc(READS_MAX, sizeof(struct read));
		dma->channels[ch].weight = weight(params, ch);
	}
	dma->tags = rn_calloc(params->tags, sizeof(struct tag));
	dma->free_tags = rn_calloc(params->tags, sizeof(uint16_t));
	while (dma->free_count < params->tags) {
		dma->free_tags[dma->free_count] = (uint16_t)(params->tags - 1 - dma->free_count);
		dma->free_count++;
	}
	dma->free_bytes = params->reassembly_bytes;
	dma->release_mask = (UINT32_C(1) << rn_log2_ceil(most_releases)) - 1;
	dma->releases = rn_calloc(dma->release_mask + 1, sizeof(uint8_t));
}

struct rn_dma *rn_dma_new(const struct rn_nic_env *env, const struct rn_dma_params *params,
			  const struct rn_pcie_params *pcie, const struct rn_dma_ports *ports)
{
	struct rn_dma *dma = rn_calloc(1, sizeof(*dma));

	dma->env = *env;
	dma->params = *params;
	dma->ports = *ports;
	dma->mps_bytes = pcie->mps_bytes;
	/* A read TLP that the reassembly buffer cannot hold could never go. */
	dma->mrrs_bytes = (uint32_t)rn_min_u64(pcie->mrrs_bytes, params->reassembly_bytes);
	dma->name = rn_asprintf("%s.dma", env->name);
	init_storage(dma);
	rn_block_init(&dma->block, env->sim, env->core, dma->name, tick, dma);
	dma->completion_name = rn_asprintf("%s.dma_completion", env->name);
	rn_block_init(&dma->completion_block, env->sim, env->core, dma->completion_name,
		      completion_never_ticks, dma);
	connect(dma);
	rn_stats_add_block(env->stats, &dma->block);
	rn_stats_add_block(env->stats, &dma->completion_block);
	rn_stats_add_counters(env->stats, dma->name, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &dma->counters);
	return dma;
}

/*
 * The link drops the buffers of writes that it has been given; those still in the fifo are the
 * fifo's owner's.
 */
void rn_dma_free(struct rn_dma *dma)
{
	if (!dma)
		return;
	for (unsigned ch = 0; ch < RN_DMA_CH_COUNT; ch++) {
		free(dma->channels[ch].jobs);
		free(dma->channels[ch].reads);
	}
	free(dma->tags);
	free(dma->free_tags);
	free(dma->releases);
	free(dma->name);
	free(dma->completion_name);
	free(dma);
}
