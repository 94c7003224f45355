/*
 * The doorbell unit: what each write means, its timing, and that doorbells always drain.
 */
#include "nic/doorbell/doorbell.h"

#include <check.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "block/common/bench.h"
#include "hw/gen/rnic_hw.h"
#include "run_suite.h"

static struct bench bench;
static struct rn_doorbell_params params;
static struct rn_doorbell_ports ports;
static struct rn_doorbell *doorbell;

static const struct rn_doorbell_identity identity = {
	.vendor = 0x15b3,
	.part = 4119,
	.hw_version = 2,
	.cap_queues = 0x01020304,
	.cap_memory = 0x05060708,
	.cap_wqe = 0x090a0b0c,
};

static void build_with(uint32_t sq_ring_depth, uint32_t rq_ring_depth)
{
	bench_init(&bench, 0);
	ports = (struct rn_doorbell_ports){
		.status = bench_fifo(&bench, "status", 2, sizeof(uint32_t)),
		.mmio_write = bench_fifo(&bench, "write", 64, sizeof(struct rn_mmio_write)),
		.mmio_read = bench_fifo(&bench, "read", 4, sizeof(struct rn_mmio_read)),
		.mmio_read_rsp = bench_fifo(&bench, "rsp", 4, sizeof(struct rn_mmio_read_rsp)),
		.sq_ring = bench_fifo(&bench, "sq", sq_ring_depth, sizeof(struct rn_sq_ring)),
		.blueflame = bench_fifo(&bench, "bf", 2, sizeof(struct rn_blueflame)),
		.cq_ring = bench_fifo(&bench, "cq", 8, sizeof(struct rn_cq_ring)),
		.rq_ring = bench_fifo(&bench, "rq", rq_ring_depth, sizeof(struct rn_rq_ring)),
		.cmd_ring = bench_fifo(&bench, "cmd", 1, sizeof(struct rn_cmd_ring)),
	};
	doorbell = rn_doorbell_new(&bench.env, &params, &identity, &ports);
	bench_run(&bench, 1);
}

static void set_up(void)
{
	rn_params_set_defaults(&rn_doorbell_param_table, &params);
	doorbell = NULL;
}

static void tear_down(void)
{
	struct rn_blueflame wqe;

	while (rn_fifo_pop(ports.blueflame, &wqe))
		rn_buffer_put(bench.buffers, wqe.buf);
	rn_doorbell_free(doorbell);
	bench_fini(&bench);
}

static void write_bytes(uint64_t offset, const void *data, uint32_t len)
{
	struct rn_mmio_write write = {.offset = offset, .len = len};

	memcpy(write.data, data, len);
	ck_assert(rn_fifo_can_push(ports.mmio_write));
	rn_fifo_push(ports.mmio_write, &write);
}

static uint64_t page_offset(uint32_t page, uint32_t offset)
{
	return RN_UAR_BASE + (uint64_t)page * RN_UAR_BYTES + offset;
}

static void ring_sq(uint32_t page, uint32_t qpn, uint32_t pi)
{
	write_bytes(page_offset(page, RN_UAR_SQ_DOORBELL),
		    &(struct rn_hw_sq_doorbell){.qpn = qpn, .pi = pi}, 8);
}

static void kick_rq(uint32_t page, uint32_t qpn)
{
	write_bytes(page_offset(page, RN_UAR_RQ_KICK), &(struct rn_hw_rq_kick){.qpn = qpn}, 8);
}

/* A WQE of @segments segments, each byte of it behind ctrl its offset. */
static void make_wqe(uint8_t *wqe, uint32_t qpn, uint16_t idx, unsigned segments)
{
	struct rn_hw_wqe_ctrl ctrl = {.wqe_idx = idx, .qpn_ds = qpn << 8 | segments};

	for (unsigned i = 0; i < RN_UAR_BLUEFLAME_BYTES; i++)
		wqe[i] = (uint8_t)i;
	memcpy(wqe, &ctrl, sizeof(ctrl));
}

static void write_piece(uint32_t page, unsigned buffer, unsigned piece, const uint8_t *wqe)
{
	write_bytes(page_offset(page,
				RN_UAR_BLUEFLAME + buffer * RN_UAR_BLUEFLAME_BYTES + piece * 64),
		    wqe + piece * 64, 64);
}

