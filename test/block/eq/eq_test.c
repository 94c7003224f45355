/*
 * Event queues: EQE, then MSI-X; parity; creation and destruction.
 */
#include "nic/eq/eq.h"

#include <check.h>
#include <string.h>

#include "block/common2/stub.h"
#include "hw/gen/rnic_hw.h"
#include "nic/msg/control.h"
#include "run_suite.h"

#define RING_PA 0x4000

static struct bench bench;
static struct rn_eq_params params;
static struct rn_eq_ports ports;
static struct rn_eq *eq;
static struct stub_memory memory;
static struct stub_dma dma;

static void run(unsigned cycles)
{
	for (unsigned i = 0; i < cycles; i++) {
		bench_run(&bench, 1);
		stub_dma_serve(&dma);
	}
}

static void build(void)
{
	bench_init(&bench, 0);
	ports = (struct rn_eq_ports){
		.cqe_event = bench_fifo(&bench, "cqe", 8, sizeof(struct rn_event)),
		.tx_event = bench_fifo(&bench, "tx", 8, sizeof(struct rn_event)),
		.rx_event = bench_fifo(&bench, "rx", 8, sizeof(struct rn_event)),
		.cmd_event = bench_fifo(&bench, "cmd", 8, sizeof(struct rn_event)),
		.ctl = bench_fifo(&bench, "ctl", 2, sizeof(struct rn_eq_ctl)),
		.ctl_done = bench_fifo(&bench, "done", 2, sizeof(struct rn_ctl_done)),
		.dma_req = bench_fifo(&bench, "req", 4, sizeof(struct rn_dma_req)),
		.dma_rsp = bench_fifo(&bench, "rsp", 16, sizeof(struct rn_dma_rsp)),
	};
	eq = rn_eq_new(&bench.env, &params, &ports);
	dma = (struct stub_dma){
		.bench = &bench, .memory = &memory, .req = ports.dma_req, .rsp = ports.dma_rsp};
	memset(&memory, 0, sizeof(memory));
	run(1);
}

static void set_up(void)
{
	rn_params_set_defaults(&rn_eq_param_table, &params);
}

static void tear_down(void)
{
	rn_eq_free(eq);
	bench_fini(&bench);
}

static bool control(bool create, uint8_t eqn, uint8_t log_eqes)
{
	struct rn_ctl_done done;
	bool is_done;

	rn_fifo_push(ports.ctl, &(struct rn_eq_ctl){.create = create,
						    .eqn = eqn,
						    .log_eqes = log_eqes,
						    .vector = (uint16_t)(eqn + 100),
						    .base_pa = RING_PA});
	run(4);
	is_done = rn_fifo_pop(ports.ctl_done, &done);
	ck_assert(!is_done || done.token == eqn);
	return is_done;
}

static void raise_event(struct rn_fifo *fifo, uint8_t eqn, uint8_t type, uint32_t number)
{
	rn_fifo_push(fifo, &(struct rn_event){.eqn = eqn, .type = type, .number = number});
}

static struct rn_hw_eqe eqe_at(unsigned idx)
{
	struct rn_hw_eqe eqe;

	memcpy(&eqe, memory.bytes + RING_PA + idx * sizeof(eqe), sizeof(eqe));
	return eqe;
}

START_TEST(an_event_is_written_and_then_interrupts)
{
	build();
	ck_assert(control(true, 2, 3));
	raise_event(ports.tx_event, 2, RN_EQE_QP_EVENT, 77);
	run(10);
	ck_assert_uint_eq(dma.count, 2);
	ck_assert_uint_eq(dma.log[0].op, RN_DMA_WRITE);
	ck_assert_uint_eq(dma.log[0].flags, RN_DMA_PHYSICAL);
	ck_assert_uint_eq(dma.log[1].op, RN_DMA_MSI);
	ck_assert_uint_eq(dma.log[1].addr, 102);
	ck_assert_uint_eq(eqe_at(0).type, RN_EQE_QP_EVENT);
	ck_assert_uint_eq(eqe_at(0).number, 77);
	ck_assert_uint_eq(eqe_at(0).owner, 1);
	ck_assert_uint_gt(eqe_at(0).timestamp_ps, 0);
}
END_TEST

