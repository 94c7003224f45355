/*
 * The WQE fetcher's send side: where WQEs come from, what is refused, what is cached and when not.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "block/wqe_fetch/bench_wqe.h"
#include "nic/wqe_fetch/decode.h"
#include "run_suite.h"

static void blueflame_from(uint32_t page, uint32_t qpn, uint16_t idx, const void *wqe)
{
	struct rn_blueflame message = {.qpn = qpn,
				       .uar_page = page,
				       .wqe_idx = idx,
				       .bytes = 64,
				       .buf = rn_buffer_get(wb.bench.buffers)};

	memcpy(rn_buffer_data(wb.bench.buffers, message.buf), wqe, 64);
	rn_fifo_push(wb.ports.blueflame, &message);
}

static void forget(uint32_t qpn)
{
	rn_fifo_push(wb.ports.sq_forget, &(struct rn_wqe_forget){.qpn = qpn});
}

/* Overwrite part of a posted WQE. */
static void poke(uint32_t qpn, uint16_t idx, size_t offset, const void *bytes, size_t len)
{
	memcpy(sq_wqe(qpn, idx) + offset, bytes, len);
}

START_TEST(a_wqe_is_read_from_the_queues_own_memory_and_decoded)
{
	build();
	post_write(1, 0, 2);
	grant(1, 1);
	struct rn_wqe wqe = want_wqe(1, 0);

	ck_assert_uint_eq(wqe.valid, 1);
	ck_assert_uint_eq(wqe.opcode, RN_WQE_RDMA_WRITE);
	ck_assert_uint_eq(wqe.flags, RN_WQE_SIGNALED);
	ck_assert_uint_eq(wqe.wqebbs, 1);
	ck_assert_uint_eq(wqe.rkey, 0x77);
	ck_assert_uint_eq(wqe.sge_count, 2);
	ck_assert_uint_eq(wqe.total_bytes, 200);
	ck_assert_uint_eq(wqe.sge[1].va, 4096);
	ck_assert_uint_eq(wqe.sge[1].lkey, 2);
	ck_assert_uint_eq(wqe.inline_buf, RN_BUFFER_NONE);
	ck_assert_uint_eq(wb.sq_dma.log[0].key, 0x101);
	ck_assert_uint_eq(wb.sq_dma.log[0].pd, PD);
	ck_assert_uint_eq(wb.sq_dma.log[0].flags, 0);
	ck_assert_uint_eq(wb.sq_dma.log[0].len, 64);
}
END_TEST

START_TEST(one_read_brings_a_batch_and_no_more_than_was_rung)
{
	wb.params.batch_wqebbs = 4;
	build();
	for (uint16_t i = 0; i < 6; i++)
		post_write(1, i, 1);
	for (uint16_t i = 0; i < 6; i++) {
		set_sq_next(1, i);
		grant(1, 6);
		ck_assert_uint_eq(want_wqe(1, i).raddr, i);
	}
	ck_assert_uint_eq(wb.sq_dma.count, 2);
	ck_assert_uint_eq(wb.sq_dma.log[0].len, 256);
	ck_assert_uint_eq(wb.sq_dma.log[1].len, 128);
	ck_assert_uint_eq(count("sq_cache_hits"), 4);
}
END_TEST

START_TEST(a_wqe_changed_before_its_fetch_takes_effect)
{
	build();
	post_write(1, 0, 1);
	grant(1, 1);
	wb.context.is_held_back = true;
	run(20);
	poke(1, 0, 16, &(uint64_t){0xdead}, 8);
	wb.context.is_held_back = false;
	ck_assert_uint_eq(want_wqe(1, 0).raddr, 0xdead);
}
END_TEST

START_TEST(a_wqe_not_rung_yet_is_never_prefetched)
{
	build();
	post_write(1, 0, 1);
	post_write(1, 1, 1);
	grant(1, 1);
	want_wqe(1, 0);
	poke(1, 1, 16, &(uint64_t){0xdead}, 8);
	set_sq_next(1, 1);
	grant(1, 2);
	ck_assert_uint_eq(want_wqe(1, 1).raddr, 0xdead);
}
END_TEST

