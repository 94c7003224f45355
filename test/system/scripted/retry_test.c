/* How long and how often a requester tries: RNR timers and rnr_retry, local ACK timeouts and retry_cnt (IBA 9.7.5.2). */
#include "driver/qp_state.h"
#include "retry.h"
#include "run_suite.h"
#include "wire/psn.h"

static struct retry retry;

/* Post the message of the case without a receive and wait for its completion: its status, 255: none. */
static uint8_t post_and_wait(uint64_t ps)
{
	const struct rn_scripted_wr wr =
		world_wr(&retry.link, retry.opcode, retry.packets * RETRY_MTU);
	struct rn_scripted_wc wc;

	ck_assert_int_eq(rn_scripted_post(retry.link.qp[0], &wr), RN_POST_OK);
	rn_scripted_ring(retry.link.qp[0]);
	return rn_scripted_wait(retry.link.cq[0], &wc, 1, ps) ? wc.status : 255;
}

/* --- receiver not ready --- */

/* Units of 10 us, IBA volume 1, table 45. */
static const struct {
	uint32_t code, units;
} timers[] = {{1, 1}, {2, 2}, {5, 6}, {12, 64}, {14, 128}, {30, 32768}, {31, 49152}, {0, 65536}};

START_TEST(an_rnr_nak_is_waited_out_to_the_cycle)
{
	struct rn_scripted_path path = retry_path();
	const struct frame *nak, *again;

	path.min_rnr_timer = timers[_i].code;
	retry_start(&retry, RN_WQE_SEND, 2, &path, &RETRY_AT_ONCE);
	retry_transfer(&retry, true);
	retry_end(&retry);
	ck_assert_uint_eq(frames_count(&retry.frames, 1, RN_FAULT_RNR_NAK), 1);
	ck_assert_uint_eq(frames_count(&retry.frames, 1, RN_FAULT_NAK), 0);
	nak = retry_frame(&retry, 1, RN_FAULT_RNR_NAK, 0, 0);
	ck_assert_uint_eq(nak->packet.aeth_syndrome, 0x20 | timers[_i].code);
	again = frames_first_again(&retry.frames, 0);
	ck_assert_ptr_nonnull(again);
	ck_assert_uint_eq(again->packet.psn, retry.psn);
	retry_check_time("RNR", again->at_ps,
			 retry_processed_ps(&retry, nak) + timers[_i].units * UINT64_C(10000000) +
				 retry_context_ps() + retry_resend_ps(&retry));
	retry_fini(&retry);
}
END_TEST

START_TEST(rnr_retry_n_means_n_more_tries_then_an_error)
{
	struct rn_scripted_path path = retry_path();
	const unsigned tries = (unsigned)_i + 1;

	path.rnr_retry = (uint32_t)_i;
	retry_start(&retry, RN_WQE_SEND, 1, &path, &RETRY_AT_ONCE);
	ck_assert_uint_eq(post_and_wait(RN_SCRIPTED_SECOND_PS), RN_WC_RNR_RETRY_EXC_ERR);
	ck_assert_uint_eq(rn_scripted_state(retry.link.qp[0]), RN_QPS_ERR);
	/* The responder has done nothing wrong. */
	ck_assert_uint_eq(rn_scripted_state(retry.link.qp[1]), RN_QPS_RTS);
	retry_end(&retry);
	ck_assert_uint_eq(frames_count(&retry.frames, 1, RN_FAULT_RNR_NAK), tries);
	for (unsigned n = 0; n < tries; n++) {
		const struct frame *request = retry_frame(&retry, 0, RN_FAULT_REQUEST_ONLY, 0, n);
		const struct frame *nak = retry_frame(&retry, 1, RN_FAULT_RNR_NAK, 0, n);

		ck_assert_uint_gt(nak->at_ps, request->at_ps);
	}
	ck_assert_ptr_null(frames_find(&retry.frames, 0, RN_FAULT_REQUEST_ONLY, retry.psn, tries));
	retry_fini(&retry);
}
END_TEST

START_TEST(rnr_retry_seven_is_for_ever)
{
	const struct rn_scripted_path path = retry_path();
	struct rn_scripted_wc wc;

	retry_start(&retry, RN_WQE_SEND, 1, &path, &RETRY_AT_ONCE);
	ck_assert_uint_eq(post_and_wait(WORLD_MS), 255);
	ck_assert_uint_gt(world_nic_counter(&retry.world, 0, "rnr_nak_retry_err"), 50);
	world_post_recv(&retry.link, 1, RETRY_MTU);
	ck_assert_uint_eq(rn_scripted_wait(retry.link.cq[0], &wc, 1, WORLD_MS), 1);
	ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
	retry_end(&retry);
	retry_fini(&retry);
}
END_TEST

/* --- nobody answers --- */

static void lose_everything(void)
{
	world_fault(&retry.world, RN_FAULT_DROP, RN_FAULT_ANY, 0, RN_FAULT_ANY_VALUE, 0);
}

