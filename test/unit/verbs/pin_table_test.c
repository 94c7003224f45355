/* The table of pinned pages against a plain array, and how much of it is kept. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "run_suite.h"
#include "verbs/maps.h"
#include "verbs/pin_table.h"

#define PAGES 1500u /* three leaves */
#define FIRST 300u
#define NONE UINT64_MAX

static struct rn_pin_table table;
static uint64_t reference[PAGES]; /* arena offset of page FIRST + n, or NONE */

static void clear(void)
{
	memset(reference, 0xff, sizeof(reference));
}

static void fini(void)
{
	rn_pin_table_fini(&table);
}

static uint64_t va_of(uint64_t n)
{
	return (FIRST + n) * RN_PAGE_BYTES;
}

static void set(uint64_t first, uint64_t pages, uint64_t offset)
{
	ck_assert(rn_pin_table_reserve(&table, va_of(first), pages));
	rn_pin_table_set(&table, va_of(first), offset, pages);
	for (uint64_t i = 0; i < pages; i++)
		reference[first + i] = offset + i * RN_PAGE_BYTES;
}

static void forget(uint64_t first, uint64_t pages)
{
	rn_pin_table_clear(&table, va_of(first), pages);
	for (uint64_t i = 0; i < pages; i++)
		reference[first + i] = NONE;
}

static void compare(void)
{
	uint64_t count = 0, wrong = 0;

	for (uint64_t i = 0; i < PAGES; i++) {
		wrong += rn_pin_table_find(&table, va_of(i)) != reference[i];
		count += reference[i] != NONE;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(table.count, count);
}

START_TEST(random_changes_agree_with_an_array)
{
	struct rn_rng rng;

	rn_rng_init(&rng, (uint64_t)_i, "pin_table");
	for (unsigned step = 0; step < 1000; step++) {
		const uint64_t first = rn_rng_below(&rng, PAGES);
		const uint64_t pages = 1 + rn_rng_below(&rng, PAGES - first);

		if (rn_rng_below(&rng, 2))
			set(first, pages, rn_rng_below(&rng, 1000) * RN_PAGE_BYTES);
		else
			forget(first, pages);
		compare();
	}
}
END_TEST

START_TEST(the_ends_of_the_address_space_have_their_pages)
{
	const uint64_t last = (UINT64_C(1) << 48) - RN_PAGE_BYTES;

	ck_assert(rn_pin_table_reserve(&table, 0, 1));
	ck_assert(rn_pin_table_reserve(&table, last, 1));
	rn_pin_table_set(&table, 0, 0, 1);
	rn_pin_table_set(&table, last, 5 * RN_PAGE_BYTES, 1);
	ck_assert_uint_eq(rn_pin_table_find(&table, 0), 0);
	ck_assert_uint_eq(rn_pin_table_find(&table, last), 5 * RN_PAGE_BYTES);
	ck_assert_uint_eq(rn_pin_table_find(&table, last + RN_PAGE_BYTES), NONE);
}
END_TEST

START_TEST(what_is_empty_is_given_back)
{
	set(0, PAGES, 0);
	ck_assert_uint_eq(table.nodes,
			  3 + 4); /* a path of three, and leaves of 512 pages from page 300 on */
	forget(0, PAGES);
	ck_assert_uint_eq(table.nodes, 0);
	forget(0, PAGES);
	compare();
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("pin_table");

	tcase_add_checked_fixture(tc, clear, fini);
	tcase_add_loop_test(tc, random_changes_agree_with_an_array, 0, 3);
	tcase_add_test(tc, the_ends_of_the_address_space_have_their_pages);
	tcase_add_test(tc, what_is_empty_is_given_back);
	return run_suite(tc, "pin_table");
}