START_TEST(a_partly_sent_wqe_is_served_again_from_the_cache)
{
	build();
	post_write(1, 0, 1);
	for (unsigned i = 0; i < 4; i++) {
		grant(1, 1);
		want_wqe(1, 0);
	}
	ck_assert_uint_eq(wb.sq_dma.count, 1);
}
END_TEST

START_TEST(nothing_old_is_served_after_the_ring_has_wrapped)
{
	wb.params.batch_wqebbs = 8;
	build();
	for (uint32_t idx = 0; idx < 300; idx++) {
		uint16_t i = (uint16_t)idx;

		post_write(1, i, 1);
		poke(1, i, 16, &(uint64_t){idx}, 8);
		set_sq_next(1, i);
		grant(1, i + 1);
		ck_assert_uint_eq(want_wqe(1, i).raddr, idx);
	}
}
END_TEST

START_TEST(indexes_of_16_bits_wrap)
{
	build();
	set_sq_next(1, 0xfffe);
	for (uint32_t idx = 0xfffe; idx < 0x10004; idx++)
		post_write(1, (uint16_t)idx, 1);
	for (uint32_t idx = 0xfffe; idx < 0x10004; idx++) {
		set_sq_next(1, (uint16_t)idx);
		grant(1, 4);
		ck_assert_uint_eq(want_wqe(1, (uint16_t)idx).raddr, (uint16_t)idx);
	}
}
END_TEST

START_TEST(a_batch_ends_at_the_rings_end)
{
	build();
	set_sq_next(1, 62);
	for (uint16_t i = 62; i < 66; i++)
		post_write(1, i, 1);
	for (uint16_t i = 62; i < 66; i++) {
		set_sq_next(1, i);
		grant(1, 66);
		want_wqe(1, i);
	}
	ck_assert_uint_eq(wb.sq_dma.count, 2);
	ck_assert_uint_eq(wb.sq_dma.log[0].addr, 62 * 64);
	ck_assert_uint_eq(wb.sq_dma.log[0].len, 128);
	ck_assert_uint_eq(wb.sq_dma.log[1].addr, 0);
	ck_assert_uint_eq(count("sq_cache_misses"), 2);
}
END_TEST

START_TEST(a_wqe_longer_than_the_batch_is_read_on)
{
	wb.params.batch_wqebbs = 2;
	build();
	post_write(1, 0, 32); /* 34 segments: 9 WQEBBs */
	grant(1, 9);
	struct rn_wqe wqe = want_wqe(1, 0);

	ck_assert_uint_eq(wqe.valid, 1);
	ck_assert_uint_eq(wqe.wqebbs, 9);
	ck_assert_uint_eq(wqe.sge_count, 32);
	ck_assert_uint_eq(wqe.sge[31].lkey, 32);
	ck_assert_uint_eq(wb.sq_dma.count, 2);
	ck_assert_uint_eq(wb.sq_dma.log[1].len, 7 * 64);
}
END_TEST

START_TEST(a_wqe_that_goes_round_the_rings_end_is_put_together)
{
	wb.params.batch_wqebbs = 8;
	build();
	set_sq_next(1, 60);
	post_write(1, 60, 32);
	grant(1, 69);
	struct rn_wqe wqe = want_wqe(1, 60);

	ck_assert_uint_eq(wqe.sge_count, 32);
	for (unsigned i = 0; i < 32; i++)
		ck_assert_uint_eq(wqe.sge[i].lkey, i + 1);
}
END_TEST

START_TEST(a_cached_wqe_that_is_cut_off_is_read_again)
{
	wb.params.batch_wqebbs = 4;
	build();
	post_write(1, 0, 1);
	post_write(1, 1, 20); /* 6 WQEBBs, of which the batch brings 3 */
	grant(1, 7);
	want_wqe(1, 0);
	set_sq_next(1, 1);
	grant(1, 7);
	ck_assert_uint_eq(want_wqe(1, 1).sge_count, 20);
	ck_assert_uint_eq(wb.sq_dma.count, 2);
}
END_TEST

