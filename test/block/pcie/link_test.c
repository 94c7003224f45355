/*
 * Rates, splitting and credits against tables by the book.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "pcie/credit.h"
#include "pcie/link.h"
#include "sim/sim.h"

static struct rn_pcie_params defaults(void)
{
	struct rn_pcie_params params;

	rn_params_set_defaults(&rn_pcie_param_table, &params);
	params.dllp_permille = 0;
	return params;
}

/* Gigabytes a second that the specification's tables give: 0.25 GB/s a lane for generation 1 ... */
START_TEST(rates_are_those_of_the_specification)
{
	/* Picoseconds that 2^20 bytes take on one lane, exactly: bytes * 8 * code / rate. */
	static const uint64_t lane_ps[] = {0,
					   UINT64_C(4194304000),
					   UINT64_C(2097152000),
					   UINT64_C(1064960000),
					   UINT64_C(532480000),
					   UINT64_C(266240000)};

	for (uint32_t gen = 1; gen <= 5; gen++) {
		for (uint32_t lanes = 1; lanes <= 16; lanes *= 2) {
			struct rn_pcie_params params = defaults();
			struct rn_link link;

			params.gen = gen;
			params.lanes = lanes;
			rn_link_init(&link, &params);
			ck_assert_uint_eq(rn_link_send(&link, 0, 1 << 20), lane_ps[gen] / lanes);
		}
	}
}
END_TEST

START_TEST(a_million_tlps_drift_by_nothing)
{
	struct rn_pcie_params params = defaults();
	struct rn_link one, many;
	uint64_t end_ps = 0;

	params.lanes = 12;
	params.dllp_permille = 81;
	rn_link_init(&one, &params);
	rn_link_init(&many, &params);
	for (int i = 0; i < 1 << 20; i++)
		end_ps = rn_link_send(&many, 0, 277);
	ck_assert_uint_eq(end_ps, rn_link_send(&one, 0, 277u << 20));
}
END_TEST

START_TEST(an_idle_link_starts_at_once_and_a_busy_one_when_it_is_free)
{
	struct rn_pcie_params params = defaults();
	struct rn_link link;

	params.gen = 1;
	params.lanes = 1;
	rn_link_init(&link, &params);
	ck_assert_uint_eq(rn_link_send(&link, 1000, 10), 41000);
	ck_assert_uint_eq(rn_link_start_ps(&link, 40999), 41000);
	ck_assert_uint_eq(rn_link_start_ps(&link, 41001), 41001);
	ck_assert_uint_eq(rn_link_send(&link, 2000, 1), 45000);
	ck_assert_uint_eq(rn_link_send(&link, 45001, 1), 49001);
	ck_assert_uint_eq(link.counters.busy_ps, 48000);
}
END_TEST

START_TEST(completions_end_at_the_read_completion_boundary)
{
	static const struct {
		uint32_t mps, rcb;
		uint64_t addr;
		uint32_t len, first, tlps;
	} cases[] = {
		{256, 64, 0, 1, 1, 1},	       {256, 64, 0, 256, 256, 1},
		{256, 64, 0, 257, 256, 2},     {256, 64, 1, 255, 255, 1},
		{256, 64, 1, 256, 255, 2},     {256, 64, 63, 256, 193, 2},
		{256, 64, 63, 193, 193, 1},    {256, 64, 64, 512, 256, 2},
		{256, 64, 100, 4096, 220, 17}, {256, 128, 100, 200, 156, 2},
		{128, 128, 127, 2, 1, 2},      {64, 64, 60, 4096, 4, 65},
		{512, 64, 0, 0, 0, 1},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rn_pcie_params params = defaults();

		params.mps_bytes = cases[i].mps;
		params.rcb_bytes = cases[i].rcb;
		ck_assert_uint_eq(rn_link_completion_bytes(&params, cases[i].addr, cases[i].len),
				  cases[i].first);
		ck_assert_uint_eq(rn_link_completion_tlps(&params, cases[i].addr, cases[i].len),
				  cases[i].tlps);
	}
}
END_TEST

