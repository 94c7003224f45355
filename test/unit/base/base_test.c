#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/diag.h"
#include "base/mem.h"
#include "base/rng.h"

START_TEST(log2_ceil_is_the_smallest_that_holds)
{
	ck_assert_uint_eq(rn_log2_ceil(0), 0);
	ck_assert_uint_eq(rn_log2_ceil(1), 0);
	for (unsigned l = 1; l < 63; l++) {
		uint64_t power = UINT64_C(1) << l;

		ck_assert_uint_eq(rn_log2_ceil(power), l);
		ck_assert_uint_eq(rn_log2_ceil(power + 1), l + 1);
		ck_assert(rn_is_pow2(power));
		ck_assert(!rn_is_pow2(power + 1));
	}
	ck_assert_uint_eq(rn_div_ceil(UINT64_MAX, 2), UINT64_C(1) << 63);
}
END_TEST

START_TEST(byte_order_works_on_unaligned_bytes)
{
	uint8_t bytes[9] = {0};

	rn_put_be32(bytes + 1, 0x01020304);
	ck_assert_mem_eq(bytes, "\0\1\2\3\4", 5);
	ck_assert_uint_eq(rn_get_be32(bytes + 1), 0x01020304);
	ck_assert_uint_eq(rn_get_le32(bytes + 1), 0x04030201);
	rn_put_le64(bytes + 1, UINT64_C(0x0102030405060708));
	ck_assert_uint_eq(rn_get_be64(bytes + 1), UINT64_C(0x0807060504030201));
	ck_assert_uint_eq(rn_get_be16(bytes + 1), 0x0807);
}
END_TEST

START_TEST(same_seed_and_name_give_the_same_numbers)
{
	struct rn_rng a, b, other_name, other_seed;

	rn_rng_init(&a, 7, "host0.nic0.sched");
	rn_rng_init(&b, 7, "host0.nic0.sched");
	rn_rng_init(&other_name, 7, "host0.nic0.dma");
	rn_rng_init(&other_seed, 8, "host0.nic0.sched");
	for (unsigned i = 0; i < 100; i++) {
		uint64_t v = rn_rng_next(&a);

		ck_assert_uint_eq(v, rn_rng_next(&b));
		ck_assert_uint_ne(v, rn_rng_next(&other_name));
		ck_assert_uint_ne(v, rn_rng_next(&other_seed));
	}
}
END_TEST

START_TEST(below_is_uniform_and_below_its_bound)
{
	struct rn_rng rng;
	unsigned counts[10] = {0};

	rn_rng_init(&rng, 1, "below");
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t v = rn_rng_below(&rng, 10);

		ck_assert_uint_lt(v, 10);
		counts[v]++;
	}
	/* Six standard deviations of a binomial (100000, 1/10) are 569. */
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_le((unsigned)abs((int)counts[i] - 10000), 569);
	ck_assert_uint_eq(rn_rng_below(&rng, 1), 0);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_lt(rn_rng_below(&rng, UINT64_MAX), UINT64_MAX);
}
END_TEST

START_TEST(diagnostics_are_kept_in_order_with_their_position)
{
	struct rn_diag *diag = rn_diag_new();

	rn_diag_add(diag, "a.yaml", 3, 7, "tags: %d is not %s", 0, "legal");
	rn_diag_add(diag, "a.yaml", 3, 0, "no column");
	rn_diag_add(diag, "a.yaml", 0, 0, "no line");
	rn_diag_add(diag, NULL, 0, 0, "no file");
	ck_assert_uint_eq(rn_diag_count(diag), 4);
	ck_assert_str_eq(rn_diag_message(diag, 0), "a.yaml:3:7: tags: 0 is not legal");
	ck_assert_str_eq(rn_diag_message(diag, 1), "a.yaml:3: no column");
	ck_assert_str_eq(rn_diag_message(diag, 2), "a.yaml: no line");
	ck_assert_str_eq(rn_diag_message(diag, 3), "no file");
	ck_assert_ptr_null(rn_diag_message(diag, 4));

	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	rn_diag_print(diag, out);
	fclose(out);
	ck_assert_str_eq(text, "a.yaml:3:7: tags: 0 is not legal\na.yaml:3: no column\n"
			       "a.yaml: no line\nno file\n");
	free(text);
	rn_diag_free(diag);
}
END_TEST

START_TEST(memory_is_zeroed_and_strings_are_copied)
{
	uint8_t *mem = rn_calloc(100, 3);

	for (unsigned i = 0; i < 300; i++)
		ck_assert_uint_eq(mem[i], 0);
	mem = rn_reallocarray(mem, 1000, 3);
	mem[2999] = 1;
	free(mem);

	char *text = rn_asprintf("%s.%u", "host", 3U);
	char *copy = rn_strdup(text);

	text[0] = 'x';
	ck_assert_str_eq(copy, "host.3");
	free(text);
	free(copy);
	free(rn_calloc(0, 0));
}
END_TEST

START_TEST(an_impossible_size_ends_the_simulator)
{
	rn_reallocarray(NULL, SIZE_MAX / 2, 3);
}
END_TEST

START_TEST(a_failed_assertion_aborts)
{
	rn_assert_context("host0.nic0.dma", 12);
	RN_ASSERT(1 + 1 == 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base");
	TCase *tcase = tcase_create("base");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, log2_ceil_is_the_smallest_that_holds);
	tcase_add_test(tcase, byte_order_works_on_unaligned_bytes);
	tcase_add_test(tcase, same_seed_and_name_give_the_same_numbers);
	tcase_add_test(tcase, below_is_uniform_and_below_its_bound);
	tcase_add_test(tcase, diagnostics_are_kept_in_order_with_their_position);
	tcase_add_test(tcase, memory_is_zeroed_and_strings_are_copied);
	tcase_add_exit_test(tcase, an_impossible_size_ends_the_simulator, EXIT_FAILURE);
	tcase_add_test_raise_signal(tcase, a_failed_assertion_aborts, SIGABRT);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