START_TEST(no_interrupt_before_its_eqe_is_answered)
{
	build();
	ck_assert(control(true, 2, 3));
	dma.is_held = true;
	raise_event(ports.tx_event, 2, RN_EQE_QP_EVENT, 77);
	run(50);
	ck_assert_uint_eq(dma.count, 1);
	dma.is_held = false;
	run(3);
	ck_assert_uint_eq(dma.count, 2);
}
END_TEST

START_TEST(parity_changes_with_each_pass)
{
	build();
	ck_assert(control(true, 1, 1));
	for (uint32_t i = 0; i < 5; i++) {
		raise_event(ports.cqe_event, 1, RN_EQE_COMPLETION, i);
		run(10);
		ck_assert_uint_eq(eqe_at(i % 2).number, i);
		ck_assert_uint_eq(eqe_at(i % 2).owner, i / 2 % 2 ? 0 : 1);
	}
}
END_TEST

START_TEST(sources_take_turns)
{
	build();
	ck_assert(control(true, 1, 4));
	for (unsigned i = 0; i < 2; i++) {
		raise_event(ports.cqe_event, 1, RN_EQE_COMPLETION, 10 + i);
		raise_event(ports.tx_event, 1, RN_EQE_QP_EVENT, 20 + i);
		raise_event(ports.cmd_event, 1, RN_EQE_COMMAND, 40 + i);
	}
	run(60);
	static const uint32_t want[] = {10, 20, 40, 11, 21, 41};

	for (unsigned i = 0; i < 6; i++)
		ck_assert_uint_eq(eqe_at(i).number, want[i]);
}
END_TEST

START_TEST(an_event_without_its_queue_is_counted)
{
	build();
	raise_event(ports.rx_event, 3, RN_EQE_QP_EVENT, 1);
	raise_event(ports.rx_event, 200, RN_EQE_QP_EVENT, 1);
	run(10);
	ck_assert_uint_eq(dma.count, 0);
	ck_assert_uint_eq(bench_counter(&bench, "eq", "dropped_no_eq"), 2);
}
END_TEST

START_TEST(destruction_waits_for_what_is_on_its_way)
{
	build();
	ck_assert(control(true, 1, 4));
	dma.is_held = true;
	raise_event(ports.rx_event, 1, RN_EQE_QP_EVENT, 1);
	run(5);
	ck_assert(!control(false, 1, 0));
	dma.is_held = false;
	run(10);
	ck_assert_ptr_nonnull(rn_fifo_peek(ports.ctl_done));
	raise_event(ports.rx_event, 1, RN_EQE_QP_EVENT, 2);
	run(10);
	ck_assert_uint_eq(bench_counter(&bench, "eq", "dropped_no_eq"), 1);
	ck_assert_uint_eq(bench_counter(&bench, "eq", "interrupts"), 1);
}
END_TEST

START_TEST(events_wait_when_all_slots_are_in_use)
{
	params.in_flight = 2;
	build();
	ck_assert(control(true, 1, 4));
	dma.is_held = true;
	for (uint32_t i = 0; i < 4; i++)
		raise_event(ports.rx_event, 1, RN_EQE_QP_EVENT, i);
	run(20);
	ck_assert_uint_eq(dma.count, 2);
	dma.is_held = false;
	run(40);
	ck_assert_uint_eq(dma.count, 8);
	ck_assert_uint_eq(eqe_at(3).number, 3);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("eq");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, an_event_is_written_and_then_interrupts);
	tcase_add_test(tcase, no_interrupt_before_its_eqe_is_answered);
	tcase_add_test(tcase, parity_changes_with_each_pass);
	tcase_add_test(tcase, sources_take_turns);
	tcase_add_test(tcase, an_event_without_its_queue_is_counted);
	tcase_add_test(tcase, destruction_waits_for_what_is_on_its_way);
	tcase_add_test(tcase, events_wait_when_all_slots_are_in_use);
	return run_suite(tcase, "eq");
}
