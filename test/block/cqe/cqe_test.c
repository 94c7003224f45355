/*
 * The CQE writer: entries, parity, overrun, arming, order of CQE and event.
 */
#include "nic/cqe/cqe.h"

#include <check.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "block/common2/stub.h"
#include "hw/gen/rnic_hw.h"
#include "run_suite.h"

#define CQS 4
#define PAGE 9
#define PD 6

static struct bench bench;
static struct rn_cqe_params params;
static struct rn_cqe_ports ports;
static struct rn_cqe *cqe;
static struct stub_memory memory;
static struct stub_dma dma;
static struct stub_context context;
static struct rn_hw_cqc cqc[CQS];
static struct rn_context_sram sram = {
	.lines = (uint8_t *)cqc, .bytes = sizeof(cqc[0]), .count = CQS};

static uint32_t ring_base(uint32_t cqn)
{
	return 0x10000 * (cqn + 1);
}

static uint32_t dbr_pa(uint32_t cqn)
{
	return 0x1000 + 64 * cqn;
}

static void run(unsigned cycles)
{
	for (unsigned i = 0; i < cycles; i++) {
		bench_run(&bench, 1);
		stub_dma_serve(&dma);
		stub_context_serve(&context);
	}
}

static void build(uint8_t log_cqes)
{
	bench_init(&bench, 0);
	ports = (struct rn_cqe_ports){
		.tx_completion = bench_fifo(&bench, "tx", 64, sizeof(struct rn_completion)),
		.rx_completion = bench_fifo(&bench, "rx", 64, sizeof(struct rn_completion)),
		.cq_ring = bench_fifo(&bench, "ring", 16, sizeof(struct rn_cq_ring)),
		.ctl = bench_fifo(&bench, "ctl", 2, sizeof(struct rn_cq_ctl)),
		.context_rsp = bench_fifo(&bench, "crsp", 4, sizeof(struct rn_context_rsp)),
		.dma_rsp = bench_fifo(&bench, "drsp", 64, sizeof(struct rn_dma_rsp)),
		.event = bench_fifo(&bench, "event", 2, sizeof(struct rn_event)),
		.ctl_done = bench_fifo(&bench, "done", 2, sizeof(struct rn_ctl_done)),
		.context_req = bench_fifo(&bench, "creq", 4, sizeof(struct rn_context_req)),
		.dma_req = bench_fifo(&bench, "dreq", 4, sizeof(struct rn_dma_req)),
		.cqc = &sram,
	};
	cqe = rn_cqe_new(&bench.env, &params, &ports);
	memset(&memory, 0, sizeof(memory));
	memset(cqc, 0, sizeof(cqc));
	for (uint32_t cqn = 0; cqn < CQS; cqn++) {
		cqc[cqn] = (struct rn_hw_cqc){.state = 1,
					      .log_cqes = log_cqes,
					      .eqn = (uint8_t)(cqn + 1),
					      .mkey = 0x100 + cqn,
					      .uar_page = PAGE,
					      .cqn = cqn,
					      .dbr_pa = dbr_pa(cqn),
					      .pd = PD};
		memory.region[memory.regions++] =
			(struct stub_region){.key = 0x100 + cqn,
					     .pd = PD,
					     .base = ring_base(cqn),
					     .bytes = UINT32_C(64) << log_cqes};
	}
	dma = (struct stub_dma){
		.bench = &bench, .memory = &memory, .req = ports.dma_req, .rsp = ports.dma_rsp};
	context = (struct stub_context){
		.bench = &bench, .req = ports.context_req, .rsp = ports.context_rsp, .lines = CQS};
	run(1);
}

static void set_up(void)
{
	rn_params_set_defaults(&rn_cqe_param_table, &params);
	params.max_cqs = 16;
}

static void tear_down(void)
{
	ck_assert_uint_le(context.most_held, 1);
	rn_cqe_free(cqe);
	bench_fini(&bench);
}