static uint64_t count(const char *name)
{
	return bench_counter(&bench, "doorbell", name);
}

START_TEST(a_send_doorbell_becomes_a_ring_with_its_page)
{
	struct rn_sq_ring ring;

	build_with(8, 8);
	ring_sq(7, 0x123456, 0x54321);
	bench_run(&bench, 10);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(ring.qpn, 0x123456);
	ck_assert_uint_eq(ring.uar_page, 7);
	ck_assert_uint_eq(ring.pi, 0x4321);
}
END_TEST

START_TEST(decode_latency_is_exact)
{
	params.decode_latency_cycles = 5;
	build_with(8, 8);
	/* Pushed at cycle c, taken in at c + 1, decoded at c + 6, seen at c + 7. */
	ring_sq(0, 1, 1);
	bench_run(&bench, 6);
	ck_assert_ptr_null(rn_fifo_peek(ports.sq_ring));
	bench_run(&bench, 1);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.sq_ring));
}
END_TEST

START_TEST(writes_are_taken_in_at_their_interval)
{
	struct rn_sq_ring ring;

	params.interval_cycles = 3;
	params.decode_latency_cycles = 1;
	build_with(8, 8);
	ring_sq(0, 1, 1);
	ring_sq(0, 2, 1);
	bench_run(&bench, 3);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	bench_run(&bench, 2);
	ck_assert(!rn_fifo_pop(ports.sq_ring, &ring));
	bench_run(&bench, 1);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(ring.qpn, 2);
}
END_TEST

START_TEST(a_cq_arm_carries_sequence_solicited_and_consumer_index)
{
	struct rn_cq_ring ring;
	struct rn_hw_cq_arm arm = {.cqn_cmd = 0x00abcdef | 1u << 24 | 2u << 28, .ci = 0xff000005};

	build_with(8, 8);
	write_bytes(page_offset(3, RN_UAR_CQ_ARM), &arm, 8);
	bench_run(&bench, 10);
	ck_assert(rn_fifo_pop(ports.cq_ring, &ring));
	ck_assert_uint_eq(ring.cqn, 0xabcdef);
	ck_assert_uint_eq(ring.uar_page, 3);
	ck_assert_uint_eq(ring.ci, 5);
	ck_assert_uint_eq(ring.solicited, 1);
	ck_assert_uint_eq(ring.sn, 2);
}
END_TEST

START_TEST(a_blueflame_wqe_in_one_piece_gives_data_and_ring)
{
	struct rn_sq_ring ring;
	struct rn_blueflame bf;
	uint8_t wqe[256];

	build_with(8, 8);
	make_wqe(wqe, 5, 0xffff, 3);
	write_piece(9, 1, 0, wqe);
	bench_run(&bench, 10);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(ring.qpn, 5);
	ck_assert_uint_eq(ring.uar_page, 9);
	ck_assert_uint_eq(ring.pi, 0);
	ck_assert(rn_fifo_pop(ports.blueflame, &bf));
	ck_assert_uint_eq(bf.qpn, 5);
	ck_assert_uint_eq(bf.uar_page, 9);
	ck_assert_uint_eq(bf.wqe_idx, 0xffff);
	ck_assert_uint_eq(bf.bytes, 64);
	ck_assert_mem_eq(rn_buffer_data(bench.buffers, bf.buf), wqe, 64);
	rn_buffer_put(bench.buffers, bf.buf);
}
END_TEST

START_TEST(a_blueflame_wqe_is_whole_only_with_its_last_piece)
{
	struct rn_sq_ring ring;
	struct rn_blueflame bf;
	uint8_t wqe[256];

	build_with(8, 8);
	make_wqe(wqe, 5, 4, 13); /* 208 bytes: 4 pieces */
	for (unsigned piece = 0; piece < 3; piece++)
		write_piece(9, 0, piece, wqe);
	bench_run(&bench, 20);
	ck_assert_ptr_null(rn_fifo_peek(ports.sq_ring));
	write_piece(9, 0, 3, wqe);
	bench_run(&bench, 10);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(ring.pi, 8);
	ck_assert(rn_fifo_pop(ports.blueflame, &bf));
	ck_assert_uint_eq(bf.bytes, 256);
	ck_assert_mem_eq(rn_buffer_data(bench.buffers, bf.buf), wqe, 208);
	rn_buffer_put(bench.buffers, bf.buf);
}
END_TEST

