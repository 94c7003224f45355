/*
 * The command unit: its queue, order, time, checks, set-up.
 */
#include <check.h>
#include <stddef.h>
#include <string.h>

#include "block/cmd/fixture.h"
#include "run_suite.h"

static struct fixture f;

START_TEST(init_tells_the_caches_the_port_and_the_status_register)
{
	struct rn_hw_init_hca hca = init_hca();
	uint32_t status = 0;

	fixture_start(&f);
	ck_assert_mem_eq(f.identity.smac, hca.smac, 6);
	ck_assert_mem_eq(f.identity.gid, hca.gid_table, sizeof(hca.gid_table));
	ck_assert(rn_fifo_pop(f.ports.status, &status));
	ck_assert_uint_eq(status, 1);
	qpc_at(&f, 3)->pd = 77;
	ck_assert_uint_eq(
		((struct rn_hw_qpc *)acquire(&f, RN_CONTEXT_CLIENT_TX, RN_CONTEXT_QP, 3))->pd, 77);
	/* Once only. */
	ck_assert_uint_eq(execute(&f, RN_CMD_INIT_HCA, 0, &hca, sizeof(hca)), RN_CMD_BAD_STATE);
	fixture_free(&f);
}
END_TEST

START_TEST(before_init_only_event_queues_can_be_made)
{
	struct rn_hw_eqc eqc = {.log_eqes = 6, .base_pa = 0x1000};
	struct rn_hw_init_hca hca = init_hca();

	fixture_prepare(&f, 0);
	fixture_build(&f);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_EQ, 1, &eqc, sizeof(eqc)), RN_CMD_OK);
	ck_assert_uint_eq(execute(&f, RN_CMD_QUERY_QP, 1, NULL, 0), RN_CMD_BAD_STATE);
	hca.log_qps = 25;
	ck_assert_uint_eq(execute(&f, RN_CMD_INIT_HCA, 0, &hca, sizeof(hca)), RN_CMD_BAD_PARAMETER);
	hca = init_hca();
	hca.mtt_pa += 8;
	ck_assert_uint_eq(execute(&f, RN_CMD_INIT_HCA, 0, &hca, sizeof(hca)), RN_CMD_BAD_PARAMETER);
	hca = init_hca();
	ck_assert_uint_eq(execute(&f, RN_CMD_INIT_HCA, 0, &hca, sizeof(hca)), RN_CMD_OK);
	ck_assert_uint_eq(execute(&f, RN_CMD_QUERY_QP, 1, NULL, 0), RN_CMD_BAD_STATE);
	fixture_free(&f);
}
END_TEST

START_TEST(bad_opcodes_indexes_and_mailboxes_have_their_status)
{
	struct rn_hw_cqc cqc = {.log_cqes = 4};
	uint32_t slot;

	fixture_start(&f);
	ck_assert_uint_eq(execute(&f, 0, 0, NULL, 0), RN_CMD_BAD_OPCODE);
	ck_assert_uint_eq(execute(&f, 14, 0, NULL, 0), RN_CMD_BAD_OPCODE);
	ck_assert_uint_eq(execute(&f, 255, 0, NULL, 0), RN_CMD_BAD_OPCODE);
	ck_assert_uint_eq(execute(&f, RN_CMD_QUERY_QP, 1u << LOG_NUMBERS, NULL, 0),
			  RN_CMD_BAD_INDEX);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_MKEY, UINT32_MAX, NULL, 0), RN_CMD_BAD_INDEX);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_EQ, 4, NULL, 0), RN_CMD_BAD_INDEX);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_CQ, 1, NULL, 0), RN_CMD_BAD_PARAMETER);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_CQ, 1, &cqc, sizeof(cqc) - 1),
			  RN_CMD_BAD_PARAMETER);
	slot = submit(&f, RN_CMD_CREATE_CQ, 1, &cqc, sizeof(cqc));
	entry_at(&f, slot)->in_pa += 4;
	ck_assert_uint_eq(finish(&f, slot), RN_CMD_BAD_PARAMETER);
	slot = submit(&f, RN_CMD_CREATE_CQ, 1, &cqc, sizeof(cqc));
	entry_at(&f, slot)->in_pa = MEMORY_BYTES;
	ck_assert_uint_eq(finish(&f, slot), RN_CMD_DMA_ERROR);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_CQ, 1, &cqc, sizeof(cqc)), RN_CMD_OK);
	slot = submit(&f, RN_CMD_QUERY_CQ, 1, NULL, 0);
	entry_at(&f, slot)->out_pa = 0;
	ck_assert_uint_eq(finish(&f, slot), RN_CMD_BAD_PARAMETER);
	slot = submit(&f, RN_CMD_QUERY_CQ, 1, NULL, 0);
	entry_at(&f, slot)->out_bytes = sizeof(cqc) - 1;
	ck_assert_uint_eq(finish(&f, slot), RN_CMD_BAD_PARAMETER);
	slot = submit(&f, RN_CMD_QUERY_CQ, 1, NULL, 0);
	entry_at(&f, slot)->owner = 0;
	ck_assert_uint_eq(finish(&f, slot), RN_CMD_BAD_PARAMETER);
	fixture_free(&f);
}
END_TEST

