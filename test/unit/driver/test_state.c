/* The QP state machine over the fake NIC: transitions, ranges, address handles, queries. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "driver/address.h"
#include "driver/qp_state.h"
#include "rig.h"
#include "run_suite.h"

#define VA UINT64_C(0x10000000)

static struct rig rig;
static struct user user;
static uint32_t pd, cqn, qpn;

static void set_up(void)
{
	rig_init(&rig);
	user_init(&user, &rig);
	user_make_qp(&user, VA, &pd, &cqn, &qpn);
}

static void tear_down(void)
{
	user_fini(&user);
	rig_fini(&rig);
}

static int move(uint32_t state, uint32_t mask)
{
	struct rn_uapi_qp_attr attr = legal_attr;

	attr.qp_state = state;
	return user_modify(&user, qpn, mask, &attr);
}

static void to_state(uint32_t state)
{
	ck_assert_int_eq(move(RN_QPS_RESET, RN_QP_STATE), 0);
	if (state >= RN_QPS_INIT)
		ck_assert_int_eq(move(RN_QPS_INIT, MASK_INIT), 0);
	if (state == RN_QPS_ERR)
		ck_assert_int_eq(move(RN_QPS_ERR, RN_QP_STATE), 0);
	else if (state >= RN_QPS_RTR)
		ck_assert_int_eq(move(RN_QPS_RTR, MASK_RTR), 0);
	if (state != RN_QPS_ERR && state >= RN_QPS_RTS)
		ck_assert_int_eq(move(RN_QPS_RTS, MASK_RTS), 0);
	if (state == RN_QPS_SQD)
		ck_assert_int_eq(move(RN_QPS_SQD, RN_QP_STATE), 0);
}

static uint32_t query_state(void)
{
	ck_assert_int_eq(user_op(&user, RN_UAPI_QUERY_QP, qpn), 0);
	ck_assert_uint_eq(user.answer.qp.attr.qp_state, user.answer.qp.attr.cur_qp_state);
	return user.answer.qp.attr.qp_state;
}

START_TEST(every_transition_does_what_the_table_says)
{
	static const uint32_t states[] = {RN_QPS_RESET, RN_QPS_INIT, RN_QPS_RTR,
					  RN_QPS_RTS,	RN_QPS_SQD,  RN_QPS_ERR};

	for (size_t from = 0; from < 6; from++) {
		for (uint32_t to = 0; to <= RN_QPS_ERR + 1; to++) {
			const struct rn_qp_transition *row =
				rn_qp_transition((uint8_t)states[from], (uint8_t)to);

			to_state(states[from]);
			ck_assert_int_eq(move(to, row->required | RN_QP_STATE),
					 row->valid ? 0 : EINVAL);
			ck_assert_uint_eq(query_state(), row->valid ? to : states[from]);
			ck_assert_uint_eq(fake_nic_qpc(rig.nic, qpn)->state, query_state());
			if (!row->valid || !row->required)
				continue;
			to_state(states[from]);
			ck_assert_int_eq(move(to,
					      (row->required & (row->required - 1)) | RN_QP_STATE),
					 EINVAL);
			ck_assert_int_eq(move(to, row->required | RN_QP_STATE | RN_QP_QKEY),
					 EINVAL);
			ck_assert_uint_eq(query_state(), states[from]);
		}
	}
}
END_TEST

START_TEST(a_context_carries_every_attribute)
{
	to_state(RN_QPS_RTS);

	const struct rn_hw_qpc *qpc = fake_nic_qpc(rig.nic, qpn);
	static const uint8_t dmac[6] = {2, 0, 0, 0, 0, 2};

	ck_assert_uint_eq(qpc->mtu_log2, 12);
	ck_assert_uint_eq(qpc->access, 6);
	ck_assert_uint_eq(qpc->dest_qpn, 0x77);
	ck_assert_uint_eq(qpc->rq_psn, 0x123456);
	ck_assert_uint_eq(qpc->sq_psn, 0x654321);
	ck_assert_uint_eq(qpc->pkey, 0xffff);
	ck_assert_uint_eq(qpc->udp_sport, rn_address_udp_sport(0, qpn, 0x77));
	ck_assert_uint_eq(qpc->timeout, 14);
	ck_assert_uint_eq(qpc->retry_cnt, 7);
	ck_assert_uint_eq(qpc->rnr_retry, 6);
	ck_assert_uint_eq(qpc->min_rnr_timer, 12);
	ck_assert_uint_eq(qpc->max_rd_atomic, 4);
	ck_assert_uint_eq(qpc->max_dest_rd_atomic, 8);
	ck_assert_uint_eq(qpc->hop_limit, 64);
	ck_assert_mem_eq(qpc->dmac, dmac, 6);
	ck_assert_mem_eq(qpc->dgid, legal_attr.dgid, 16);
	/* And RESET forgets them, but not the queues. */
	const uint32_t sq_mkey = qpc->sq_mkey;

	to_state(RN_QPS_RESET);
	ck_assert_uint_eq(qpc->dest_qpn, 0);
	ck_assert_uint_eq(qpc->sq_mkey, sq_mkey);
}
END_TEST