START_TEST(two_buffers_of_a_page_collect_side_by_side)
{
	struct rn_blueflame bf;
	uint8_t first[256], second[256];

	build_with(8, 8);
	make_wqe(first, 1, 0, 8);
	make_wqe(second, 2, 0, 8);
	write_piece(0, 0, 0, first);
	write_piece(0, 1, 0, second);
	write_piece(0, 0, 1, first);
	write_piece(0, 1, 1, second);
	bench_run(&bench, 20);
	for (uint32_t qpn = 1; qpn <= 2; qpn++) {
		ck_assert(rn_fifo_pop(ports.blueflame, &bf));
		ck_assert_uint_eq(bf.qpn, qpn);
		ck_assert_mem_eq(rn_buffer_data(bench.buffers, bf.buf), qpn == 1 ? first : second,
				 128);
		rn_buffer_put(bench.buffers, bf.buf);
	}
}
END_TEST

START_TEST(blueflame_data_without_place_is_dropped_and_the_ring_goes_on)
{
	struct rn_sq_ring ring;
	uint8_t wqe[256];

	build_with(8, 8);
	for (uint16_t i = 0; i < 4; i++) { /* the port to the WQE fetcher holds two */
		make_wqe(wqe, 1, i, 4);
		write_piece(0, 0, 0, wqe);
	}
	bench_run(&bench, 20);
	for (uint16_t i = 0; i < 4; i++) {
		ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
		ck_assert_uint_eq(ring.pi, i + 1);
	}
	ck_assert_uint_eq(count("blueflame_dropped"), 2);
	ck_assert_uint_eq(count("blueflame_wqes"), 2);
}
END_TEST

START_TEST(an_unfinished_blueflame_wqe_gives_way_and_its_ring_goes_on)
{
	struct rn_sq_ring ring;
	uint8_t wqe[256];

	params.blueflame_buffers = 1;
	build_with(8, 8);
	make_wqe(wqe, 1, 10, 8);
	write_piece(0, 0, 0, wqe);
	make_wqe(wqe, 2, 20, 8);
	write_piece(1, 0, 0, wqe);
	bench_run(&bench, 20);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(ring.qpn, 1);
	ck_assert_uint_eq(ring.pi, 12);
	ck_assert(!rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(count("blueflame_dropped"), 1);
}
END_TEST

START_TEST(illegal_writes_are_counted_and_ignored)
{
	uint8_t bytes[64] = {0};
	static const struct {
		uint64_t offset;
		uint32_t len;
	} writes[] = {
		{0, 4}, /* read only */
		{RN_REG_CMD_DOORBELL, 8},
		{RN_REG_CMD_BASE_HI, 8},
		{0x800, 4},
		{RN_UAR_BASE, 4},
		{RN_UAR_BASE, 64},
		{RN_UAR_BASE + 8, 8},
		{RN_UAR_BASE + RN_UAR_CQ_ARM, 4},
		{RN_UAR_BASE + RN_UAR_BLUEFLAME, 8},
		{RN_UAR_BASE + RN_UAR_BLUEFLAME + 32, 64},
		{RN_UAR_BASE + RN_UAR_BLUEFLAME, 64},	   /* no segments */
		{RN_UAR_BASE + RN_UAR_BLUEFLAME + 64, 64}, /* no first piece */
		{RN_UAR_BASE + RN_UAR_BLUEFLAME + 2 * RN_UAR_BLUEFLAME_BYTES, 64},
		{RN_UAR_BASE + (uint64_t)RN_UAR_COUNT * RN_UAR_BYTES, 8},
		{UINT64_MAX - 7, 8},
	};

	build_with(8, 8);
	for (unsigned i = 0; i < RN_ARRAY_LEN(writes); i++)
		write_bytes(writes[i].offset, bytes, writes[i].len);
	bench_run(&bench, 100);
	ck_assert_uint_eq(count("illegal_writes"), RN_ARRAY_LEN(writes));
	ck_assert_ptr_null(rn_fifo_peek(ports.sq_ring));
	ck_assert_ptr_null(rn_fifo_peek(ports.cmd_ring));
}
END_TEST

START_TEST(a_command_doorbell_carries_the_base_of_its_time)
{
	struct rn_cmd_ring ring;
	uint64_t base = UINT64_C(0x1234567812345000);
	uint32_t pi = 7;

	build_with(8, 8);
	write_bytes(RN_REG_CMD_BASE_LO, &base, 8);
	write_bytes(RN_REG_CMD_DOORBELL, &pi, 4);
	bench_run(&bench, 20);
	ck_assert(rn_fifo_pop(ports.cmd_ring, &ring));
	ck_assert(ring.queue_pa == base);
	ck_assert_uint_eq(ring.pi, 7);
	write_bytes(RN_REG_CMD_BASE_HI, &(uint32_t){0xaa}, 4);
	write_bytes(RN_REG_CMD_BASE_LO, &(uint32_t){0x1000}, 4);
	write_bytes(RN_REG_CMD_DOORBELL, &(uint32_t){8}, 4);
	bench_run(&bench, 20);
	ck_assert(rn_fifo_pop(ports.cmd_ring, &ring));
	ck_assert(ring.queue_pa == UINT64_C(0xaa00001000));
}
END_TEST

START_TEST(command_doorbells_merge_while_their_port_is_full)
{
	struct rn_cmd_ring ring;

	build_with(8, 8);
	for (uint32_t pi = 1; pi <= 5; pi++)
		write_bytes(RN_REG_CMD_DOORBELL, &pi, 4);
	ring_sq(0, 1, 1);
	bench_run(&bench, 30);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.sq_ring));
	ck_assert(rn_fifo_pop(ports.cmd_ring, &ring));
	ck_assert_uint_eq(ring.pi, 1);
	bench_run(&bench, 3);
	ck_assert(rn_fifo_pop(ports.cmd_ring, &ring));
	ck_assert_uint_eq(ring.pi, 5);
}
END_TEST

