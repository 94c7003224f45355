#include "nic/nic_fifos.h"

#include <stdlib.h>

#include "base/mem.h"
#include "sim/stats.h"

#define LINE_FRAMES 2 /* between MAC and PHY; frames wait in tx_frame */

static void make_fifo(const struct rn_nic_env *env, struct rn_fifo *fifo, const char *name,
		      uint32_t depth, uint32_t entry_bytes, uint32_t latency_cycles)
{
	char *full_name = rn_asprintf("%s.%s", env->name, name);

	rn_fifo_init(fifo, env->sim, full_name, depth, entry_bytes, latency_cycles);
	rn_stats_add_fifo(env->stats, fifo);
	free(full_name);
}

static void make_numbered(const struct rn_nic_env *env, struct rn_fifo *fifo, const char *prefix,
			  unsigned count, uint32_t depth, uint32_t entry_bytes)
{
	for (unsigned i = 0; i < count; i++) {
		char *name = rn_asprintf("%s%u", prefix, i);

		make_fifo(env, &fifo[i], name, depth, entry_bytes, 1);
		free(name);
	}
}

void rn_nic_fifos_init(struct rn_nic_fifos *f, const struct rn_nic_env *env,
		       const struct rn_nic_params *params, const struct rn_cable *cable)
{
	const struct rn_nic_core_params *p = &params->nic;
	const struct rn_mac_params *mac = &params->mac;

#define FIFO_MAKE(name, type, depth) make_fifo(env, &f->name, #name, p->depth, sizeof(type), 1);
	RN_NIC_FIFOS(FIFO_MAKE)
#undef FIFO_MAKE
	make_numbered(env, f->dma_req, "dma_req", RN_DMA_CH_COUNT, p->dma_req_fifo_depth,
		      sizeof(struct rn_dma_req));
	make_numbered(env, f->dma_rsp, "dma_rsp", RN_DMA_CH_COUNT, p->dma_rsp_fifo_depth,
		      sizeof(struct rn_dma_rsp));
	make_numbered(env, f->context_req, "context_req", RN_CONTEXT_CLIENT_COUNT,
		      p->context_fifo_depth, sizeof(struct rn_context_req));
	make_numbered(env, f->context_rsp, "context_rsp", RN_CONTEXT_CLIENT_COUNT,
		      p->context_fifo_depth, sizeof(struct rn_context_rsp));
	make_numbered(env, f->pte_req, "pte_req", RN_PTE_CLIENT_COUNT, p->pte_fifo_depth,
		      sizeof(struct rn_pte_req));
	make_numbered(env, f->pte_rsp, "pte_rsp", RN_PTE_CLIENT_COUNT, p->pte_fifo_depth,
		      sizeof(struct rn_pte_rsp));
	/* Completions are not flow controlled: there is room for every tag's. */
	make_fifo(env, &f->completion, "completion", params->dma.tags, sizeof(struct rn_tlp), 1);
	make_fifo(env, &f->tx_frame, "tx_frame", mac->tx_fifo_depth, sizeof(struct rn_frame),
		  mac->tx_latency_cycles);
	make_fifo(env, &f->rx_frame, "rx_frame", mac->rx_fifo_depth, sizeof(struct rn_frame), 1);
	make_fifo(env, &f->line_out, "line_out", LINE_FRAMES, sizeof(struct rn_frame), 1);
	make_fifo(env, &f->line_in, "line_in", rn_mac_line_frames(mac, cable),
		  sizeof(struct rn_frame), 1);
}

void rn_nic_fifos_fini(struct rn_nic_fifos *f)
{
#define FIFO_FINI(name, type, depth) rn_fifo_fini(&f->name);
	RN_NIC_FIFOS(FIFO_FINI)
#undef FIFO_FINI
	for (unsigned i = 0; i < RN_DMA_CH_COUNT; i++) {
		rn_fifo_fini(&f->dma_req[i]);
		rn_fifo_fini(&f->dma_rsp[i]);
	}
	for (unsigned i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++) {
		rn_fifo_fini(&f->context_req[i]);
		rn_fifo_fini(&f->context_rsp[i]);
	}
	for (unsigned i = 0; i < RN_PTE_CLIENT_COUNT; i++) {
		rn_fifo_fini(&f->pte_req[i]);
		rn_fifo_fini(&f->pte_rsp[i]);
	}
	rn_fifo_fini(&f->completion);
	rn_fifo_fini(&f->tx_frame);
	rn_fifo_fini(&f->rx_frame);
	rn_fifo_fini(&f->line_out);
	rn_fifo_fini(&f->line_in);
}
