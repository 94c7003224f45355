#include "block/pte_cache/fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"

void fixture_prepare(struct fixture *f, uint64_t permute_seed)
{
	memset(f, 0, sizeof(*f));
	bench_init(&f->bench, permute_seed);
	rn_params_set_defaults(&rn_pte_cache_param_table, &f->params);
	f->memory.size = MEMORY_BYTES;
	f->memory.bytes = rn_calloc(1, MEMORY_BYTES);
}

void fixture_build(struct fixture *f)
{
	for (unsigned i = 0; i < RN_PTE_CLIENT_COUNT; i++) {
		f->ports.req[i] = bench_fifo(&f->bench, "req", 64, sizeof(struct rn_pte_req));
		f->ports.rsp[i] = bench_fifo(&f->bench, "rsp", 64, sizeof(struct rn_pte_rsp));
	}
	f->ports.release = bench_fifo(&f->bench, "release", 64, sizeof(struct rn_pte_release));
	f->ports.inval = bench_fifo(&f->bench, "inval", 2, sizeof(struct rn_pte_inval));
	f->ports.inval_done = bench_fifo(&f->bench, "done", 2, sizeof(struct rn_pte_inval_done));
	f->ports.base = bench_fifo(&f->bench, "base", 2, sizeof(struct rn_pte_base));
	f->ports.dma_req = bench_fifo(&f->bench, "dma_req", 4, sizeof(struct rn_dma_req));
	f->ports.dma_rsp = bench_fifo(&f->bench, "dma_rsp", 4, sizeof(struct rn_dma_rsp));
	f->dma = fake_dma_new(f->bench.sim, &f->bench.clock, "dma", f->bench.buffers, f->memory,
			      f->ports.dma_req, f->ports.dma_rsp);
	f->cache = rn_pte_cache_new(&f->bench.env, &f->params, &f->ports);
	rn_fifo_push(f->ports.base, &(struct rn_pte_base){.mpt_pa = MPT_PA,
							  .mtt_pa = MTT_PA,
							  .log_mpts = LOG_MPTS,
							  .log_mtts = LOG_MTTS});
	bench_run(&f->bench, 10);
}

void fixture_free(struct fixture *f)
{
	rn_pte_cache_free(f->cache);
	bench_fini(&f->bench);
	free(f->dma);
	free(f->memory.bytes);
}

struct rn_hw_mpt *mpt_at(struct fixture *f, uint32_t index)
{
	return (struct rn_hw_mpt *)(void *)(f->memory.bytes + MPT_PA +
					    (uint64_t)index * RN_MPT_BYTES);
}

void set_mtt(struct fixture *f, uint64_t entry, uint64_t value)
{
	rn_put_le64(f->memory.bytes + MTT_PA + entry * RN_MTT_BYTES, value);
}

uint64_t page_pa(uint64_t entry)
{
	return (UINT64_C(3) << 48) + (entry * 17 + 5) * PAGE;
}

uint32_t make_region(struct fixture *f, uint32_t index, uint64_t va, uint32_t pages, uint64_t entry)
{
	*mpt_at(f, index) = (struct rn_hw_mpt){
		.state = 1,
		.access = 0xf,
		.log_page_bytes = 12,
		.key = index << 8 | 0x5a,
		.pd = 7,
		.start_va = va,
		.length = pages * PAGE,
		.mtt_index = entry,
	};
	for (uint64_t n = entry; n < entry + pages; n++)
		set_mtt(f, n, page_pa(n) | RN_MTT_PRESENT);
	return index << 8 | 0x5a;
}

void ask(struct fixture *f, unsigned client, uint16_t id, uint32_t key, uint64_t va,
	 uint32_t length)
{
	rn_fifo_push(
		f->ports.req[client],
		&(struct rn_pte_req){.id = id, .key = key, .pd = 7, .length = length, .va = va});
}

struct rn_pte_rsp answer(struct fixture *f, unsigned client)
{
	struct rn_pte_rsp rsp;

	ck_assert(bench_wait(&f->bench, f->ports.rsp[client], 10000));
	rn_fifo_pop(f->ports.rsp[client], &rsp);
	return rsp;
}

struct rn_pte_rsp translate(struct fixture *f, uint32_t key, uint64_t va, uint32_t length)
{
	ask(f, DMA, 77, key, va, length);

	struct rn_pte_rsp rsp = answer(f, DMA);

	ck_assert_uint_eq(rsp.id, 77);
	if (rsp.status == RN_PTE_OK)
		give_back(f, rsp.epoch);
	bench_run(&f->bench, 2);
	return rsp;
}

void give_back(struct fixture *f, uint8_t epoch)
{
	rn_fifo_push(f->ports.release, &(struct rn_pte_release){.epoch = epoch});
}

void invalidate(struct fixture *f, uint32_t key, uint64_t entry, uint64_t count)
{
	rn_fifo_push(f->ports.inval,
		     &(struct rn_pte_inval){
			     .token = 1234, .key = key, .mtt_index = entry, .mtt_count = count});
}

bool is_answered(struct fixture *f, unsigned client)
{
	return rn_fifo_peek(f->ports.rsp[client]) != NULL;
}

bool is_invalidated(struct fixture *f)
{
	struct rn_pte_inval_done done;

	if (!rn_fifo_pop(f->ports.inval_done, &done))
		return false;
	ck_assert_uint_eq(done.token, 1234);
	return true;
}