START_TEST(a_command_takes_its_latency_exactly_once)
{
	uint64_t first = 0;

	for (uint32_t ns = 0; ns < 5000; ns += 1000) {
		struct rn_hw_init_hca hca = init_hca();

		fixture_prepare(&f, 0);
		f.params.query_ns = ns;
		fixture_build(&f);
		execute(&f, RN_CMD_INIT_HCA, 0, &hca, sizeof(hca));
		uint64_t start = f.bench.cycle;
		ck_assert_uint_eq(execute(&f, RN_CMD_QUERY_CQ, 1, NULL, 0), RN_CMD_BAD_STATE);
		if (!ns)
			first = f.bench.cycle - start;
		/* A cycle is a nanosecond. */
		ck_assert_uint_eq(f.bench.cycle - start, first + ns);
		fixture_free(&f);
	}
}
END_TEST

START_TEST(commands_run_in_order_one_at_a_time_and_events_follow_the_write_back)
{
	uint32_t slots[10];

	fixture_start(&f);
	uint32_t first_record = f.cmd_dma->log_count;
	for (unsigned i = 0; i < 10; i++)
		slots[i] = submit(&f, RN_CMD_QUERY_CQ, i, NULL, 0);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_eq(finish(&f, slots[i]), RN_CMD_BAD_STATE);
	/* Fetch, write back, fetch, write back: none begins before the last one is answered. */
	ck_assert_uint_eq(f.cmd_dma->log_count - first_record, 20);
	for (unsigned i = 0; i < 20; i++) {
		const struct fake_dma_record *record = &f.cmd_dma->log[first_record + i];

		ck_assert_uint_eq(record->req.op, i % 2 ? RN_DMA_WRITE : RN_DMA_READ);
		ck_assert_uint_eq(record->req.addr, QUEUE_PA + slots[i / 2] * RN_CMD_BYTES);
		ck_assert_uint_gt(record->taken_ps, record[-1].answered_ps);
		if (i % 2)
			ck_assert_uint_eq(record->req.flags, RN_DMA_PHYSICAL | RN_DMA_LAST);
	}
	fixture_free(&f);
}
END_TEST

START_TEST(the_event_waits_for_the_write_back)
{
	fixture_start(&f);
	submit(&f, 0, 0, NULL, 0);
	bench_run(&f.bench, 26);
	ck_assert_uint_eq(f.cmd_dma->pending_count, 1); /* the write-back is on its way */
	fake_dma_hold(f.cmd_dma, true);
	bench_run(&f.bench, 200);
	ck_assert_ptr_null(rn_fifo_peek(f.ports.event));
	fake_dma_hold(f.cmd_dma, false);
	ck_assert(bench_wait(&f.bench, f.ports.event, 10));
	fixture_free(&f);
}
END_TEST