/* Attributes with a limit: the largest legal value goes through, the next does not. */
static const struct {
	uint32_t bit;
	size_t offset;
	uint32_t legal, illegal;
} limits[] = {
	{RN_QP_PORT, offsetof(struct rn_uapi_qp_attr, port_num), 1, 2},
	{RN_QP_PORT, offsetof(struct rn_uapi_qp_attr, port_num), 1, 0},
	{RN_QP_PKEY_INDEX, offsetof(struct rn_uapi_qp_attr, pkey_index), 0, 1},
	{RN_QP_ACCESS_FLAGS, offsetof(struct rn_uapi_qp_attr, access), 0xf, 0x100},
	{RN_QP_PATH_MTU, offsetof(struct rn_uapi_qp_attr, path_mtu), 5, 6},
	{RN_QP_PATH_MTU, offsetof(struct rn_uapi_qp_attr, path_mtu), 1, 0},
	{RN_QP_DEST_QPN, offsetof(struct rn_uapi_qp_attr, dest_qpn), 0xffffff, 0x1000000},
	{RN_QP_MAX_DEST_RD_ATOMIC, offsetof(struct rn_uapi_qp_attr, max_dest_rd_atomic), 16, 17},
	{RN_QP_MIN_RNR_TIMER, offsetof(struct rn_uapi_qp_attr, min_rnr_timer), 31, 32},
	{RN_QP_AV, offsetof(struct rn_uapi_qp_attr, ah_port), 1, 2},
	{RN_QP_AV, offsetof(struct rn_uapi_qp_attr, sgid_index), 0, 1}, /* an IPv6 one */
	{RN_QP_AV, offsetof(struct rn_uapi_qp_attr, sgid_index), 0, 2},
	{RN_QP_AV, offsetof(struct rn_uapi_qp_attr, flow_label), 0xfffff, 0x100000},
	{RN_QP_AV, offsetof(struct rn_uapi_qp_attr, traffic_class), 255, 256},
	{RN_QP_AV, offsetof(struct rn_uapi_qp_attr, hop_limit), 255, 256},
	{RN_QP_AV, offsetof(struct rn_uapi_qp_attr, sl), 15, 16},
	{RN_QP_TIMEOUT, offsetof(struct rn_uapi_qp_attr, timeout), 31, 32},
	{RN_QP_RETRY_CNT, offsetof(struct rn_uapi_qp_attr, retry_cnt), 7, 8},
	{RN_QP_RNR_RETRY, offsetof(struct rn_uapi_qp_attr, rnr_retry), 7, 8},
	{RN_QP_MAX_QP_RD_ATOMIC, offsetof(struct rn_uapi_qp_attr, max_rd_atomic), 16, 17},
};

static int connect_with(uint32_t bit, size_t offset, uint32_t value)
{
	static const uint32_t masks[] = {MASK_INIT, MASK_RTR, MASK_RTS};
	struct rn_uapi_qp_attr attr = legal_attr;
	int error = 0;

	to_state(RN_QPS_RESET);
	memcpy((char *)&attr + offset, &value, sizeof(value));
	for (uint32_t n = 0; !error && n < 3; n++) {
		attr.qp_state = RN_QPS_INIT + n;
		error = user_modify(&user, qpn, masks[n], &attr);
		/* It is the step that carries the attribute which refuses it. */
		ck_assert(!error || masks[n] & bit);
	}
	return error;
}

START_TEST(every_attribute_has_its_limit)
{
	for (size_t n = 0; n < sizeof(limits) / sizeof(limits[0]); n++) {
		ck_assert_int_eq(connect_with(limits[n].bit, limits[n].offset, limits[n].legal), 0);
		ck_assert_int_eq(connect_with(limits[n].bit, limits[n].offset, limits[n].illegal),
				 EINVAL);
	}
}
END_TEST