static uint64_t read_register(uint64_t offset, uint32_t len)
{
	struct rn_mmio_read_rsp rsp;

	rn_fifo_push(ports.mmio_read,
		     &(struct rn_mmio_read){.offset = offset, .len = len, .tag = 5});
	bench_run(&bench, 20);
	ck_assert(rn_fifo_pop(ports.mmio_read_rsp, &rsp));
	ck_assert_uint_eq(rsp.tag, 5);
	return rsp.value;
}

START_TEST(registers_read_as_the_identity_says)
{
	build_with(8, 8);
	ck_assert_uint_eq(read_register(RN_REG_ID, 4), RN_HW_ID);
	ck_assert_uint_eq(read_register(RN_REG_VENDOR, 4), 0x15b3);
	ck_assert_uint_eq(read_register(RN_REG_PART, 4), 4119);
	ck_assert(read_register(RN_REG_CAP_QUEUES - 4, 8) == UINT64_C(0x0102030400000002));
	ck_assert_uint_eq(read_register(RN_REG_CAP_WQE, 4), 0x090a0b0c);
	ck_assert_uint_eq(read_register(RN_REG_STATUS, 4), 0);
	rn_fifo_push(ports.status, &(uint32_t){1});
	ck_assert_uint_eq(read_register(RN_REG_STATUS, 4), 1);
	ck_assert_uint_eq(read_register(0x800, 4), UINT32_MAX);
	ck_assert(read_register(RN_UAR_BASE, 8) == UINT64_MAX);
	ck_assert(read_register(RN_REG_ID, 3) == UINT64_MAX);
}
END_TEST

START_TEST(a_register_read_does_not_pass_the_writes_before_it)
{
	struct rn_mmio_read_rsp rsp;

	params.interval_cycles = 10;
	params.read_latency_cycles = 1;
	build_with(8, 8);
	for (uint32_t value = 1; value <= 4; value++)
		write_bytes(RN_REG_CMD_BASE_LO, &value, 4);
	rn_fifo_push(ports.mmio_read,
		     &(struct rn_mmio_read){.offset = RN_REG_CMD_BASE_LO, .len = 4});
	bench_run(&bench, 2);
	write_bytes(RN_REG_CMD_BASE_LO, &(uint32_t){99}, 4);
	bench_run(&bench, 100);
	ck_assert(rn_fifo_pop(ports.mmio_read_rsp, &rsp));
	ck_assert_uint_eq(rsp.value, 4);
}
END_TEST