START_TEST(inline_data_travels_in_a_buffer_of_the_slot)
{
	struct rn_hw_wqe_ctrl ctrl = {.opcode = RN_WQE_SEND_IMM,
				      .flags = RN_WQE_INLINE,
				      .qpn_ds = 1u << 8 | 3,
				      .imm_be = 0x11223344};

	build();
	poke(1, 0, 0, &ctrl, 16);
	poke(1, 0, 16, &(uint32_t){20}, 4);
	poke(1, 0, 20, "twenty bytes inline!", 20);
	grant(1, 1);
	struct rn_work work = want_work(1, RN_WORK_OK);
	const struct rn_wqe *wqe = &wb.sq_slot[work.slot];

	ck_assert_uint_eq(wqe->valid, 1);
	ck_assert_uint_eq(wqe->total_bytes, 20);
	ck_assert_uint_eq(wqe->sge_count, 0);
	ck_assert_uint_eq(wqe->imm_be, 0x11223344);
	ck_assert_mem_eq(rn_buffer_data(wb.bench.buffers, wqe->inline_buf), "twenty bytes inline!",
			 20);
	rn_fifo_push(wb.ports.sq_free, &(struct rn_slot_free){.slot = work.slot});
	run(3);
	ck_assert_uint_eq(wqe->inline_buf, RN_BUFFER_NONE);
}
END_TEST

START_TEST(a_held_blueflame_wqe_needs_no_read)
{
	uint8_t wqe[64];

	build();
	post_write(1, 0, 1);
	memcpy(wqe, sq_wqe(1, 0), 64);
	wqe[16] = 99;
	blueflame_from(PAGE, 1, 0, wqe);
	run(2);
	grant(1, 1);
	ck_assert_uint_eq(want_wqe(1, 0).raddr, 99);
	grant(1, 1); /* a second turn for it */
	ck_assert_uint_eq(want_wqe(1, 0).raddr, 99);
	ck_assert_uint_eq(wb.sq_dma.count, 0);
	ck_assert_uint_eq(count("blueflame_hits"), 1);
}
END_TEST

START_TEST(a_blueflame_wqe_of_a_strange_page_or_index_is_not_used)
{
	uint8_t wqe[64];

	build();
	set_sq_next(1, 5);
	post_write(1, 5, 1);
	memcpy(wqe, sq_wqe(1, 5), 64);
	wqe[16] = 99;
	blueflame_from(PAGE + 1, 1, 5, wqe);
	blueflame_from(PAGE, 1, 4, wqe);
	blueflame_from(PAGE, 2, 5, wqe);
	run(5);
	grant(1, 6);
	ck_assert_uint_eq(want_wqe(1, 5).raddr, 5);
	ck_assert_uint_eq(count("blueflame_dropped"), 2);
}
END_TEST

START_TEST(a_full_blueflame_store_drops_its_oldest)
{
	wb.params.blueflame_slots = 1;
	build();
	post_write(1, 0, 1);
	post_write(2, 0, 1);
	blueflame_from(PAGE, 1, 0, sq_wqe(1, 0));
	blueflame_from(PAGE, 2, 0, sq_wqe(2, 0));
	run(5);
	grant(2, 1);
	want_wqe(2, 0);
	ck_assert_uint_eq(wb.sq_dma.count, 0);
	grant(1, 1);
	want_wqe(1, 0);
	ck_assert_uint_eq(wb.sq_dma.count, 1);
}
END_TEST