START_TEST(psns_are_masked_to_24_bits)
{
	ck_assert_int_eq(
		connect_with(0xffffffff, offsetof(struct rn_uapi_qp_attr, rq_psn), 0xff00aabb), 0);
	ck_assert_uint_eq(fake_nic_qpc(rig.nic, qpn)->rq_psn, 0x00aabb);
}
END_TEST

START_TEST(the_present_state_must_be_named_rightly)
{
	struct rn_uapi_qp_attr attr = legal_attr;

	to_state(RN_QPS_RTR);
	attr.qp_state = RN_QPS_RTS;
	attr.cur_qp_state = RN_QPS_SQD;
	ck_assert_int_eq(user_modify(&user, qpn, MASK_RTS | RN_QP_CUR_STATE, &attr), EINVAL);
	attr.cur_qp_state = RN_QPS_RTR;
	ck_assert_int_eq(user_modify(&user, qpn, MASK_RTS | RN_QP_CUR_STATE, &attr), 0);
}
END_TEST

static int reach(const uint8_t gid[16], uint32_t sgid_index)
{
	struct rn_uapi_qp_attr attr = legal_attr;

	to_state(RN_QPS_INIT);
	attr.qp_state = RN_QPS_RTR;
	attr.sgid_index = sgid_index;
	memcpy(attr.dgid, gid, 16);
	return user_modify(&user, qpn, MASK_RTR, &attr);
}

START_TEST(only_hosts_of_the_fabric_can_be_reached)
{
	uint8_t gid[16];

	for (uint32_t index = 0; index < 2; index++) {
		rn_address_gid(1, index, gid);
		ck_assert_int_eq(reach(gid, index), 0);
		rn_address_gid(0, index, gid);
		ck_assert_int_eq(reach(gid, index), 0); /* loopback */
		rn_address_gid(2, index, gid);
		ck_assert_int_eq(reach(gid, index), EHOSTUNREACH);
	}
	rn_address_gid(1, 1, gid);
	ck_assert_int_eq(reach(gid, 0), EINVAL); /* IPv4 source, IPv6 destination */
	memset(gid, 0, 16);
	ck_assert_int_eq(reach(gid, 1), EINVAL);
	gid[0] = 0x20;
	ck_assert_int_eq(reach(gid, 1), ENETUNREACH);
}
END_TEST

START_TEST(without_grh_the_lid_names_the_host)
{
	struct rn_uapi_qp_attr attr = legal_attr;
	uint8_t gid[16];

	attr.qp_state = RN_QPS_RTR;
	attr.is_global = 0;
	attr.dlid = 2;
	memset(attr.dgid, 0xee, 16);
	to_state(RN_QPS_INIT);
	ck_assert_int_eq(user_modify(&user, qpn, MASK_RTR, &attr), 0);
	rn_address_gid(1, 0, gid);
	ck_assert_mem_eq(fake_nic_qpc(rig.nic, qpn)->dgid, gid, 16);
	for (attr.dlid = 0; attr.dlid < 6; attr.dlid += 3) {
		to_state(RN_QPS_INIT);
		ck_assert_int_eq(user_modify(&user, qpn, MASK_RTR, &attr), ENETUNREACH);
	}
}
END_TEST

START_TEST(where_grh_is_demanded_a_lid_is_refused)
{
	struct rig strict;
	struct rn_driver_env env;
	struct user one;
	struct rn_uapi_qp_attr attr = legal_attr;
	uint32_t id;

	rig_make_env(&strict, &env);
	env.device.allow_no_grh = 0;
	rig_start(&strict, &env);
	user_init(&one, &strict);
	user_make_qp(&one, VA, &(uint32_t){0}, &(uint32_t){0}, &id);
	attr.qp_state = RN_QPS_INIT;
	ck_assert_int_eq(user_modify(&one, id, MASK_INIT, &attr), 0);
	attr.qp_state = RN_QPS_RTR;
	attr.is_global = 0;
	attr.dlid = 1;
	ck_assert_int_eq(user_modify(&one, id, MASK_RTR, &attr), EINVAL);
	attr.is_global = 1;
	ck_assert_int_eq(user_modify(&one, id, MASK_RTR, &attr), 0);
	user_fini(&one);
	rig_fini(&strict);
}
END_TEST

