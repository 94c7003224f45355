/*
 * What commands do to keys, CQs and QPs: through the caches, in the right order with tx, rx and cqe.
 */
#include <check.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "block/cmd/fixture.h"
#include "run_suite.h"

#define CONFIG_BYTES offsetof(struct rn_hw_qpc, requester)

static struct fixture f;

/* --- keys --- */

static struct rn_hw_mpt make_mpt(uint32_t index)
{
	return (struct rn_hw_mpt){.access = 1,
				  .log_page_bytes = 12,
				  .key = index << 8 | 0x11,
				  .pd = 7,
				  .start_va = 0x5000,
				  .length = 3 * 4096,
				  .mtt_index = 16};
}

static void set_mtt(uint64_t entry, uint64_t value)
{
	rn_put_le64(f.memory.bytes + MTT_PA + entry * RN_MTT_BYTES, value);
}

static struct rn_pte_rsp translate(uint32_t key)
{
	struct rn_pte_rsp rsp;

	rn_fifo_push(f.pte.req[RN_PTE_CLIENT_DMA],
		     &(struct rn_pte_req){.key = key, .pd = 7, .length = 1, .va = 0x5000});
	ck_assert(bench_wait(&f.bench, f.pte.rsp[RN_PTE_CLIENT_DMA], 1000));
	rn_fifo_pop(f.pte.rsp[RN_PTE_CLIENT_DMA], &rsp);
	return rsp;
}

static void give_back(const struct rn_pte_rsp *rsp)
{
	rn_fifo_push(f.pte.release, &(struct rn_pte_release){.epoch = rsp->epoch});
	bench_run(&f.bench, 3);
}

START_TEST(a_key_lives_from_create_to_destroy)
{
	struct rn_hw_mpt mpt = make_mpt(5);

	fixture_start(&f);
	set_mtt(16, 0x9000 | RN_MTT_PRESENT);
	ck_assert_uint_eq(translate(mpt.key).status, RN_PTE_BAD_KEY);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_MKEY, 5, &mpt, sizeof(mpt)), RN_CMD_OK);
	ck_assert_uint_eq(mpt_at(&f, 5)->state, 1);
	struct rn_pte_rsp rsp = translate(mpt.key);
	ck_assert_uint_eq(rsp.status, RN_PTE_OK);
	ck_assert_uint_eq(rsp.pa, 0x9000);
	give_back(&rsp);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_MKEY, 5, &mpt, sizeof(mpt)), RN_CMD_BAD_STATE);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_MKEY, 5, NULL, 0), RN_CMD_OK);
	ck_assert_uint_eq(mpt_at(&f, 5)->state, 0);
	ck_assert_uint_eq(translate(mpt.key).status, RN_PTE_BAD_KEY);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_MKEY, 5, NULL, 0), RN_CMD_BAD_STATE);
	fixture_free(&f);
}
END_TEST

START_TEST(destroying_a_key_waits_for_its_translations)
{
	struct rn_hw_mpt mpt = make_mpt(5);

	fixture_start(&f);
	set_mtt(16, 0x9000 | RN_MTT_PRESENT);
	execute(&f, RN_CMD_CREATE_MKEY, 5, &mpt, sizeof(mpt));
	struct rn_pte_rsp rsp = translate(mpt.key);
	uint32_t slot = submit(&f, RN_CMD_DESTROY_MKEY, 5, NULL, 0);
	bench_run(&f.bench, 10000);
	ck_assert_ptr_null(rn_fifo_peek(f.ports.event));
	give_back(&rsp);
	ck_assert_uint_eq(finish(&f, slot), RN_CMD_OK);
	fixture_free(&f);
}
END_TEST

/* The MTT line was read for a neighbour before the new region's entries were written. */
START_TEST(a_new_key_does_not_see_old_entries_in_a_neighbours_line)
{
	struct rn_hw_mpt mpt = make_mpt(5), neighbour = make_mpt(6);

	fixture_start(&f);
	neighbour.mtt_index = 19;
	set_mtt(16, 0x1000 | RN_MTT_PRESENT);
	set_mtt(19, 0x2000 | RN_MTT_PRESENT);
	execute(&f, RN_CMD_CREATE_MKEY, 6, &neighbour, sizeof(neighbour));
	struct rn_pte_rsp rsp = translate(neighbour.key);
	ck_assert_uint_eq(rsp.pa, 0x2000);
	give_back(&rsp);
	set_mtt(16, 0x7000 | RN_MTT_PRESENT);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_MKEY, 5, &mpt, sizeof(mpt)), RN_CMD_OK);
	rsp = translate(mpt.key);
	ck_assert_uint_eq(rsp.pa, 0x7000);
	give_back(&rsp);
	fixture_free(&f);
}
END_TEST

