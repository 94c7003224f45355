/* What a responder, or the requester's own NIC, refuses: the NAK on the wire, status and state at both ends. */
#include <string.h>

#include "driver/qp_state.h"
#include "error_rig.h"
#include "run_suite.h"
#include "wire/psn.h"

#define NAK_INVALID_REQUEST 0x61
#define NAK_REMOTE_ACCESS 0x62
#define NAK_REMOTE_OPERATIONAL 0x63

static struct error_rig rig;

static void check_untouched(void)
{
	uint32_t same = 0;

	while (same < ERROR_BUFFER && rig.link.buffer[1].data[same] == 0xee)
		same++;
	ck_assert_uint_eq(same, ERROR_BUFFER);
}

/* --- what the responder refuses --- */

static uint32_t key_in_another_pd(void)
{
	struct rn_scripted *host = rig.link.host[1];
	struct rn_uapi_req alloc = {0};
	struct rn_uapi_rsp pd;
	struct rn_uapi_reg_mr request = {.access = 7,
					 .va = rig.link.buffer[1].va,
					 .length = ERROR_BUFFER,
					 .iova = rig.link.buffer[1].va};
	struct rn_uapi_reg_mr_rsp answer;

	ck_assert_int_eq(rn_scripted_call(host, RN_UAPI_ALLOC_PD, &alloc, sizeof(alloc), &pd,
					  sizeof(pd)),
			 0);
	request.pd = pd.handle;
	ck_assert_uint_ne(request.pd, rn_scripted_pd(host));
	ck_assert_int_eq(rn_scripted_call(host, RN_UAPI_REG_MR, &request, sizeof(request), &answer,
					  sizeof(answer)),
			 0);
	return answer.rkey;
}

static uint32_t key_with(uint32_t access)
{
	uint32_t key;

	ck_assert_int_eq(rn_scripted_reg_mr(rig.link.host[1], rig.link.buffer[1].va, ERROR_BUFFER,
					    access, &key),
			 0);
	return key;
}

static uint32_t key_of_the_past(void)
{
	const uint32_t key = key_with(7);

	ck_assert_int_eq(rn_scripted_dereg_mr(rig.link.host[1], key), 0);
	return key;
}

static void restrict_qp(uint32_t access)
{
	ck_assert_int_eq(rn_scripted_modify(rig.link.qp[1], RN_QP_ACCESS_FLAGS,
					    &(struct rn_uapi_qp_attr){.access = access}),
			 0);
}

enum offence {
	VARIANT,
	INDEX,
	OTHER_PD,
	PAST,
	BEHIND_END,
	BEFORE_START,
	WRAPS,
	KEY_LACKS_RIGHT,
	QP_LACKS_RIGHT,
	OFFENCES
};

static void offend(enum offence offence, struct rn_scripted_wr *wr)
{
	const bool is_read = wr->opcode == RN_WQE_RDMA_READ;
	const uint32_t others = is_read ? RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_WRITE
					: RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_READ;

	switch (offence) {
	case VARIANT:
		wr->rkey ^= 1;
		break;
	case INDEX:
		wr->rkey += 0x123400;
		break;
	case OTHER_PD:
		wr->rkey = key_in_another_pd();
		break;
	case PAST:
		wr->rkey = key_of_the_past();
		break;
	case BEHIND_END:
		wr->raddr += ERROR_BUFFER - ERROR_BYTES + 1;
		break;
	case BEFORE_START:
		wr->raddr -= 1;
		break;
	case WRAPS:
		wr->raddr = UINT64_MAX - 100;
		break;
	case KEY_LACKS_RIGHT:
		wr->rkey = key_with(others);
		break;
	default:
		restrict_qp(others);
		break;
	}
}

static const uint8_t opcodes[] = {RN_WQE_RDMA_WRITE, RN_WQE_RDMA_WRITE_IMM, RN_WQE_RDMA_READ};

#define OPCODES (int)sizeof(opcodes)

/* Frames of the responder that are NAKs: one, for the first packet of the second message. */
static void check_nak(uint8_t syndrome)
{
	const struct frame *nak = frames_find(&rig.frames, 1, RN_FAULT_NAK, FRAMES_ANY, 0);

	ck_assert_uint_eq(frames_count(&rig.frames, 1, RN_FAULT_NAK), 1);
	ck_assert_uint_eq(nak->packet.aeth_syndrome, syndrome);
	ck_assert_uint_eq(nak->packet.psn, rn_psn_add(ERROR_FIRST_PSN, 1));
	ck_assert_uint_eq(nak->packet.aeth_msn, 1);
	ck_assert_ptr_null(frames_first_again(&rig.frames, 0));
}