START_TEST(a_query_tells_the_psns_of_the_sections)
{
	struct rn_hw_qpc_requester requester = {.next_psn = 0xabcdef};
	struct rn_hw_qpc_responder responder = {.epsn = 0x000042};

	to_state(RN_QPS_RTS);
	memcpy(fake_nic_qpc(rig.nic, qpn)->requester, &requester, sizeof(requester));
	memcpy(fake_nic_qpc(rig.nic, qpn)->responder, &responder, sizeof(responder));
	ck_assert_uint_eq(query_state(), RN_QPS_RTS);
	ck_assert_uint_eq(user.answer.qp.attr.sq_psn, 0xabcdef);
	ck_assert_uint_eq(user.answer.qp.attr.rq_psn, 0x42);
	ck_assert_uint_eq(user.answer.qp.attr.dest_qpn, 0x77);
	ck_assert_uint_eq(user.answer.qp.attr.timeout, 14);
	ck_assert_mem_eq(user.answer.qp.attr.dgid, legal_attr.dgid, 16);
}
END_TEST

START_TEST(a_qp_that_the_nic_stopped_is_in_error_until_reset)
{
	struct rn_hw_qpc_requester requester = {.error = 1};

	to_state(RN_QPS_RTS);
	memcpy(fake_nic_qpc(rig.nic, qpn)->requester, &requester, sizeof(requester));
	ck_assert_uint_eq(query_state(), RN_QPS_ERR);
	ck_assert_int_eq(move(RN_QPS_RTS, RN_QP_STATE), EINVAL);
	ck_assert_int_eq(move(RN_QPS_SQD, RN_QP_STATE), EINVAL);
	ck_assert_int_eq(move(RN_QPS_ERR, RN_QP_STATE), 0);
	ck_assert_uint_eq(query_state(), RN_QPS_ERR);
	to_state(RN_QPS_RTS);
	ck_assert_uint_eq(query_state(), RN_QPS_RTS);
}
END_TEST

START_TEST(sqd_notify_is_said_anew_each_time)
{
	struct rn_uapi_qp_attr attr = legal_attr;

	to_state(RN_QPS_RTS);
	attr.qp_state = RN_QPS_SQD;
	attr.en_sqd_async_notify = 1;
	ck_assert_int_eq(user_modify(&user, qpn, RN_QP_STATE | RN_QP_EN_SQD_ASYNC_NOTIFY, &attr),
			 0);
	ck_assert_uint_eq(fake_nic_qpc(rig.nic, qpn)->sqd_notify, 1);
	ck_assert_int_eq(move(RN_QPS_RTS, RN_QP_STATE), 0);
	ck_assert_int_eq(move(RN_QPS_SQD, RN_QP_STATE), 0);
	ck_assert_uint_eq(fake_nic_qpc(rig.nic, qpn)->sqd_notify, 0);
}
END_TEST

START_TEST(an_attribute_refused_late_changes_nothing)
{
	struct rn_uapi_qp_attr attr = legal_attr;

	to_state(RN_QPS_RTR);
	fake_nic_fail(rig.nic, RN_CMD_MODIFY_QP, RN_CMD_BAD_STATE);
	attr.qp_state = RN_QPS_RTS;
	attr.timeout = 9;
	ck_assert_int_eq(user_modify(&user, qpn, MASK_RTS, &attr), EINVAL);
	fake_nic_fail(rig.nic, 0, 0);
	ck_assert_uint_eq(query_state(), RN_QPS_RTR);
	ck_assert_uint_eq(user.answer.qp.attr.timeout, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("state");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, every_transition_does_what_the_table_says);
	tcase_add_test(tcase, a_context_carries_every_attribute);
	tcase_add_test(tcase, every_attribute_has_its_limit);
	tcase_add_test(tcase, psns_are_masked_to_24_bits);
	tcase_add_test(tcase, the_present_state_must_be_named_rightly);
	tcase_add_test(tcase, only_hosts_of_the_fabric_can_be_reached);
	tcase_add_test(tcase, without_grh_the_lid_names_the_host);
	tcase_add_test(tcase, where_grh_is_demanded_a_lid_is_refused);
	tcase_add_test(tcase, a_query_tells_the_psns_of_the_sections);
	tcase_add_test(tcase, a_qp_that_the_nic_stopped_is_in_error_until_reset);
	tcase_add_test(tcase, sqd_notify_is_said_anew_each_time);
	tcase_add_test(tcase, an_attribute_refused_late_changes_nothing);
	return run_suite(tcase, "driver_state");
}
