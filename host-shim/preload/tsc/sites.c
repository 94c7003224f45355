#include "preload/tsc/sites.h"

#include <stdatomic.h>

#include "preload/tsc/raw.h"

#define FIRST_SLOTS 512u /* powers of two */

/* Open addressing; a larger table replaces the old one, which a handler may still read. */
struct table {
	size_t slots, used;
	_Atomic uint64_t slot[]; /* address << 8 | bytes */
};

static struct table *_Atomic table;

static size_t first_slot(const struct table *in, uintptr_t at)
{
	return (size_t)((at * 0x9e3779b97f4a7c15u) >> 32) & (in->slots - 1);
}

static void insert(struct table *in, uint64_t value)
{
	size_t i = first_slot(in, (uintptr_t)(value >> 8));

	while (atomic_load(&in->slot[i]) && atomic_load(&in->slot[i]) >> 8 != value >> 8)
		i = (i + 1) & (in->slots - 1);
	in->used += !atomic_load(&in->slot[i]);
	atomic_store(&in->slot[i], value);
}

static bool grow(const struct table *old)
{
	const size_t slots = old ? 2 * old->slots : FIRST_SLOTS;
	struct table *fresh = rn_raw_alloc(sizeof(*fresh) + slots * sizeof(fresh->slot[0]));

	if (!fresh)
		return false;
	fresh->slots = slots;
	for (size_t i = 0; old && i < old->slots; i++)
		if (atomic_load(&old->slot[i]))
			insert(fresh, atomic_load(&old->slot[i]));
	atomic_store(&table, fresh);
	return true;
}

bool rn_tsc_sites_add(uintptr_t at, uint8_t bytes)
{
	struct table *in = atomic_load(&table);

	if ((!in || 2 * in->used >= in->slots) && !grow(in))
		return false;
	insert(atomic_load(&table), (uint64_t)at << 8 | bytes);
	return true;
}

uint8_t rn_tsc_sites_bytes(uintptr_t at)
{
	struct table *in = atomic_load(&table);

	if (!in)
		return 0;
	for (size_t i = first_slot(in, at);; i = (i + 1) & (in->slots - 1)) {
		const uint64_t value = atomic_load(&in->slot[i]);

		if (!value || value >> 8 == at)
			return (uint8_t)value;
	}
}
