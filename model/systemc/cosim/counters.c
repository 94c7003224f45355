#include "systemc/cosim/counters.h"

#include "base/bits.h"
#include "nic/doorbell/internal.h"
#include "nic/pte_cache/state.h"

#define DOORBELL_ROW(field, unit, help) RN_COUNTER_ROW(struct doorbell_counters, field, unit, help)
static const struct rn_counter_desc doorbell_descs[] = {DOORBELL_COUNTERS(DOORBELL_ROW)};

#define PTE_CACHE_ROW(field, unit, help) RN_COUNTER_ROW(struct rn_pte_counters, field, unit, help)
static const struct rn_counter_desc pte_cache_descs[] = {RN_PTE_CACHE_COUNTERS(PTE_CACHE_ROW)};

_Static_assert(sizeof(struct doorbell_counters) == RN_ARRAY_LEN(doorbell_descs) * sizeof(uint64_t),
	       "nothing but counters");
_Static_assert(sizeof(struct rn_pte_counters) == RN_ARRAY_LEN(pte_cache_descs) * sizeof(uint64_t),
	       "nothing but counters");

const struct rn_counter_desc *rn_cosim_counters(enum rn_unit unit, size_t *count)
{
	if (unit == RN_UNIT_DOORBELL) {
		*count = RN_ARRAY_LEN(doorbell_descs);
		return doorbell_descs;
	}
	*count = RN_ARRAY_LEN(pte_cache_descs);
	return pte_cache_descs;
}