static void complete(struct rn_fifo *fifo, uint32_t cqn, uint16_t idx, uint8_t status,
		     uint8_t solicited)
{
	rn_fifo_push(fifo, &(struct rn_completion){.cqn = cqn,
						   .qpn = 0x1234,
						   .byte_len = 100u + idx,
						   .imm_be = 0x01020304,
						   .src_qpn = 0x99,
						   .wqe_idx = idx,
						   .vendor_syndrome = 0x55,
						   .opcode = RN_CQE_RECV_IMM,
						   .status = status,
						   .req_opcode = RN_WQE_SEND,
						   .solicited = solicited});
}

static void complete_ok(uint32_t cqn, uint16_t idx)
{
	complete(ports.tx_completion, cqn, idx, RN_WC_SUCCESS, 0);
}

static void arm_from(uint32_t page, uint32_t cqn, uint32_t ci, uint8_t solicited)
{
	rn_fifo_push(ports.cq_ring,
		     &(struct rn_cq_ring){
			     .cqn = cqn, .uar_page = page, .ci = ci, .solicited = solicited});
}

static void arm(uint32_t cqn, uint32_t ci)
{
	arm_from(PAGE, cqn, ci, 0);
}

static void set_ci(uint32_t cqn, uint32_t ci)
{
	rn_put_le32(memory.bytes + dbr_pa(cqn), ci);
}

static struct rn_hw_cqe cqe_at(uint32_t cqn, unsigned idx)
{
	struct rn_hw_cqe entry;

	memcpy(&entry, memory.bytes + ring_base(cqn) + idx * sizeof(entry), sizeof(entry));
	return entry;
}

static void want_event(uint8_t type, uint32_t cqn)
{
	struct rn_event event = {0};

	ck_assert(rn_fifo_pop(ports.event, &event));
	ck_assert_uint_eq(event.type, type);
	ck_assert_uint_eq(event.number, cqn);
	ck_assert_uint_eq(event.eqn, cqn + 1);
}

static void want_no_event(void)
{
	ck_assert_ptr_null(rn_fifo_peek(ports.event));
}

static uint64_t count(const char *name)
{
	return bench_counter(&bench, "cqe", name);
}

START_TEST(a_completion_becomes_a_cqe)
{
	build(4);
	complete(ports.rx_completion, 2, 7, RN_WC_SUCCESS, 1);
	run(20);
	struct rn_hw_cqe entry = cqe_at(2, 0);

	ck_assert_uint_eq(entry.qpn, 0x1234);
	ck_assert_uint_eq(entry.wqe_idx, 7);
	ck_assert_uint_eq(entry.opcode, RN_CQE_RECV_IMM);
	ck_assert_uint_eq(entry.status, RN_WC_SUCCESS);
	ck_assert_uint_eq(entry.byte_len, 107);
	ck_assert_uint_eq(entry.imm_be, 0x01020304);
	ck_assert_uint_eq(entry.req_opcode, RN_WQE_SEND);
	ck_assert_uint_eq(entry.flags, 1);
	ck_assert_uint_eq(entry.vendor_syndrome, 0x55);
	ck_assert_uint_eq(entry.src_qpn, 0x99);
	ck_assert_uint_gt(entry.timestamp_ps, 0);
	ck_assert_uint_eq(entry.owner, 1);
	ck_assert_uint_eq(dma.log[0].access, RN_ACCESS_LOCAL_WRITE);
	ck_assert_uint_eq(dma.log[0].flags, 0);
	ck_assert_uint_eq(cqc[2].pi, 1);
	ck_assert(context.has_dirty);
	ck_assert_uint_eq(context.held, 0);
}
END_TEST

START_TEST(parity_changes_with_each_pass)
{
	build(1);
	for (uint16_t i = 0; i < 9; i++) {
		set_ci(0, i);
		complete_ok(0, i);
		run(30);
		ck_assert_uint_eq(cqe_at(0, i % 2).wqe_idx, i);
		ck_assert_uint_eq(cqe_at(0, i % 2).owner, i / 2 % 2 ? 0 : 1);
	}
}
END_TEST

