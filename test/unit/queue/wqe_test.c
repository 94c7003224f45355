/* Send and receive queues: layout, wrap, limits, retirement. */
#include <string.h>

#include "base/bits.h"
#include "queue/rwqe.h"
#include "queue/wqe.h"
#include "run_suite.h"

#define RING 16u

static uint8_t ring[RING * RN_WQEBB_BYTES];
static struct rn_sq_slot slots[RING];
static struct rn_sq sq;

static void make_sq(void)
{
	memset(ring, 0xaa, sizeof(ring));
	rn_sq_init(&sq, ring, slots, RING, RING);
	sq.qpn = 0x123456;
}

static struct rn_hw_wqe_data data[64];

static enum rn_post_status post(uint8_t opcode, uint8_t flags, uint32_t segments, uint64_t wr_id)
{
	const struct rn_send_request request = {.opcode = opcode,
						.flags = flags,
						.imm_be = 0x44332211,
						.rkey = 0x900,
						.raddr = 0x8877665544332211,
						.wr_id = wr_id,
						.segments = data,
						.segment_count = segments};

	return rn_sq_post(&sq, &request);
}

static void set_data(void)
{
	for (unsigned i = 0; i < RN_ARRAY_LEN(data); i++)
		data[i] = (struct rn_hw_wqe_data){
			.bytes = i + 1, .lkey = 0x100 * i, .va = 0x1000 * i};
}

/* Byte @at of the WQE whose first WQEBB is @idx, across the ring's end. */
static const uint8_t *in_ring(uint32_t idx, uint32_t at)
{
	return &ring[(idx * RN_WQEBB_BYTES + at) % sizeof(ring)];
}

START_TEST(a_write_has_control_remote_address_and_data_segments)
{
	const struct rn_hw_wqe_ctrl *ctrl = (const void *)ring;
	const struct rn_hw_wqe_raddr *raddr = (const void *)(ring + 16);

	ck_assert_int_eq(post(RN_WQE_RDMA_WRITE_IMM, RN_WQE_SIGNALED, 2, 7), RN_POST_OK);
	ck_assert_uint_eq(ctrl->opcode, RN_WQE_RDMA_WRITE_IMM);
	ck_assert_uint_eq(ctrl->flags, RN_WQE_SIGNALED);
	ck_assert_uint_eq(ctrl->wqe_idx, 0);
	ck_assert_uint_eq(ctrl->qpn_ds, 0x123456u << 8 | 4);
	ck_assert_uint_eq(ctrl->imm_be, 0x44332211);
	ck_assert_uint_eq(raddr->va, 0x8877665544332211);
	ck_assert_uint_eq(raddr->rkey, 0x900);
	ck_assert_mem_eq(ring + 32, data, 32);
	ck_assert_uint_eq(sq.pi, 1);
	ck_assert_uint_eq(rn_sq_doorbell(&sq).pi, 1);
	ck_assert_uint_eq(rn_sq_doorbell(&sq).qpn, 0x123456);
}
END_TEST

START_TEST(a_send_has_no_remote_address)
{
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, 1), RN_POST_OK);
	ck_assert_mem_eq(ring + 16, data, 16);
	ck_assert_uint_eq(ring[4], 2);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 0, 1), RN_POST_OK);
	ck_assert_uint_eq(ring[64 + 4], 1);
}
END_TEST

START_TEST(a_wqe_takes_one_wqebb_more_when_its_last_fills)
{
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_SEND, 3, 0), 1);
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_SEND, 4, 0), 2);
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_RDMA_WRITE, 2, 0), 1);
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_RDMA_WRITE, 3, 0), 2);
	/* Inline: 4 bytes of header, then the data. */
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_SEND, 0, 44), 1);
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_SEND, 0, 45), 2);
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_RDMA_WRITE, 0, 61 * 16 - 4), 16);
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_RDMA_WRITE, 0, 61 * 16 - 3), 0);
	ck_assert_uint_eq(rn_sq_wqebbs(RN_WQE_RDMA_WRITE, 62, 0), 0);
}
END_TEST

START_TEST(inline_data_is_gathered_behind_its_header)
{
	char first[] = "abcdefgh", second[] = "ijklmnopqrst";

	data[0] = (struct rn_hw_wqe_data){.bytes = 8, .va = (uintptr_t)first};
	data[1] = (struct rn_hw_wqe_data){.bytes = 0, .va = 1};
	data[2] = (struct rn_hw_wqe_data){.bytes = 12, .va = (uintptr_t)second};
	ck_assert_int_eq(post(RN_WQE_SEND, RN_WQE_INLINE, 3, 1), RN_POST_OK);
	ck_assert_uint_eq(rn_get_le32(ring + 16), 20);
	ck_assert_mem_eq(ring + 20, "abcdefghijklmnopqrst", 20);
	ck_assert_uint_eq(ring[4], 3);
	memset(first, 0, sizeof(first));
	ck_assert_mem_eq(ring + 20, "abcdefgh", 8);
}
END_TEST