START_TEST(a_full_scheduler_port_stalls_the_fifo_and_loses_nothing)
{
	struct rn_sq_ring ring;

	params.fifo_entries = 2;
	build_with(1, 8);
	for (uint32_t qpn = 1; qpn <= 6; qpn++)
		ring_sq(0, qpn, 1);
	bench_run(&bench, 50);
	ck_assert_uint_eq(rn_fifo_occupancy(ports.mmio_write), 3);
	for (uint32_t qpn = 1; qpn <= 6; qpn++) {
		ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
		ck_assert_uint_eq(ring.qpn, qpn);
		bench_run(&bench, 10);
	}
}
END_TEST

START_TEST(with_recovery_a_full_scheduler_port_does_not_stall)
{
	struct rn_sq_ring ring;

	params.recover = true;
	build_with(1, 8);
	for (uint32_t pi = 1; pi <= 5; pi++)
		for (uint32_t qpn = 1; qpn <= 3; qpn++)
			ring_sq(0, qpn, pi);
	bench_run(&bench, 50);
	ck_assert_uint_eq(rn_fifo_occupancy(ports.mmio_write), 0);
	/* QP 1's first ring went out; everything since is merged, and nothing goes back. */
	static const uint32_t want[][2] = {{1, 1}, {2, 5}, {3, 5}, {1, 5}};

	for (unsigned i = 0; i < RN_ARRAY_LEN(want); i++) {
		ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
		ck_assert_uint_eq(ring.qpn, want[i][0]);
		ck_assert_uint_eq(ring.pi, want[i][1]);
		bench_run(&bench, 5);
	}
	ck_assert_ptr_null(rn_fifo_peek(ports.sq_ring));
}
END_TEST

START_TEST(kicks_wait_per_queue_pair_without_stalling_doorbells)
{
	struct rn_rq_ring kick;

	build_with(8, 1);
	for (uint32_t qpn = 1; qpn <= 3; qpn++)
		for (unsigned i = 0; i < 3; i++)
			kick_rq(4, qpn);
	ring_sq(0, 1, 1);
	bench_run(&bench, 50);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.sq_ring));
	static const uint32_t want[] = {1, 1, 2, 3};

	for (unsigned i = 0; i < RN_ARRAY_LEN(want); i++) {
		ck_assert(rn_fifo_pop(ports.rq_ring, &kick));
		ck_assert_uint_eq(kick.qpn, want[i]);
		ck_assert_uint_eq(kick.uar_page, 4);
		bench_run(&bench, 5);
	}
	ck_assert_ptr_null(rn_fifo_peek(ports.rq_ring));
}
END_TEST

START_TEST(a_newer_ring_does_not_overtake_a_kept_one)
{
	struct rn_sq_ring ring;
	uint16_t last = 0;

	params.recover = true;
	build_with(2, 8);
	for (uint32_t qpn = 1; qpn <= 4; qpn++)
		ring_sq(0, qpn, 1);
	bench_run(&bench, 20);
	ck_assert_uint_eq(count("kept"), 2); /* of QP 3 and QP 4 */
	ring_sq(0, 4, 2);
	bench_run(&bench, params.decode_latency_cycles);
	/* Room for two when it is decoded: QP 3 takes one. */
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	for (unsigned i = 0; i < 20; i++) {
		bench_run(&bench, 1);
		while (rn_fifo_pop(ports.sq_ring, &ring))
			if (ring.qpn == 4) {
				ck_assert_uint_ge(ring.pi, last);
				last = ring.pi;
			}
	}
	ck_assert_uint_eq(last, 2);
}
END_TEST