START_TEST(keys_that_do_not_fit_are_refused)
{
	fixture_start(&f);
	for (unsigned i = 0; i < 6; i++) {
		struct rn_hw_mpt mpt = make_mpt(5);

		if (i == 0)
			mpt.key = 6 << 8;
		else if (i == 1)
			mpt.log_page_bytes = 11;
		else if (i == 2)
			mpt.log_page_bytes = 31;
		else if (i == 3)
			mpt.mtt_index = (1u << LOG_MTTS) - 2;
		else if (i == 4)
			mpt.start_va = UINT64_MAX;
		else
			mpt.length = UINT64_MAX;
		ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_MKEY, 5, &mpt, sizeof(mpt)),
				  RN_CMD_BAD_PARAMETER);
		ck_assert_uint_eq(mpt_at(&f, 5)->state, 0);
	}
	struct rn_hw_mpt empty = make_mpt(5);
	empty.length = 0;
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_MKEY, 5, &empty, sizeof(empty)), RN_CMD_OK);
	fixture_free(&f);
}
END_TEST

/* --- CQs --- */

START_TEST(a_cq_is_made_queried_resized_and_destroyed)
{
	struct rn_hw_cqc cqc = {.log_cqes = 4, .eqn = 1, .mkey = 0x1234, .pd = 7, .pi = 99};

	fixture_start(&f);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_CQ, 3, &cqc, sizeof(cqc)), RN_CMD_OK);
	ck_assert_uint_eq(execute(&f, RN_CMD_CREATE_CQ, 3, &cqc, sizeof(cqc)), RN_CMD_BAD_STATE);
	struct rn_hw_cqc *line = acquire(&f, RN_CONTEXT_CLIENT_CQE, RN_CONTEXT_CQ, 3);
	ck_assert_uint_eq(line->state, 1);
	ck_assert_uint_eq(line->cqn, 3);
	ck_assert_uint_eq(line->mkey, 0x1234);
	ck_assert_uint_eq(line->pi, 0); /* not the driver's to say */
	line->pi = 5;
	release(&f, RN_CONTEXT_CLIENT_CQE, RN_CONTEXT_CQ, 3, true);
	ck_assert_uint_eq(execute(&f, RN_CMD_QUERY_CQ, 3, NULL, 0), RN_CMD_OK);
	ck_assert_uint_eq(((struct rn_hw_cqc *)out_of_last(&f))->pi, 5);
	cqc.log_cqes = 9;
	cqc.mkey = 0x5678;
	ck_assert_uint_eq(execute(&f, RN_CMD_MODIFY_CQ, 3, &cqc, sizeof(cqc)), RN_CMD_OK);
	ck_assert_uint_eq(last_note(&f, 'c')->op, 1); /* drained, not forgotten */
	execute(&f, RN_CMD_QUERY_CQ, 3, NULL, 0);
	ck_assert_uint_eq(((struct rn_hw_cqc *)out_of_last(&f))->pi, 5);
	ck_assert_uint_eq(((struct rn_hw_cqc *)out_of_last(&f))->log_cqes, 9);
	ck_assert_uint_eq(((struct rn_hw_cqc *)out_of_last(&f))->mkey, 0x5678);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_CQ, 3, NULL, 0), RN_CMD_OK);
	ck_assert_uint_eq(last_note(&f, 'c')->op, 0);
	ck_assert_uint_eq(last_note(&f, 'c')->number, 3);
	ck_assert_uint_eq(cqc_at(&f, 3)->state, 0);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_CQ, 3, NULL, 0), RN_CMD_BAD_STATE);
	ck_assert_uint_eq(execute(&f, RN_CMD_MODIFY_CQ, 3, &cqc, sizeof(cqc)), RN_CMD_BAD_STATE);
	fixture_free(&f);
}
END_TEST

