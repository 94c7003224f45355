#include "block/dma/rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void rig_init(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	rn_params_set_defaults(&rn_dma_param_table, &rig->dma_params);
	rn_params_set_defaults(&rn_pcie_param_table, &rig->pcie);
	rn_params_set_defaults(&rn_root_complex_param_table, &rig->root);
	rig->pte_latency_cycles = 5;
	rig->req_depth = 64;
	rig->rsp_depth = 64;
	rig->tlp_depth = 16;
	rig->mmio_depth = 16;
}

static void make(struct rig *rig, struct rn_fifo *fifo, const char *name, uint32_t depth,
		 uint32_t entry_bytes)
{
	rn_fifo_init(fifo, rig->sim, name, depth, entry_bytes, 1);
}

static void make_fifos(struct rig *rig)
{
	for (unsigned ch = 0; ch < RN_DMA_CH_COUNT; ch++) {
		make(rig, &rig->req[ch], "req", rig->req_depth, sizeof(struct rn_dma_req));
		make(rig, &rig->rsp[ch], "rsp", rig->rsp_depth, sizeof(struct rn_dma_rsp));
	}
	make(rig, &rig->pte_req, "pte_req", 8, sizeof(struct rn_pte_req));
	make(rig, &rig->pte_rsp, "pte_rsp", 64, sizeof(struct rn_pte_rsp));
	make(rig, &rig->pte_release, "pte_release", 2, sizeof(struct rn_pte_release));
	make(rig, &rig->posted, "posted", rig->tlp_depth, sizeof(struct rn_tlp));
	make(rig, &rig->nonposted, "nonposted", rig->tlp_depth, sizeof(struct rn_tlp));
	make(rig, &rig->completion, "completion", rig->dma_params.tags, sizeof(struct rn_tlp));
	make(rig, &rig->mmio_write, "mmio_write", rig->mmio_depth, sizeof(struct rn_mmio_write));
	make(rig, &rig->mmio_read, "mmio_read", 4, sizeof(struct rn_mmio_read));
	make(rig, &rig->mmio_read_rsp, "mmio_read_rsp", 4, sizeof(struct rn_mmio_read_rsp));
}

/*
 * The translation stub: answers after its latency, one a cycle, and counts what it has handed
 * out.
 */
static void pte_tick(void *self, uint64_t cycle)
{
	struct rig *rig = self;
	struct rn_pte_release release;
	const struct rn_pte_req *req;

	(void)cycle;
	while (rn_fifo_pop(&rig->pte_release, &release)) {
		ck_assert_uint_eq(release.epoch, 7);
		ck_assert_uint_gt(rig->translations_held, 0);
		rig->translations_held--;
	}
	req = rn_fifo_peek(&rig->pte_req);
	if (!req || !rn_fifo_can_push(&rig->pte_rsp))
		return;

	struct rn_pte_rsp rsp = {.id = req->id, .epoch = 7, .pa = req->va};
	uint32_t left = 4096 - (uint32_t)(req->va % 4096);

	rsp.bytes = req->length < left ? req->length : left;
	if (req->key == RIG_BAD_KEY)
		rsp.status = RN_PTE_BAD_KEY;
	if (req->key == RIG_ABORT_KEY)
		rsp.status = RN_PTE_ABORT;
	if (req->key == RIG_SECOND_BAD_KEY && req->va / 4096 % 2)
		rsp.status = RN_PTE_BAD_BOUNDS;
	if (req->key != RIG_SILENT_KEY) {
		rn_fifo_push_at(&rig->pte_rsp, &rsp,
				rn_block_edge_in_ps(&rig->pte, rig->pte_latency_cycles));
		rig->translations_held += rsp.status == RN_PTE_OK;
		rig->translations_served++;
	}
	rn_fifo_drop(&rig->pte_req);
}

static void interrupt(void *arg, uint32_t vector)
{
	struct rig *rig = arg;

	ck_assert_uint_eq(vector, 3);
	rig->interrupts++;
	rig->interrupt_ps = rig_now_ps(rig);
}

static void written(void *arg, uint64_t pa)
{
	struct rig *rig = arg;

	rig->hook_ps = rig_now_ps(rig);
	rig->hook_pa = pa;
}

static void make_root(struct rig *rig)
{
	struct rn_pcie_ports ports = {
		.posted = &rig->posted,
		.nonposted = &rig->nonposted,
		.mmio_read_rsp = &rig->mmio_read_rsp,
		.completion = &rig->completion,
		.mmio_write = &rig->mmio_write,
		.mmio_read = &rig->mmio_read,
	};
	struct rn_root_complex_env env = {
		.sim = rig->sim,
		.stats = rig->stats,
		.buffers = rig->buffers,
		.memory = rig->memory,
		.log = rig->log,
		.name = "host0",
		.nic_name = "host0.nic0",
		.params = &rig->root,
		.pcie = &rig->pcie,
		.ports = &ports,
	};

	rig->rc = rn_root_complex_new(&env);
	rn_root_complex_set_msi(rig->rc, interrupt, rig);
	rn_root_complex_set_write_hook(rig->rc, written, rig);
}