START_TEST(grants_that_may_not_send_are_refused)
{
	static const uint8_t states[] = {RN_QPS_RESET, RN_QPS_INIT, RN_QPS_RTR};

	build();
	for (unsigned i = 0; i < RN_ARRAY_LEN(states); i++) {
		wb.qpc[1].state = states[i];
		grant(1, 1);
		want_work(1, RN_WORK_BAD_QP);
	}
	wb.qpc[2].uar_page = PAGE + 1;
	grant(2, 1);
	want_work(2, RN_WORK_BAD_QP);
	wb.qpc[3].qpn = 0;
	grant(3, 1);
	want_work(3, RN_WORK_BAD_QP);
	grant(QPS, 1);
	want_work(QPS, RN_WORK_BAD_QP);
	ck_assert_uint_eq(wb.sq_dma.count, 0);
	ck_assert_uint_eq(count("sq_bad_qp"), 6);
	ck_assert_uint_eq(wb.context.held, 0);
}
END_TEST

START_TEST(a_queue_pair_in_error_gets_its_wqe_whole_so_that_it_is_flushed_once)
{
	build();
	wb.qpc[1].state = RN_QPS_ERR;
	set_sq_next(1, 7);
	post_write(1, 7, 10); /* 12 segments: 3 WQEBBs */
	grant(1, 20);
	struct rn_wqe wqe = want_wqe(1, 7);

	ck_assert_uint_eq(wqe.valid, 1);
	ck_assert_uint_eq(wqe.wqebbs, 3);
	ck_assert_uint_eq(wb.sq_dma.count, 1);
}
END_TEST

START_TEST(a_grant_with_nothing_to_do_is_answered_empty)
{
	build();
	set_sq_next(1, 3);
	grant(1, 3);
	want_work(1, RN_WORK_EMPTY);
}
END_TEST

START_TEST(a_producer_index_beyond_the_ring_is_bounded_by_it)
{
	wb.params.batch_wqebbs = 32;
	build();
	grant(1, 0x8000);
	ck_assert_uint_eq(want_wqe(1, 0).valid, 0); /* nothing was posted */
	set_sq_next(1, 40);
	post_write(1, 40, 32);
	post_write(1, 49, 1);
	grant(1, 0x8000);
	ck_assert_uint_eq(want_wqe(1, 40).valid, 1);
	for (uint32_t i = 0; i < wb.sq_dma.count; i++)
		ck_assert_uint_le(wb.sq_dma.log[i].addr + wb.sq_dma.log[i].len, 64 * 64);
}
END_TEST

START_TEST(a_wqe_longer_than_its_ring_is_malformed)
{
	wb.qpc[1].log_sq_wqebbs = 2;
	build();
	post_write(1, 0, 32);
	grant(1, 0x100);
	ck_assert_uint_eq(want_wqe(1, 0).valid, 0);
}
END_TEST

START_TEST(inline_data_must_fit_its_segments)
{
	build();
	for (uint32_t bytes = 12; bytes <= 13; bytes++) {
		post_write(1, 0, 1);
		poke(1, 0, 1, &(uint8_t){RN_WQE_INLINE}, 1);
		poke(1, 0, 32, &bytes, 4);
		grant(1, 1);
		ck_assert_uint_eq(want_wqe(1, 0).valid, bytes == 12);
		forget(1);
		run(3);
	}
}
END_TEST

START_TEST(the_least_recently_used_queue_pair_leaves_the_cache)
{
	static const uint32_t order[] = {1, 2, 1, 3, 1, 2};

	wb.params.cache_sets = 1;
	wb.params.cache_ways = 2;
	build();
	for (unsigned i = 0; i < RN_ARRAY_LEN(order); i++) {
		post_write(order[i], 0, 1);
		grant(order[i], 1);
		want_wqe(order[i], 0);
	}
	/* QP 1 is hit twice; QP 2 has made way for QP 3. */
	ck_assert_uint_eq(count("sq_cache_hits"), 2);
	ck_assert_uint_eq(count("sq_cache_misses"), 4);
}
END_TEST

START_TEST(an_unreadable_queue_gives_a_dma_error)
{
	build();
	wb.qpc[1].sq_mkey = 0x999;
	grant(1, 1);
	want_work(1, RN_WORK_DMA_ERROR);
	ck_assert_uint_eq(count("sq_dma_errors"), 1);
}
END_TEST

