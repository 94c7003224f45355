#include "cosim/common/dut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

const struct rn_rtl_kind *cosim_kind_find(const char *geometry)
{
	const struct rn_rtl_kind *const *kind = cosim_kinds;

	for (; *kind; kind++)
		if (!strcmp((*kind)->geometry, geometry))
			return *kind;
	fprintf(stderr, "--geometry: no '%s'; there are:", geometry);
	for (kind = cosim_kinds; *kind; kind++)
		fprintf(stderr, " %s (%s)", (*kind)->geometry, (*kind)->params);
	fputc('\n', stderr);
	return NULL;
}

static void set_row(const struct rn_param_desc *row, void *params, double value)
{
	char *at = (char *)params + row->offset;

	switch (row->type) {
	case RN_PARAM_u32:
		memcpy(at, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
		break;
	case RN_PARAM_u64:
		memcpy(at, &(uint64_t){(uint64_t)value}, sizeof(uint64_t));
		break;
	case RN_PARAM_f64:
		memcpy(at, &value, sizeof(value));
		break;
	case RN_PARAM_bool:
		memcpy(at, &(bool){value != 0}, sizeof(bool));
		break;
	}
}

bool cosim_param_set(const struct rn_param_table *table, void *params, const char *key,
		     double value)
{
	for (size_t i = 0; i < table->count; i++) {
		if (strcmp(table->rows[i].key, key) != 0)
			continue;
		set_row(&table->rows[i], params, value);
		return true;
	}
	return false;
}

void cosim_kind_params(const struct rn_rtl_kind *kind, const struct rn_param_table *table,
		       void *params)
{
	const char *text = kind->params;
	char key[64];
	double value;
	int length;

	memset(params, 0, table->struct_bytes);
	rn_params_set_defaults(table, params);
	for (; sscanf(text, " %63[^=]=%lf%n", key, &value, &length) == 2; text += length)
		RN_ASSERT(cosim_param_set(table, params, key, value));
}

static void select_mutant(struct cosim_dut *dut, const char *plusarg)
{
	if (dut->pins.mutant.bits && plusarg && !strncmp(plusarg, "+mutant=", 8))
		rn_rtl_set(&dut->pins.mutant, strtoul(plusarg + 8, NULL, 10));
}

struct cosim_dut *cosim_dut_new(const struct rn_rtl_kind *kind, const char *plusarg, uint32_t seed)
{
	struct cosim_dut *dut = rn_calloc(1, sizeof(*dut));
	const struct rn_rtl_options options = {
		.name = kind->top,
		.plusargs = &plusarg,
		.plusargs_count = plusarg != NULL,
		.seed = seed,
	};

	dut->kind = kind;
	dut->is = rn_rtl_boundary_of(kind->unit);
	rn_rng_init(&dut->rng, seed, "idle wires");
	dut->block = kind->make(&options, &dut->pins);
	select_mutant(dut, plusarg);
	return dut;
}

void cosim_dut_free(struct cosim_dut *dut)
{
	dut->kind->free(dut->block);
	free(dut);
}

static void draw(struct cosim_dut *dut, void *to, size_t bytes)
{
	uint8_t *at = to;

	for (size_t done = 0; done < bytes; done += 8) {
		uint64_t word = rn_rng_next(&dut->rng);

		memcpy(at + done, &word, bytes - done < 8 ? bytes - done : 8);
	}
}

void cosim_dut_put(struct cosim_dut *dut, unsigned port, bool valid, const uint32_t *words)
{
	const struct rn_rtl_port *is = &dut->is->port[port];
	const struct rn_rtl_port_pins *pins = &dut->pins.port[port];
	uint32_t garbage[RN_RTL_MSG_WORDS];

	RN_ASSERT(is->is_input);
	if (!valid) {
		draw(dut, garbage, is->msg->words * sizeof(uint32_t));
		words = garbage;
	}
	rn_rtl_set_bit(&pins->valid, is->idx, valid);
	rn_rtl_set_words(&pins->msg, is->idx * is->msg->bits, is->msg->bits, words);
}

void cosim_dut_put_side(struct cosim_dut *dut, unsigned port, const uint8_t *bytes, size_t count)
{
	const struct rn_rtl_pin *side = &dut->pins.port[port].side;

	if (count > side->bits / 8)
		count = side->bits / 8;
	if (bytes)
		memcpy(side->at, bytes, count);
	else
		draw(dut, side->at, side->bits / 8);
}

void cosim_dut_ready(struct cosim_dut *dut, unsigned port, bool ready)
{
	RN_ASSERT(!dut->is->port[port].is_input);
	rn_rtl_set_bit(&dut->pins.port[port].ready, dut->is->port[port].idx, ready);
}

void cosim_dut_settle(struct cosim_dut *dut, uint64_t cycle)
{
	rn_rtl_set(&dut->pins.clk, 0);
	rn_rtl_set(&dut->pins.cycle, cycle);
	dut->kind->eval(dut->block);
}

bool cosim_dut_takes(const struct cosim_dut *dut, unsigned port)
{
	return rn_rtl_get_bit(&dut->pins.port[port].ready, dut->is->port[port].idx);
}

bool cosim_dut_offers(const struct cosim_dut *dut, unsigned port)
{
	return rn_rtl_get_bit(&dut->pins.port[port].valid, dut->is->port[port].idx);
}

void cosim_dut_get(const struct cosim_dut *dut, unsigned port, uint32_t *words)
{
	const struct rn_rtl_port *is = &dut->is->port[port];

	rn_rtl_get_words(&dut->pins.port[port].msg, is->idx * is->msg->bits, is->msg->bits, words);
}

void cosim_dut_clock(struct cosim_dut *dut)
{
	rn_rtl_set(&dut->pins.clk, 1);
	dut->kind->eval(dut->block);
}

void cosim_dut_reset(struct cosim_dut *dut, const uint32_t *constant)
{
	if (dut->pins.constant.bits)
		rn_rtl_set_words(&dut->pins.constant, 0, dut->pins.constant.bits, constant);
	rn_rtl_set(&dut->pins.rst_n, 0);
	for (unsigned clock = 0; clock < 2; clock++) {
		for (unsigned i = 0; i < dut->is->ports; i++) {
			if (!dut->is->port[i].is_input)
				continue;
			cosim_dut_put(dut, i, false, NULL);
			if (dut->pins.port[i].level.bits)
				rn_rtl_set(&dut->pins.port[i].level, 0);
		}
		cosim_dut_settle(dut, 0);
		cosim_dut_clock(dut);
	}
	rn_rtl_set(&dut->pins.rst_n, 1);
}

bool cosim_dut_has_failed(const struct cosim_dut *dut)
{
	return dut->kind->has_failed(dut->block);
}
