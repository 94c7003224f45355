/* The tables in host memory of a random run: made up from its seed, so nothing is stored. */
#ifndef RN_TEST_COSIM_PTE_CACHE_TABLES_H
#define RN_TEST_COSIM_PTE_CACHE_TABLES_H

#include "cosim/pte_cache/random.h"

/** Bits that depend on all bits of @value. */
uint64_t tables_mix(uint64_t value);

/** Entry @index of the MPT as it is in memory now. */
struct rn_hw_mpt tables_mpt(const struct random *random, uint64_t index);

#endif
