/*
 * Pins of rn_doorbell. DUT_KIND, DUT_CLASS, DUT_HEADER, DUT_GEOMETRY and the DUT_PARAMS, in the order of struct
 * rn_doorbell_params, come from the build; DUT_MUTANTS when the netlist has an input that selects a mutant.
 */
#include "cosim/doorbell/dut.h"

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

/* A message as Verilator holds it, as words. */
#define WORDS(signal) reinterpret_cast<uint32_t *>(&(signal))
#define CONST_WORDS(signal) reinterpret_cast<const uint32_t *>(&(signal))

void edge(Dut *dut)
{
	dut->top->clk_i = 1;
	dut->top->eval();
	dut->top->clk_i = 0;
}

void reset(void *dut, const uint32_t registers[6])
{
	DUT_CLASS &top = *dut_of(dut)->top;
	rn_doorbell_identity identity = {registers[0], registers[1], registers[2],
					 registers[3], registers[4], registers[5]};

	rn_msg_pack_doorbell_identity(&identity, WORDS(top.identity_i));

	top.rst_ni = 0;
	top.cycle_i = 0;
	top.mmio_write_valid_i = 0;
	top.mmio_write_level_i = 0;
	top.mmio_read_valid_i = 0;
	top.status_valid_i = 0;
	for (int i = 0; i < 2; i++) {
		top.eval();
		edge(dut_of(dut));
	}
	top.rst_ni = 1;
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
		dut->top->mutant_i = static_cast<uint16_t>(std::atoi(plusarg + 8));
#endif
	dut->top->clk_i = 0;
	return dut;
}

void free_dut(void *dut)
{
	dut_of(dut)->top->final();
	delete dut_of(dut);
}

void get_outputs(DUT_CLASS &top, dut_outputs *out)
{
	std::memset(static_cast<void *>(out), 0, sizeof(*out));
	out->write_ready = top.mmio_write_ready_o;
	out->read_ready = top.mmio_read_ready_o;
	out->status_ready = top.status_ready_o;
	out->valid[OUT_RSP] = top.mmio_read_rsp_valid_o;
	out->valid[OUT_SQ] = top.sq_ring_valid_o;
	out->valid[OUT_BLUEFLAME] = top.blueflame_valid_o;
	out->valid[OUT_CQ] = top.cq_ring_valid_o;
	out->valid[OUT_RQ] = top.rq_ring_valid_o;
	out->valid[OUT_CMD] = top.cmd_ring_valid_o;
	if (out->valid[OUT_RSP])
		rn_msg_unpack_mmio_read_rsp(CONST_WORDS(top.mmio_read_rsp_o), &out->rsp);
	if (out->valid[OUT_SQ])
		rn_msg_unpack_sq_ring(CONST_WORDS(top.sq_ring_o), &out->sq);
	if (out->valid[OUT_CQ])
		rn_msg_unpack_cq_ring(CONST_WORDS(top.cq_ring_o), &out->cq);
	if (out->valid[OUT_RQ])
		rn_msg_unpack_rq_ring(CONST_WORDS(top.rq_ring_o), &out->rq);
	if (out->valid[OUT_CMD])
		rn_msg_unpack_cmd_ring(CONST_WORDS(top.cmd_ring_o), &out->cmd);
	if (out->valid[OUT_BLUEFLAME]) {
		rn_msg_unpack_blueflame(CONST_WORDS(top.blueflame_o), &out->blueflame);
		/* Words are in the host's order, which is little endian. */
		std::memcpy(out->blueflame_data, CONST_WORDS(top.blueflame_data_o),
			    sizeof(out->blueflame_data));
	}
}

void get_account(DUT_CLASS &top, dut_outputs *out)
{
	rn_doorbell_events events;
	unsigned i = 0;
	uint32_t words[2] = {};

	std::memcpy(words, &top.events_o, sizeof(top.events_o));
	rn_msg_unpack_doorbell_events(words, &events);
#define GET_COUNT(name) out->count[i++] = events.name;
	DUT_COUNTERS(GET_COUNT)
	out->is_busy = events.busy_cycles;
	out->stall = top.stall_o;
	out->is_idle = top.idle_o;
	out->wake_cycles = top.wake_o;
}

void settle(void *dut, const dut_inputs *in, bool is_new, dut_outputs *out)
{
	DUT_CLASS &top = *dut_of(dut)->top;

	top.cycle_i = in->cycle;
	top.mmio_write_valid_i = in->write_valid;
	top.mmio_write_level_i = in->write_level;
	top.mmio_read_valid_i = in->read_valid;
	top.status_valid_i = in->status_valid;
	if (is_new) {
		rn_msg_pack_mmio_write(&in->write, WORDS(top.mmio_write_i));
		rn_msg_pack_mmio_read(&in->read, WORDS(top.mmio_read_i));
		std::memcpy(&top.status_i, &in->status, sizeof(in->status));
	}
	top.mmio_read_rsp_ready_i = in->ready[OUT_RSP];
	top.sq_ring_ready_i = in->ready[OUT_SQ];
	top.blueflame_ready_i = in->ready[OUT_BLUEFLAME];
	top.cq_ring_ready_i = in->ready[OUT_CQ];
	top.rq_ring_ready_i = in->ready[OUT_RQ];
	top.cmd_ring_ready_i = in->ready[OUT_CMD];
	top.eval();
	get_outputs(top, out);
	get_account(top, out);
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

extern "C" const dut_kind DUT_KIND;
const dut_kind DUT_KIND = {
	DUT_GEOMETRY, {DUT_PARAMS}, make,	free_dut,	reset,
	settle,	      clock,	    has_failed, write_coverage,
};
