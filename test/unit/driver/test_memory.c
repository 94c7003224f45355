/* Bring-up, pinned pages, memory keys. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"
#include "run_suite.h"

#define VA UINT64_C(0x10000000)

static struct rig rig;
static struct user user, other;

static void set_up(void)
{
	rig_init(&rig);
	user_init(&user, &rig);
	user_init(&other, &rig);
}

static void tear_down(void)
{
	struct rn_driver_usage usage;
	static const struct rn_driver_usage none;

	user_fini(&user);
	user_fini(&other);
	rn_driver_get_usage(rig.driver, &usage);
	ck_assert_mem_eq(&usage, &none, sizeof(usage));
	rig_fini(&rig);
}

static uint64_t pa_of(uint64_t va)
{
	uint64_t pa;

	ck_assert(rn_driver_find_pa(user.client, va, &pa));
	return pa;
}

/* --- bring-up --- */

START_TEST(bring_up_hands_the_nic_tables_queues_and_addresses)
{
	struct rn_driver_icm icm;

	ck_assert(rn_driver_is_ready(rig.driver));
	rn_driver_get_icm(rig.driver, &icm);
	ck_assert_uint_ne(icm.qpc_pa, icm.mtt_pa);
	ck_assert_uint_eq(fake_nic_commands(rig.nic, RN_CMD_INIT_HCA), 1);
	ck_assert_uint_eq(fake_nic_commands(rig.nic, RN_CMD_CREATE_EQ), 5);
	ck_assert_uint_eq(rn_driver_device(rig.driver)->vendor_part_id, 4119);
	ck_assert_uint_eq(rn_driver_device(rig.driver)->max_qp, (1 << 16) - 64);
}
END_TEST

static int start_with_register(uint32_t offset, uint32_t value)
{
	struct rig bad;
	struct rn_driver_env env;

	rig_make_env(&bad, &env);
	fake_nic_set_register(bad.nic, offset, value);
	rig_start(&bad, &env);

	const int error = bad.start_error;
	struct rn_driver_client *client;
	int attach_error = 0;

	client = rn_driver_attach(bad.driver, 1, NULL, NULL, &attach_error);
	ck_assert(error == 0 || (!client && attach_error == ENODEV));
	rig_fini(&bad);
	return error;
}

START_TEST(another_device_or_version_is_refused)
{
	ck_assert_int_eq(start_with_register(RN_REG_ID, 1), ENODEV);
	ck_assert_int_eq(start_with_register(RN_REG_VERSION, 99), ENODEV);
	ck_assert_int_eq(start_with_register(RN_REG_CAP_QUEUES, UINT32_MAX), ENODEV);
	ck_assert_int_eq(start_with_register(RN_REG_CAP_MEMORY, UINT32_MAX), ENODEV);
	ck_assert_int_eq(start_with_register(RN_REG_CAP_WQE, UINT32_MAX), 0);
}
END_TEST

START_TEST(a_failed_init_command_fails_the_start)
{
	struct rig bad;
	struct rn_driver_env env;

	rig_make_env(&bad, &env);
	fake_nic_fail(bad.nic, RN_CMD_INIT_HCA, RN_CMD_BAD_PARAMETER);
	rig_start(&bad, &env);
	ck_assert_int_eq(bad.start_error, EIO);
	rig_fini(&bad);
}
END_TEST

/* --- pinning --- */

static uint32_t count_runs(uint32_t pages)
{
	const struct rn_uapi_run *run = user_runs(&user);
	uint32_t total = 0, runs = user.answer.rsp.handle;

	for (uint32_t n = 0; n < runs; n++) {
		ck_assert_uint_ne(run[n].pages, 0);
		if (n && run[n].arena_offset != UINT64_MAX)
			ck_assert_uint_ne(run[n].arena_offset,
					  run[n - 1].arena_offset +
						  (uint64_t)run[n - 1].pages * 4096);
		total += run[n].pages;
	}
	ck_assert_uint_eq(total, pages);
	return runs;
}