START_TEST(a_resize_waits_until_cqe_does_not_hold_the_cq)
{
	struct rn_hw_cqc cqc = {.log_cqes = 4, .mkey = 1};

	fixture_start(&f);
	execute(&f, RN_CMD_CREATE_CQ, 3, &cqc, sizeof(cqc));
	struct rn_hw_cqc *line = acquire(&f, RN_CONTEXT_CLIENT_CQE, RN_CONTEXT_CQ, 3);
	cqc.mkey = 2;
	uint32_t slot = submit(&f, RN_CMD_MODIFY_CQ, 3, &cqc, sizeof(cqc));
	bench_run(&f.bench, 10000);
	ck_assert_uint_eq(line->mkey, 1);
	release(&f, RN_CONTEXT_CLIENT_CQE, RN_CONTEXT_CQ, 3, true);
	ck_assert_uint_eq(finish(&f, slot), RN_CMD_OK);
	fixture_free(&f);
}
END_TEST

/* --- QPs --- */

static struct rn_hw_modify_qp make_modify(uint8_t from, uint8_t to)
{
	struct rn_hw_modify_qp modify = {.cur_state = from, .new_state = to};
	struct rn_hw_qpc config = {.service = RN_QPT_RC,
				   .mtu_log2 = 10,
				   .pd = 7,
				   .log_sq_wqebbs = 6,
				   .dest_qpn = 100u + to,
				   .sq_psn = 0xabcdef};

	memcpy(modify.config, &config, CONFIG_BYTES);
	return modify;
}

static uint8_t modify_qp(uint32_t qpn, uint8_t from, uint8_t to)
{
	struct rn_hw_modify_qp modify = make_modify(from, to);

	return execute(&f, RN_CMD_MODIFY_QP, qpn, &modify, sizeof(modify));
}

static uint8_t create_qp(uint32_t qpn)
{
	struct rn_hw_qpc qpc = {
		.service = RN_QPT_RC, .state = RN_QPS_RTS, .pd = 7, .log_sq_wqebbs = 6};

	memset(qpc.requester, 0xee, sizeof(qpc.requester));
	return execute(&f, RN_CMD_CREATE_QP, qpn, &qpc, sizeof(qpc));
}

static struct rn_hw_qpc *query_qp(uint32_t qpn)
{
	ck_assert_uint_eq(execute(&f, RN_CMD_QUERY_QP, qpn, NULL, 0), RN_CMD_OK);
	return out_of_last(&f);
}

START_TEST(a_new_qp_is_in_reset_whatever_the_driver_wrote)
{
	static const uint8_t zeros[160];

	fixture_start(&f);
	memset(qpc_at(&f, 3)->responder, 0x55, 160); /* left from an earlier life */
	ck_assert_uint_eq(create_qp(3), RN_CMD_OK);
	struct rn_hw_qpc *qpc = query_qp(3);
	ck_assert_uint_eq(qpc->state, RN_QPS_RESET);
	ck_assert_uint_eq(qpc->qpn, 3);
	ck_assert_uint_eq(qpc->pd, 7);
	ck_assert_mem_eq(qpc->requester, zeros, 160);
	ck_assert_mem_eq(qpc->responder, zeros, 160);
	ck_assert_uint_eq(create_qp(3), RN_CMD_BAD_STATE);
	fixture_free(&f);
}
END_TEST

static void check_note(unsigned idx, char who, uint8_t op)
{
	ck_assert_int_eq(f.notes[idx].who, who);
	ck_assert_uint_eq(f.notes[idx].op, op);
	ck_assert_uint_eq(f.notes[idx].number, 3);
}

