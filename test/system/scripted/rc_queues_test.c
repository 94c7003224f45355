/* Flushes, completion queues and their events, SQD. */
#include <string.h>

#include "driver/qp_state.h"
#include "error_rig.h"
#include "run_suite.h"

static struct error_rig rig;

/* --- flushes --- */

START_TEST(a_queue_pair_sent_to_err_flushes_both_queues_in_order)
{
	uint8_t flushed[40];
	struct rn_scripted_wr wr;

	memset(flushed, RN_WC_WR_FLUSH_ERR, sizeof(flushed));
	error_start(&rig);
	wr = world_wr(&rig.link, RN_WQE_RDMA_WRITE, ERROR_BYTES);
	world_fault(&rig.world, RN_FAULT_DROP, RN_FAULT_ANY, 0, RN_FAULT_ANY_VALUE, 0);
	for (unsigned n = 0; n < 40; n++) {
		/* Some READs and unsignaled ones: all are flushed, all tell. */
		wr.opcode = n % 3 ? RN_WQE_RDMA_WRITE : RN_WQE_RDMA_READ;
		wr.flags = n % 2 ? RN_WQE_SIGNALED : 0;
		error_post(&rig, &wr, n);
		ck_assert_int_eq(rn_scripted_post_recv(rig.link.qp[0], n, rig.link.buffer[0].va, 64,
						       rig.link.key[0]),
				 RN_POST_OK);
	}
	rn_scripted_ring(rig.link.qp[0]);
	rn_scripted_run_for(rig.link.host[0], 3 * WORLD_US);
	ck_assert_int_eq(rn_scripted_modify(rig.link.qp[0], RN_QP_STATE,
					    &(struct rn_uapi_qp_attr){.qp_state = RN_QPS_ERR}),
			 0);
	for (unsigned n = 0, sends = 0, recvs = 0; n < 80; n++) {
		struct rn_scripted_wc wc;

		ck_assert_uint_eq(rn_scripted_wait(rig.link.cq[0], &wc, 1, WORLD_MS), 1);
		ck_assert_uint_eq(wc.status, RN_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.wr_id, wc.is_recv ? recvs : sends);
		recvs += wc.is_recv;
		sends += !wc.is_recv;
		ck_assert_uint_le(sends, 40);
	}
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[1]), RN_QPS_RTS);
	error_finish(&rig);
}
END_TEST

/* --- completion queues and events --- */

START_TEST(a_cq_that_overruns_keeps_what_it_has_and_says_so_once)
{
	struct rn_scripted_cq *cq;
	struct rn_scripted_qp *qp;
	struct rn_scripted_wr wr;
	struct rn_scripted_wc wc[16];

	error_start(&rig);
	cq = rn_scripted_cq_new(rig.link.host[0], 4);
	qp = rn_scripted_qp_new(rig.link.host[0], &(struct rn_scripted_qp_spec){.send_cq = cq});
	ck_assert_int_eq(rn_scripted_qp_free(rig.link.qp[0]), 0);
	ck_assert_int_eq(rn_scripted_modify(rig.link.qp[1], RN_QP_STATE,
					    &(struct rn_uapi_qp_attr){.qp_state = RN_QPS_RESET}),
			 0);
	rig.link.qp[0] = qp;
	ck_assert_int_eq(rn_scripted_connect(qp, rig.link.qp[1], &RN_SCRIPTED_PATH), 0);
	wr = world_wr(&rig.link, RN_WQE_RDMA_WRITE, 64);
	for (unsigned n = 0; n < 4; n++)
		error_post(&rig, &wr, n);
	rn_scripted_ring(qp);
	rn_scripted_run_for(rig.link.host[0], WORLD_MS);
	error_expect_event(&rig, 0, NO_EVENT, 0);
	for (unsigned n = 4; n < 7; n++)
		error_post(&rig, &wr, n);
	rn_scripted_ring(qp);
	rn_scripted_run_for(rig.link.host[0], WORLD_MS);
	error_expect_event(&rig, 0, EVENT_CQ_ERR, rn_scripted_cqn(cq));
	ck_assert_uint_eq(world_nic_counter(&rig.world, 0, "cq_overruns"), 1);
	ck_assert_uint_eq(rn_scripted_poll(cq, wc, 16), 4);
	for (unsigned n = 0; n < 4; n++) {
		ck_assert_uint_eq(wc[n].status, RN_WC_SUCCESS);
		ck_assert_uint_eq(wc[n].wr_id, n);
	}
	/* Others go on. */
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[1]), RN_QPS_RTS);
	error_finish(&rig);
}
END_TEST

START_TEST(a_cq_polled_in_time_never_overruns)
{
	struct rn_scripted_flow flow;
	struct rn_scripted_flow_spec spec;

	error_start(&rig);
	/* The ring has 1024 entries; the NIC finds the consumer index in the doorbell record when it needs it. */
	spec = world_flow(&rig.link, RN_WQE_RDMA_WRITE, 8, 128, 5000);
	rn_scripted_flow_start(&flow, &spec);
	ck_assert(rn_scripted_flow_run(&flow, RN_SCRIPTED_SECOND_PS));
	rn_scripted_flow_stop(&flow);
	ck_assert_uint_eq(world_nic_counter(&rig.world, 0, "cq_overruns"), 0);
	ck_assert_uint_gt(world_nic_counter(&rig.world, 0, "ci_reads"), 0);
	error_expect_event(&rig, 0, NO_EVENT, 0);
	error_finish(&rig);
}
END_TEST