static const uint32_t retry_counts[] = {0, 1, 2, 3, 6, 7};

START_TEST(retry_cnt_n_costs_n_plus_one_timeouts_and_then_an_error)
{
	struct rn_scripted_path path = retry_path();
	const struct frame *request = NULL;
	uint64_t failed_ps;

	path.retry_cnt = retry_counts[_i];
	retry_start(&retry, RN_WQE_RDMA_WRITE, 1, &path, &RETRY_AT_ONCE);
	lose_everything();
	ck_assert_uint_eq(post_and_wait(RN_SCRIPTED_SECOND_PS), RN_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(rn_scripted_state(retry.link.qp[0]), RN_QPS_ERR);
	ck_assert_uint_eq(rn_scripted_state(retry.link.qp[1]), RN_QPS_RTS);
	failed_ps = world_stamp(&retry.world, 0, retry.link.qp[0], 4, RN_STAMP_ACK, 0);
	retry_end(&retry);
	for (unsigned n = 0; n <= path.retry_cnt; n++) {
		const struct frame *next = retry_frame(&retry, 0, RN_FAULT_REQUEST_ONLY, 0, n);

		if (request)
			retry_check_time("retransmission", next->at_ps,
					 retry_expired_ps(&retry, request) +
						 retry_resend_ps(&retry));
		request = next;
	}
	ck_assert_ptr_null(frames_find(&retry.frames, 0, RN_FAULT_REQUEST_ONLY, retry.psn,
				       path.retry_cnt + 1));
	retry_check_time("error", failed_ps, retry_expired_ps(&retry, request));
	retry_fini(&retry);
}
END_TEST

START_TEST(a_timeout_of_zero_never_expires)
{
	struct rn_scripted_path path = retry_path();

	path.timeout = 0;
	retry_start(&retry, RN_WQE_RDMA_WRITE, 1, &path, &RETRY_AT_ONCE);
	lose_everything();
	ck_assert_uint_eq(post_and_wait(100 * RN_SCRIPTED_SECOND_PS), 255);
	retry_end(&retry);
	ck_assert_ptr_null(frames_first_again(&retry.frames, 0));
	retry_fini(&retry);
}
END_TEST

START_TEST(progress_reloads_the_retries)
{
	struct rn_scripted_path path = retry_path();

	path.retry_cnt = 1;
	retry_start(&retry, RN_WQE_SEND, 1, &path, &RETRY_AT_ONCE);
	for (uint32_t n = 0; n < 4; n++) {
		retry_fault(&retry, RN_FAULT_DROP, RN_FAULT_REQUEST_ONLY, 0, n, 0);
		retry_transfer(&retry, false);
	}
	ck_assert_uint_eq(world_nic_counter(&retry.world, 0, "local_ack_timeout_err"), 4);
	retry_end(&retry);
	retry_fini(&retry);
}
END_TEST

/* A middle packet is lost twice: the first loss is NAKed, the second waited for. */
static uint8_t lose_twice(uint32_t retry_cnt)
{
	struct rn_scripted_path path = retry_path();
	uint8_t status;

	path.retry_cnt = retry_cnt;
	retry_start(&retry, RN_WQE_RDMA_WRITE, 4, &path, &RETRY_AT_ONCE);
	for (unsigned n = 1; n <= 2; n++)
		world_fault(&retry.world, RN_FAULT_DROP, RN_FAULT_REQUEST_MIDDLE, 0, 2 + 8 + 1, n);
	status = post_and_wait(RN_SCRIPTED_SECOND_PS);
	retry_end(&retry);
	ck_assert_uint_eq(frames_count(&retry.frames, 1, RN_FAULT_NAK), 1);
	retry_fini(&retry);
	return status;
}

START_TEST(timeouts_and_sequence_naks_spend_the_same_retries)
{
	ck_assert_uint_eq(lose_twice(2), RN_WC_SUCCESS);
	ck_assert_uint_eq(lose_twice(1), RN_WC_RETRY_EXC_ERR);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("retry");

	tcase_add_loop_test(tcase, an_rnr_nak_is_waited_out_to_the_cycle, 0,
			    sizeof(timers) / sizeof(timers[0]));
	tcase_add_loop_test(tcase, rnr_retry_n_means_n_more_tries_then_an_error, 0, 7);
	tcase_add_test(tcase, rnr_retry_seven_is_for_ever);
	tcase_add_loop_test(tcase, retry_cnt_n_costs_n_plus_one_timeouts_and_then_an_error, 0,
			    sizeof(retry_counts) / sizeof(retry_counts[0]));
	tcase_add_test(tcase, a_timeout_of_zero_never_expires);
	tcase_add_test(tcase, progress_reloads_the_retries);
	tcase_add_test(tcase, timeouts_and_sequence_naks_spend_the_same_retries);
	return run_suite(tcase, "retry");
}