START_TEST(a_wqe_wraps_around_the_ring_end)
{
	for (unsigned i = 0; i < RING - 1; i++)
		ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, i), RN_POST_OK);
	ck_assert_ptr_nonnull(rn_sq_retire(&sq, 9));
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 10, 99), RN_POST_OK);
	for (unsigned i = 0; i < 10; i++)
		for (unsigned b = 0; b < 16; b++)
			ck_assert_uint_eq(*in_ring(RING - 1, 16 + 16 * i + b),
					  ((const uint8_t *)&data[i])[b]);
	ck_assert_uint_eq(sq.pi, RING - 1 + 3);
	ck_assert_uint_eq(rn_sq_retire(&sq, RING - 1)->wr_id, 99);
	ck_assert_uint_eq(sq.ci, sq.pi);
}
END_TEST

START_TEST(a_full_ring_refuses_and_changes_nothing)
{
	for (unsigned i = 0; i < RING / 2; i++)
		ck_assert_int_eq(post(RN_WQE_SEND, 0, 4, i), RN_POST_OK);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 0, 1), RN_POST_FULL);
	ck_assert_uint_eq(sq.pi, RING);
	ck_assert_ptr_nonnull(rn_sq_retire(&sq, 0));
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 8, 1), RN_POST_FULL);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 7, 1), RN_POST_OK);
}
END_TEST

START_TEST(no_more_requests_than_promised_are_outstanding)
{
	sq.max_wqes = 3;
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, i), RN_POST_OK);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, 3), RN_POST_FULL);
	ck_assert_ptr_nonnull(rn_sq_retire(&sq, 1));
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, 3), RN_POST_OK);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, 4), RN_POST_OK);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, 5), RN_POST_FULL);
}
END_TEST

START_TEST(what_a_wqe_cannot_hold_is_refused)
{
	ck_assert_int_eq(post(RN_WQE_RDMA_READ, 0, 62, 0), RN_POST_TOO_LONG);
	ck_assert_int_eq(post(99, 0, 1, 0), RN_POST_BAD_OPCODE);
	data[0].bytes = UINT32_MAX;
	ck_assert_int_eq(post(RN_WQE_SEND, RN_WQE_INLINE, 1, 0), RN_POST_TOO_LONG);
	ck_assert_uint_eq(sq.posted, 0);
}
END_TEST

/* Whatever lay in the ring and on the stack: the same request gives the same bytes, up to the end of its WQEBBs. */
START_TEST(no_byte_of_a_wqe_is_left_to_chance)
{
	static const uint8_t payload[300] = {1, 2, 3};
	uint8_t first[6 * RN_WQEBB_BYTES];

	for (uint32_t bytes = 1; bytes <= sizeof(payload); bytes++) {
		const uint32_t wqebbs = rn_sq_wqebbs(RN_WQE_RDMA_WRITE, 0, bytes);

		data[0] =
			(struct rn_hw_wqe_data){.bytes = bytes, .va = (uint64_t)(uintptr_t)payload};
		for (unsigned round = 0; round < 2; round++) {
			volatile uint8_t stack[2048];

			for (unsigned i = 0; i < sizeof(stack); i++)
				stack[i] = (uint8_t)(round ? 0x55 : 0xcc);
			memset(ring, round ? 0x33 : 0x77, sizeof(ring));
			rn_sq_reset(&sq);
			ck_assert_int_eq(post(RN_WQE_RDMA_WRITE, RN_WQE_INLINE, 1, 0), RN_POST_OK);
			ck_assert_uint_eq(sq.pi, wqebbs);
			if (round)
				ck_assert_mem_eq(first, ring, wqebbs * RN_WQEBB_BYTES);
			else
				memcpy(first, ring, wqebbs * RN_WQEBB_BYTES);
		}
	}
	/* Without inline data the rest of the WQEBB is zero too. */
	rn_sq_reset(&sq);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 1, 0), RN_POST_OK);
	for (unsigned at = 32; at < RN_WQEBB_BYTES; at++)
		ck_assert_uint_eq(ring[at], 0);
}
END_TEST

START_TEST(a_completion_retires_the_unsignalled_before_it)
{
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(post(RN_WQE_SEND, 0, 4, 100 + i), RN_POST_OK);
	ck_assert_uint_eq(rn_sq_retire(&sq, 6)->wr_id, 103);
	ck_assert_uint_eq(sq.retired, 4);
	ck_assert_uint_eq(sq.ci, 8);
	ck_assert_ptr_null(rn_sq_retire(&sq, 6));
	ck_assert_ptr_null(rn_sq_retire(&sq, 9)); /* the middle of a WQE */
	ck_assert_ptr_null(rn_sq_retire(&sq, 10));
	ck_assert_uint_eq(rn_sq_retire(&sq, 8)->wr_id, 104);
	ck_assert_ptr_null(rn_sq_retire(&sq, 8));
}
END_TEST