/* Kept ones have the port to themselves: one message a cycle leaves, whatever space there is. */
START_TEST(a_port_takes_one_ring_a_cycle)
{
	struct rn_sq_ring ring;

	params.recover = true;
	params.decode_latency_cycles = 1;
	build_with(4, 8);
	for (uint32_t qpn = 1; qpn <= 8; qpn++)
		ring_sq(0, qpn, 1);
	bench_run(&bench, 40);
	ck_assert_uint_eq(count("kept"), 4);
	for (unsigned i = 0; i < 4; i++)
		ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ring_sq(0, 9, 1);
	for (uint32_t sent = 1; sent <= 4; sent++) {
		bench_run(&bench, 1);
		ck_assert_uint_eq(rn_fifo_occupancy(ports.sq_ring), sent);
	}
	/* QP 9's was taken in and decoded in between: it is kept behind the others. */
	bench_run(&bench, 1);
	for (uint32_t qpn = 5; qpn <= 8; qpn++) {
		ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
		ck_assert_uint_eq(ring.qpn, qpn);
	}
	ck_assert_uint_eq(count("kept"), 5);
	bench_run(&bench, 10);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(ring.qpn, 9);
}
END_TEST

/* Decoded in cycle 6 after the push that is seen in cycle 1. */
START_TEST(a_doorbell_is_kept_behind_others_two_cycles_later)
{
	params.recover = true;
	params.decode_latency_cycles = 5;
	build_with(1, 8);
	ring_sq(0, 1, 1);
	ring_sq(0, 2, 1);
	bench_run(&bench, 20);
	ck_assert_uint_eq(count("kept"), 1); /* of QP 2, alone: at once */
	ring_sq(0, 3, 1);
	bench_run(&bench, 7);
	ck_assert_uint_eq(count("kept"), 1);
	bench_run(&bench, 1);
	ck_assert_uint_eq(count("kept"), 2);
	/* The same for one that replaces its older one. */
	ring_sq(0, 3, 2);
	bench_run(&bench, 7);
	ck_assert_uint_eq(count("kept"), 2);
	bench_run(&bench, 1);
	ck_assert_uint_eq(count("kept"), 3);
}
END_TEST

START_TEST(one_status_a_cycle_is_taken_and_the_last_one_stays)
{
	build_with(8, 8);
	rn_fifo_push(ports.status, &(uint32_t){7});
	rn_fifo_push(ports.status, &(uint32_t){8});
	bench_run(&bench, 1);
	ck_assert_uint_eq(rn_fifo_occupancy(ports.status), 1);
	bench_run(&bench, 1);
	ck_assert_uint_eq(rn_fifo_occupancy(ports.status), 0);
	ck_assert_uint_eq(read_register(RN_REG_STATUS, 4), 8);
}
END_TEST

START_TEST(blueflame_pieces_out_of_order_are_ignored)
{
	uint8_t wqe[256];

	build_with(8, 8);
	make_wqe(wqe, 5, 4, 13);
	write_piece(9, 0, 0, wqe);
	write_piece(9, 0, 2, wqe);
	write_piece(9, 0, 3, wqe);
	write_piece(9, 0, 1, wqe);
	bench_run(&bench, 20);
	ck_assert_ptr_null(rn_fifo_peek(ports.sq_ring));
	ck_assert_uint_eq(count("illegal_writes"), 2);
	write_piece(9, 0, 2, wqe);
	write_piece(9, 0, 3, wqe);
	bench_run(&bench, 20);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.sq_ring));
}
END_TEST

START_TEST(the_oldest_unfinished_blueflame_wqe_gives_way)
{
	struct rn_sq_ring ring;
	uint8_t wqe[4][256];

	params.blueflame_buffers = 2;
	build_with(8, 8);
	for (uint16_t i = 0; i < 4; i++)
		make_wqe(wqe[i], 10 + i, 0, 8);
	write_piece(0, 0, 0, wqe[0]);
	write_piece(1, 0, 0, wqe[1]);
	write_piece(0, 0, 1, wqe[0]);
	write_piece(2, 0, 0, wqe[2]); /* in the place of the first; the second is the oldest */
	bench_run(&bench, 20);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	write_piece(3, 0, 0, wqe[3]);
	bench_run(&bench, 20);
	ck_assert(rn_fifo_pop(ports.sq_ring, &ring));
	ck_assert_uint_eq(ring.qpn, 11);
}
END_TEST

