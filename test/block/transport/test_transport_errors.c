/*
 * Requests that are refused, work that cannot be done, credits.
 */
#include <check.h>
#include <stdlib.h>

#include "block/transport/world.h"
#include "nic/transport/tables.h"
#include "wire/opcode.h"

#define US UINT64_C(1000000)
#define REMOTE 0x40000u
#define PSN0 0x123400u

static void check_statuses(const struct world *world, unsigned host, const uint8_t *statuses,
			   unsigned count)
{
	ck_assert_uint_eq(world->host[host].completions, count);
	for (unsigned i = 0; i < count; i++)
		ck_assert_uint_eq(world->host[host].completion[i].status, statuses[i]);
}

static unsigned events(const struct world *world, unsigned host, uint8_t subtype)
{
	unsigned count = 0;

	for (unsigned i = 0; i < world->host[host].events; i++)
		count += world->host[host].event[i].type == RN_EQE_QP_EVENT &&
			 world->host[host].event[i].subtype == subtype;
	return count;
}

enum refusal { BAD_KEY, BAD_PD, OUT_OF_BOUNDS, NO_RIGHT_OF_KEY, NO_RIGHT_OF_QP, REFUSALS };

static void spoil(struct world *world, enum refusal refusal, struct rn_wqe *wqe)
{
	switch (refusal) {
	case BAD_KEY:
		wqe->rkey = 0x9900;
		break;
	case BAD_PD:
		world->host[1].key[0].pd = 2;
		break;
	case OUT_OF_BOUNDS:
		wqe->raddr = WORLD_VA + WORLD_MEMORY - 100;
		break;
	case NO_RIGHT_OF_KEY:
		world->host[1].key[0].access = 1;
		break;
	default:
		world_qpc(world, 1, 1)->access = 1;
		break;
	}
}

static void refuse(uint8_t opcode, enum refusal refusal)
{
	static const uint8_t flushes[] = {RN_WC_WR_FLUSH_ERR, RN_WC_WR_FLUSH_ERR};
	struct world *world = world_new(0);
	bool is_request = refusal == NO_RIGHT_OF_QP;
	uint8_t statuses[] = {is_request ? RN_WC_REM_INV_REQ_ERR : RN_WC_REM_ACCESS_ERR,
			      RN_WC_WR_FLUSH_ERR, RN_WC_WR_FLUSH_ERR};

	world_start(world);
	for (unsigned i = 0; i < 2; i++)
		world_recv(world, 1, 1, 0, 64);
	for (unsigned i = 0; i < 3; i++) {
		struct rn_wqe *wqe = world_send(world, 0, 1, opcode, 0, REMOTE, 3000);

		if (!i)
			spoil(world, refusal, wqe);
	}
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	check_statuses(world, 0, statuses, 3);
	check_statuses(world, 1, flushes, 2);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(world->host[0].completion[i].wqe_idx, i);
	ck_assert_uint_eq(world_naks(world, 1, is_request ? 0x61 : 0x62), 1);
	ck_assert_uint_eq(events(world, 1, RN_QP_EVENT_ACCESS_ERR), !is_request);
	ck_assert_uint_eq(events(world, 1, RN_QP_EVENT_REQ_ERR), is_request);
	ck_assert_uint_eq(world->host[1].memory[REMOTE], 0);
	ck_assert_uint_eq(world_requester(world, 0, 1)->error, 1);
	ck_assert_uint_eq(world_responder(world, 0, 1)->error, 1);
	ck_assert_uint_eq(world_requester(world, 1, 1)->error, 1);
	ck_assert_uint_eq(world_responder(world, 1, 1)->error, 1);
	world_free(world, true);
}

START_TEST(writes_without_the_right_are_refused)
{
	refuse(RN_WQE_RDMA_WRITE, (enum refusal)_i);
}
END_TEST

START_TEST(reads_without_the_right_are_refused)
{
	refuse(RN_WQE_RDMA_READ, (enum refusal)_i);
}
END_TEST

