/*
 * The counters of the units' C blocks, for frames that stand in their place.
 */
#ifndef RN_SYSTEMC_COSIM_COUNTERS_H
#define RN_SYSTEMC_COSIM_COUNTERS_H

#include <stddef.h>

#include "nic/unit.h"
#include "sim/stats.h"

/** Rows of @unit's counters, *@count of them; their values are an array of as many uint64_t. */
const struct rn_counter_desc *rn_cosim_counters(enum rn_unit unit, size_t *count);

#endif
