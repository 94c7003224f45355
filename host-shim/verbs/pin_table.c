/*
 * Sorted array with binary search. Neighbours that continue each other in both memory and arena are one run.
 */
#include "verbs/pin_table.h"

#include <stdlib.h>
#include <string.h>

#include "verbs/maps.h"

static uint64_t run_end(const struct rn_pin_run *run)
{
	return run->va + run->pages * RN_PAGE_BYTES;
}

void rn_pin_table_fini(struct rn_pin_table *table)
{
	free(table->run);
	*table = (struct rn_pin_table){0};
}

bool rn_pin_table_reserve(struct rn_pin_table *table, size_t more)
{
	size_t capacity = table->capacity ? table->capacity : 64;
	struct rn_pin_run *run;

	while (capacity < table->count + more)
		capacity *= 2;
	if (capacity == table->capacity)
		return true;
	run = realloc(table->run, capacity * sizeof(*run));
	if (!run)
		return false;
	table->run = run;
	table->capacity = capacity;
	return true;
}

/* Index of the first run that ends above @va. */
static size_t lower(const struct rn_pin_table *table, uint64_t va)
{
	size_t lo = 0, hi = table->count;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (run_end(&table->run[mid]) > va)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool continues(const struct rn_pin_run *a, const struct rn_pin_run *b)
{
	return run_end(a) == b->va && a->offset + a->pages * RN_PAGE_BYTES == b->offset;
}

static void delete_at(struct rn_pin_table *table, size_t index)
{
	memmove(&table->run[index], &table->run[index + 1],
		(table->count - index - 1) * sizeof(table->run[0]));
	table->count--;
}

static void insert_at(struct rn_pin_table *table, size_t index, struct rn_pin_run run)
{
	memmove(&table->run[index + 1], &table->run[index],
		(table->count - index) * sizeof(table->run[0]));
	table->run[index] = run;
	table->count++;
}

void rn_pin_table_insert(struct rn_pin_table *table, struct rn_pin_run run)
{
	size_t index = lower(table, run.va);

	if (index > 0 && continues(&table->run[index - 1], &run)) {
		table->run[--index].pages += run.pages;
	} else {
		insert_at(table, index, run);
	}
	if (index + 1 < table->count && continues(&table->run[index], &table->run[index + 1])) {
		table->run[index].pages += table->run[index + 1].pages;
		delete_at(table, index + 1);
	}
}

void rn_pin_table_remove(struct rn_pin_table *table, uint64_t va, uint64_t pages)
{
	const uint64_t end = va + pages * RN_PAGE_BYTES;
	size_t index = lower(table, va);

	while (index < table->count && table->run[index].va < end) {
		struct rn_pin_run *run = &table->run[index];
		const struct rn_pin_run old = *run;
		const uint64_t old_end = run_end(&old);

		if (old.va < va && old_end > end) {
			run->pages = (va - old.va) / RN_PAGE_BYTES;
			insert_at(table, index + 1,
				  (struct rn_pin_run){.va = end,
						      .offset = old.offset + (end - old.va),
						      .pages = (old_end - end) / RN_PAGE_BYTES});
			return;
		}
		if (old.va < va) {
			run->pages = (va - old.va) / RN_PAGE_BYTES;
			index++;
		} else if (old_end > end) {
			run->va = end;
			run->offset += end - old.va;
			run->pages = (old_end - end) / RN_PAGE_BYTES;
			return;
		} else {
			delete_at(table, index);
		}
	}
}

uint64_t rn_pin_table_find(const struct rn_pin_table *table, uint64_t va)
{
	const size_t index = lower(table, va);

	if (index == table->count || table->run[index].va > va)
		return UINT64_MAX;
	return table->run[index].offset + (va - table->run[index].va);
}