START_TEST(the_queue_wraps_and_one_doorbell_may_name_many)
{
	fixture_start(&f);
	for (unsigned round = 0; round < 5; round++) {
		uint32_t first = f.pi;

		for (unsigned i = 0; i < 60; i++) {
			submit(&f, RN_CMD_QUERY_CQ, i, NULL, 0);
			bench_run(&f.bench, 2);
		}
		for (unsigned i = 0; i < 60; i++)
			finish(&f, (first + i) % RN_CMD_QUEUE_ENTRIES);
	}
	ck_assert_uint_eq(bench_counter(&f.bench, "cmd", "commands"), 301);
	/* Ten at once. */
	uint32_t first = f.pi;
	for (unsigned i = 0; i < 10; i++) {
		*entry_at(&f, (first + i) % RN_CMD_QUEUE_ENTRIES) = (struct rn_hw_cmd){.owner = 1};
		f.pi++;
	}
	ring(&f);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_eq(finish(&f, (first + i) % RN_CMD_QUEUE_ENTRIES),
				  RN_CMD_BAD_OPCODE);
	fixture_free(&f);
}
END_TEST

START_TEST(doorbells_beyond_the_queue_are_counted_and_ignored)
{
	fixture_start(&f);
	uint32_t pi = f.pi;
	f.pi = pi + RN_CMD_QUEUE_ENTRIES + 1;
	ring(&f);
	f.pi = pi - 1;
	ring(&f);
	bench_run(&f.bench, 5000);
	ck_assert_ptr_null(rn_fifo_peek(f.ports.event));
	ck_assert_uint_eq(bench_counter(&f.bench, "cmd", "bad_rings"), 2);
	f.pi = pi;
	ck_assert_uint_eq(execute(&f, 0, 0, NULL, 0), RN_CMD_BAD_OPCODE);
	fixture_free(&f);
}
END_TEST

START_TEST(an_entry_that_cannot_be_read_is_skipped)
{
	fixture_start(&f);
	f.cmd_dma->memory.size = 0;
	submit(&f, 0, 0, NULL, 0);
	bench_run(&f.bench, 1000);
	ck_assert_ptr_null(rn_fifo_peek(f.ports.event));
	ck_assert_uint_eq(bench_counter(&f.bench, "cmd", "lost"), 1);
	f.cmd_dma->memory.size = MEMORY_BYTES;
	ck_assert_uint_eq(execute(&f, 0, 0, NULL, 0), RN_CMD_BAD_OPCODE);
	fixture_free(&f);
}
END_TEST

START_TEST(event_queues_are_made_once_and_destroyed_once)
{
	struct rn_hw_eqc eqc = {.log_eqes = 6, .vector = 3, .base_pa = 0x2000};

	fixture_start(&f);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_EQ, 2, NULL, 0), RN_CMD_BAD_STATE);
	ck_assert_ptr_null(last_note(&f, 'e'));
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_EQ, 2, &eqc, sizeof(eqc)), RN_CMD_OK);
	ck_assert_uint_eq(last_note(&f, 'e')->number, 2);
	ck_assert_uint_eq(last_note(&f, 'e')->op, 1);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_EQ, 2, &eqc, sizeof(eqc)), RN_CMD_BAD_STATE);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_EQ, 2, NULL, 0), RN_CMD_OK);
	ck_assert_uint_eq(last_note(&f, 'e')->op, 0);
	eqc.log_eqes = 40;
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_EQ, 2, &eqc, sizeof(eqc)),
			  RN_CMD_BAD_PARAMETER);
	fixture_free(&f);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("cmd");

	tcase_add_test(tcase, init_tells_the_caches_the_port_and_the_status_register);
	tcase_add_test(tcase, before_init_only_event_queues_can_be_made);
	tcase_add_test(tcase, bad_opcodes_indexes_and_mailboxes_have_their_status);
	tcase_add_test(tcase, a_command_takes_its_latency_exactly_once);
	tcase_add_test(tcase, commands_run_in_order_one_at_a_time_and_events_follow_the_write_back);
	tcase_add_test(tcase, the_event_waits_for_the_write_back);
	tcase_add_test(tcase, the_queue_wraps_and_one_doorbell_may_name_many);
	tcase_add_test(tcase, doorbells_beyond_the_queue_are_counted_and_ignored);
	tcase_add_test(tcase, an_entry_that_cannot_be_read_is_skipped);
	tcase_add_test(tcase, event_queues_are_made_once_and_destroyed_once);
	return run_suite(tcase, "cmd");
}