/* Each row spoils one thing of a good WRITE WQE with one segment. */
START_TEST(malformed_wqes_are_passed_on_as_invalid)
{
	static const struct {
		size_t offset;
		size_t len;
		uint64_t value;
	} spoil[] = {
		{0, 1, RN_WQE_ATOMIC_CAS},
		{0, 1, RN_WQE_ATOMIC_FAA},
		{0, 1, RN_WQE_SEND_INV},
		{0, 1, 200},
		{2, 2, 1},	       /* index */
		{4, 4, 2u << 8 | 3},   /* another QP */
		{4, 4, 1u << 8},       /* no segment */
		{4, 4, 1u << 8 | 64},  /* too long */
		{4, 4, 1u << 8 | 5},   /* longer than what was rung */
		{4, 4, 1u << 8 | 1},   /* no remote address */
		{32, 4, 0x80000001},   /* segment */
		{1, 1, RN_WQE_INLINE}, /* 100 inline bytes in 16 */
	};

	build();
	for (unsigned i = 0; i < RN_ARRAY_LEN(spoil); i++) {
		post_write(1, 0, 1);
		poke(1, 0, spoil[i].offset, &spoil[i].value, spoil[i].len);
		grant(1, 1);
		ck_assert_msg(!want_wqe(1, 0).valid, "row %u", i);
		forget(1);
		run(2);
	}
	ck_assert_uint_eq(count("sq_malformed"), RN_ARRAY_LEN(spoil));
}
END_TEST

START_TEST(segments_and_sizes_have_their_limits)
{
	struct rn_hw_wqe_data half = {.bytes = 0x40000000, .lkey = 1};

	build();
	post_write(1, 0, 32);
	grant(1, 9);
	ck_assert(want_wqe(1, 0).valid);
	forget(1);
	post_write(1, 0, 33);
	grant(1, 9);
	ck_assert(!want_wqe(1, 0).valid);
	post_write(1, 0, 2);
	poke(1, 0, 32, &half, 16);
	poke(1, 0, 48, &half, 16);
	grant(1, 1);
	ck_assert_uint_eq(want_wqe(1, 0).total_bytes, 0x80000000u);
	forget(1);
	post_write(1, 0, 3);
	poke(1, 0, 32, &half, 16);
	poke(1, 0, 48, &half, 16);
	grant(1, 2);
	/* Transport refuses it. */
	ck_assert_uint_gt(want_wqe(1, 0).total_bytes, RN_MAX_MESSAGE_BYTES);
	forget(1);
	post_write(1, 0, 2);
	poke(1, 0, 32, &(uint32_t){0}, 4);
	grant(1, 1);
	struct rn_wqe wqe = want_wqe(1, 0);

	ck_assert(wqe.valid);
	ck_assert_uint_eq(wqe.sge_count, 1);
	ck_assert_uint_eq(wqe.sge[0].lkey, 2);
}
END_TEST

START_TEST(a_nop_completes_whatever_follows_its_ctrl)
{
	build();
	post_write(1, 0, 1);
	poke(1, 0, 0, &(uint8_t){RN_WQE_NOP}, 1);
	grant(1, 1);
	struct rn_wqe wqe = want_wqe(1, 0);

	ck_assert(wqe.valid);
	ck_assert_uint_eq(wqe.opcode, RN_WQE_NOP);
	ck_assert_uint_eq(wqe.total_bytes, 0);
}
END_TEST

START_TEST(forgetting_drops_cached_wqes)
{
	build();
	post_write(1, 0, 1);
	grant(1, 1);
	want_wqe(1, 0);
	poke(1, 0, 16, &(uint64_t){0xdead}, 8);
	forget(1);
	run(2);
	grant(1, 1);
	ck_assert_uint_eq(want_wqe(1, 0).raddr, 0xdead);
}
END_TEST

