#include "virtual_tsc.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void rn_tsc_roll_add(struct rn_tsc_roll *roll, const struct rn_time_page *page, uint32_t host,
		     uint32_t ordinal)
{
	const struct rn_time_tsc *said = &page->tsc;

	if (roll->count == roll->room) {
		roll->room = roll->room ? 2 * roll->room : 16;
		roll->record = rn_reallocarray(roll->record, roll->room, sizeof(*roll->record));
	}
	roll->record[roll->count++] = (struct rn_tsc_record){
		.host = host,
		.ordinal = ordinal,
		.force = atomic_load(&said->force),
		.unseen = atomic_load(&said->unseen),
		.jumps = atomic_load(&said->jumps),
		.illegals = atomic_load(&said->illegals),
		.traps = atomic_load(&said->traps),
	};
}

void rn_tsc_roll_fini(struct rn_tsc_roll *roll)
{
	free(roll->record);
	*roll = (struct rn_tsc_roll){0};
}

bool rn_tsc_may_be_unseen(const struct rn_tsc_record *record)
{
	if (record->force & RN_TSC_TRAP)
		return false;
	return !(record->force & RN_TSC_REWRITE) || record->unseen;
}

unsigned rn_tsc_roll_unseen(const struct rn_tsc_roll *roll)
{
	unsigned count = 0;

	for (unsigned i = 0; i < roll->count; i++)
		count += rn_tsc_may_be_unseen(&roll->record[i]);
	return count;
}

unsigned rn_tsc_roll_random(const struct rn_tsc_roll *roll)
{
	unsigned count = 0;

	for (unsigned i = 0; i < roll->count; i++)
		count += !(roll->record[i].force & RN_TSC_FIXED_ADDRESSES);
	return count;
}

const char *rn_tsc_unseen_name(unsigned n)
{
	static const char *const names[] = {"generated", "undecoded", "refused", "unhooked"};

	return n < sizeof(names) / sizeof(names[0]) ? names[n] : NULL;
}

bool rn_tsc_mode_find(const char *name, enum rn_tsc_mode *mode)
{
	static const char *const names[] = {
		[RN_TSC_MODE_AUTO] = "auto",
		[RN_TSC_MODE_TRAP] = "trap",
		[RN_TSC_MODE_REWRITE] = "rewrite",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]))
			continue;
		*mode = (enum rn_tsc_mode)i;
		return true;
	}
	return false;
}