START_TEST(a_pin_gives_runs_that_never_join_and_two_at_least)
{
	uint64_t va = VA;

	for (uint32_t pages = 1; pages <= 70; pages++) {
		ck_assert_int_eq(user_pin(&user, va, pages, true), 0);
		ck_assert_uint_ge(count_runs(pages), pages > 1 ? 2 : 1);
		for (uint32_t n = 0; n < user.answer.rsp.handle; n++)
			ck_assert_uint_le(user_runs(&user)[n].pages, 16);
		va += pages * 4096;
	}
}
END_TEST

START_TEST(a_gigabyte_takes_fewer_than_2000_mappings)
{
	uint32_t runs = 0;

	for (uint64_t at = 0; at < UINT64_C(1) << 30; at += 1024 * 4096) {
		ck_assert_int_eq(user_pin(&user, VA + at, 1024, true), 0);
		runs += count_runs(1024);
	}
	ck_assert_uint_lt(runs, 2000);
}
END_TEST

START_TEST(pinning_again_keeps_the_frames_and_counts)
{
	uint64_t before[8];

	ck_assert_int_eq(user_pin(&user, VA, 8, true), 0);
	for (int n = 0; n < 8; n++)
		before[n] = pa_of(VA + n * 4096u);
	ck_assert_int_eq(user_pin(&user, VA + 0x4000, 8, true), 0);
	count_runs(8);
	ck_assert_uint_eq(user_runs(&user)[0].fresh, 0);
	for (int n = 0; n < 8; n++)
		ck_assert_uint_eq(pa_of(VA + n * 4096u), before[n]);
	/* What would go with the first unpin: the pages that the second pin does not hold. */
	ck_assert_int_eq(user_unpin(&user, VA, 8, false), 0);
	ck_assert_uint_eq(user_last(&user)[0], 0x0f);
	ck_assert_int_eq(user_unpin(&user, VA, 8, true), 0);
	ck_assert_uint_eq(user_last(&user)[0], 0x0f);
	ck_assert_int_eq(user_unpin(&user, VA, 8, true), EINVAL);
	ck_assert_int_eq(user_unpin(&user, VA + 0x4000, 8, true), 0);
	ck_assert_uint_eq(user_last(&user)[0], 0xff);
}
END_TEST

START_TEST(a_page_that_a_key_uses_cannot_be_unpinned)
{
	struct rn_driver_usage usage;
	uint32_t key;

	ck_assert_int_eq(user_pin(&user, VA, 4, true), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_ALLOC_PD, 0), 0);
	ck_assert_int_eq(user_reg_mr(&user, user.answer.rsp.handle, VA + 0x1000, 4096, 1, &key), 0);
	ck_assert_int_eq(user_unpin(&user, VA, 4, true), EBUSY);
	ck_assert_int_eq(user_unpin(&user, VA, 1, true), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DEREG_MR, key >> 8), 0);
	ck_assert_int_eq(user_unpin(&user, VA + 0x1000, 3, true), 0);
	rn_driver_get_usage(rig.driver, &usage);
	ck_assert_uint_eq(usage.frames, 0);
	ck_assert_uint_eq(usage.pinned_pages, 0);
}
END_TEST

START_TEST(fallback_pages_lead_into_the_process)
{
	uint64_t pa;
	uint32_t key;
	static char page[8192];
	const uint64_t va = ((uint64_t)(uintptr_t)page + 4095) & ~UINT64_C(4095);
	char seen[5] = "";

	memcpy((char *)(uintptr_t)va, "there", 5);
	ck_assert_int_eq(user_pin(&user, va, 1, false), 0);
	ck_assert_uint_eq(user_runs(&user)[0].arena_offset, UINT64_MAX);
	ck_assert_int_eq(user_op(&user, RN_UAPI_ALLOC_PD, 0), 0);
	ck_assert_int_eq(user_reg_mr(&user, user.answer.rsp.handle, va, 4096, 1, &key), 0);
	pa = fake_nic_translate(rig.nic, key, va);
	ck_assert_uint_eq(pa & ((UINT64_C(1) << RN_PA_OFFSET_BITS) - 1), va);
	ck_assert(rn_host_memory_read(rn_root_complex_memory(rig.nic), pa, seen, 5));
	ck_assert_mem_eq(seen, "there", 5);
}
END_TEST