/* Writes of any size to any place, the outputs emptied now and then: nothing breaks, nothing stays. */
START_TEST(random_writes_do_no_harm)
{
	struct rn_rng rng;
	struct rn_blueflame bf;
	uint8_t bytes[64];

	params.recover = true;
	params.max_qps = 256;
	params.blueflame_buffers = 3;
	build_with(2, 2);
	rn_rng_init(&rng, 2, "writes");
	for (unsigned round = 0; round < 50000; round++) {
		uint32_t len =
			rn_rng_below(&rng, 2) ? 64 : 4 * (1 + (uint32_t)rn_rng_below(&rng, 16));
		uint64_t offset = rn_rng_below(&rng, 4)
					  ? page_offset((uint32_t)rn_rng_below(&rng, 4),
							(uint32_t)rn_rng_below(&rng, 64) * 64)
					  : rn_rng_below(&rng, RN_BAR_BYTES);

		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rn_rng_next(&rng);
		bytes[4] &= 0x1f;
		if (rn_rng_below(&rng, 3) == 0) {
			len = 8;
			offset = page_offset((uint32_t)rn_rng_below(&rng, 4),
					     (uint32_t)rn_rng_below(&rng, 3) * 32);
			bytes[1] = bytes[2] = 0;
		}
		if (rn_fifo_can_push(ports.mmio_write))
			write_bytes(offset, bytes, len);
		bench_run(&bench, 1);
		while (!rn_rng_below(&rng, 3) && rn_fifo_pop(ports.blueflame, &bf))
			rn_buffer_put(bench.buffers, bf.buf);
		if (!rn_rng_below(&rng, 3) && rn_fifo_peek(ports.sq_ring))
			rn_fifo_drop(ports.sq_ring);
		if (!rn_rng_below(&rng, 9) && rn_fifo_peek(ports.rq_ring))
			rn_fifo_drop(ports.rq_ring);
		while (rn_fifo_peek(ports.cq_ring))
			rn_fifo_drop(ports.cq_ring);
	}
	ck_assert_uint_gt(count("blueflame_wqes"), 10);
	ck_assert_uint_gt(count("kept"), 100);
	ck_assert_uint_gt(count("illegal_writes"), 1000);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("doorbell");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, a_send_doorbell_becomes_a_ring_with_its_page);
	tcase_add_test(tcase, decode_latency_is_exact);
	tcase_add_test(tcase, writes_are_taken_in_at_their_interval);
	tcase_add_test(tcase, a_cq_arm_carries_sequence_solicited_and_consumer_index);
	tcase_add_test(tcase, a_blueflame_wqe_in_one_piece_gives_data_and_ring);
	tcase_add_test(tcase, a_blueflame_wqe_is_whole_only_with_its_last_piece);
	tcase_add_test(tcase, two_buffers_of_a_page_collect_side_by_side);
	tcase_add_test(tcase, blueflame_data_without_place_is_dropped_and_the_ring_goes_on);
	tcase_add_test(tcase, an_unfinished_blueflame_wqe_gives_way_and_its_ring_goes_on);
	tcase_add_test(tcase, illegal_writes_are_counted_and_ignored);
	tcase_add_test(tcase, a_command_doorbell_carries_the_base_of_its_time);
	tcase_add_test(tcase, command_doorbells_merge_while_their_port_is_full);
	tcase_add_test(tcase, registers_read_as_the_identity_says);
	tcase_add_test(tcase, a_register_read_does_not_pass_the_writes_before_it);
	tcase_add_test(tcase, a_full_scheduler_port_stalls_the_fifo_and_loses_nothing);
	tcase_add_test(tcase, with_recovery_a_full_scheduler_port_does_not_stall);
	tcase_add_test(tcase, kicks_wait_per_queue_pair_without_stalling_doorbells);
	tcase_add_test(tcase, a_newer_ring_does_not_overtake_a_kept_one);
	tcase_add_test(tcase, a_port_takes_one_ring_a_cycle);
	tcase_add_test(tcase, a_doorbell_is_kept_behind_others_two_cycles_later);
	tcase_add_test(tcase, one_status_a_cycle_is_taken_and_the_last_one_stays);
	tcase_add_test(tcase, blueflame_pieces_out_of_order_are_ignored);
	tcase_add_test(tcase, the_oldest_unfinished_blueflame_wqe_gives_way);
	tcase_add_test(tcase, random_writes_do_no_harm);
	return run_suite(tcase, "doorbell");
}
