/* Reads register ID of a Verilated doorbell unit through its adapter, and says what came after how many cycles. */
#include <cinttypes>
#include <cstdio>

#include "systemc/cosim/rtl.h"

extern "C" const rn_rtl_kind rn_kind_probe;

enum { PORT_STATUS, PORT_WRITE, PORT_READ, PORT_RSP, CYCLES = 1000 };

static void clock(void *block, const rn_rtl_pins *pins)
{
	rn_rtl_set(&pins->clk, 0);
	rn_kind_probe.eval(block);
	rn_rtl_set(&pins->clk, 1);
	rn_kind_probe.eval(block);
	rn_rtl_set(&pins->clk, 0);
}

static void begin(void *block, const rn_rtl_pins *pins)
{
	const rn_mmio_read read = {0, 4, 7};
	uint32_t words[RN_RTL_MSG_WORDS];

	/* Nobody else has driven them, and they hold anything. */
	rn_rtl_set(&pins->port[PORT_STATUS].valid, 0);
	rn_rtl_set(&pins->port[PORT_WRITE].valid, 0);
	rn_rtl_set(&pins->port[PORT_WRITE].level, 0);
	rn_rtl_set(&pins->port[PORT_READ].valid, 0);
	rn_rtl_set(&pins->rst_n, 0);
	for (unsigned i = 0; i < 2; i++)
		clock(block, pins);
	rn_rtl_set(&pins->rst_n, 1);
	rn_msg_pack_mmio_read(&read, words);
	rn_rtl_set_words(&pins->port[PORT_READ].msg, 0, RN_MSG_MMIO_READ_BITS, words);
	rn_rtl_set(&pins->port[PORT_READ].valid, 1);
	rn_rtl_set(&pins->port[PORT_RSP].ready, 1);
}

int main()
{
	const rn_rtl_options options = {"probe", false, nullptr, 0, 1};
	uint32_t words[RN_RTL_MSG_WORDS];
	rn_rtl_pins pins;
	void *block = rn_kind_probe.make(&options, &pins);
	uint64_t cycle = 1;

	begin(block, &pins);
	for (; cycle < CYCLES; cycle++) {
		rn_rtl_set(&pins.cycle, cycle);
		rn_kind_probe.eval(block);
		if (rn_rtl_get(&pins.port[PORT_RSP].valid))
			break;
		clock(block, &pins);
	}
	rn_rtl_get_words(&pins.port[PORT_RSP].msg, 0, RN_MSG_MMIO_READ_RSP_BITS, words);
	rn_mmio_read_rsp rsp;
	rn_msg_unpack_mmio_read_rsp(words, &rsp);
	std::printf("%s %s: 0x%" PRIx64 " after %" PRIu64 " cycles\n", rn_kind_probe.top,
		    rn_kind_probe.digest, static_cast<uint64_t>(rsp.value), cycle - 1);
	rn_kind_probe.free(block);
	return 0;
}
