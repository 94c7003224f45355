/*
 * Pins of Verilated classes, and the boundaries of the units that exist in SystemVerilog.
 */
#include "systemc/cosim/rtl.h"

#include "base/assert.h"
#include "base/bits.h"

/* Bytes of a signal in a Verilated class. */
static size_t pin_bytes(const struct rn_rtl_pin *pin)
{
	if (pin->bits <= 8)
		return 1;
	if (pin->bits <= 16)
		return 2;
	return pin->bits <= 32 ? 4 : pin->bits <= 64 ? 8 : (size_t)rn_div_ceil(pin->bits, 32) * 4;
}

uint64_t rn_rtl_get(const struct rn_rtl_pin *pin)
{
	uint64_t value = 0;

	RN_ASSERT(pin->bits && pin->bits <= 64);
	memcpy(&value, pin->at, pin_bytes(pin));
	return value;
}

void rn_rtl_set(const struct rn_rtl_pin *pin, uint64_t value)
{
	RN_ASSERT(pin->bits && pin->bits <= 64);
	memcpy(pin->at, &value, pin_bytes(pin));
}

bool rn_rtl_get_bit(const struct rn_rtl_pin *pin, uint32_t idx)
{
	return rn_rtl_get(pin) >> idx & 1;
}

void rn_rtl_set_bit(const struct rn_rtl_pin *pin, uint32_t idx, bool value)
{
	uint64_t all = rn_rtl_get(pin);

	rn_rtl_set(pin, (all & ~(UINT64_C(1) << idx)) | (uint64_t)value << idx);
}

/* The pin's bits as words; a small one in @small. */
static uint32_t *words_of(const struct rn_rtl_pin *pin, uint32_t small[2])
{
	if (pin->bits > 16)
		return pin->at;
	small[0] = (uint32_t)rn_rtl_get(pin);
	return small;
}

void rn_rtl_get_words(const struct rn_rtl_pin *pin, uint32_t lsb, uint32_t bits, uint32_t *words)
{
	uint32_t small[2];
	const uint32_t *from = words_of(pin, small);

	RN_ASSERT(lsb + bits <= pin->bits);
	if (lsb % 32 == 0 && bits % 32 == 0) {
		memcpy(words, from + lsb / 32, bits / 8);
		return;
	}
	for (uint32_t done = 0; done < bits; done += 32)
		words[done / 32] =
			(uint32_t)rn_msg_get(from, lsb + done, bits - done < 32 ? bits - done : 32);
}

static void set_part(uint32_t *words, uint32_t lsb, uint32_t bits, uint32_t value)
{
	for (uint32_t done = 0; done < bits;) {
		uint32_t word = (lsb + done) / 32, shift = (lsb + done) % 32;
		uint32_t now = bits - done < 32 - shift ? bits - done : 32 - shift;
		uint32_t mask = (now < 32 ? (1u << now) - 1 : UINT32_MAX) << shift;

		words[word] = (words[word] & ~mask) | (value >> done << shift & mask);
		done += now;
	}
}

void rn_rtl_set_words(const struct rn_rtl_pin *pin, uint32_t lsb, uint32_t bits,
		      const uint32_t *words)
{
	uint32_t small[2];
	uint32_t *to = words_of(pin, small);

	RN_ASSERT(lsb + bits <= pin->bits);
	if (lsb % 32 == 0 && bits % 32 == 0)
		memcpy(to + lsb / 32, words, bits / 8);
	else
		for (uint32_t done = 0; done < bits; done += 32)
			set_part(to, lsb + done, bits - done < 32 ? bits - done : 32,
				 words[done / 32]);
	if (to == small)
		rn_rtl_set(pin, small[0]);
}

#define PORT(is_input_, name_, idx_, msg_, role_)                                                  \
	{                                                                                          \
		.name = #name_, .is_input = (is_input_), .role = RN_RTL_##role_, .idx = (idx_),    \
		.msg = &rn_msg_##msg_                                                              \
	}
#define IN(name, idx, msg, role) PORT(true, name, idx, msg, role)
#define OUT(name, idx, msg, role) PORT(false, name, idx, msg, role)

/* In the order of struct rn_pte_cache_ports. */
static const struct rn_rtl_port pte_cache_ports[] = {
	IN(req0, 0, pte_req, PLAIN),
	IN(req1, 1, pte_req, PLAIN),
	IN(release, 0, pte_release, PLAIN),
	IN(inval, 0, pte_inval, PLAIN),
	IN(base, 0, pte_base, PLAIN),
	IN(dma_rsp, 0, dma_rsp, DMA_RSP),
	OUT(rsp0, 0, pte_rsp, PLAIN),
	OUT(rsp1, 1, pte_rsp, PLAIN),
	OUT(inval_done, 0, pte_inval_done, PLAIN),
	OUT(dma_req, 0, dma_req, DMA_REQ),
};

/* In the order of struct rn_doorbell_ports. */
static const struct rn_rtl_port doorbell_ports[] = {
	IN(status, 0, hca_status, PLAIN),   IN(mmio_write, 0, mmio_write, MMIO_WRITE),
	IN(mmio_read, 0, mmio_read, PLAIN), OUT(mmio_read_rsp, 0, mmio_read_rsp, PLAIN),
	OUT(sq_ring, 0, sq_ring, PLAIN),    OUT(blueflame, 0, blueflame, BLUEFLAME),
	OUT(cq_ring, 0, cq_ring, PLAIN),    OUT(rq_ring, 0, rq_ring, PLAIN),
	OUT(cmd_ring, 0, cmd_ring, PLAIN),
};

static const struct rn_rtl_boundary boundaries[RN_UNITS] = {
	[RN_UNIT_DOORBELL] =
		{
			.unit = RN_UNIT_DOORBELL,
			.port = doorbell_ports,
			.ports = RN_ARRAY_LEN(doorbell_ports),
			.events = &rn_msg_doorbell_events,
			.constant = &rn_msg_doorbell_identity,
		},
	[RN_UNIT_PTE_CACHE] =
		{
			.unit = RN_UNIT_PTE_CACHE,
			.port = pte_cache_ports,
			.ports = RN_ARRAY_LEN(pte_cache_ports),
			.events = &rn_msg_pte_cache_events,
			.lookup = &rn_msg_pte_cache_lookup,
		},
};

const struct rn_rtl_boundary *rn_rtl_boundary_of(enum rn_unit unit)
{
	RN_ASSERT(unit < RN_UNITS);
	return &boundaries[unit];
}
