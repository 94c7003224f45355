#include "block/context_cache/fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void fixture_prepare(struct fixture *f, uint64_t permute_seed)
{
	memset(f, 0, sizeof(*f));
	bench_init(&f->bench, permute_seed);
	rn_params_set_defaults(&rn_context_cache_param_table, &f->params);
	f->memory.size = MEMORY_BYTES;
	f->memory.bytes = rn_calloc(1, MEMORY_BYTES);
	for (uint32_t n = 0; n < 1u << LOG_NUMBERS; n++) {
		memcpy(f->memory.bytes + QPC_PA + (uint64_t)n * RN_QPC_BYTES, &n, sizeof(n));
		memcpy(f->memory.bytes + CQC_PA + (uint64_t)n * RN_CQC_BYTES, &n, sizeof(n));
		memcpy(f->memory.bytes + SRQC_PA + (uint64_t)n * RN_SRQC_BYTES, &n, sizeof(n));
	}
}

static void push_base(struct fixture *f, uint8_t type, uint64_t pa)
{
	rn_fifo_push(f->ports.base, &(struct rn_context_base){.type = type,
							      .log_entries = LOG_NUMBERS,
							      .base_pa = pa});
}

void fixture_build(struct fixture *f)
{
	for (unsigned i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++) {
		f->ports.req[i] = bench_fifo(&f->bench, "req", 16, sizeof(struct rn_context_req));
		f->ports.rsp[i] = bench_fifo(&f->bench, "rsp", 16, sizeof(struct rn_context_rsp));
	}
	f->ports.base = bench_fifo(&f->bench, "base", 4, sizeof(struct rn_context_base));
	f->ports.dma_req = bench_fifo(&f->bench, "dma_req", 4, sizeof(struct rn_dma_req));
	f->ports.dma_rsp = bench_fifo(&f->bench, "dma_rsp", 4, sizeof(struct rn_dma_rsp));
	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++) {
		f->sram[type].bytes = rn_context_cache_line_bytes(type);
		f->sram[type].count = rn_context_cache_lines(&f->params, type);
		f->sram[type].lines = rn_calloc(f->sram[type].count, f->sram[type].bytes);
		f->ports.sram[type] = &f->sram[type];
	}
	f->dma = fake_dma_new(f->bench.sim, &f->bench.clock, "dma", f->bench.buffers, f->memory,
			      f->ports.dma_req, f->ports.dma_rsp);
	f->cache = rn_context_cache_new(&f->bench.env, &f->params, &f->ports);
	push_base(f, RN_CONTEXT_QP, QPC_PA);
	push_base(f, RN_CONTEXT_CQ, CQC_PA);
	push_base(f, RN_CONTEXT_SRQ, SRQC_PA);
	bench_run(&f->bench, 10);
}

void fixture_free(struct fixture *f)
{
	rn_context_cache_free(f->cache);
	bench_fini(&f->bench);
	free(f->dma);
	free(f->memory.bytes);
	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++)
		free(f->sram[type].lines);
}

void request(struct fixture *f, unsigned client, uint8_t op, uint8_t type, uint32_t number,
	     uint16_t token)
{
	rn_fifo_push(
		f->ports.req[client],
		&(struct rn_context_req){.op = op, .type = type, .token = token, .number = number});
}

void give_back(struct fixture *f, unsigned client, uint8_t type, uint32_t number, bool dirty)
{
	rn_fifo_push(f->ports.req[client], &(struct rn_context_req){.op = RN_CONTEXT_RELEASE,
								    .type = type,
								    .dirty = dirty,
								    .number = number});
}

struct rn_context_rsp answer(struct fixture *f, unsigned client)
{
	struct rn_context_rsp rsp;

	ck_assert(bench_wait(&f->bench, f->ports.rsp[client], 10000));
	rn_fifo_pop(f->ports.rsp[client], &rsp);
	return rsp;
}

bool touch(struct fixture *f, unsigned client, uint8_t type, uint32_t number)
{
	request(f, client, RN_CONTEXT_ACQUIRE, type, number, 7);

	struct rn_context_rsp rsp = answer(f, client);

	ck_assert_uint_eq(rsp.token, 7);
	ck_assert_uint_eq(rsp.status, RN_CONTEXT_OK);
	ck_assert_mem_eq(line_at(f, type, rsp.line), &number, sizeof(number));
	give_back(f, client, type, number, false);
	bench_run(&f->bench, 3);
	return rsp.hit;
}

uint8_t *line_at(struct fixture *f, uint8_t type, uint32_t line)
{
	return rn_context_line(&f->sram[type], line);
}
