/* The builds of the RTL in this program (dut.cc, once each); the list ends with NULL. */
#ifndef RN_TEST_COSIM_DOORBELL_KINDS_H
#define RN_TEST_COSIM_DOORBELL_KINDS_H

#include <stddef.h>

#include "cosim/doorbell/dut.h"

#ifdef KIND_ONLY
extern const struct dut_kind KIND_ONLY;
static const struct dut_kind *const kinds[] = {&KIND_ONLY, NULL};
#elif defined(KIND_COVER)
extern const struct dut_kind dut_doorbell_cover_stress, dut_doorbell_cover_shipped;
static const struct dut_kind *const kinds[] = {&dut_doorbell_cover_stress,
					       &dut_doorbell_cover_shipped, NULL};
#else
extern const struct dut_kind dut_doorbell_stress, dut_doorbell_shipped, dut_doorbell_odd;
static const struct dut_kind *const kinds[] = {&dut_doorbell_stress, &dut_doorbell_shipped,
					       &dut_doorbell_odd, NULL};
#endif

#endif
