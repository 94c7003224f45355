/*
 * One frame lost, damaged, late or doubled: the data is right at both ends, and from the capture: the first PSN sent
 * again, the number of NAKs, and the time of the retransmission, within one core cycle of its formula (retry.h).
 */
#include <string.h>

#include "driver/qp_state.h"
#include "retry.h"
#include "run_suite.h"
#include "wire/psn.h"

#define EXPIRY_PS (UINT64_C(4096000) << 8) /* of retry_path() */

enum cause { BY_TIMEOUT, BY_PROGRESS_TIMEOUT, BY_NAK, BY_IMPLIED_NAK };

struct target { /* a frame, by sender, class and PSN offset in the message of the case */
	enum rn_fault_class class;
	uint32_t host, psn;
};

struct loss {
	const char *name;
	uint8_t opcode;
	uint32_t packets; /* of the message */
	struct target lost[2];
	enum cause cause;
	/* The frame whose time counts: the first packet, the NAK, the response. */
	struct target from;
	uint32_t resent; /* first PSN sent again, as an offset in the message */
	unsigned naks;	 /* sequence NAKs in the capture, lost ones included */
	unsigned rnr_naks;
};

#define REQUEST(position, psn)                                                                     \
	{                                                                                          \
		RN_FAULT_REQUEST_##position, 0, psn                                                \
	}
#define RESPONSE(position, psn)                                                                    \
	{                                                                                          \
		RN_FAULT_READ_RESPONSE_##position, 1, psn                                          \
	}
#define NAK(psn)                                                                                   \
	{                                                                                          \
		RN_FAULT_NAK, 1, psn                                                               \
	}

static const struct loss losses[] = {
	{"SEND first", RN_WQE_SEND, 4, {REQUEST(FIRST, 0)}, BY_NAK, NAK(0), 0, 1, 0},
	{"SEND middle", RN_WQE_SEND, 4, {REQUEST(MIDDLE, 1)}, BY_NAK, NAK(1), 1, 1, 0},
	{"SEND last", RN_WQE_SEND, 4, {REQUEST(LAST, 3)}, BY_TIMEOUT, REQUEST(FIRST, 0), 0, 0, 0},
	{"SEND only", RN_WQE_SEND, 1, {REQUEST(ONLY, 0)}, BY_TIMEOUT, REQUEST(ONLY, 0), 0, 0, 0},
	{"WRITE first", RN_WQE_RDMA_WRITE, 4, {REQUEST(FIRST, 0)}, BY_NAK, NAK(0), 0, 1, 0},
	{"WRITE middle", RN_WQE_RDMA_WRITE, 4, {REQUEST(MIDDLE, 2)}, BY_NAK, NAK(2), 2, 1, 0},
	{"WRITE last",
	 RN_WQE_RDMA_WRITE,
	 4,
	 {REQUEST(LAST, 3)},
	 BY_TIMEOUT,
	 REQUEST(FIRST, 0),
	 0,
	 0,
	 0},
	{"WRITE only",
	 RN_WQE_RDMA_WRITE,
	 1,
	 {REQUEST(ONLY, 0)},
	 BY_TIMEOUT,
	 REQUEST(ONLY, 0),
	 0,
	 0,
	 0},
	{"WRITE imm last",
	 RN_WQE_RDMA_WRITE_IMM,
	 2,
	 {REQUEST(LAST, 1)},
	 BY_TIMEOUT,
	 REQUEST(FIRST, 0),
	 0,
	 0,
	 0},
	{"ACK of a SEND",
	 RN_WQE_SEND,
	 4,
	 {{RN_FAULT_ACK, 1, 3}},
	 BY_TIMEOUT,
	 REQUEST(FIRST, 0),
	 0,
	 0,
	 0},
	{"ACK of a WRITE",
	 RN_WQE_RDMA_WRITE,
	 4,
	 {{RN_FAULT_ACK, 1, 3}},
	 BY_TIMEOUT,
	 REQUEST(FIRST, 0),
	 0,
	 0,
	 0},
	{"NAK", RN_WQE_SEND, 4, {REQUEST(FIRST, 0), NAK(0)}, BY_TIMEOUT, REQUEST(FIRST, 0), 0, 1, 0},
	{"NAK in mid-message",
	 RN_WQE_RDMA_WRITE,
	 4,
	 {REQUEST(MIDDLE, 1), NAK(1)},
	 BY_TIMEOUT,
	 REQUEST(FIRST, 0),
	 0,
	 1,
	 0},
	{"RNR NAK",
	 RN_WQE_SEND,
	 4,
	 {{RN_FAULT_RNR_NAK, 1, 0}},
	 BY_TIMEOUT,
	 REQUEST(FIRST, 0),
	 0,
	 0,
	 1},
	{"READ request",
	 RN_WQE_RDMA_READ,
	 4,
	 {{RN_FAULT_READ_REQUEST, 0, 0}},
	 BY_TIMEOUT,
	 {RN_FAULT_READ_REQUEST, 0, 0},
	 0,
	 0,
	 0},
	{"READ response first",
	 RN_WQE_RDMA_READ,
	 4,
	 {RESPONSE(FIRST, 0)},
	 BY_IMPLIED_NAK,
	 RESPONSE(MIDDLE, 1),
	 0,
	 0,
	 0},
	{"READ response middle",
	 RN_WQE_RDMA_READ,
	 4,
	 {RESPONSE(MIDDLE, 1)},
	 BY_IMPLIED_NAK,
	 RESPONSE(MIDDLE, 2),
	 1,
	 0,
	 0},
	{"READ response last",
	 RN_WQE_RDMA_READ,
	 4,
	 {RESPONSE(LAST, 3)},
	 BY_PROGRESS_TIMEOUT,
	 RESPONSE(MIDDLE, 2),
	 3,
	 0,
	 0},
	{"READ response only",
	 RN_WQE_RDMA_READ,
	 1,
	 {RESPONSE(ONLY, 0)},
	 BY_TIMEOUT,
	 {RN_FAULT_READ_REQUEST, 0, 0},
	 0,
	 0,
	 0},
};