START_TEST(what_a_key_or_a_qp_does_not_allow_is_naked_and_ends_both_queue_pairs)
{
	static const uint8_t flushed[] = {RN_WC_WR_FLUSH_ERR, RN_WC_WR_FLUSH_ERR};
	const enum offence offence = (enum offence)(_i / OPCODES);
	const bool is_access = offence != QP_LACKS_RIGHT;
	const uint8_t statuses[] = {RN_WC_SUCCESS,
				    is_access ? RN_WC_REM_ACCESS_ERR : RN_WC_REM_INV_REQ_ERR,
				    RN_WC_WR_FLUSH_ERR, RN_WC_WR_FLUSH_ERR};
	struct rn_scripted_wr good, bad;

	error_start(&rig);
	good = world_wr(&rig.link, RN_WQE_RDMA_WRITE, 0);
	bad = world_wr(&rig.link, opcodes[_i % OPCODES], ERROR_BYTES);
	offend(offence, &bad);
	if (offence == QP_LACKS_RIGHT)
		good.opcode = RN_WQE_SEND;
	world_post_recv(&rig.link, 3, ERROR_BYTES);
	error_post(&rig, &good, 0);
	error_post(&rig, &bad, 1);
	error_post(&rig, &good, 2);
	error_post(&rig, &good, 3);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, 0, statuses, 4);
	if (offence == QP_LACKS_RIGHT)
		error_expect(&rig, 1, 0,
			     (const uint8_t[]){RN_WC_SUCCESS, RN_WC_WR_FLUSH_ERR,
					       RN_WC_WR_FLUSH_ERR},
			     3);
	else
		error_expect(&rig, 1, 0,
			     (const uint8_t[]){RN_WC_WR_FLUSH_ERR, RN_WC_WR_FLUSH_ERR,
					       RN_WC_WR_FLUSH_ERR},
			     3);
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[0]), RN_QPS_ERR);
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[1]), RN_QPS_ERR);
	error_expect_event(&rig, 0, NO_EVENT, 0);
	error_expect_event(&rig, 1, is_access ? EVENT_QP_ACCESS_ERR : EVENT_QP_REQ_ERR,
			   rn_scripted_qpn(rig.link.qp[1]));
	/* What comes later is flushed too, on both sides. */
	error_post(&rig, &good, 4);
	error_post(&rig, &good, 5);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, 4, flushed, 2);
	check_untouched();
	error_load(&rig);
	check_nak(is_access ? NAK_REMOTE_ACCESS : NAK_INVALID_REQUEST);
	error_finish(&rig);
}
END_TEST

START_TEST(a_message_of_nothing_checks_no_key)
{
	struct rn_scripted_wr wr;

	error_start(&rig);
	wr = world_wr(&rig.link, _i ? RN_WQE_RDMA_READ : RN_WQE_RDMA_WRITE, 0);
	wr.rkey ^= 1;
	wr.raddr = 0;
	ck_assert_uint_eq(world_transfer(&rig.link, &wr), RN_WC_SUCCESS);
	error_finish(&rig);
}
END_TEST

/* --- receives --- */

START_TEST(a_send_longer_than_its_receive_fails_at_both_ends)
{
	static const uint8_t sent[] = {RN_WC_SUCCESS, RN_WC_REM_INV_REQ_ERR, RN_WC_WR_FLUSH_ERR};
	static const uint8_t received[] = {RN_WC_LOC_LEN_ERR, RN_WC_WR_FLUSH_ERR};
	struct rn_scripted_wr good, bad;

	error_start(&rig);
	good = world_wr(&rig.link, RN_WQE_RDMA_WRITE, 0);
	bad = world_wr(&rig.link, RN_WQE_SEND, 100);
	world_post_recv(&rig.link, 2, 99);
	error_post(&rig, &good, 0);
	error_post(&rig, &bad, 1);
	error_post(&rig, &bad, 2);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, 0, sent, 3);
	error_expect(&rig, 1, 0, received, 2);
	error_expect_event(&rig, 1, NO_EVENT, 0);
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[1]), RN_QPS_ERR);
	error_load(&rig);
	check_nak(NAK_INVALID_REQUEST);
	error_finish(&rig);
}
END_TEST