START_TEST(cqes_of_a_queue_keep_their_order_in_flight)
{
	build(6);
	dma.is_held = true;
	for (uint16_t i = 0; i < 10; i++)
		complete_ok(1, i);
	run(100);
	ck_assert_uint_eq(dma.count, 10);
	for (uint16_t i = 0; i < 10; i++)
		ck_assert_uint_eq(dma.log[i].addr, i * 64u);
	dma.is_held = false;
	run(10);
}
END_TEST

START_TEST(no_more_cqes_are_in_flight_than_allowed)
{
	params.in_flight = 3;
	build(6);
	dma.is_held = true;
	for (uint16_t i = 0; i < 5; i++)
		complete_ok(1, i);
	run(100);
	ck_assert_uint_eq(dma.count, 3);
	dma.is_held = false;
	run(50);
	ck_assert_uint_eq(dma.count, 5);
	ck_assert_uint_eq(cqe_at(1, 4).wqe_idx, 4);
}
END_TEST

START_TEST(tx_and_rx_take_turns)
{
	build(6);
	for (uint16_t i = 0; i < 3; i++) {
		complete(ports.tx_completion, 1, i, RN_WC_SUCCESS, 0);
		complete(ports.rx_completion, 1, 100 + i, RN_WC_SUCCESS, 0);
	}
	run(100);
	for (uint16_t i = 0; i < 6; i++)
		ck_assert_uint_eq(cqe_at(1, i).wqe_idx, i / 2 + (i % 2 ? 100 : 0));
}
END_TEST

START_TEST(the_consumer_index_is_read_only_when_the_ring_looks_full)
{
	build(2);
	for (uint16_t i = 0; i < 4; i++)
		complete_ok(0, i);
	run(100);
	ck_assert_uint_eq(count("ci_reads"), 0);
	set_ci(0, 3);
	complete_ok(0, 4);
	run(50);
	ck_assert_uint_eq(count("ci_reads"), 1);
	ck_assert_uint_eq(cqe_at(0, 0).wqe_idx, 4);
	complete_ok(0, 5);
	complete_ok(0, 6);
	run(50);
	ck_assert_uint_eq(count("ci_reads"), 1);
	ck_assert_uint_eq(count("cqes"), 7);
}
END_TEST

START_TEST(an_arm_tells_the_consumer_index_too)
{
	build(2);
	for (uint16_t i = 0; i < 4; i++)
		complete_ok(0, i);
	run(100);
	arm(0, 4);
	run(20);
	complete_ok(0, 4);
	run(50);
	ck_assert_uint_eq(count("ci_reads"), 0);
	ck_assert_uint_eq(count("cqes"), 5);
}
END_TEST

START_TEST(an_overrun_puts_the_queue_into_error)
{
	build(2);
	for (uint16_t i = 0; i < 6; i++)
		complete_ok(0, i);
	run(200);
	want_event(RN_EQE_CQ_ERROR, 0);
	want_no_event();
	ck_assert_uint_eq(cqc[0].state, 2);
	ck_assert_uint_eq(count("cq_overruns"), 1);
	ck_assert_uint_eq(count("completions_dropped"), 2);
	ck_assert_uint_eq(cqe_at(0, 0).wqe_idx, 0);
	/* Others live on. */
	complete_ok(1, 5);
	run(50);
	ck_assert_uint_eq(cqe_at(1, 0).wqe_idx, 5);
}
END_TEST

START_TEST(a_lying_consumer_index_costs_only_its_own_queue)
{
	build(2);
	for (uint16_t i = 0; i < 4; i++)
		complete_ok(0, i);
	set_ci(0, 0x00800000);
	complete_ok(0, 4);
	run(100);
	want_event(RN_EQE_CQ_ERROR, 0);
	ck_assert_uint_eq(count("cqes"), 4);
}
END_TEST

START_TEST(a_cqe_that_cannot_be_written_puts_the_queue_into_error)
{
	build(4);
	memory.region[0].bytes = 64;
	for (uint16_t i = 0; i < 3; i++)
		complete_ok(0, i);
	run(100);
	want_event(RN_EQE_CQ_ERROR, 0);
	want_no_event();
	ck_assert_uint_eq(cqc[0].state, 2);
}
END_TEST