static void make_dma(struct rig *rig)
{
	struct rn_nic_env env = {
		.sim = rig->sim,
		.core = &rig->clock,
		.mac = &rig->clock,
		.stats = rig->stats,
		.buffers = rig->buffers,
		.name = "host0.nic0",
	};
	struct rn_dma_ports ports = {
		.pte_rsp = &rig->pte_rsp,
		.completion = &rig->completion,
		.pte_req = &rig->pte_req,
		.pte_release = &rig->pte_release,
		.posted = &rig->posted,
		.nonposted = &rig->nonposted,
	};

	for (unsigned ch = 0; ch < RN_DMA_CH_COUNT; ch++) {
		ports.req[ch] = &rig->req[ch];
		ports.rsp[ch] = &rig->rsp[ch];
	}
	rig->dma = rn_dma_new(&env, &rig->dma_params, &rig->pcie, &ports);
}

void rig_start(struct rig *rig)
{
	rig->sim = rn_sim_new(rig->permute_seed);
	rn_clock_init(&rig->clock, "core", UINT64_C(1000000000));
	rig->stats = rn_stats_new();
	rig->buffers = rn_buffers_new();
	rig->memory = rn_host_memory_new();
	rig->bytes = aligned_alloc(4096, RIG_MEMORY_BYTES);
	for (uint64_t i = 0; i < RIG_MEMORY_BYTES; i++)
		rig->bytes[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16));
	ck_assert_int_eq(rn_host_memory_add(rig->memory, rig->bytes, RIG_MEMORY_BYTES), 0);
	if (rig->log_file)
		rig->log = rn_tlp_log_new(rig->sim, rig->log_file, true);
	make_fifos(rig);
	rn_block_init(&rig->pte, rig->sim, &rig->clock, "pte", pte_tick, rig);
	rn_fifo_set_consumer(&rig->pte_req, &rig->pte);
	rn_fifo_set_consumer(&rig->pte_release, &rig->pte);
	rn_fifo_set_producer(&rig->pte_rsp, &rig->pte);
	make_dma(rig);
	make_root(rig);
}

void rig_stop(struct rig *rig, uint32_t buffers)
{
	struct rn_fifo *fifos[] = {&rig->pte_req,    &rig->pte_rsp,   &rig->pte_release,
				   &rig->posted,     &rig->nonposted, &rig->completion,
				   &rig->mmio_write, &rig->mmio_read, &rig->mmio_read_rsp};

	ck_assert_uint_eq(rig->translations_held, 0);
	ck_assert_uint_eq(rn_buffers_in_use(rig->buffers), buffers);
	rn_dma_free(rig->dma);
	rn_root_complex_free(rig->rc);
	rn_tlp_log_free(rig->log);
	for (unsigned ch = 0; ch < RN_DMA_CH_COUNT; ch++) {
		rn_fifo_fini(&rig->req[ch]);
		rn_fifo_fini(&rig->rsp[ch]);
	}
	for (unsigned i = 0; i < sizeof(fifos) / sizeof(fifos[0]); i++)
		rn_fifo_fini(fifos[i]);
	rn_host_memory_free(rig->memory);
	free(rig->bytes);
	rn_buffers_free(rig->buffers);
	rn_stats_free(rig->stats);
	rn_sim_free(rig->sim);
}

void rig_run(struct rig *rig, uint64_t cycles)
{
	rig->cycle += cycles;
	rn_sim_run(rig->sim, rig->cycle * RIG_CYCLE_PS, UINT64_MAX);
}

uint64_t rig_wait(struct rig *rig, struct rn_fifo *fifo, uint64_t limit)
{
	uint64_t cycles = 0;

	while (cycles < limit && !rn_fifo_peek(fifo)) {
		rig_run(rig, 1);
		cycles++;
	}
	return cycles;
}

void rig_ask(struct rig *rig, enum rn_dma_channel ch, struct rn_dma_req req)
{
	ck_assert(rn_fifo_can_push(&rig->req[ch]));
	rn_fifo_push(&rig->req[ch], &req);
}

struct rn_dma_rsp rig_answer(struct rig *rig, enum rn_dma_channel ch)
{
	struct rn_dma_rsp rsp = {0};

	ck_assert_uint_lt(rig_wait(rig, &rig->rsp[ch], 100000), 100000);
	ck_assert(rn_fifo_pop(&rig->rsp[ch], &rsp));
	return rsp;
}

uint64_t rig_counter(const struct rig *rig, const char *instance, const char *counter)
{
	uint64_t value = rn_stats_value(rig->stats, instance, counter);

	ck_assert_uint_ne(value, UINT64_MAX);
	return value;
}

uint64_t rig_now_ps(const struct rig *rig)
{
	return rn_sim_now_ps(rig->sim);
}

uint64_t rig_link_ps(const struct rn_pcie_params *pcie, uint64_t bytes)
{
	static const long double gigatransfers[] = {0, 2.5L, 5, 8, 16, 32};
	long double code = pcie->gen <= 2 ? 10.0L / 8 : 130.0L / 128;
	long double lane_ps = 8 * code * 1000 / gigatransfers[pcie->gen];
	long double ps =
		(long double)bytes * lane_ps / pcie->lanes * 1000 / (1000 - pcie->dllp_permille);

	/* A whole number of picoseconds must not fall short of itself. */
	return (uint64_t)(ps + 1e-9L);
}