START_TEST(a_zero_length_request_checks_no_key)
{
	static const uint8_t statuses[] = {RN_WC_SUCCESS, RN_WC_SUCCESS};
	struct world *world = world_new(0);

	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, 0, 0)->rkey = 0x9900;
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, 0, 0)->rkey = 0x9900;
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_statuses(world, 0, statuses, 2);
	world_free(world, true);
}
END_TEST

START_TEST(earlier_work_completes_before_an_error)
{
	static const uint8_t statuses[] = {RN_WC_SUCCESS, RN_WC_SUCCESS, RN_WC_REM_ACCESS_ERR,
					   RN_WC_WR_FLUSH_ERR};
	struct world *world = world_new(0);

	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 3000);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 3000);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 3000)->rkey = 0x9900;
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 3000)->flags = 0;
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	check_statuses(world, 0, statuses, 4);
	world_free(world, true);
}
END_TEST

START_TEST(a_send_too_long_for_its_receive_fails_on_both_sides)
{
	static const uint8_t sender[] = {RN_WC_REM_INV_REQ_ERR};
	static const uint8_t receiver[] = {RN_WC_LOC_LEN_ERR, RN_WC_WR_FLUSH_ERR};
	static const uint32_t lengths[] = {100, 1024, 2000};
	struct world *world = world_new(0);

	world_start(world);
	world_recv(world, 1, 1, REMOTE, lengths[_i] - 1);
	world_recv(world, 1, 1, REMOTE, 4000);
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, lengths[_i]);
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	check_statuses(world, 0, sender, 1);
	check_statuses(world, 1, receiver, 2);
	ck_assert_uint_eq(world->host[1].completion[1].wqe_idx, 1);
	ck_assert_uint_eq(world_naks(world, 1, 0x61), 1);
	ck_assert_uint_eq(world_count(world, 1, "resp_local_length_error"), 1);
	world_free(world, true);
}
END_TEST

START_TEST(a_bad_local_key_fails_its_wqe_after_the_earlier_ones)
{
	static const uint8_t statuses[] = {RN_WC_SUCCESS, RN_WC_LOC_PROT_ERR, RN_WC_WR_FLUSH_ERR};
	struct world *world = world_new(0);

	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 3000);
	world_send(world, 0, 1, _i ? RN_WQE_RDMA_READ : RN_WQE_RDMA_WRITE, 0, REMOTE, 3000)
		->sge[0]
		.lkey = 0x9900;
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 3000);
	world_ring(world, 0, 1);
	world_run(world, 5000 * US);
	check_statuses(world, 0, statuses, 3);
	world_free(world, true);
}
END_TEST

START_TEST(a_read_into_memory_without_local_write_fails)
{
	static const uint8_t statuses[] = {RN_WC_LOC_PROT_ERR};
	struct world *world = world_new(0);

	world->host[0].key[0].access = 14;
	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 3000);
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	check_statuses(world, 0, statuses, 1);
	world_free(world, true);
}
END_TEST

START_TEST(a_receive_buffer_with_a_bad_key_is_an_operational_error)
{
	static const uint8_t sender[] = {RN_WC_REM_OP_ERR};
	static const uint8_t receiver[] = {RN_WC_LOC_PROT_ERR, RN_WC_WR_FLUSH_ERR};
	struct world *world = world_new(0);

	world_start(world);
	world_recv(world, 1, 1, REMOTE, 4000)->sge[0].lkey = 0x9900;
	world_recv(world, 1, 1, REMOTE, 4000);
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 3000);
	world_ring(world, 0, 1);
	world_run(world, 5000 * US);
	check_statuses(world, 0, sender, 1);
	check_statuses(world, 1, receiver, 2);
	ck_assert_uint_eq(world_naks(world, 1, 0x63), 1);
	world_free(world, true);
}
END_TEST

