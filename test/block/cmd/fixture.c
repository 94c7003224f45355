#include "block/cmd/fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

static void note_qp(struct note *note, const struct rn_qp_ctl *ctl)
{
	note->number = ctl->qpn;
	note->op = ctl->op;
	note->old_state = ctl->old_state;
	note->new_state = ctl->new_state;
}

static uint32_t note_ctl(struct stand_in *who, const void *entry)
{
	struct fixture *f = who->f;
	struct note *note = &f->notes[f->note_count++];

	RN_ASSERT(f->note_count < NOTES);
	*note = (struct note){.at_ps = rn_sim_now_ps(f->bench.sim), .who = who->who};
	if (who->who == 'c') {
		const struct rn_cq_ctl *ctl = entry;

		note->number = ctl->cqn;
		note->op = ctl->drain_only;
		return ctl->token;
	}
	if (who->who == 'e') {
		const struct rn_eq_ctl *ctl = entry;

		note->number = ctl->eqn;
		note->op = ctl->create;
		return ctl->eqn;
	}
	note_qp(note, entry);
	return ((const struct rn_qp_ctl *)entry)->token;
}

static void stand_in_tick(void *self, uint64_t cycle)
{
	struct stand_in *who = self;

	if (who->answer_cycle && cycle >= who->answer_cycle) {
		rn_fifo_push(who->done, &(struct rn_ctl_done){.token = who->token});
		who->answer_cycle = 0;
	}
	const void *entry = who->answer_cycle ? NULL : rn_fifo_peek(who->ctl);

	if (entry) {
		who->token = note_ctl(who, entry);
		who->answer_cycle = cycle + who->latency_cycles;
		rn_fifo_drop(who->ctl);
	}
	if (who->answer_cycle)
		rn_block_wake_in(&who->block, who->answer_cycle - cycle);
}

static void make_stand_in(struct fixture *f, struct stand_in *who, char name, const char *text,
			  uint64_t latency_cycles)
{
	who->f = f;
	who->who = name;
	who->latency_cycles = latency_cycles;
	rn_block_init(&who->block, f->bench.sim, &f->bench.clock, text, stand_in_tick, who);
	rn_fifo_set_consumer(who->ctl, &who->block);
	rn_fifo_set_producer(who->done, &who->block);
}

static struct rn_fifo *fifo(struct fixture *f, const char *name, uint32_t entry_bytes)
{
	return bench_fifo(&f->bench, name, 4, entry_bytes);
}

static struct fake_dma *make_dma(struct fixture *f, const char *name, struct rn_fifo **req,
				 struct rn_fifo **rsp)
{
	*req = fifo(f, name, sizeof(struct rn_dma_req));
	*rsp = fifo(f, name, sizeof(struct rn_dma_rsp));

	struct fake_dma *dma = fake_dma_new(f->bench.sim, &f->bench.clock, name, f->bench.buffers,
					    f->memory, *req, *rsp);

	dma->latency_cycles = 20;
	return dma;
}

static void make_fifos(struct fixture *f)
{
	struct rn_cmd_ports *p = &f->ports;

	for (unsigned i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++) {
		f->context.req[i] = fifo(f, "context_req", sizeof(struct rn_context_req));
		f->context.rsp[i] = fifo(f, "context_rsp", sizeof(struct rn_context_rsp));
	}
	for (unsigned i = 0; i < RN_PTE_CLIENT_COUNT; i++) {
		f->pte.req[i] = fifo(f, "pte_req", sizeof(struct rn_pte_req));
		f->pte.rsp[i] = fifo(f, "pte_rsp", sizeof(struct rn_pte_rsp));
	}
	f->pte.release = fifo(f, "release", sizeof(struct rn_pte_release));
	p->context_req = f->context.req[RN_CONTEXT_CLIENT_CMD];
	p->context_rsp = f->context.rsp[RN_CONTEXT_CLIENT_CMD];
	p->context_base = f->context.base = fifo(f, "base", sizeof(struct rn_context_base));
	p->pte_base = f->pte.base = fifo(f, "pte_base", sizeof(struct rn_pte_base));
	p->inval = f->pte.inval = fifo(f, "inval", sizeof(struct rn_pte_inval));
	p->inval_done = f->pte.inval_done = fifo(f, "done", sizeof(struct rn_pte_inval_done));
	p->cmd_ring = bench_fifo(&f->bench, "ring", 16, sizeof(struct rn_cmd_ring));
	p->tx_ctl = f->tx.ctl = fifo(f, "tx_ctl", sizeof(struct rn_qp_ctl));
	p->rx_ctl = f->rx.ctl = fifo(f, "rx_ctl", sizeof(struct rn_qp_ctl));
	p->cq_ctl = f->cqe.ctl = fifo(f, "cq_ctl", sizeof(struct rn_cq_ctl));
	p->eq_ctl = f->eq.ctl = fifo(f, "eq_ctl", sizeof(struct rn_eq_ctl));
	p->tx_ctl_done = f->tx.done = fifo(f, "tx_done", sizeof(struct rn_ctl_done));
	p->rx_ctl_done = f->rx.done = fifo(f, "rx_done", sizeof(struct rn_ctl_done));
	p->cq_ctl_done = f->cqe.done = fifo(f, "cq_done", sizeof(struct rn_ctl_done));
	p->eq_ctl_done = f->eq.done = fifo(f, "eq_done", sizeof(struct rn_ctl_done));
	p->event = bench_fifo(&f->bench, "event", 64, sizeof(struct rn_event));
	p->status = fifo(f, "status", sizeof(uint32_t));
}

