/* The builds of the RTL in this program (dut.cc, once each). */
#ifndef RN_TEST_COSIM_PTE_CACHE_KINDS_H
#define RN_TEST_COSIM_PTE_CACHE_KINDS_H

#include "cosim/pte_cache/dut.h"

#ifdef KIND_ONLY
extern const struct dut_kind KIND_ONLY;
static const struct dut_kind *const kinds[] = {&KIND_ONLY};
#else
extern const struct dut_kind dut_stress, dut_shipped, dut_corner;
static const struct dut_kind *const kinds[] = {&dut_stress, &dut_shipped, &dut_corner};
#endif

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

#endif