START_TEST(forgetting_restarts_a_fetch_under_way)
{
	build();
	post_write(1, 0, 1);
	post_write(1, 3, 1);
	set_sq_next(1, 3);
	wb.sq_dma.is_held = true;
	grant(1, 4);
	run(20);
	ck_assert_uint_eq(wb.sq_dma.count, 1);
	set_sq_next(1, 0); /* a set-back */
	forget(1);
	run(5);
	wb.sq_dma.is_held = false;
	ck_assert_uint_eq(want_wqe(1, 0).raddr, 0);
	ck_assert_uint_eq(wb.sq_dma.count, 2);
}
END_TEST

START_TEST(fetches_of_several_queue_pairs_overlap)
{
	wb.params.send_fetches = 3;
	build();
	wb.sq_dma.is_held = true;
	for (uint32_t qpn = 1; qpn <= 4; qpn++) {
		post_write(qpn, 0, 1);
		grant(qpn, 1);
	}
	run(50);
	ck_assert_uint_eq(wb.sq_dma.count, 3);
	wb.sq_dma.is_held = false;
	for (uint32_t qpn = 1; qpn <= 4; qpn++)
		want_wqe(qpn, 0);
}
END_TEST

START_TEST(work_waits_for_a_free_slot)
{
	struct rn_work work;

	wb.sq_slots.count = 1;
	build();
	post_write(1, 0, 1);
	post_write(2, 0, 1);
	grant(1, 1);
	grant(2, 1);
	work = want_work(1, RN_WORK_OK);
	run(50);
	ck_assert_ptr_null(rn_fifo_peek(wb.ports.work));
	rn_fifo_push(wb.ports.sq_free, &(struct rn_slot_free){.slot = work.slot});
	want_wqe(2, 0);
}
END_TEST

START_TEST(decode_latency_is_exact)
{
	wb.params.decode_latency_cycles = 9;
	build();
	post_write(1, 0, 1);
	wb.sq_dma.is_held = true;
	grant(1, 1);
	run(20);
	wb.sq_dma.is_held = false;
	run(1); /* the answer is pushed; the block sees it in the next cycle */
	run(1 + 9);
	ck_assert_ptr_null(rn_fifo_peek(wb.ports.work));
	run(1);
	ck_assert_ptr_nonnull(rn_fifo_peek(wb.ports.work));
	want_wqe(1, 0);
}
END_TEST

START_TEST(the_schedulers_question_for_the_page_is_answered)
{
	struct rn_bind bind;

	build();
	post_write(1, 0, 1);
	rn_fifo_push(wb.ports.grant,
		     &(struct rn_grant){.qpn = 1, .uar_page = PAGE + 1, .pi = 1, .bind = 1});
	want_work(1, RN_WORK_BAD_QP);
	ck_assert(rn_fifo_pop(wb.ports.bind, &bind));
	ck_assert_uint_eq(bind.qpn, 1);
	ck_assert_uint_eq(bind.uar_page, PAGE);
	ck_assert_uint_eq(bind.exists, 1);
	/* A queue pair that cannot send yet, or any more, is not there. */
	wb.qpc[2].state = RN_QPS_RESET;
	rn_fifo_push(wb.ports.grant,
		     &(struct rn_grant){.qpn = 2, .uar_page = PAGE, .pi = 1, .bind = 1});
	want_work(2, RN_WORK_BAD_QP);
	ck_assert(rn_fifo_pop(wb.ports.bind, &bind));
	ck_assert_uint_eq(bind.exists, 0);
	grant(1, 1);
	want_wqe(1, 0);
	ck_assert(!rn_fifo_pop(wb.ports.bind, &bind));
}
END_TEST

