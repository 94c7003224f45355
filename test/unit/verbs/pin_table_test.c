/* The table of pinned runs against a plain array. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "run_suite.h"
#include "verbs/maps.h"
#include "verbs/pin_table.h"

#define PAGES 200u
#define NONE UINT64_MAX

static struct rn_pin_table table;
static uint64_t reference[PAGES]; /* arena offset of page n, or NONE */

static void clear(void)
{
	memset(reference, 0xff, sizeof(reference));
}

static void fini(void)
{
	rn_pin_table_fini(&table);
}

static void insert(uint64_t first, uint64_t pages, uint64_t offset)
{
	ck_assert(rn_pin_table_reserve(&table, 2));
	rn_pin_table_remove(&table, first * RN_PAGE_BYTES, pages);
	rn_pin_table_insert(&table, (struct rn_pin_run){first * RN_PAGE_BYTES, offset, pages});
	for (uint64_t i = 0; i < pages; i++)
		reference[first + i] = offset + i * RN_PAGE_BYTES;
}

static void remove_pages(uint64_t first, uint64_t pages)
{
	ck_assert(rn_pin_table_reserve(&table, 1));
	rn_pin_table_remove(&table, first * RN_PAGE_BYTES, pages);
	for (uint64_t i = 0; i < pages; i++)
		reference[first + i] = NONE;
}

static void compare(void)
{
	for (uint64_t i = 0; i < PAGES; i++)
		ck_assert_uint_eq(rn_pin_table_find(&table, i * RN_PAGE_BYTES), reference[i]);
	for (size_t i = 1; i < table.count; i++)
		ck_assert_uint_ge(table.run[i].va,
				  table.run[i - 1].va + table.run[i - 1].pages * RN_PAGE_BYTES);
}

START_TEST(neighbours_that_continue_each_other_are_one_run)
{
	insert(10, 5, 0);
	insert(20, 5, 0x100000);
	ck_assert_uint_eq(table.count, 2);
	insert(15, 5, 5 * RN_PAGE_BYTES);
	ck_assert_uint_eq(table.count, 2); /* joins the first, not the second */
	remove_pages(12, 1);
	ck_assert_uint_eq(table.count, 3);
	compare();
}
END_TEST

START_TEST(random_changes_agree_with_an_array)
{
	struct rn_rng rng;

	rn_rng_init(&rng, (uint64_t)_i, "pin_table");
	for (unsigned step = 0; step < 2000; step++) {
		const uint64_t first = rn_rng_below(&rng, PAGES);
		const uint64_t pages = 1 + rn_rng_below(&rng, PAGES - first);

		if (rn_rng_below(&rng, 2))
			insert(first, pages, rn_rng_below(&rng, 1000) * RN_PAGE_BYTES);
		else
			remove_pages(first, pages);
		compare();
	}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("pin_table");

	tcase_add_checked_fixture(tc, clear, fini);
	tcase_add_test(tc, neighbours_that_continue_each_other_are_one_run);
	tcase_add_loop_test(tc, random_changes_agree_with_an_array, 0, 5);
	return run_suite(tc, "pin_table");
}