START_TEST(response_data_that_vanishes_is_naked_in_its_place)
{
	static const uint8_t statuses[] = {RN_WC_REM_OP_ERR, RN_WC_WR_FLUSH_ERR};
	struct world *world = world_new(0);

	world_start(world);
	world->host[1].dma_fail_req = world->host[1].ports.resp_dma_req;
	world->host[1].dma_fail_nth = 3;
	world->host[1].dma_fail_status = RN_DMA_ABORT;
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 5000);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 5000);
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	check_statuses(world, 0, statuses, 2);
	ck_assert_uint_eq(world_frames(world, 1, -1), 3);
	ck_assert_uint_eq(world_frame(world, 1, -1, 2)->packet.opcode, RN_BTH_ACKNOWLEDGE);
	ck_assert_uint_eq(world_frame(world, 1, -1, 2)->packet.psn, PSN0 + 2);
	ck_assert_uint_eq(world_frame(world, 1, -1, 2)->packet.aeth_syndrome, 0x63);
	ck_assert_uint_eq(world_responder(world, 1, 1)->error, 1);
	world_free(world, true);
}
END_TEST

START_TEST(memory_that_vanishes_under_a_write_is_an_operational_error)
{
	static const uint8_t statuses[] = {RN_WC_REM_OP_ERR};
	struct world *world = world_new(0);

	world_start(world);
	world->host[1].dma_fail_req = world->host[1].ports.rx_dma_req;
	world->host[1].dma_fail_nth = 2;
	world->host[1].dma_fail_status = RN_DMA_ABORT;
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 5000);
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	check_statuses(world, 0, statuses, 1);
	ck_assert_uint_eq(world_naks(world, 1, 0x63), 1);
	world_free(world, true);
}
END_TEST

START_TEST(malformed_work_completes_with_a_local_error)
{
	static const uint8_t faults[] = {RN_WC_LOC_QP_OP_ERR, RN_WC_LOC_LEN_ERR,
					 RN_WC_LOC_QP_OP_ERR};
	struct world *world = world_new(0);
	uint8_t statuses[] = {RN_WC_SUCCESS, faults[_i], RN_WC_WR_FLUSH_ERR};
	struct rn_wqe *wqe;

	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 3000);
	wqe = world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 3000);
	if (_i == 0)
		wqe->valid = 0;
	else if (_i == 1)
		wqe->total_bytes = RN_MAX_MESSAGE_BYTES + UINT64_C(1);
	else
		wqe->opcode = RN_WQE_ATOMIC_CAS;
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 3000);
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	check_statuses(world, 0, statuses, 3);
	world_free(world, true);
}
END_TEST

START_TEST(more_reads_than_the_responder_allows_are_refused)
{
	struct world *world = world_new(0);

	world_qpc(world, 1, 1)->max_dest_rd_atomic = 1;
	world_start(world);
	for (unsigned i = 0; i < 4; i++)
		world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 50000);
	world_ring(world, 0, 1);
	world_run(world, 5000 * US);
	ck_assert_uint_eq(world_naks(world, 1, 0x61), 1);
	ck_assert_uint_eq(world->host[0].completions, 4);
	ck_assert_uint_eq(world->host[0].completion[3].status, RN_WC_WR_FLUSH_ERR);
	world_free(world, true);
}
END_TEST

START_TEST(strangers_are_dropped_and_counted)
{
	static const char *const counters[] = {"rx_unknown_qp", "rx_bad_state", "rx_bad_pkey"};
	struct world *world = world_new(0);

	world_qpc(world, 0, 1)->timeout = 0;
	world_start(world);
	if (_i == 0)
		world_qpc(world, 0, 1)->dest_qpn = 0x123456;
	else if (_i == 1)
		world_forget(world, 1, 1);
	else
		world_qpc(world, 0, 1)->pkey = 0x8001;
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	ck_assert_uint_eq(world_count(world, 1, counters[_i]), 1);
	ck_assert_uint_eq(world_frames(world, 1, -1), 0);
	world_free(world, true);
}
END_TEST