void fixture_prepare(struct fixture *f, uint64_t permute_seed)
{
	memset(f, 0, sizeof(*f));
	bench_init(&f->bench, permute_seed);
	rn_params_set_defaults(&rn_cmd_param_table, &f->params);
	f->memory.size = MEMORY_BYTES;
	f->memory.bytes = rn_calloc(1, MEMORY_BYTES);
}

void fixture_build(struct fixture *f)
{
	struct rn_context_cache_params context_params;
	struct rn_pte_cache_params pte_params;

	rn_params_set_defaults(&rn_context_cache_param_table, &context_params);
	rn_params_set_defaults(&rn_pte_cache_param_table, &pte_params);
	context_params.qpc_sets = context_params.cqc_sets = 2;
	make_fifos(f);
	f->cmd_dma = make_dma(f, "cmd_dma", &f->ports.dma_req, &f->ports.dma_rsp);
	f->context_dma = make_dma(f, "context_dma", &f->context.dma_req, &f->context.dma_rsp);
	f->pte_dma = make_dma(f, "pte_dma", &f->pte.dma_req, &f->pte.dma_rsp);
	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++) {
		f->sram[type].bytes = rn_context_cache_line_bytes(type);
		f->sram[type].count = rn_context_cache_lines(&context_params, type);
		f->sram[type].lines = rn_calloc(f->sram[type].count, f->sram[type].bytes);
		f->context.sram[type] = &f->sram[type];
	}
	f->ports.qpc = &f->sram[RN_CONTEXT_QP];
	f->ports.cqc = &f->sram[RN_CONTEXT_CQ];
	f->ports.identity = &f->identity;
	f->ports.eqs = 4;
	f->context_cache = rn_context_cache_new(&f->bench.env, &context_params, &f->context);
	f->pte_cache = rn_pte_cache_new(&f->bench.env, &pte_params, &f->pte);
	f->cmd = rn_cmd_new(&f->bench.env, &f->params, &f->ports);
	make_stand_in(f, &f->tx, 't', "tx", 30);
	make_stand_in(f, &f->rx, 'r', "rx", 50);
	make_stand_in(f, &f->cqe, 'c', "cqe", 40);
	make_stand_in(f, &f->eq, 'e', "eq", 5);
	bench_run(&f->bench, 10);
}

struct rn_hw_init_hca init_hca(void)
{
	struct rn_hw_init_hca hca = {
		.qpc_pa = QPC_PA,
		.cqc_pa = CQC_PA,
		.srqc_pa = SRQC_PA,
		.mpt_pa = MPT_PA,
		.mtt_pa = MTT_PA,
		.log_qps = LOG_NUMBERS,
		.log_cqs = LOG_NUMBERS,
		.log_srqs = LOG_NUMBERS,
		.log_mpts = LOG_NUMBERS,
		.log_mtts = LOG_MTTS,
		.smac = {2, 0, 0, 0, 0, 9},
	};

	for (unsigned i = 0; i < sizeof(hca.gid_table); i++)
		hca.gid_table[i] = (uint8_t)(i * 7);
	return hca;
}

void fixture_start(struct fixture *f)
{
	struct rn_hw_init_hca hca = init_hca();

	fixture_prepare(f, 0);
	fixture_build(f);
	ck_assert_uint_eq(execute(f, RN_CMD_INIT_HCA, 0, &hca, sizeof(hca)), RN_CMD_OK);
}