START_TEST(completions_to_no_queue_are_dropped)
{
	build(4);
	cqc[1].state = 0;
	complete_ok(1, 0);
	complete_ok(77, 0);
	run(50);
	ck_assert_uint_eq(count("completions_dropped"), 2);
	ck_assert_uint_eq(dma.count, 0);
	ck_assert_uint_eq(context.held, 0);
}
END_TEST

START_TEST(an_armed_queue_fires_once)
{
	build(4);
	arm(1, 0);
	run(20);
	want_no_event();
	complete_ok(1, 0);
	complete_ok(1, 1);
	run(50);
	want_event(RN_EQE_COMPLETION, 1);
	want_no_event();
}
END_TEST

START_TEST(an_arm_behind_the_producer_fires_at_once)
{
	build(4);
	complete_ok(1, 0);
	run(20);
	arm(1, 1);
	run(20);
	want_no_event();
	arm(1, 0);
	run(20);
	want_event(RN_EQE_COMPLETION, 1);
	/* And is used up. */
	complete_ok(1, 1);
	run(20);
	want_no_event();
}
END_TEST

START_TEST(a_solicited_arm_waits_for_a_solicited_or_failed_cqe)
{
	build(4);
	arm_from(PAGE, 1, 0, 1);
	complete(ports.rx_completion, 1, 0, RN_WC_SUCCESS, 0);
	run(30);
	want_no_event();
	complete(ports.rx_completion, 1, 1, RN_WC_SUCCESS, 1);
	run(30);
	want_event(RN_EQE_COMPLETION, 1);
	arm_from(PAGE, 1, 2, 1);
	complete(ports.rx_completion, 1, 2, RN_WC_WR_FLUSH_ERR, 0);
	run(30);
	want_event(RN_EQE_COMPLETION, 1);
}
END_TEST

START_TEST(a_late_solicited_arm_sees_an_earlier_solicited_cqe)
{
	build(4);
	complete(ports.rx_completion, 1, 0, RN_WC_SUCCESS, 1);
	complete(ports.rx_completion, 1, 1, RN_WC_SUCCESS, 0);
	run(30);
	arm_from(PAGE, 1, 1, 1);
	run(20);
	want_no_event();
	arm_from(PAGE, 1, 2, 1);
	run(20);
	want_no_event();
	arm_from(PAGE, 1, 0, 1);
	run(20);
	want_event(RN_EQE_COMPLETION, 1);
}
END_TEST

START_TEST(arming_for_any_outlasts_arming_for_solicited)
{
	build(4);
	arm(1, 0);
	run(20);
	arm_from(PAGE, 1, 0, 1);
	run(20);
	complete_ok(1, 0);
	run(20);
	want_event(RN_EQE_COMPLETION, 1);
}
END_TEST

START_TEST(no_event_before_its_cqe_is_answered)
{
	build(4);
	arm(1, 0);
	run(20);
	dma.is_held = true;
	complete_ok(1, 0);
	run(50);
	ck_assert_uint_eq(dma.count, 1);
	want_no_event();
	dma.is_held = false;
	run(3);
	want_event(RN_EQE_COMPLETION, 1);
}
END_TEST

static void answer_one(void)
{
	rn_fifo_push(ports.dma_rsp, &(struct rn_dma_rsp){.token = dma.log[dma.answered++].token});
	run(2);
}

START_TEST(an_arm_that_fires_at_once_waits_for_cqes_in_flight)
{
	build(4);
	dma.is_held = true;
	complete_ok(1, 0);
	complete_ok(1, 1);
	run(50);
	answer_one();
	complete_ok(1, 2);
	run(50);
	arm(1, 0);
	run(50);
	want_no_event();
	/* The second CQE's answer is not enough. */
	answer_one();
	run(10);
	want_no_event();
	dma.is_held = false;
	run(5);
	want_event(RN_EQE_COMPLETION, 1);
	want_no_event();
}
END_TEST

