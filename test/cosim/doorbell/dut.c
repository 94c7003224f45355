#include "cosim/doorbell/dut.h"

#include <string.h>

#include "rtl/gen/rn_msg_bits.h"

enum { PORT_STATUS, PORT_WRITE, PORT_READ, PORT_OUT };

void dut_reset(struct cosim_dut *dut, const struct rn_doorbell_identity *identity)
{
	uint32_t words[RN_RTL_MSG_WORDS];

	rn_msg_pack_doorbell_identity(identity, words);
	cosim_dut_reset(dut, words);
}

static void put_inputs(struct cosim_dut *dut, const struct dut_inputs *in)
{
	uint32_t words[RN_RTL_MSG_WORDS];

	rn_msg_pack_mmio_write(&in->write, words);
	cosim_dut_put(dut, PORT_WRITE, in->write_valid, words);
	rn_rtl_set(&dut->pins.port[PORT_WRITE].level, in->write_level);
	rn_msg_pack_mmio_read(&in->read, words);
	cosim_dut_put(dut, PORT_READ, in->read_valid, words);
	cosim_dut_put(dut, PORT_STATUS, in->status_valid, &in->status);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		cosim_dut_ready(dut, PORT_OUT + i, in->ready[i]);
}

static void *message_of(struct dut_outputs *out, unsigned i)
{
	void *const to[OUT_COUNT] = {
		[OUT_RSP] = &out->rsp, [OUT_SQ] = &out->sq, [OUT_BLUEFLAME] = &out->blueflame,
		[OUT_CQ] = &out->cq,   [OUT_RQ] = &out->rq, [OUT_CMD] = &out->cmd,
	};

	return to[i];
}

static void get_outputs(const struct cosim_dut *dut, struct dut_outputs *out)
{
	uint32_t words[RN_RTL_MSG_WORDS];

	memset(out, 0, sizeof(*out));
	out->write_ready = cosim_dut_takes(dut, PORT_WRITE);
	out->read_ready = cosim_dut_takes(dut, PORT_READ);
	out->status_ready = cosim_dut_takes(dut, PORT_STATUS);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		out->valid[i] = cosim_dut_offers(dut, PORT_OUT + i);
		if (!out->valid[i])
			continue;
		cosim_dut_get(dut, PORT_OUT + i, words);
		dut->is->port[PORT_OUT + i].msg->unpack(words, message_of(out, i));
	}
	/* Words are in the host's order, which is little endian. */
	if (out->valid[OUT_BLUEFLAME])
		memcpy(out->blueflame_data, dut->pins.port[PORT_OUT + OUT_BLUEFLAME].side.at,
		       sizeof(out->blueflame_data));
}

static void get_account(const struct cosim_dut *dut, struct dut_outputs *out)
{
	struct rn_doorbell_events events;
	uint32_t words[RN_RTL_MSG_WORDS];
	unsigned i = 0;

	rn_rtl_get_words(&dut->pins.events, 0, dut->pins.events.bits, words);
	rn_msg_unpack_doorbell_events(words, &events);
#define GET_COUNT(name) out->count[i++] = events.name;
	DUT_COUNTERS(GET_COUNT)
	out->is_busy = events.busy_cycles;
	out->stall = (uint8_t)rn_rtl_get(&dut->pins.stall);
	out->is_idle = rn_rtl_get(&dut->pins.idle);
	out->wake_cycles = (uint32_t)rn_rtl_get(&dut->pins.wake);
}

void dut_settle(struct cosim_dut *dut, const struct dut_inputs *in, struct dut_outputs *out)
{
	put_inputs(dut, in);
	cosim_dut_settle(dut, in->cycle);
	get_outputs(dut, out);
	get_account(dut, out);
}