void fixture_free(struct fixture *f)
{
	rn_cmd_free(f->cmd);
	rn_context_cache_free(f->context_cache);
	rn_pte_cache_free(f->pte_cache);
	bench_fini(&f->bench);
	free(f->cmd_dma);
	free(f->context_dma);
	free(f->pte_dma);
	free(f->memory.bytes);
	for (unsigned type = 0; type < RN_CONTEXT_TYPES; type++)
		free(f->sram[type].lines);
}

struct rn_hw_cmd *entry_at(struct fixture *f, uint32_t slot)
{
	return (struct rn_hw_cmd *)(void *)(f->memory.bytes + QUEUE_PA +
					    (uint64_t)slot * RN_CMD_BYTES);
}

void ring(struct fixture *f)
{
	rn_fifo_push(f->ports.cmd_ring, &(struct rn_cmd_ring){.queue_pa = QUEUE_PA, .pi = f->pi});
}

uint32_t submit(struct fixture *f, uint8_t opcode, uint32_t modifier, const void *in,
		uint32_t in_bytes)
{
	uint32_t slot = f->pi++ % RN_CMD_QUEUE_ENTRIES;
	uint64_t in_pa = IN_PA + (uint64_t)slot * RN_MAILBOX_BYTES;

	if (in_bytes)
		memcpy(f->memory.bytes + in_pa, in, in_bytes);
	*entry_at(f, slot) = (struct rn_hw_cmd){
		.opcode = opcode,
		.modifier = modifier,
		.in_pa = in_bytes ? in_pa : 0,
		.in_bytes = in_bytes,
		.out_pa = OUT_PA + (uint64_t)slot * 1024,
		.out_bytes = 1024,
		.owner = 1,
	};
	ring(f);
	return slot;
}

uint8_t finish(struct fixture *f, uint32_t slot)
{
	struct rn_event event;

	ck_assert(bench_wait(&f->bench, f->ports.event, 100000));
	rn_fifo_pop(f->ports.event, &event);
	ck_assert_uint_eq(event.type, RN_EQE_COMMAND);
	ck_assert_uint_eq(event.eqn, 0);
	ck_assert_uint_eq(event.number, slot);
	ck_assert_uint_eq(entry_at(f, slot)->owner, 0);
	return entry_at(f, slot)->status;
}

uint8_t execute(struct fixture *f, uint8_t opcode, uint32_t modifier, const void *in,
		uint32_t in_bytes)
{
	return finish(f, submit(f, opcode, modifier, in, in_bytes));
}

void *out_of_last(struct fixture *f)
{
	return f->memory.bytes + OUT_PA + (uint64_t)((f->pi - 1) % RN_CMD_QUEUE_ENTRIES) * 1024;
}

struct rn_hw_qpc *qpc_at(struct fixture *f, uint32_t qpn)
{
	return (struct rn_hw_qpc *)(void *)(f->memory.bytes + QPC_PA +
					    (uint64_t)qpn * RN_QPC_BYTES);
}

struct rn_hw_cqc *cqc_at(struct fixture *f, uint32_t cqn)
{
	return (struct rn_hw_cqc *)(void *)(f->memory.bytes + CQC_PA +
					    (uint64_t)cqn * RN_CQC_BYTES);
}

struct rn_hw_mpt *mpt_at(struct fixture *f, uint32_t index)
{
	return (struct rn_hw_mpt *)(void *)(f->memory.bytes + MPT_PA +
					    (uint64_t)index * RN_MPT_BYTES);
}

const struct note *last_note(struct fixture *f, char who)
{
	for (unsigned i = f->note_count; i-- > 0;)
		if (f->notes[i].who == who)
			return &f->notes[i];
	return NULL;
}

void *acquire(struct fixture *f, unsigned client, uint8_t type, uint32_t number)
{
	struct rn_context_rsp rsp;

	rn_fifo_push(f->context.req[client], &(struct rn_context_req){.op = RN_CONTEXT_ACQUIRE,
								      .type = type,
								      .number = number});
	ck_assert(bench_wait(&f->bench, f->context.rsp[client], 1000));
	rn_fifo_pop(f->context.rsp[client], &rsp);
	ck_assert_uint_eq(rsp.status, RN_CONTEXT_OK);
	return rn_context_line(&f->sram[type], rsp.line);
}

void release(struct fixture *f, unsigned client, uint8_t type, uint32_t number, bool dirty)
{
	rn_fifo_push(f->context.req[client], &(struct rn_context_req){.op = RN_CONTEXT_RELEASE,
								      .type = type,
								      .dirty = dirty,
								      .number = number});
	bench_run(&f->bench, 3);
}