static void send(bool solicited)
{
	struct rn_scripted_wr wr = world_wr(&rig.link, RN_WQE_SEND, 64);

	wr.flags |= solicited ? RN_WQE_SOLICITED : 0;
	world_post_recv(&rig.link, 1, 64);
	ck_assert_uint_eq(world_transfer(&rig.link, &wr), RN_WC_SUCCESS);
	rn_scripted_run_for(rig.link.host[0], 50 * WORLD_US);
}

START_TEST(events_come_once_an_arm_and_by_solicitation)
{
	struct rn_scripted_cq *cq;

	error_start(&rig);
	ck_assert_int_eq(rn_scripted_qp_free(rig.link.qp[0]), 0);
	ck_assert_int_eq(rn_scripted_qp_free(rig.link.qp[1]), 0);
	cq = rn_scripted_cq_new_with_events(rig.link.host[1], 64, 0);
	rig.link.qp[0] = rn_scripted_qp_new(
		rig.link.host[0], &(struct rn_scripted_qp_spec){.send_cq = rig.link.cq[0]});
	rig.link.qp[1] =
		rn_scripted_qp_new(rig.link.host[1], &(struct rn_scripted_qp_spec){.send_cq = cq});
	ck_assert_int_eq(rn_scripted_connect(rig.link.qp[0], rig.link.qp[1], &RN_SCRIPTED_PATH), 0);
	send(true);
	ck_assert(!rn_scripted_take_event(cq)); /* not armed */
	ck_assert_uint_eq(rn_scripted_poll(cq, (struct rn_scripted_wc[4]){0}, 4), 1);
	rn_scripted_arm(cq, true);
	send(false);
	ck_assert(!rn_scripted_take_event(cq));
	send(true);
	ck_assert(rn_scripted_take_event(cq));
	send(true);
	ck_assert(!rn_scripted_take_event(cq)); /* once */
	ck_assert_uint_eq(rn_scripted_poll(cq, (struct rn_scripted_wc[4]){0}, 4), 3);
	rn_scripted_arm(cq, false);
	send(false);
	ck_assert(rn_scripted_take_event(cq));
	/* Armed over a completion that is there: at once. */
	rn_scripted_arm(cq, false);
	rn_scripted_run_for(rig.link.host[0], 50 * WORLD_US);
	ck_assert(rn_scripted_take_event(cq));
	ck_assert_uint_eq(rn_scripted_poll(cq, (struct rn_scripted_wc[4]){0}, 4), 1);
	/* An error is always worth an event. */
	rn_scripted_arm(cq, true);
	world_post_recv(&rig.link, 1, 64);
	ck_assert_int_eq(rn_scripted_modify(rig.link.qp[1], RN_QP_STATE,
					    &(struct rn_uapi_qp_attr){.qp_state = RN_QPS_ERR}),
			 0);
	rn_scripted_run_for(rig.link.host[0], 50 * WORLD_US);
	ck_assert(rn_scripted_take_event(cq));
	error_finish(&rig);
}
END_TEST

/* --- SQD --- */

START_TEST(a_draining_send_queue_ends_what_it_began_says_so_and_goes_on)
{
	static const uint8_t good[8];
	struct rn_uapi_qp_attr attr = {.qp_state = RN_QPS_SQD, .en_sqd_async_notify = 1};
	struct rn_scripted_wr wr;
	struct rn_scripted_wc wc;

	error_start(&rig);
	wr = world_wr(&rig.link, RN_WQE_RDMA_WRITE, 40 * ERROR_MTU);
	for (unsigned n = 0; n < 4; n++)
		error_post(&rig, &wr, n);
	rn_scripted_ring(rig.link.qp[0]);
	rn_scripted_run_for(rig.link.host[0], 2 * WORLD_US); /* in the first message */
	ck_assert_int_eq(rn_scripted_modify(rig.link.qp[0], RN_QP_STATE | RN_QP_EN_SQD_ASYNC_NOTIFY,
					    &attr),
			 0);
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[0]), RN_QPS_SQD);
	rn_scripted_run_for(rig.link.host[0], WORLD_MS);
	error_expect_event(&rig, 0, EVENT_SQ_DRAINED, rn_scripted_qpn(rig.link.qp[0]));

	const uint32_t done = rn_scripted_poll(rig.link.cq[0], &wc, 1);

	ck_assert_uint_eq(done, 1); /* begun */
	ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);

	/* More work and time change nothing until RTS. */
	for (unsigned n = 4; n < 8; n++)
		error_post(&rig, &wr, n);
	rn_scripted_ring(rig.link.qp[0]);
	rn_scripted_run_for(rig.link.host[0], WORLD_MS);

	uint32_t more = 0;

	while (rn_scripted_poll(rig.link.cq[0], &wc, 1))
		more++;
	ck_assert_uint_lt(1 + more, 4);
	attr.qp_state = RN_QPS_RTS;
	ck_assert_int_eq(rn_scripted_modify(rig.link.qp[0], RN_QP_STATE, &attr), 0);
	error_expect(&rig, 0, 1 + more, good, 7 - more);
	error_expect_event(&rig, 0, NO_EVENT, 0);
	error_finish(&rig);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("rc_queues");

	tcase_add_test(tcase, a_queue_pair_sent_to_err_flushes_both_queues_in_order);
	tcase_add_test(tcase, a_cq_that_overruns_keeps_what_it_has_and_says_so_once);
	tcase_add_test(tcase, a_cq_polled_in_time_never_overruns);
	tcase_add_test(tcase, events_come_once_an_arm_and_by_solicitation);
	tcase_add_test(tcase, a_draining_send_queue_ends_what_it_began_says_so_and_goes_on);
	return run_suite(tcase, "rc_queues");
}