START_TEST(arms_from_a_strange_page_do_nothing)
{
	build(4);
	complete_ok(1, 0);
	run(20);
	arm_from(PAGE + 1, 1, 0, 0);
	arm(1, 1);
	arm_from(PAGE + 1, 1, 0, 0);
	arm_from(PAGE, 200, 0, 0);
	run(20);
	want_no_event();
	ck_assert_uint_eq(count("arms_ignored"), 3);
	complete_ok(1, 1);
	run(20);
	want_event(RN_EQE_COMPLETION, 1);
}
END_TEST

START_TEST(arms_drain_while_the_context_is_away)
{
	build(4);
	context.is_held_back = true;
	for (unsigned i = 0; i < 80; i++) {
		arm_from(i % 3 ? PAGE : PAGE + i % 2, i % CQS, 0, 0);
		run(1);
	}
	run(5);
	ck_assert_uint_eq(rn_fifo_occupancy(ports.cq_ring), 0);
	context.is_held_back = false;
	run(100);
	for (uint32_t cqn = 0; cqn < CQS; cqn++)
		ck_assert_uint_eq(cqc[cqn].armed, 1);
}
END_TEST

START_TEST(indexes_of_24_bits_wrap)
{
	build(2);
	cqc[0].pi = 0xfffffe;
	cqc[0].pi_solicited = 0xfffffe;
	cqc[0].ci = 0xfffffe;
	for (uint16_t i = 0; i < 3; i++)
		complete_ok(0, i);
	run(50);
	ck_assert_uint_eq(count("cqes"), 3);
	ck_assert_uint_eq(count("ci_reads"), 0);
	arm(0, 0xffffff); /* behind */
	run(20);
	want_event(RN_EQE_COMPLETION, 0);
	arm(0, 1); /* level: 0x1000001 */
	run(20);
	want_no_event();
	set_ci(0, 1);
	for (uint16_t i = 0; i < 4; i++)
		complete_ok(0, i);
	run(100);
	ck_assert_uint_eq(count("cqes"), 7);
}
END_TEST

START_TEST(destruction_waits_for_completions_and_cqes)
{
	struct rn_ctl_done done;

	build(4);
	dma.is_held = true;
	complete_ok(1, 0);
	complete(ports.rx_completion, 1, 1, RN_WC_SUCCESS, 0);
	rn_fifo_push(ports.ctl, &(struct rn_cq_ctl){.token = 5, .cqn = 1});
	run(50);
	ck_assert_uint_eq(dma.count, 2);
	ck_assert_ptr_null(rn_fifo_peek(ports.ctl_done));
	dma.is_held = false;
	run(5);
	ck_assert(rn_fifo_pop(ports.ctl_done, &done));
	ck_assert_uint_eq(done.token, 5);
}
END_TEST

START_TEST(destruction_waits_for_completions_not_taken_yet)
{
	build(4);
	context.is_held_back = true;
	complete_ok(2, 0);
	run(5);
	complete(ports.rx_completion, 1, 1, RN_WC_SUCCESS, 0);
	rn_fifo_push(ports.ctl, &(struct rn_cq_ctl){.token = 5, .cqn = 1});
	run(20);
	ck_assert_ptr_null(rn_fifo_peek(ports.ctl_done));
	context.is_held_back = false;
	run(30);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.ctl_done));
	ck_assert_uint_eq(cqe_at(1, 0).wqe_idx, 1);
}
END_TEST

START_TEST(destruction_waits_until_a_failed_write_is_reported)
{
	build(4);
	memory.region[1].bytes = 0;
	complete_ok(1, 0);
	complete_ok(2, 0);
	rn_fifo_push(ports.ctl, &(struct rn_cq_ctl){.token = 5, .cqn = 1});
	for (unsigned i = 0; i < 100 && !rn_fifo_peek(ports.ctl_done); i++)
		run(1);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.ctl_done));
	ck_assert_uint_eq(cqc[1].state, 2);
	want_event(RN_EQE_CQ_ERROR, 1);
}
END_TEST