START_TEST(senseless_pins_are_refused)
{
	struct rn_uapi_pin pin = {.va = VA, .pages = 64};

	ck_assert_int_eq(user_pin(&user, VA + 1, 1, true), EINVAL);
	ck_assert_int_eq(user_pin(&user, VA, 0, true), EINVAL);
	ck_assert_int_eq(user_pin(&user, VA, RN_UAPI_MAX_PAGES + 1, true), EINVAL);
	ck_assert_int_eq(user_pin(&user, UINT64_MAX - 4095, 1, true), EINVAL);
	ck_assert_int_eq(user_pin(&user, (UINT64_C(1) << 47) - 4096, 2, true), EINVAL);
	/* The bitmap is missing. */
	ck_assert_int_eq(user_call(&user, RN_UAPI_PIN, &pin, sizeof(pin)), EINVAL);
	ck_assert_int_eq(user_unpin(&user, VA, 1, true), EINVAL);
}
END_TEST

START_TEST(a_pin_that_cannot_be_answered_changes_nothing)
{
	/* Every second page pinned before: 4096 runs do not fit into an answer. */
	for (uint32_t n = 0; n < 2048; n++)
		ck_assert_int_eq(user_pin(&user, VA + n * 8192u, 1, true), 0);
	ck_assert_int_eq(user_pin(&user, VA, 4096, true), EMSGSIZE);
	for (uint32_t n = 0; n < 2048; n++) {
		ck_assert_int_eq(user_unpin(&user, VA + n * 8192u, 1, false), 0);
		ck_assert_uint_eq(user_last(&user)[0], 1);
	}
	ck_assert_int_eq(user_pin(&user, VA, 4094, true), 0);
}
END_TEST

/* --- keys --- */

START_TEST(a_key_translates_every_byte_to_its_frame)
{
	uint32_t key;
	const uint64_t start = VA + 0x123, length = 20 * 4096 + 5;

	ck_assert_int_eq(user_pin(&user, VA, 22, true), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_ALLOC_PD, 0), 0);

	struct rn_uapi_reg_mr reg = {.pd = user.answer.rsp.handle,
				     .va = start,
				     .length = length,
				     .iova = 0x700000123,
				     .access = RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_READ};

	ck_assert_int_eq(user_call(&user, RN_UAPI_REG_MR, &reg, sizeof(reg)), 0);
	key = user.answer.mr.rkey;
	ck_assert_uint_eq(user.answer.mr.lkey, key);
	for (uint64_t n = 0; n < length; n += 61)
		ck_assert_uint_eq(fake_nic_translate(rig.nic, key, 0x700000123 + n),
				  pa_of(start + n));
	ck_assert_uint_eq(fake_nic_translate(rig.nic, key, 0x700000123 + length), 0);
	ck_assert_uint_eq(fake_nic_mpt(rig.nic, key)->access, 5);
	ck_assert_uint_eq(fake_nic_mpt(rig.nic, key)->pd, reg.pd);
}
END_TEST

START_TEST(a_key_index_that_comes_back_has_another_variant)
{
	struct rig small;
	struct rn_driver_env env;
	struct user one;
	uint32_t seen[3] = {0}, pd, key, rounds = 0;

	rig_make_env(&small, &env);
	fake_nic_set_register(small.nic, RN_REG_CAP_MEMORY, 7 | 12 << 8 | 12 << 16);
	rig_start(&small, &env);
	user_init(&one, &small);
	ck_assert_int_eq(user_op(&one, RN_UAPI_ALLOC_PD, 0), 0);
	pd = one.answer.rsp.handle;
	while (rounds < 3) {
		ck_assert_int_eq(user_reg_mr(&one, pd, 0, 0, 0, &key), 0);
		ck_assert_uint_ge(key >> 8, 2);
		if (key >> 8 == 5)
			seen[rounds++] = key;
		ck_assert_int_eq(user_op(&one, RN_UAPI_DEREG_MR, key >> 8), 0);
	}
	ck_assert_uint_ne(seen[0], seen[1]);
	ck_assert_uint_ne(seen[1], seen[2]);
	user_fini(&one);
	rig_fini(&small);
}
END_TEST

