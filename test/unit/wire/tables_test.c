/*
 * The opcode table recomputed from the structure of the codes, PSN arithmetic, time on a line.
 */
#include <check.h>

#include "run_suite.h"
#include "wire/line.h"
#include "wire/opcode.h"
#include "wire/psn.h"

__extension__ typedef unsigned __int128 wide;

static unsigned header_bytes(uint32_t flags)
{
	return 12 + (flags & RN_OP_RETH ? 16 : 0) + (flags & RN_OP_AETH ? 4 : 0) +
	       (flags & RN_OP_IMM ? 4 : 0) + (flags & RN_OP_IETH ? 4 : 0) +
	       (flags & RN_OP_DETH ? 8 : 0) + (flags & RN_OP_ATOMIC ? 28 : 0) +
	       (flags & RN_OP_ATOMIC_ACK ? 8 : 0);
}

START_TEST(header_bytes_are_the_sum_of_the_headers)
{
	unsigned valid = 0;

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct rn_opcode_info *info = rn_opcode_info((uint8_t)opcode);

		ck_assert_int_eq(!!(info->flags & RN_OP_VALID), info->name != NULL);
		if (!(info->flags & RN_OP_VALID)) {
			ck_assert_uint_eq(info->flags, 0);
			continue;
		}
		valid++;
		ck_assert_uint_eq(info->header_bytes, header_bytes(info->flags));
		ck_assert_int_ne(!(info->flags & RN_OP_REQUEST), !(info->flags & RN_OP_RESPONSE));
	}
	/* RC 0x00..0x14, 0x16, 0x17; UC SEND and WRITE; UD two. */
	ck_assert_uint_eq(valid, 23 + 12 + 2);
}
END_TEST

START_TEST(send_and_write_positions_follow_the_code)
{
	static const uint32_t position[] = {RN_OP_FIRST,
					    RN_OP_MIDDLE,
					    RN_OP_LAST,
					    RN_OP_LAST | RN_OP_IMM,
					    RN_OP_FIRST | RN_OP_LAST,
					    RN_OP_FIRST | RN_OP_LAST | RN_OP_IMM};
	const uint32_t mask = RN_OP_FIRST | RN_OP_MIDDLE | RN_OP_LAST | RN_OP_IMM;

	for (uint8_t service = 0; service <= 0x20; service += 0x20) {
		for (uint8_t i = 0; i < 6; i++) {
			uint32_t send = rn_opcode_info(service + i)->flags;
			uint32_t write = rn_opcode_info(service + 6 + i)->flags;

			ck_assert_uint_eq(send & mask, position[i]);
			ck_assert_uint_eq(write & mask, position[i]);
			ck_assert(send & RN_OP_SEND && write & RN_OP_WRITE);
			/* A WRITE names its target in its first packet. */
			ck_assert_int_eq(!!(write & RN_OP_RETH), !!(write & RN_OP_FIRST));
			/* A SEND takes a receive WQE when it starts, a WRITE with immediate when it ends. */
			ck_assert_int_eq(!!(send & RN_OP_CONSUMES_RECV), !!(send & RN_OP_FIRST));
			ck_assert_int_eq(!!(write & RN_OP_CONSUMES_RECV), !!(write & RN_OP_IMM));
		}
	}
}
END_TEST

START_TEST(psn_distance_wraps_at_24_bits)
{
	ck_assert_uint_eq(rn_psn_add(0xffffff, 1), 0);
	ck_assert_int_eq(rn_psn_diff(0, 0xffffff), 1);
	ck_assert_int_eq(rn_psn_diff(0xffffff, 0), -1);
	ck_assert_int_eq(rn_psn_diff(0x7fffff, 0), 0x7fffff);
	ck_assert_int_eq(rn_psn_diff(0x800000, 0), -0x800000);
	ck_assert_int_eq(rn_psn_diff(5, 5), 0);
}
END_TEST

START_TEST(line_carries_the_fraction_of_a_picosecond)
{
	struct rn_line line;
	uint64_t end_ps, start_ps = 0;
	const uint64_t frames = 1000003, bps = 40000000000000u / 97;

	rn_line_init(&line, bps);
	for (uint64_t i = 0; i < frames; i++)
		start_ps = rn_line_send(&line, 0, 1000, &end_ps);
	/* The last frame starts when all before have passed: exact but for one rounding. */
	ck_assert_uint_eq(start_ps,
			  (uint64_t)((wide)(frames - 1) * 1024 * 8 * 1000000000000u / bps));
}
END_TEST

START_TEST(short_frames_take_the_minimum_size)
{
	struct rn_line line;
	uint64_t end_ps;

	rn_line_init(&line, 100000000000u);
	ck_assert_uint_eq(rn_line_send(&line, 500, 42, &end_ps), 500);
	/* 60 + 4 FCS + 8 preamble = 72 bytes of 80 ps, then the gap. */
	ck_assert_uint_eq(end_ps, 500 + 72 * 80);
	ck_assert_uint_eq(line.free_ps, 500 + 84 * 80);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("tables");

	tcase_add_test(tcase, header_bytes_are_the_sum_of_the_headers);
	tcase_add_test(tcase, send_and_write_positions_follow_the_code);
	tcase_add_test(tcase, psn_distance_wraps_at_24_bits);
	tcase_add_test(tcase, line_carries_the_fraction_of_a_picosecond);
	tcase_add_test(tcase, short_frames_take_the_minimum_size);
	return run_suite(tcase, "tables");
}