START_TEST(a_resize_loses_no_arm)
{
	build(4);
	context.is_held_back = true;
	complete_ok(2, 0);
	run(5);
	arm(1, 0);
	rn_fifo_push(ports.ctl, &(struct rn_cq_ctl){.token = 5, .cqn = 1});
	run(5);
	context.is_held_back = false;
	run(50);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.ctl_done));
	ck_assert_uint_eq(cqc[1].armed, 1);
}
END_TEST

/* A program that arms, waits for the event, drains, arms again never misses a completion. */
START_TEST(no_wakeup_is_lost_under_random_timing)
{
	struct rn_rng rng;
	struct rn_event event;
	uint32_t produced = 0, consumed = 0;
	bool waits = false;

	build(5);
	rn_rng_init(&rng, 11, "cqe");
	for (unsigned i = 0; i < 30000; i++) {
		if (i < 25000 && produced - consumed < 30 && !rn_rng_below(&rng, 9))
			complete_ok(0, (uint16_t)produced++);
		dma.is_held = rn_rng_below(&rng, 4) != 0 && i < 28000;
		run(1);
		if (waits && !rn_fifo_pop(ports.event, &event))
			continue;
		waits = false;
		while (cqe_at(0, consumed % 32).owner == !(consumed / 32 % 2))
			consumed++;
		set_ci(0, consumed);
		if (!rn_rng_below(&rng, 3)) {
			arm(0, consumed);
			waits = true;
		}
	}
	ck_assert_uint_gt(produced, 1000);
	ck_assert_uint_eq(consumed, produced);
	ck_assert_uint_eq(count("cq_overruns"), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, a_completion_becomes_a_cqe);
	tcase_add_test(tcase, parity_changes_with_each_pass);
	tcase_add_test(tcase, cqes_of_a_queue_keep_their_order_in_flight);
	tcase_add_test(tcase, no_more_cqes_are_in_flight_than_allowed);
	tcase_add_test(tcase, tx_and_rx_take_turns);
	tcase_add_test(tcase, the_consumer_index_is_read_only_when_the_ring_looks_full);
	tcase_add_test(tcase, an_arm_tells_the_consumer_index_too);
	tcase_add_test(tcase, an_overrun_puts_the_queue_into_error);
	tcase_add_test(tcase, a_lying_consumer_index_costs_only_its_own_queue);
	tcase_add_test(tcase, a_cqe_that_cannot_be_written_puts_the_queue_into_error);
	tcase_add_test(tcase, completions_to_no_queue_are_dropped);
	tcase_add_test(tcase, an_armed_queue_fires_once);
	tcase_add_test(tcase, an_arm_behind_the_producer_fires_at_once);
	tcase_add_test(tcase, a_solicited_arm_waits_for_a_solicited_or_failed_cqe);
	tcase_add_test(tcase, a_late_solicited_arm_sees_an_earlier_solicited_cqe);
	tcase_add_test(tcase, arming_for_any_outlasts_arming_for_solicited);
	tcase_add_test(tcase, no_event_before_its_cqe_is_answered);
	tcase_add_test(tcase, an_arm_that_fires_at_once_waits_for_cqes_in_flight);
	tcase_add_test(tcase, arms_from_a_strange_page_do_nothing);
	tcase_add_test(tcase, arms_drain_while_the_context_is_away);
	tcase_add_test(tcase, indexes_of_24_bits_wrap);
	tcase_add_test(tcase, destruction_waits_for_completions_and_cqes);
	tcase_add_test(tcase, destruction_waits_for_completions_not_taken_yet);
	tcase_add_test(tcase, destruction_waits_until_a_failed_write_is_reported);
	tcase_add_test(tcase, a_resize_loses_no_arm);
	tcase_add_test(tcase, no_wakeup_is_lost_under_random_timing);
}

int main(void)
{
	TCase *tcase = tcase_create("cqe");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	add_tests(tcase);
	return run_suite(tcase, "cqe");
}