START_TEST(registrations_that_make_no_sense_are_refused)
{
	uint32_t key, pd;

	ck_assert_int_eq(user_pin(&user, VA, 4, true), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_ALLOC_PD, 0), 0);
	pd = user.answer.rsp.handle;
	ck_assert_int_eq(user_reg_mr(&user, pd, VA, 5 * 4096, 1, &key), EINVAL); /* not pinned */
	ck_assert_int_eq(user_reg_mr(&user, pd, VA - 1, 2, 1, &key), EINVAL);
	ck_assert_int_eq(user_reg_mr(&user, pd, VA, 4096, RN_ACCESS_REMOTE_WRITE, &key), EINVAL);
	ck_assert_int_eq(user_reg_mr(&user, pd, VA, 4096, 0x40, &key), EINVAL);
	ck_assert_int_eq(user_reg_mr(&user, pd + 1, VA, 4096, 1, &key), EINVAL);
	ck_assert_int_eq(user_reg_mr(&user, pd, VA, UINT64_MAX, 1, &key), EINVAL);
	ck_assert_int_eq(user_reg_mr(&user, pd, UINT64_MAX, 1, 1, &key), EINVAL);

	struct rn_uapi_reg_mr shifted = {
		.pd = pd, .va = VA, .iova = VA + 1, .length = 100, .access = 1};

	ck_assert_int_eq(user_call(&user, RN_UAPI_REG_MR, &shifted, sizeof(shifted)), EINVAL);
	/* Nothing is left of the attempts. */
	ck_assert_int_eq(user_unpin(&user, VA, 4, true), 0);
}
END_TEST

START_TEST(a_failed_command_takes_the_registration_back)
{
	struct rn_driver_usage usage;
	uint32_t key;

	ck_assert_int_eq(user_pin(&user, VA, 4, true), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_ALLOC_PD, 0), 0);
	fake_nic_fail(rig.nic, RN_CMD_CREATE_MKEY, RN_CMD_BAD_PARAMETER);
	ck_assert_int_eq(user_reg_mr(&user, user.answer.rsp.handle, VA, 4096, 1, &key), EINVAL);
	rn_driver_get_usage(rig.driver, &usage);
	ck_assert_uint_eq(usage.mrs + usage.mtts + usage.mpts, 0);
	ck_assert_int_eq(user_unpin(&user, VA, 4, true), 0);
}
END_TEST
int main(void)
{
	TCase *tcase = tcase_create("memory");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, bring_up_hands_the_nic_tables_queues_and_addresses);
	tcase_add_test(tcase, another_device_or_version_is_refused);
	tcase_add_test(tcase, a_failed_init_command_fails_the_start);
	tcase_add_test(tcase, a_pin_gives_runs_that_never_join_and_two_at_least);
	tcase_add_test(tcase, a_gigabyte_takes_fewer_than_2000_mappings);
	tcase_add_test(tcase, pinning_again_keeps_the_frames_and_counts);
	tcase_add_test(tcase, a_page_that_a_key_uses_cannot_be_unpinned);
	tcase_add_test(tcase, fallback_pages_lead_into_the_process);
	tcase_add_test(tcase, senseless_pins_are_refused);
	tcase_add_test(tcase, a_pin_that_cannot_be_answered_changes_nothing);
	tcase_add_test(tcase, a_key_translates_every_byte_to_its_frame);
	tcase_add_test(tcase, a_key_index_that_comes_back_has_another_variant);
	tcase_add_test(tcase, registrations_that_make_no_sense_are_refused);
	tcase_add_test(tcase, a_failed_command_takes_the_registration_back);
	return run_suite(tcase, "driver_memory");
}
