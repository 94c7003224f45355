#include "cosim/pte_cache/dut.h"

#include <string.h>

#include "base/assert.h"
#include "rtl/gen/rn_msg_bits.h"

static void put_inputs(struct cosim_dut *dut, const struct dut_inputs *in)
{
	for (unsigned i = 0; i < IN_COUNT; i++)
		cosim_dut_put(dut, i, in->valid[i], in->words[i]);
	if (in->data || !in->valid[IN_DMA_RSP])
		cosim_dut_put_side(dut, IN_DMA_RSP, in->valid[IN_DMA_RSP] ? in->data : NULL,
				   DUT_DATA_BYTES);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		cosim_dut_ready(dut, IN_COUNT + i, in->ready[i]);
}

static void get_outputs(const struct cosim_dut *dut, struct dut_outputs *out)
{
	for (unsigned i = 0; i < IN_COUNT; i++)
		out->ready[i] = cosim_dut_takes(dut, i);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		out->valid[i] = cosim_dut_offers(dut, IN_COUNT + i);
		cosim_dut_get(dut, IN_COUNT + i, out->words[i]);
	}
	out->stall = (uint8_t)rn_rtl_get(&dut->pins.stall);
	out->is_idle = rn_rtl_get(&dut->pins.idle);
	out->wake_cycles = (uint32_t)rn_rtl_get(&dut->pins.wake);
}

static void get_events(const struct cosim_dut *dut, struct dut_outputs *out)
{
	const struct rn_msg_desc *desc = &rn_msg_pte_cache_events;
	uint32_t words[RN_RTL_MSG_WORDS];

	rn_rtl_get_words(&dut->pins.events, 0, dut->pins.events.bits, words);
	out->busy_cycles = rn_msg_get(words, desc->field[0].lsb, desc->field[0].bits);
	for (unsigned i = 0; i < DUT_COUNTERS; i++)
		out->counts[i] = rn_msg_get(words, desc->field[1 + i].lsb, desc->field[1 + i].bits);
}

static void get_lookup(const struct cosim_dut *dut, struct dut_outputs *out)
{
	struct rn_pte_cache_lookup lookup;
	uint32_t words[RN_RTL_MSG_WORDS];

	RN_ASSERT(dut->pins.drop_number.bits <= sizeof(out->mtt_drops) * 8);
	rn_rtl_get_words(&dut->pins.lookup, 0, dut->pins.lookup.bits, words);
	rn_msg_unpack_pte_cache_lookup(words, &lookup);
	out->mpt_number = lookup.mpt_number;
	out->mtt_number = lookup.mtt_number;
	out->has_victim = lookup.has_victim;
	out->victim = lookup.victim;
	out->has_mpt_drop = lookup.has_drop;
	out->mpt_drop = lookup.drop_number;
	out->mtt_drop_ways = (uint16_t)rn_rtl_get(&dut->pins.drop_valid);
	memcpy(out->mtt_drops, dut->pins.drop_number.at, dut->pins.drop_number.bits / 8);
}

void dut_settle(struct cosim_dut *dut, const struct dut_inputs *in, struct dut_outputs *out)
{
	put_inputs(dut, in);
	cosim_dut_settle(dut, in->cycle);
	get_outputs(dut, out);
	get_events(dut, out);
	get_lookup(dut, out);
}