/* Random bytes in a block of just the WQE's size: a sanitizer sees every byte read beyond it. */
START_TEST(no_bytes_in_a_wqe_do_harm)
{
	struct rn_rng rng;
	unsigned valid = 0;

	build();
	rn_rng_init(&rng, 9, "bytes");
	for (unsigned round = 0; round < 200000; round++) {
		unsigned segments = (unsigned)rn_rng_below(&rng, 65);
		size_t bytes = 64 * rn_div_ceil(segments ? segments : 1, 4);
		uint8_t *data = malloc(bytes);
		struct rn_wqe wqe;

		for (size_t i = 0; i < bytes; i++)
			data[i] = (uint8_t)(rn_rng_next(&rng) & (i % 16 < 4 ? 0x8f : 0xff));
		data[0] &= 7;
		rn_put_le16(data + 2, 5);
		rn_put_le32(data + 4, 1u << 8 | segments);
		if (rn_rng_below(&rng, 2)) /* small segments and inline lengths */
			for (size_t i = 16; i < bytes; i += 16)
				rn_put_le32(data + i, (uint32_t)rn_rng_below(&rng, 1000));

		unsigned wqebbs = rn_wqe_send_wqebbs(data, 1, 5);
		const uint8_t *inline_data = rn_wqe_decode_send(data, wqebbs, &wqe);

		ck_assert_uint_eq(wqebbs * 64, segments && segments <= 63 ? bytes : 0);
		if (inline_data)
			ck_assert(inline_data >= data &&
				  inline_data + wqe.total_bytes <= data + bytes);
		if (wqe.valid) {
			valid++;
			ck_assert_uint_le(wqe.total_bytes,
					  RN_WQE_MAX_SGE * (uint64_t)RN_MAX_MESSAGE_BYTES);
			ck_assert_uint_le(wqe.sge_count, RN_WQE_MAX_SGE);
		}
		free(data);
	}
	ck_assert_uint_gt(valid, 10000);
}
END_TEST