START_TEST(credits_limit_sends_to_one_beyond_what_is_posted)
{
	struct world *world = world_new(0);

	world_start(world);
	for (unsigned i = 0; i < 4; i++)
		world_recv(world, 1, 1, REMOTE, 64);
	/* The first SEND learns that three are left. */
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 64);
	world_ring(world, 0, 1);
	world_run(world, 50 * US);
	ck_assert_uint_eq(world_frame(world, 1, -1, 0)->packet.aeth_syndrome, 3);
	for (unsigned i = 0; i < 8; i++)
		world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 64);
	world_ring(world, 0, 1);
	/* A round trip takes longer than this. */
	world_run(world, US + US / 2);
	ck_assert_uint_eq(world_frames(world, 0, -1), 5);
	for (unsigned i = 0; i < 5; i++)
		world_recv(world, 1, 1, REMOTE, 64);
	world_run(world, 500 * US);
	ck_assert_uint_eq(world->host[0].completions, 9);
	world_free(world, true);
}
END_TEST

START_TEST(writes_spend_no_credit)
{
	struct world *world = world_new(0);

	world_start(world);
	world_recv(world, 1, 1, REMOTE, 64);
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 64);
	for (unsigned i = 0; i < 20; i++)
		world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 64);
	world_ring(world, 0, 1);
	world_run(world, 500 * US);
	ck_assert_uint_eq(world->host[0].completions, 21);
	world_free(world, true);
}
END_TEST

START_TEST(credit_and_timer_tables_are_those_of_the_specification)
{
	/* Both double every second code from 4 on; the timers are in units of 10 us. */
	for (uint8_t code = 6; code < 31; code++) {
		ck_assert_uint_eq(rn_aeth_credits(code), 2 * rn_aeth_credits(code - 2));
		ck_assert_uint_eq(rn_rnr_timer_ps(code), 2 * rn_rnr_timer_ps(code - 2));
	}
	for (uint8_t code = 0; code < 31; code++) {
		ck_assert_uint_eq(rn_aeth_credit_code(rn_aeth_credits(code)), code);
		if (code)
			ck_assert_uint_eq(rn_aeth_credit_code(rn_aeth_credits(code) - 1), code - 1);
	}
	ck_assert_uint_eq(rn_aeth_credits(5), 6);
	ck_assert_uint_eq(rn_aeth_credits(30), 32768);
	ck_assert_uint_eq(rn_aeth_credit_code(65535), 30);
	ck_assert_uint_eq(rn_rnr_timer_ps(0), 655360 * US);
	ck_assert_uint_eq(rn_rnr_timer_ps(1), 10 * US);
	ck_assert_uint_eq(rn_rnr_timer_ps(31), 491520 * US);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transport_errors");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);

	tcase_add_loop_test(tests, writes_without_the_right_are_refused, 0, REFUSALS);
	tcase_add_loop_test(tests, reads_without_the_right_are_refused, 0, REFUSALS);
	tcase_add_test(tests, a_zero_length_request_checks_no_key);
	tcase_add_test(tests, earlier_work_completes_before_an_error);
	tcase_add_loop_test(tests, a_send_too_long_for_its_receive_fails_on_both_sides, 0, 3);
	tcase_add_loop_test(tests, a_bad_local_key_fails_its_wqe_after_the_earlier_ones, 0, 2);
	tcase_add_test(tests, a_read_into_memory_without_local_write_fails);
	tcase_add_test(tests, a_receive_buffer_with_a_bad_key_is_an_operational_error);
	tcase_add_test(tests, response_data_that_vanishes_is_naked_in_its_place);
	tcase_add_test(tests, memory_that_vanishes_under_a_write_is_an_operational_error);
	tcase_add_loop_test(tests, malformed_work_completes_with_a_local_error, 0, 3);
	tcase_add_test(tests, more_reads_than_the_responder_allows_are_refused);
	tcase_add_loop_test(tests, strangers_are_dropped_and_counted, 0, 3);
	tcase_add_test(tests, credits_limit_sends_to_one_beyond_what_is_posted);
	tcase_add_test(tests, writes_spend_no_credit);
	tcase_add_test(tests, credit_and_timer_tables_are_those_of_the_specification);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