START_TEST(modify_pauses_changes_and_resumes_with_both_states)
{
	fixture_start(&f);
	create_qp(3);
	f.note_count = 0;
	ck_assert_uint_eq(modify_qp(3, RN_QPS_RESET, RN_QPS_INIT), RN_CMD_OK);
	ck_assert_uint_eq(f.note_count, 4);
	check_note(0, 't', RN_QP_PAUSE);
	check_note(1, 'r', RN_QP_PAUSE);
	check_note(2, 't', RN_QP_RESUME);
	check_note(3, 'r', RN_QP_RESUME);
	for (unsigned i = 2; i < 4; i++) {
		ck_assert_uint_eq(f.notes[i].old_state, RN_QPS_RESET);
		ck_assert_uint_eq(f.notes[i].new_state, RN_QPS_INIT);
	}
	/* rx answers after 50 cycles: the second pair comes after both answers. */
	ck_assert_uint_ge(f.notes[2].at_ps, f.notes[1].at_ps + 50 * BENCH_CYCLE_PS);
	ck_assert_uint_eq(query_qp(3)->state, RN_QPS_INIT);
	ck_assert_uint_eq(query_qp(3)->dest_qpn, 100 + RN_QPS_INIT);
	fixture_free(&f);
}
END_TEST

START_TEST(modify_leaves_the_sections_of_tx_and_rx_alone)
{
	fixture_start(&f);
	create_qp(3);
	struct rn_hw_qpc *line = acquire(&f, RN_CONTEXT_CLIENT_TX, RN_CONTEXT_QP, 3);
	memset(line->requester, 0x77, 160);
	memset(line->responder, 0x88, 160);
	release(&f, RN_CONTEXT_CLIENT_TX, RN_CONTEXT_QP, 3, true);
	ck_assert_uint_eq(modify_qp(3, RN_QPS_RESET, RN_QPS_INIT), RN_CMD_OK);
	ck_assert_uint_eq(query_qp(3)->requester[159], 0x77);
	ck_assert_uint_eq(query_qp(3)->responder[0], 0x88);
	fixture_free(&f);
}
END_TEST

START_TEST(modify_from_another_state_changes_nothing_and_resumes)
{
	fixture_start(&f);
	create_qp(3);
	f.note_count = 0;
	ck_assert_uint_eq(modify_qp(3, RN_QPS_INIT, RN_QPS_RTR), RN_CMD_BAD_STATE);
	ck_assert_uint_eq(f.note_count, 4);
	check_note(3, 'r', RN_QP_RESUME);
	ck_assert_uint_eq(f.notes[3].old_state, RN_QPS_RESET);
	ck_assert_uint_eq(f.notes[3].new_state, RN_QPS_RESET);
	ck_assert_uint_eq(query_qp(3)->dest_qpn, 0);
	fixture_free(&f);
}
END_TEST

START_TEST(modify_refuses_what_transport_cannot_work_with)
{
	fixture_start(&f);
	create_qp(3);
	modify_qp(3, RN_QPS_RESET, RN_QPS_INIT);
	struct rn_hw_modify_qp modify = make_modify(RN_QPS_INIT, RN_QPS_RTR);
	modify.config[offsetof(struct rn_hw_qpc, mtu_log2)] = 13;
	ck_assert_uint_eq(execute(&f, RN_CMD_MODIFY_QP, 3, &modify, sizeof(modify)),
			  RN_CMD_BAD_PARAMETER);
	modify = make_modify(RN_QPS_INIT, RN_QPS_RTR);
	modify.config[offsetof(struct rn_hw_qpc, sq_psn) + 3] = 1;
	ck_assert_uint_eq(execute(&f, RN_CMD_MODIFY_QP, 3, &modify, sizeof(modify)),
			  RN_CMD_BAD_PARAMETER);
	modify = make_modify(RN_QPS_INIT, 7);
	ck_assert_uint_eq(execute(&f, RN_CMD_MODIFY_QP, 3, &modify, sizeof(modify)),
			  RN_CMD_BAD_PARAMETER);
	ck_assert_uint_eq(query_qp(3)->state, RN_QPS_INIT);
	ck_assert_uint_eq(last_note(&f, 'r')->op, RN_QP_RESUME);
	fixture_free(&f);
}
END_TEST