/* Four QPs, WQEs of random length, random set-backs and DMA delays: each WQE arrives as it was posted. */
START_TEST(random_traffic_gets_every_wqe_right)
{
	struct rn_rng rng;
	uint16_t next[5] = {0}, pi[5] = {0};
	bool granted[5] = {false};
	unsigned served = 0;

	wb.params.cache_sets = 1;
	wb.params.cache_ways = 2;
	wb.params.batch_wqebbs = 5;
	build();
	rn_rng_init(&rng, 3, "wqe_fetch");
	for (unsigned round = 0; round < 40000; round++) {
		uint32_t qpn = 1 + (uint32_t)rn_rng_below(&rng, 4);
		unsigned sges = (unsigned)rn_rng_below(&rng, 20);
		uint16_t wqebbs = (uint16_t)((2 + sges + 3) / 4);
		struct rn_work work;

		if ((uint16_t)(pi[qpn] + wqebbs - next[qpn]) <= 1u << LOG_WQEBBS) {
			post_write(qpn, pi[qpn], sges);
			if (!rn_rng_below(&rng, 3))
				blueflame_from(PAGE, qpn, pi[qpn], sq_wqe(qpn, pi[qpn]));
			pi[qpn] += wqebbs;
		}
		if (!granted[qpn] && pi[qpn] != next[qpn]) {
			granted[qpn] = true;
			grant(qpn, pi[qpn]);
		} else if (!rn_rng_below(&rng, 8)) {
			forget(qpn);
		}
		wb.sq_dma.is_held = rn_rng_below(&rng, 3) != 0;
		run(1 + (unsigned)rn_rng_below(&rng, 6));
		while (rn_fifo_pop(wb.ports.work, &work)) {
			const struct rn_wqe *wqe = &wb.sq_slot[work.slot];
			uint32_t of = work.qpn;

			ck_assert_uint_eq(work.status, RN_WORK_OK);
			ck_assert(wqe->valid);
			ck_assert_uint_eq(wqe->wqe_idx, next[of]);
			ck_assert_uint_eq(wqe->raddr, next[of]);
			ck_assert_uint_eq(wqe->total_bytes, 100u * wqe->sge_count);
			/* Sometimes it needs another turn. */
			if (rn_rng_below(&rng, 4))
				next[of] += wqe->wqebbs;
			set_sq_next(of, next[of]);
			granted[of] = false;
			served++;
			rn_fifo_push(wb.ports.sq_free, &(struct rn_slot_free){.slot = work.slot});
		}
		wb.sq_dma.count -= wb.sq_dma.answered;
		memmove(wb.sq_dma.log, wb.sq_dma.log + wb.sq_dma.answered,
			wb.sq_dma.count * sizeof(wb.sq_dma.log[0]));
		memmove(wb.sq_dma.status, wb.sq_dma.status + wb.sq_dma.answered, wb.sq_dma.count);
		wb.sq_dma.answered = 0;
	}
	ck_assert_uint_gt(served, 5000);
	ck_assert_uint_gt(count("sq_cache_hits"), 100);
	ck_assert_uint_gt(count("blueflame_hits"), 10);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, a_wqe_is_read_from_the_queues_own_memory_and_decoded);
	tcase_add_test(tcase, one_read_brings_a_batch_and_no_more_than_was_rung);
	tcase_add_test(tcase, a_wqe_changed_before_its_fetch_takes_effect);
	tcase_add_test(tcase, a_wqe_not_rung_yet_is_never_prefetched);
	tcase_add_test(tcase, a_partly_sent_wqe_is_served_again_from_the_cache);
	tcase_add_test(tcase, nothing_old_is_served_after_the_ring_has_wrapped);
	tcase_add_test(tcase, indexes_of_16_bits_wrap);
	tcase_add_test(tcase, a_batch_ends_at_the_rings_end);
	tcase_add_test(tcase, a_wqe_longer_than_the_batch_is_read_on);
	tcase_add_test(tcase, a_wqe_that_goes_round_the_rings_end_is_put_together);
	tcase_add_test(tcase, a_cached_wqe_that_is_cut_off_is_read_again);
	tcase_add_test(tcase, inline_data_travels_in_a_buffer_of_the_slot);
	tcase_add_test(tcase, a_held_blueflame_wqe_needs_no_read);
	tcase_add_test(tcase, a_blueflame_wqe_of_a_strange_page_or_index_is_not_used);
	tcase_add_test(tcase, a_full_blueflame_store_drops_its_oldest);
	tcase_add_test(tcase, grants_that_may_not_send_are_refused);
	tcase_add_test(tcase, a_queue_pair_in_error_gets_its_wqe_whole_so_that_it_is_flushed_once);
	tcase_add_test(tcase, a_grant_with_nothing_to_do_is_answered_empty);
	tcase_add_test(tcase, a_producer_index_beyond_the_ring_is_bounded_by_it);
	tcase_add_test(tcase, a_wqe_longer_than_its_ring_is_malformed);
	tcase_add_test(tcase, inline_data_must_fit_its_segments);
	tcase_add_test(tcase, the_least_recently_used_queue_pair_leaves_the_cache);
	tcase_add_test(tcase, an_unreadable_queue_gives_a_dma_error);
	tcase_add_test(tcase, malformed_wqes_are_passed_on_as_invalid);
	tcase_add_test(tcase, segments_and_sizes_have_their_limits);
	tcase_add_test(tcase, a_nop_completes_whatever_follows_its_ctrl);
	tcase_add_test(tcase, forgetting_drops_cached_wqes);
	tcase_add_test(tcase, forgetting_restarts_a_fetch_under_way);
	tcase_add_test(tcase, fetches_of_several_queue_pairs_overlap);
	tcase_add_test(tcase, work_waits_for_a_free_slot);
	tcase_add_test(tcase, decode_latency_is_exact);
	tcase_add_test(tcase, the_schedulers_question_for_the_page_is_answered);
	tcase_add_test(tcase, no_bytes_in_a_wqe_do_harm);
	tcase_add_test(tcase, random_traffic_gets_every_wqe_right);
}

int main(void)
{
	TCase *tcase = tcase_create("wqe_fetch_send");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	add_tests(tcase);
	return run_suite(tcase, "wqe_fetch_send");
}