static struct retry retry;

static void run(const struct loss *loss, const struct retry_reaction *reaction,
		enum rn_fault_action action, uint64_t delay_ps)
{
	const struct rn_scripted_path path = retry_path();
	unsigned fault[2];

	retry_start(&retry, loss->opcode, loss->packets, &path, reaction);
	for (unsigned n = 0; n < 2 && loss->lost[n].class; n++)
		fault[n] = retry_fault(&retry, action, loss->lost[n].class, loss->lost[n].host,
				       loss->lost[n].psn, delay_ps);
	retry_transfer(&retry, loss->rnr_naks);
	for (unsigned n = 0; n < 2 && loss->lost[n].class; n++)
		ck_assert_uint_eq(world_fault_done(&retry.world, fault[n]), 1);
	/* What is late comes, and is nobody's any more. */
	rn_scripted_run_for(retry.link.host[0], delay_ps);
	ck_assert_uint_eq(rn_scripted_poll(retry.link.cq[0], &(struct rn_scripted_wc){0}, 1), 0);
	ck_assert_uint_eq(rn_scripted_state(retry.link.qp[0]), RN_QPS_RTS);
	ck_assert_uint_eq(rn_scripted_state(retry.link.qp[1]), RN_QPS_RTS);
	retry_end(&retry);
}

static uint64_t predicted_ps(const struct loss *loss)
{
	const struct retry_reaction *reaction = &retry.reaction;
	const struct frame *from =
		retry_frame(&retry, loss->from.host, loss->from.class, loss->from.psn, 0);
	uint64_t at_ps;

	switch (loss->cause) {
	case BY_TIMEOUT:
		at_ps = retry_expired_ps(&retry, from);
		break;
	case BY_PROGRESS_TIMEOUT:
		at_ps = retry_expired_from_ps(&retry, retry_processed_ps(&retry, from));
		break;
	default:
		return retry_processed_ps(&retry, from) + retry_reaction_ps(reaction->nak_cycles) +
		       retry_resend_ps(&retry);
	}
	return at_ps + retry_reaction_ps(reaction->timeout_cycles) + retry_resend_ps(&retry);
}

