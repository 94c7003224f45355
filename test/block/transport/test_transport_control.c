/*
 * Queue pairs under control: errors, flushes, drains, resets.
 */
#include <check.h>
#include <stdlib.h>

#include "block/transport/world.h"
#include "nic/transport/tables.h"
#include "wire/opcode.h"

#define US UINT64_C(1000000)
#define REMOTE 0x40000u

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

START_TEST(flushed_queues_keep_order_and_take_later_doorbells)
{
	struct world *world = world_new(0);

	world_start(world);
	for (unsigned i = 0; i < 20; i++)
		world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 3000)->flags = 0;
	for (unsigned i = 0; i < 5; i++)
		world_recv(world, 0, 1, 0, 64);
	world_ring(world, 0, 1);
	/* No READ has ended yet. */
	world_run(world, US);
	world_modify(world, 0, 1, RN_QPS_ERR);
	world_run(world, 500 * US);
	unsigned flushed = world->host[0].completions;

	ck_assert_uint_eq(flushed, 25);
	world_send(world, 0, 1, RN_WQE_SEND, 0, REMOTE, 3000);
	world_ring(world, 0, 1);
	world_recv(world, 0, 1, 0, 64);
	world_kick(world, 0, 1);
	world_run(world, 500 * US);
	ck_assert_uint_eq(world->host[0].completions, 27);
	uint16_t next_send = 0, next_recv = 0;

	for (unsigned i = 0; i < 27; i++) {
		const struct rn_completion *c = &world->host[0].completion[i];

		ck_assert_uint_eq(c->status, RN_WC_WR_FLUSH_ERR);
		if (c->opcode == RN_CQE_RECV_ERR)
			ck_assert_uint_eq(c->wqe_idx, next_recv++);
		else
			ck_assert_uint_eq(c->wqe_idx, next_send++);
	}
	ck_assert_uint_eq(next_send, 21);
	world_free(world, true);
}
END_TEST

/* A kick from another process's page, at any moment of a flush: neither the flush nor the owner's kick is lost. */
START_TEST(kicks_from_a_wrong_page_change_nothing)
{
	struct world *world = world_new(0);

	world_start(world);

	struct rn_fifo *ring = world->host[0].ports.rq_ring;

	world_modify(world, 0, 1, RN_QPS_ERR);
	world_run(world, 500 * US);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 3; i++)
			world_recv(world, 0, 1, 0, 64);
		world_kick(world, 0, 1);
		for (unsigned i = 0; i < 100; i++) {
			if (rn_fifo_can_push(ring))
				rn_fifo_push(ring, &(struct rn_rq_ring){.qpn = 1, .uar_page = 7});
			world_run(world, (1 + round) * US / 100);
		}
		world_run(world, 100 * US);
		ck_assert_uint_eq(world->host[0].completions, 3 * (round + 1));
	}
	ck_assert_uint_gt(world_count(world, 0, "rq_kicks_ignored"), 0);
	world_free(world, true);
}
END_TEST

START_TEST(a_drained_send_queue_finishes_what_it_began)
{
	struct world *world = world_new(0);

	world->params.quantum_packets = 2;
	world_qpc(world, 0, 1)->sqd_notify = 1;
	world_start(world);
	world_fill(world, 0, 0, 60000, 8);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 60000);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, US);
	world_modify(world, 0, 1, RN_QPS_SQD);
	world_run(world, 500 * US);
	ck_assert_uint_eq(world->host[0].completions, 1);
	ck_assert_uint_eq(events(world, 0, RN_QP_EVENT_SQ_DRAINED), 1);
	ck_assert(world_same(world, 0, REMOTE, 60000));
	world_modify(world, 0, 1, RN_QPS_RTS);
	world_run(world, 500 * US);
	ck_assert_uint_eq(world->host[0].completions, 2);
	world_free(world, true);
}
END_TEST

START_TEST(a_forgotten_queue_pair_leaves_nothing_behind)
{
	struct world *world = world_new(0);

	world_start(world);
	for (unsigned i = 0; i < 4; i++)
		world_recv(world, 1, 1, REMOTE, 50000);
	for (unsigned i = 0; i < 4; i++) {
		world_send(world, 0, 1, RN_WQE_SEND, 0, REMOTE, 50000);
		world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 50000);
		world_send(world, 1, 1, RN_WQE_RDMA_READ, 0, REMOTE, 50000);
	}
	world_ring(world, 0, 1);
	world_ring(world, 1, 1);
	world_run(world, (uint64_t)(_i + 1) * 700000);
	world_forget(world, 0, 1);
	world_forget(world, 1, 1);
	unsigned before = world->host[0].completions + world->host[1].completions;

	world_run(world, 10000 * US);
	ck_assert_uint_eq(world->host[0].completions + world->host[1].completions, before);
	ck_assert_uint_eq(world_requester(world, 0, 1)->ready, 0);
	world_free(world, true);
}
END_TEST

START_TEST(a_queue_pair_lives_again_after_an_error_and_a_reset)
{
	static const uint8_t statuses[] = {RN_WC_REM_ACCESS_ERR, RN_WC_SUCCESS};
	struct world *world = world_new(0);

	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8)->rkey = 0x9900;
	world_ring(world, 0, 1);
	world_run(world, 500 * US);
	for (unsigned host = 0; host < 2; host++) {
		world_forget(world, host, 1);
		world->host[host].queue[1].send_pi = 0;
		world->host[host].queue[1].recv_pi = 0;
		world_modify(world, host, 1, RN_QPS_INIT);
		world_modify(world, host, 1, RN_QPS_RTR);
		world_modify(world, host, 1, RN_QPS_RTS);
	}
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 500 * US);
	check_statuses(world, 0, statuses, 2);
	world_free(world, true);
}
END_TEST

START_TEST(communication_is_established_by_the_first_request_in_rtr)
{
	struct world *world = world_new(0);

	world_start(world);
	world_forget(world, 1, 1);
	world_modify(world, 1, 1, RN_QPS_INIT);
	world_modify(world, 1, 1, RN_QPS_RTR);
	for (unsigned i = 0; i < 3; i++)
		world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	ck_assert_uint_eq(events(world, 1, RN_QP_EVENT_COMM_EST), 1);
	ck_assert_uint_eq(world->host[0].completions, 3);
	world_free(world, true);
}
END_TEST

START_TEST(an_idle_context_is_given_back)
{
	struct world *world = world_new(0);

	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	ck_assert_uint_eq(world->host[0].completions, 1);
	ck_assert_uint_eq(world->host[0].pins, 0);
	ck_assert_uint_eq(world->host[1].pins, 0);
	world_free(world, true);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transport_control");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);

	tcase_add_test(tests, flushed_queues_keep_order_and_take_later_doorbells);
	tcase_add_test(tests, kicks_from_a_wrong_page_change_nothing);
	tcase_add_test(tests, a_drained_send_queue_finishes_what_it_began);
	tcase_add_loop_test(tests, a_forgotten_queue_pair_leaves_nothing_behind, 0, 12);
	tcase_add_test(tests, a_queue_pair_lives_again_after_an_error_and_a_reset);
	tcase_add_test(tests, communication_is_established_by_the_first_request_in_rtr);
	tcase_add_test(tests, an_idle_context_is_given_back);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
