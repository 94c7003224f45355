/*
 * Pins of rn_pte_cache. DUT_CLASS, DUT_HEADER, DUT_GEOMETRY and the DUT_PARAMS, in the order of struct
 * rn_pte_cache_params, come from the build; DUT_MUTANTS when the netlist has an input that selects a mutant.
 */
#include "cosim/pte_cache/dut.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <verilated.h>
#include <verilated_cov.h>

#include DUT_HEADER

#include "rtl/gen/rn_msg_bits.h"

namespace
{

struct Dut {
	VerilatedContext context;
	std::unique_ptr<DUT_CLASS> top;
};

Dut *dut_of(void *dut)
{
	return static_cast<Dut *>(dut);
}

template <typename Signal> void put(Signal &signal, const dut_inputs *in, dut_in port)
{
	if (in->is_new[port])
		std::memcpy(&signal, in->words[port], sizeof(signal));
}

void edge(Dut *dut)
{
	dut->top->clk_i = 1;
	dut->top->eval();
	dut->top->clk_i = 0;
}

void *make(const char *plusarg)
{
	Dut *dut = new Dut;
	const char *args[] = {"dut", plusarg};

	dut->context.commandArgs(plusarg ? 2 : 1, args);
	dut->context.fatalOnError(false);
	dut->top = std::make_unique<DUT_CLASS>(&dut->context);
#ifdef DUT_MUTANTS
	if (plusarg && !std::strncmp(plusarg, "+mutant=", 8))
		dut->top->mutant_i = std::atoi(plusarg + 8);
#endif
	dut->top->clk_i = 0;
	dut->top->rst_ni = 0;
	for (int i = 0; i < 2; i++) {
		dut->top->eval();
		edge(dut);
	}
	dut->top->rst_ni = 1;
	return dut;
}

void free_dut(void *dut)
{
	dut_of(dut)->top->final();
	delete dut_of(dut);
}

void put_inputs(DUT_CLASS &top, const dut_inputs *in)
{
	top.cycle_i = in->cycle;
	top.req_valid_i = in->valid[IN_REQ0] | in->valid[IN_REQ1] << 1;
	top.release_valid_i = in->valid[IN_RELEASE];
	top.inval_valid_i = in->valid[IN_INVAL];
	top.base_valid_i = in->valid[IN_BASE];
	top.dma_rsp_valid_i = in->valid[IN_DMA_RSP];
	if (in->is_new[IN_REQ0])
		std::memcpy(&top.req_i[0], in->words[IN_REQ0], 24);
	if (in->is_new[IN_REQ1])
		std::memcpy(&top.req_i[6], in->words[IN_REQ1], 24);
	put(top.release_i, in, IN_RELEASE);
	put(top.inval_i, in, IN_INVAL);
	put(top.base_i, in, IN_BASE);
	put(top.dma_rsp_i, in, IN_DMA_RSP);
	/* Words are in the host's order, which is little endian. */
	if (in->data)
		std::memcpy(&top.dma_rsp_data_i, in->data, sizeof(top.dma_rsp_data_i));
	top.rsp_ready_i = in->ready[OUT_RSP0] | in->ready[OUT_RSP1] << 1;
	top.inval_done_ready_i = in->ready[OUT_DONE];
	top.dma_req_ready_i = in->ready[OUT_DMA_REQ];
}

void get_rsp(DUT_CLASS &top, unsigned client, uint32_t *words)
{
	const uint32_t *from = &top.rsp_o[0];

	for (unsigned i = 0; i < 5; i++)
		words[i] = (uint32_t)rn_msg_get(from, 136 * client + 32 * i, i < 4 ? 32 : 8);
}

void get_outputs(DUT_CLASS &top, dut_outputs *out)
{
	out->ready[IN_REQ0] = top.req_ready_o & 1;
	out->ready[IN_REQ1] = top.req_ready_o >> 1 & 1;
	out->ready[IN_RELEASE] = top.release_ready_o;
	out->ready[IN_INVAL] = top.inval_ready_o;
	out->ready[IN_BASE] = top.base_ready_o;
	out->ready[IN_DMA_RSP] = top.dma_rsp_ready_o;
	out->valid[OUT_RSP0] = top.rsp_valid_o & 1;
	out->valid[OUT_RSP1] = top.rsp_valid_o >> 1 & 1;
	out->valid[OUT_DONE] = top.inval_done_valid_o;
	out->valid[OUT_DMA_REQ] = top.dma_req_valid_o;
	if (out->valid[OUT_RSP0])
		get_rsp(top, 0, out->words[OUT_RSP0]);
	if (out->valid[OUT_RSP1])
		get_rsp(top, 1, out->words[OUT_RSP1]);
	std::memcpy(out->words[OUT_DONE], &top.inval_done_o, sizeof(top.inval_done_o));
	std::memcpy(out->words[OUT_DMA_REQ], &top.dma_req_o, sizeof(top.dma_req_o));
	out->stall = top.stall_o;
	out->is_idle = top.idle_o;
	out->wake_cycles = top.wake_o;
}

void get_events(DUT_CLASS &top, dut_outputs *out)
{
	const rn_msg_desc *desc = &rn_msg_pte_cache_events;
	uint32_t words[4] = {};

	std::memcpy(words, &top.events_o, sizeof(top.events_o));
	out->busy_cycles = rn_msg_get(words, desc->field[0].lsb, desc->field[0].bits);
	for (unsigned i = 0; i < DUT_COUNTERS; i++)
		out->counts[i] = rn_msg_get(words, desc->field[1 + i].lsb, desc->field[1 + i].bits);
}

void get_lookup(DUT_CLASS &top, dut_outputs *out)
{
	rn_pte_cache_lookup lookup;

	static_assert(sizeof(top.drop_number_o) <= sizeof(out->mtt_drops), "too many ways");
	rn_msg_pte_cache_lookup.unpack(&top.lookup_o[0], &lookup);
	out->mpt_number = lookup.mpt_number;
	out->mtt_number = lookup.mtt_number;
	out->has_victim = lookup.has_victim;
	out->victim = lookup.victim;
	out->has_mpt_drop = lookup.has_drop;
	out->mpt_drop = lookup.drop_number;
	out->mtt_drop_ways = top.drop_valid_o;
	std::memcpy(out->mtt_drops, &top.drop_number_o, sizeof(top.drop_number_o));
}

void settle(void *dut, const dut_inputs *in, dut_outputs *out)
{
	DUT_CLASS &top = *dut_of(dut)->top;

	put_inputs(top, in);
	top.eval();
	get_outputs(top, out);
	get_events(top, out);
	get_lookup(top, out);
}

void clock(void *dut)
{
	edge(dut_of(dut));
}

bool has_failed(void *dut)
{
	return dut_of(dut)->context.gotError();
}

void write_coverage(void *dut, const char *path)
{
#ifdef DUT_COVERAGE
	dut_of(dut)->context.coveragep()->write(path);
#else
	(void)dut;
	(void)path;
#endif
}

} // namespace

const dut_kind DUT_KIND = {
	DUT_GEOMETRY, {DUT_PARAMS}, make, free_dut, settle, clock, has_failed, write_coverage,
};