static void check_capture(const struct loss *loss)
{
	const struct frames *frames = &retry.frames;
	const struct frame *again = frames_first_again(frames, 0);

	ck_assert_ptr_nonnull(again);
	ck_assert_uint_eq(again->packet.psn, rn_psn_add(retry.psn, loss->resent));
	ck_assert_uint_eq(frames_count(frames, 1, RN_FAULT_NAK), loss->naks);
	ck_assert_uint_eq(frames_count(frames, 1, RN_FAULT_RNR_NAK), loss->rnr_naks);
	ck_assert_uint_eq(frames_count(frames, 0, RN_FAULT_NAK), 0);
	retry_check_time(loss->name, again->at_ps, predicted_ps(loss));
}

START_TEST(a_lost_frame_is_made_good_in_its_time)
{
	run(&losses[_i], &RETRY_AT_ONCE, RN_FAULT_DROP, 0);
	check_capture(&losses[_i]);
	retry_fini(&retry);
}
END_TEST

START_TEST(a_damaged_frame_is_a_lost_frame)
{
	run(&losses[_i], &RETRY_AT_ONCE, RN_FAULT_CORRUPT, 0);
	check_capture(&losses[_i]);
	retry_fini(&retry);
}
END_TEST

START_TEST(a_frame_later_than_its_retransmission_is_a_lost_frame_and_harms_nothing)
{
	run(&losses[_i], &RETRY_AT_ONCE, RN_FAULT_DELAY, 3 * EXPIRY_PS);
	check_capture(&losses[_i]);
	retry_fini(&retry);
}
END_TEST

START_TEST(reactions_factor_and_floor_are_in_the_formula)
{
	static const struct retry_reaction reactions[] = {
		{100, 0, 1, 0}, {101, 0, 1, 0}, {0, 100, 1, 0}, {0, 101, 1, 0},
		{0, 0, 3, 0},	{0, 0, 1, 8},	{0, 0, 1, 9},	{7, 9, 2, 10},
	};

	for (size_t n = 0; n < sizeof(reactions) / sizeof(reactions[0]); n++) {
		run(&losses[_i], &reactions[n], RN_FAULT_DROP, 0);
		check_capture(&losses[_i]);
		retry_fini(&retry);
	}
}
END_TEST

/* What a frame does that comes a little late depends on what overtakes it. */
START_TEST(a_frame_a_little_late_is_waited_for_or_naked)
{
	const struct loss *loss = &losses[_i];

	run(loss, &RETRY_AT_ONCE, RN_FAULT_DELAY, 10 * WORLD_US);
	if (loss->cause == BY_NAK || loss->cause == BY_IMPLIED_NAK)
		check_capture(loss);
	else if (loss->naks + loss->rnr_naks == 0)
		ck_assert_ptr_null(frames_first_again(&retry.frames, 0));
	retry_fini(&retry);
}
END_TEST

START_TEST(a_frame_that_comes_twice_changes_nothing)
{
	const struct loss *loss = &losses[_i];

	/* Without a loss there is no NAK to double. */
	if (loss->lost[1].class || loss->rnr_naks)
		return;
	run(loss, &RETRY_AT_ONCE, RN_FAULT_DUPLICATE, 0);
	ck_assert_ptr_null(frames_first_again(&retry.frames, 0));
	ck_assert_uint_eq(frames_count(&retry.frames, 1, RN_FAULT_NAK), 0);
	retry_fini(&retry);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("loss");
	const int count = sizeof(losses) / sizeof(losses[0]);

	tcase_add_loop_test(tcase, a_lost_frame_is_made_good_in_its_time, 0, count);
	tcase_add_loop_test(tcase, a_damaged_frame_is_a_lost_frame, 0, count);
	tcase_add_loop_test(tcase,
			    a_frame_later_than_its_retransmission_is_a_lost_frame_and_harms_nothing,
			    0, count);
	tcase_add_loop_test(tcase, reactions_factor_and_floor_are_in_the_formula, 0, count);
	tcase_add_loop_test(tcase, a_frame_a_little_late_is_waited_for_or_naked, 0, count);
	tcase_add_loop_test(tcase, a_frame_that_comes_twice_changes_nothing, 0, count);
	return run_suite(tcase, "loss");
}
