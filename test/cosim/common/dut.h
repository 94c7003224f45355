/*
 * A Verilated block in a bench: the kind that rnicsim's frames use (systemc/cosim/rtl.h), driven pin by pin. What an
 * input's wires hold while it is not valid is drawn anew in every cycle, and so is what registers hold before a reset.
 */
#ifndef RN_TEST_COSIM_COMMON_DUT_H
#define RN_TEST_COSIM_COMMON_DUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "sim/param.h"
#include "systemc/cosim/rtl.h"

struct cosim_dut {
	const struct rn_rtl_kind *kind;
	const struct rn_rtl_boundary *is;
	void *block;
	struct rn_rtl_pins pins;
	struct rn_rng rng;
};

/** The kinds of this program, the first one the default; ends with NULL. Made by the build. */
extern const struct rn_rtl_kind *const cosim_kinds[];

/** The kind of this name; NULL and a message on stderr when there is none. */
const struct rn_rtl_kind *cosim_kind_find(const char *geometry);

/** Set one parameter; false when there is none of this name. */
bool cosim_param_set(const struct rn_param_table *table, void *params, const char *key,
		     double value);

/** Fill @params, described by @table, with what @kind was built with. */
void cosim_kind_params(const struct rn_rtl_kind *kind, const struct rn_param_table *table,
		       void *params);

/** Not yet reset. @plusarg: "+fault=N", "+mutant=N" or NULL; @seed: of all that is drawn. */
struct cosim_dut *cosim_dut_new(const struct rn_rtl_kind *kind, const char *plusarg, uint32_t seed);
void cosim_dut_free(struct cosim_dut *dut);

/** Two clocks of reset; what memories hold stays. @constant: words of the constant input, or NULL. */
void cosim_dut_reset(struct cosim_dut *dut, const uint32_t *constant);

/** Drive input @port (its number in the boundary); @words of the message when it is @valid. */
void cosim_dut_put(struct cosim_dut *dut, unsigned port, bool valid, const uint32_t *words);
void cosim_dut_ready(struct cosim_dut *dut, unsigned port, bool ready);

/** Bytes beside the message of input @port; NULL: anything. */
void cosim_dut_put_side(struct cosim_dut *dut, unsigned port, const uint8_t *bytes, size_t count);

/** Let the pins take effect in @cycle, before the edge that ends it. */
void cosim_dut_settle(struct cosim_dut *dut, uint64_t cycle);
bool cosim_dut_takes(const struct cosim_dut *dut, unsigned port);
bool cosim_dut_offers(const struct cosim_dut *dut, unsigned port);
void cosim_dut_get(const struct cosim_dut *dut, unsigned port, uint32_t *words);
void cosim_dut_clock(struct cosim_dut *dut);

/** Whether an assertion has failed. */
bool cosim_dut_has_failed(const struct cosim_dut *dut);

#endif