/* The number of completions is what sending them one by one gives, for every start and length. */
START_TEST(count_of_completions_is_that_of_the_pieces)
{
	for (uint32_t mps = 64; mps <= 512; mps *= 2) {
		struct rn_pcie_params params = defaults();

		params.mps_bytes = mps;
		for (uint32_t addr = 0; addr < 128; addr += 3) {
			for (uint32_t len = 1; len < 1100; len += 7) {
				uint32_t done = 0, tlps = 0;

				while (done < len) {
					uint32_t bytes = rn_link_completion_bytes(
						&params, addr + done, len - done);

					ck_assert_uint_ge(bytes, 1);
					ck_assert_uint_le(bytes, mps);
					done += bytes;
					ck_assert(done == len || (addr + done) % 64 == 0);
					tlps++;
				}
				ck_assert_uint_eq(tlps,
						  rn_link_completion_tlps(&params, addr, len));
			}
		}
	}
}
END_TEST

START_TEST(sizes_that_do_not_fit_are_named)
{
	const char *why;
	struct rn_pcie_params params = defaults();

	ck_assert(rn_pcie_params_check(&params, &why));
	params.mps_bytes = 300;
	ck_assert(!rn_pcie_params_check(&params, &why));
	ck_assert_ptr_nonnull(strstr(why, "mps_bytes"));
	params = defaults();
	params.mps_bytes = 64;
	params.rcb_bytes = 128;
	ck_assert(!rn_pcie_params_check(&params, &why));
	params = defaults();
	params.mrrs_bytes = 513;
	ck_assert(!rn_pcie_params_check(&params, &why));
	ck_assert_ptr_nonnull(strstr(why, "mrrs_bytes"));
}
END_TEST

START_TEST(header_credits_are_taken_and_come_back_in_order)
{
	struct rn_credit credit;

	rn_credit_init(&credit, 2, 100);
	rn_credit_take(&credit, 1);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 1), 0);
	rn_credit_take(&credit, 1);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 1), RN_TIME_NEVER);
	rn_credit_give(&credit, 500);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 1), 500);
	rn_credit_take(&credit, 1);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 1), RN_TIME_NEVER);
	rn_credit_give(&credit, 700);
	rn_credit_give(&credit, 900);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 1), 700);
}
END_TEST

START_TEST(data_credits_wait_for_as_many_as_they_need)
{
	struct rn_credit credit;

	rn_credit_init(&credit, 127, 20);
	for (uint64_t i = 1; i <= 4; i++) {
		rn_credit_take(&credit, 5);
		rn_credit_give(&credit, i * 100);
	}
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 1), 100);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 5), 100);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 6), 200);
	ck_assert_uint_eq(rn_credit_ready_ps(&credit, 20), 400);
	for (int i = 0; i < 10000; i++) {
		ck_assert_uint_ne(rn_credit_ready_ps(&credit, 16), RN_TIME_NEVER);
		rn_credit_take(&credit, 16);
		rn_credit_give(&credit, 1000);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pcie_link");
	TCase *tcase = tcase_create("link");

	tcase_add_test(tcase, rates_are_those_of_the_specification);
	tcase_add_test(tcase, a_million_tlps_drift_by_nothing);
	tcase_add_test(tcase, an_idle_link_starts_at_once_and_a_busy_one_when_it_is_free);
	tcase_add_test(tcase, completions_end_at_the_read_completion_boundary);
	tcase_add_test(tcase, count_of_completions_is_that_of_the_pieces);
	tcase_add_test(tcase, sizes_that_do_not_fit_are_named);
	tcase_add_test(tcase, header_credits_are_taken_and_come_back_in_order);
	tcase_add_test(tcase, data_credits_wait_for_as_many_as_they_need);
	suite_add_tcase(suite, tcase);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