START_TEST(to_reset_tx_and_rx_forget_and_their_sections_are_cleared)
{
	static const uint8_t zeros[160];

	fixture_start(&f);
	create_qp(3);
	modify_qp(3, RN_QPS_RESET, RN_QPS_INIT);
	struct rn_hw_qpc *line = acquire(&f, RN_CONTEXT_CLIENT_TX, RN_CONTEXT_QP, 3);
	memset(line->requester, 0x77, 160);
	memset(line->responder, 0x88, 160);
	release(&f, RN_CONTEXT_CLIENT_TX, RN_CONTEXT_QP, 3, true);
	f.note_count = 0;
	ck_assert_uint_eq(modify_qp(3, RN_QPS_INIT, RN_QPS_RESET), RN_CMD_OK);
	ck_assert_uint_eq(f.note_count, 4);
	check_note(0, 't', RN_QP_PAUSE);
	check_note(1, 'r', RN_QP_PAUSE);
	check_note(2, 't', RN_QP_FORGET);
	check_note(3, 'r', RN_QP_FORGET);
	struct rn_hw_qpc *qpc = query_qp(3);
	ck_assert_uint_eq(qpc->state, RN_QPS_RESET);
	ck_assert_mem_eq(qpc->requester, zeros, 160);
	ck_assert_mem_eq(qpc->responder, zeros, 160);
	fixture_free(&f);
}
END_TEST

START_TEST(a_destroyed_qp_is_forgotten_and_gone_from_memory)
{
	fixture_start(&f);
	create_qp(3);
	modify_qp(3, RN_QPS_RESET, RN_QPS_INIT);
	f.note_count = 0;
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_QP, 3, NULL, 0), RN_CMD_OK);
	ck_assert_uint_eq(f.note_count, 4);
	check_note(2, 't', RN_QP_FORGET);
	check_note(3, 'r', RN_QP_FORGET);
	ck_assert_uint_eq(qpc_at(&f, 3)->service, 0);
	ck_assert_uint_eq(qpc_at(&f, 3)->state, RN_QPS_RESET);
	ck_assert_uint_eq(execute(&f, RN_CMD_DESTROY_QP, 3, NULL, 0), RN_CMD_BAD_STATE);
	ck_assert_uint_eq(last_note(&f, 't')->op, RN_QP_RESUME);
	ck_assert_uint_eq(execute(&f, RN_CMD_QUERY_QP, 3, NULL, 0), RN_CMD_BAD_STATE);
	ck_assert_uint_eq(modify_qp(3, RN_QPS_RESET, RN_QPS_INIT), RN_CMD_BAD_STATE);
	ck_assert_uint_eq(create_qp(3), RN_CMD_OK);
	fixture_free(&f);
}
END_TEST

START_TEST(a_context_that_cannot_be_read_fails_the_command_and_ends_the_pause)
{
	fixture_start(&f);
	f.context_dma->memory.size = QPC_PA;
	ck_assert_uint_eq(create_qp(3), RN_CMD_DMA_ERROR);
	f.note_count = 0;
	ck_assert_uint_eq(modify_qp(3, RN_QPS_RESET, RN_QPS_INIT), RN_CMD_DMA_ERROR);
	ck_assert_uint_eq(f.note_count, 4);
	check_note(2, 't', RN_QP_RESUME);
	f.context_dma->memory.size = MEMORY_BYTES;
	ck_assert_uint_eq(create_qp(3), RN_CMD_OK);
	fixture_free(&f);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("objects");

	tcase_add_test(tcase, a_key_lives_from_create_to_destroy);
	tcase_add_test(tcase, destroying_a_key_waits_for_its_translations);
	tcase_add_test(tcase, a_new_key_does_not_see_old_entries_in_a_neighbours_line);
	tcase_add_test(tcase, keys_that_do_not_fit_are_refused);
	tcase_add_test(tcase, a_cq_is_made_queried_resized_and_destroyed);
	tcase_add_test(tcase, a_resize_waits_until_cqe_does_not_hold_the_cq);
	tcase_add_test(tcase, a_new_qp_is_in_reset_whatever_the_driver_wrote);
	tcase_add_test(tcase, modify_pauses_changes_and_resumes_with_both_states);
	tcase_add_test(tcase, modify_leaves_the_sections_of_tx_and_rx_alone);
	tcase_add_test(tcase, modify_from_another_state_changes_nothing_and_resumes);
	tcase_add_test(tcase, modify_refuses_what_transport_cannot_work_with);
	tcase_add_test(tcase, to_reset_tx_and_rx_forget_and_their_sections_are_cleared);
	tcase_add_test(tcase, a_destroyed_qp_is_forgotten_and_gone_from_memory);
	tcase_add_test(tcase, a_context_that_cannot_be_read_fails_the_command_and_ends_the_pause);
	return run_suite(tcase, "cmd_objects");
}
