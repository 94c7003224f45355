#include "nic/unit.h"

#include <string.h>

#include "base/assert.h"

static const char *const names[RN_UNITS] = {
	[RN_UNIT_DOORBELL] = "doorbell",
	[RN_UNIT_PTE_CACHE] = "pte_cache",
};

const char *const rn_unit_mode_names[RN_UNIT_MODES + 1] = {
	[RN_UNIT_MODEL] = "model",
	[RN_UNIT_RTL] = "rtl",
	[RN_UNIT_LOCKSTEP] = "lockstep",
};

const char *rn_unit_name(enum rn_unit unit)
{
	RN_ASSERT(unit < RN_UNITS);
	return names[unit];
}

enum rn_unit rn_unit_find(const char *name)
{
	unsigned unit = 0;

	while (unit < RN_UNITS && strcmp(names[unit], name) != 0)
		unit++;
	return (enum rn_unit)unit;
}