START_TEST(a_receive_into_memory_that_is_not_its_own_fails_at_both_ends)
{
	static const uint8_t sent[] = {RN_WC_SUCCESS, RN_WC_REM_OP_ERR, RN_WC_WR_FLUSH_ERR};
	static const uint8_t received[] = {RN_WC_LOC_PROT_ERR, RN_WC_WR_FLUSH_ERR};
	struct rn_scripted_wr good, bad;

	error_start(&rig);
	good = world_wr(&rig.link, RN_WQE_RDMA_WRITE, 0);
	bad = world_wr(&rig.link, RN_WQE_SEND, 100);
	/* A key without the right to write, or of another PD. */
	rig.link.key[1] = _i ? key_in_another_pd() : key_with(RN_ACCESS_REMOTE_READ);
	world_post_recv(&rig.link, 2, 100);
	error_post(&rig, &good, 0);
	error_post(&rig, &bad, 1);
	error_post(&rig, &bad, 2);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, 0, sent, 3);
	error_expect(&rig, 1, 0, received, 2);
	check_untouched();
	error_load(&rig);
	check_nak(NAK_REMOTE_OPERATIONAL);
	error_finish(&rig);
}
END_TEST

/* One that a WRITE with immediate would have consumed tells that the key did not allow it; one that it had not come to
 * does not. */
START_TEST(a_write_with_immediate_that_is_refused_fails_the_receive_that_it_consumes)
{
	static const uint8_t sent[] = {RN_WC_SUCCESS, RN_WC_REM_ACCESS_ERR, RN_WC_WR_FLUSH_ERR};
	const enum offence offence = (enum offence)(_i / 2);
	const bool is_one_packet = _i % 2;
	const uint8_t received[] = {is_one_packet ? RN_WC_LOC_ACCESS_ERR : RN_WC_WR_FLUSH_ERR,
				    RN_WC_WR_FLUSH_ERR};
	struct rn_scripted_wr good, bad;

	error_start(&rig);
	good = world_wr(&rig.link, RN_WQE_RDMA_WRITE, 0);
	bad = world_wr(&rig.link, RN_WQE_RDMA_WRITE_IMM, is_one_packet ? ERROR_MTU : ERROR_BYTES);
	offend(offence, &bad);
	if (offence == BEHIND_END)
		bad.raddr = rig.link.buffer[1].va + ERROR_BUFFER - bad.bytes + 1;
	world_post_recv(&rig.link, 2, 0);
	error_post(&rig, &good, 0);
	error_post(&rig, &bad, 1);
	error_post(&rig, &good, 2);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, 0, sent, 3);
	error_expect(&rig, 1, 0, received, 2);
	error_expect_event(&rig, 1, EVENT_QP_ACCESS_ERR, rn_scripted_qpn(rig.link.qp[1]));
	check_untouched();
	error_load(&rig);
	check_nak(NAK_REMOTE_ACCESS);
	error_finish(&rig);
}
END_TEST

/* --- local errors --- */

START_TEST(a_wrong_lkey_fails_here_and_nobody_else_hears_of_it)
{
	static const uint8_t sent[] = {RN_WC_SUCCESS, RN_WC_LOC_PROT_ERR, RN_WC_WR_FLUSH_ERR};
	struct rn_scripted_wr good, bad;

	error_start(&rig);
	good = world_wr(&rig.link, RN_WQE_RDMA_WRITE, 0);
	bad = world_wr(&rig.link, RN_WQE_RDMA_WRITE, ERROR_BYTES);
	bad.lkey ^= 1;
	error_post(&rig, &good, 0);
	error_post(&rig, &bad, 1);
	error_post(&rig, &good, 2);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, 0, sent, 3);
	check_untouched();
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[0]), RN_QPS_ERR);
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[1]), RN_QPS_RTS);
	error_load(&rig);
	ck_assert_uint_eq(frames_count(&rig.frames, 0, RN_FAULT_ANY), 1);
	ck_assert_uint_eq(frames_count(&rig.frames, 1, RN_FAULT_NAK), 0);
	error_finish(&rig);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("rc_refused");

	tcase_add_loop_test(tcase,
			    what_a_key_or_a_qp_does_not_allow_is_naked_and_ends_both_queue_pairs, 0,
			    OFFENCES * OPCODES);
	tcase_add_loop_test(tcase, a_message_of_nothing_checks_no_key, 0, 2);
	tcase_add_test(tcase, a_send_longer_than_its_receive_fails_at_both_ends);
	tcase_add_loop_test(tcase, a_receive_into_memory_that_is_not_its_own_fails_at_both_ends, 0,
			    2);
	tcase_add_loop_test(
		tcase, a_write_with_immediate_that_is_refused_fails_the_receive_that_it_consumes, 0,
		2 * QP_LACKS_RIGHT);
	tcase_add_test(tcase, a_wrong_lkey_fails_here_and_nobody_else_hears_of_it);
	return run_suite(tcase, "rc_refused");
}