START_TEST(indexes_wrap_at_16_bits)
{
	for (uint32_t i = 0; i < 70000; i++) {
		ck_assert_int_eq(post(RN_WQE_SEND, 0, i % 5, i), RN_POST_OK);
		ck_assert_uint_eq(rn_sq_retire(&sq, (uint16_t)sq.ci)->wr_id, i);
	}
	ck_assert_uint_gt(sq.pi, 65536);
	ck_assert_uint_eq(sq.pi, sq.ci);
}
END_TEST

START_TEST(blueflame_takes_the_last_wqe_if_it_is_short)
{
	uint8_t image[RN_UAR_BLUEFLAME_BYTES];

	ck_assert_uint_eq(rn_sq_blueflame(&sq, image), 0);
	post(RN_WQE_SEND, 0, 1, 0);
	post(RN_WQE_SEND, 0, 15, 1);
	ck_assert_uint_eq(rn_sq_blueflame(&sq, image), 256);
	ck_assert_mem_eq(image, ring + 64, 256);
	post(RN_WQE_SEND, 0, 16, 2);
	ck_assert_uint_eq(rn_sq_blueflame(&sq, image), 0);
	rn_sq_retire(&sq, 5);
	for (unsigned i = 0; i < 5; i++)
		post(RN_WQE_SEND, 0, 0, 3);
	post(RN_WQE_SEND, 0, 7, 4);
	ck_assert_uint_eq(rn_sq_blueflame(&sq, image), 128);
	ck_assert_mem_eq(image, ring + 15 * 64, 64);
	ck_assert_mem_eq(image + 64, ring, 64);
}
END_TEST

START_TEST(receive_wqes_end_with_an_invalid_key_when_short)
{
	uint8_t memory[4 * 4 * 16];
	uint64_t wr_ids[4], wr_id;
	struct rn_rq rq;

	rn_rq_init(&rq, memory, wr_ids, 4, 4);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rn_rq_post(&rq, 10 + i, data, i + 1), RN_POST_OK);
	ck_assert_mem_eq(memory + 64, data, 32);
	ck_assert_uint_eq(rn_get_le32(memory + 64 + 32 + 4), RN_LKEY_INVALID);
	ck_assert_mem_eq(memory + 192, data, 64);
	ck_assert_int_eq(rn_rq_post(&rq, 0, data, 1), RN_POST_FULL);
	ck_assert_int_eq(rn_rq_post(&rq, 0, data, 5), RN_POST_TOO_LONG);
	ck_assert(rn_rq_retire(&rq, 0, &wr_id));
	ck_assert_uint_eq(wr_id, 10);
	ck_assert(!rn_rq_retire(&rq, 0, &wr_id));
	ck_assert(!rn_rq_retire(&rq, 4, &wr_id));
	ck_assert_int_eq(rn_rq_post(&rq, 14, data, 1), RN_POST_OK);
	ck_assert(rn_rq_retire(&rq, 4, &wr_id));
	ck_assert_uint_eq(wr_id, 14);
}
END_TEST

START_TEST(a_queue_of_no_entries_is_always_full)
{
	struct rn_rq rq;
	uint64_t none;

	rn_sq_init(&sq, ring, slots, 0, 0);
	ck_assert_int_eq(post(RN_WQE_SEND, 0, 0, 0), RN_POST_FULL);
	rn_rq_init(&rq, ring, &none, 0, 1);
	ck_assert_int_eq(rn_rq_post(&rq, 0, data, 0), RN_POST_FULL);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("wqe");

	tcase_add_checked_fixture(tc, make_sq, NULL);
	tcase_add_checked_fixture(tc, set_data, NULL);
	tcase_add_test(tc, a_write_has_control_remote_address_and_data_segments);
	tcase_add_test(tc, a_send_has_no_remote_address);
	tcase_add_test(tc, a_wqe_takes_one_wqebb_more_when_its_last_fills);
	tcase_add_test(tc, inline_data_is_gathered_behind_its_header);
	tcase_add_test(tc, a_wqe_wraps_around_the_ring_end);
	tcase_add_test(tc, a_full_ring_refuses_and_changes_nothing);
	tcase_add_test(tc, no_more_requests_than_promised_are_outstanding);
	tcase_add_test(tc, what_a_wqe_cannot_hold_is_refused);
	tcase_add_test(tc, no_byte_of_a_wqe_is_left_to_chance);
	tcase_add_test(tc, a_completion_retires_the_unsignalled_before_it);
	tcase_add_test(tc, indexes_wrap_at_16_bits);
	tcase_add_test(tc, blueflame_takes_the_last_wqe_if_it_is_short);
	tcase_add_test(tc, receive_wqes_end_with_an_invalid_key_when_short);
	tcase_add_test(tc, a_queue_of_no_entries_is_always_full);
	return run_suite(tc, "wqe");
}
