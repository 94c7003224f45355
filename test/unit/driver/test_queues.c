/* Queues, ownership, limits, doorbells, and what is left when clients leave. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "rig.h"
#include "run_suite.h"

#define VA UINT64_C(0x10000000)

static struct rig rig;
static struct user user, other;

static void set_up(void)
{
	rig_init(&rig);
	user_init(&user, &rig);
	user_init(&other, &rig);
}

static void tear_down(void)
{
	struct rn_driver_usage usage;
	static const struct rn_driver_usage none;

	user_fini(&user);
	user_fini(&other);
	rn_driver_get_usage(rig.driver, &usage);
	ck_assert_mem_eq(&usage, &none, sizeof(usage));
	rig_fini(&rig);
}

static uint64_t pa_of(uint64_t va)
{
	uint64_t pa;

	ck_assert(rn_driver_find_pa(user.client, va, &pa));
	return pa;
}

/* --- busy, limits, ownership --- */

START_TEST(busy_objects_refuse_to_go)
{
	uint32_t pd, cqn, qpn, key;

	ck_assert_int_eq(user_op(&user, RN_UAPI_CREATE_CHANNEL, 0), 0);

	const uint32_t channel = user.answer.rsp.handle;

	user_make_qp(&user, VA, &pd, &cqn, &qpn);
	ck_assert_int_eq(user_pin(&user, VA + 0x10000, 2, true), 0);
	ck_assert_int_eq(user_reg_mr(&user, pd, VA, 100, 0, &key), 0);

	uint32_t cq2;

	ck_assert_int_eq(user_create_cq(&user, VA + 0x10000, 32, channel, &cq2), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DEALLOC_PD, pd), EBUSY);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cqn), EBUSY);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CHANNEL, channel), EBUSY);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_QP, qpn), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DEALLOC_PD, pd), EBUSY);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DEREG_MR, key >> 8), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DEALLOC_PD, pd), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cqn), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cq2), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CHANNEL, channel), 0);
	ck_assert_int_eq(user_unpin(&user, VA, 8, true), 0);
}
END_TEST

START_TEST(nobody_touches_what_belongs_to_another)
{
	uint32_t pd, cqn, qpn, key, id;
	struct rn_uapi_qp_attr attr = legal_attr;

	user_make_qp(&user, VA, &pd, &cqn, &qpn);
	ck_assert_int_eq(user_reg_mr(&user, pd, VA, 100, 0, &key), 0);
	ck_assert_int_eq(user_pin(&other, VA, 8, true), 0);
	ck_assert_int_eq(user_op(&other, RN_UAPI_DEALLOC_PD, pd), ENOENT);
	ck_assert_int_eq(user_op(&other, RN_UAPI_DEREG_MR, key >> 8), ENOENT);
	ck_assert_int_eq(user_op(&other, RN_UAPI_DESTROY_CQ, cqn), ENOENT);
	ck_assert_int_eq(user_op(&other, RN_UAPI_DESTROY_QP, qpn), ENOENT);
	ck_assert_int_eq(user_op(&other, RN_UAPI_QUERY_QP, qpn), EINVAL);
	attr.qp_state = RN_QPS_INIT;
	ck_assert_int_eq(user_modify(&other, qpn, MASK_INIT, &attr), EINVAL);
	ck_assert_int_eq(user_reg_mr(&other, pd, VA, 100, 0, &key), EINVAL);
	ck_assert_int_eq(user_create_qp(&other, pd, cqn, VA + 0x2000, &id), ENOENT);
	/* The PD of the rings has no handle: numbers in use around it all refuse. */
	for (uint32_t n = 0; n < 8; n++)
		if (n != pd)
			ck_assert_int_eq(user_op(&user, RN_UAPI_DEALLOC_PD, n), ENOENT);
	/* Nor has a ring's key one as a memory region. */
	ck_assert_int_eq(user_op(&user, RN_UAPI_DEREG_MR, fake_nic_qpc(rig.nic, qpn)->sq_mkey >> 8),
			 ENOENT);
}
END_TEST

START_TEST(handles_out_of_any_range_are_refused)
{
	static const uint32_t handles[] = {0, 1, 63, 0xffff, 0x10000, 0xffffff, UINT32_MAX};

	for (size_t n = 0; n < sizeof(handles) / sizeof(handles[0]); n++)
		for (uint32_t op = 0; op < 40; op++) {
			struct rn_uapi_req req = {.handle = handles[n]};
			const int error = user_call(&user, op, &req, sizeof(req));

			const bool ends = op == RN_UAPI_DEALLOC_PD || op == RN_UAPI_DEREG_MR ||
					  op == RN_UAPI_DESTROY_CHANNEL ||
					  op == RN_UAPI_DESTROY_CQ || op == RN_UAPI_DESTROY_QP ||
					  op == RN_UAPI_DESTROY_AH;

			if (op == RN_UAPI_QUERY_DEVICE || op == RN_UAPI_QUERY_CLOCK ||
			    op == RN_UAPI_ALLOC_PD || op == RN_UAPI_OPEN_ASYNC ||
			    op == RN_UAPI_CREATE_CHANNEL ||
			    (op == RN_UAPI_QUERY_PORT && handles[n] < 2))
				ck_assert_int_eq(error, 0);
			else if (!ends)
				ck_assert_int_eq(error, EINVAL);
			else if (error) /* some were made on the way */
				ck_assert_int_eq(error, ENOENT);
			if (user.fd >= 0)
				close(user.fd);
			user.fd = -1;
		}
}
END_TEST

START_TEST(a_header_that_lies_is_refused)
{
	struct rn_uapi_reg_mr reg = {.req = {.op = RN_UAPI_REG_MR, .bytes = sizeof(reg)}};

	for (uint32_t bytes = 0; bytes < sizeof(reg); bytes++) {
		user.answered = false;
		ck_assert(rn_driver_request(user.client, &reg, bytes));
		ck_assert(user.answered);
		ck_assert_int_eq(user.answer.rsp.error, EINVAL);
	}
}
END_TEST

START_TEST(limits_of_the_device_answer_enomem)
{
	struct rig small;
	struct rn_driver_env env;
	struct user one;
	uint32_t pd, key, cqn;

	rig_make_env(&small, &env);
	env.device.max_pd = 2;
	env.device.max_mr = 3;
	env.device.max_cq = 1;
	env.max_pinned_pages = 10;
	rig_start(&small, &env);
	user_init(&one, &small);
	ck_assert_int_eq(user_op(&one, RN_UAPI_ALLOC_PD, 0), 0);
	pd = one.answer.rsp.handle;
	ck_assert_int_eq(user_op(&one, RN_UAPI_ALLOC_PD, 0), 0);
	ck_assert_int_eq(user_op(&one, RN_UAPI_ALLOC_PD, 0), ENOMEM);
	ck_assert_int_eq(user_pin(&one, VA, 10, true), 0);
	ck_assert_int_eq(user_pin(&one, VA, 11, true), ENOMEM);
	for (int n = 0; n < 3; n++)
		ck_assert_int_eq(user_reg_mr(&one, pd, VA, 100, 0, &key), 0);
	ck_assert_int_eq(user_reg_mr(&one, pd, VA, 100, 0, &key), ENOMEM);
	ck_assert_int_eq(user_create_cq(&one, VA, 32, 0, &cqn), 0);
	ck_assert_int_eq(user_create_cq(&one, VA + 0x1000, 32, 0, &cqn), ENOMEM);
	user_fini(&one);
	rig_fini(&small);
}
END_TEST

/* --- queues --- */

START_TEST(queue_contexts_point_at_rings_and_record)
{
	uint32_t pd, cqn, qpn;

	user_make_qp(&user, VA, &pd, &cqn, &qpn);

	const struct rn_hw_cqc *cqc = fake_nic_cqc(rig.nic, cqn);
	const struct rn_hw_qpc *qpc = fake_nic_qpc(rig.nic, qpn);

	ck_assert_uint_ge(qpn, 64);
	ck_assert_uint_eq(cqc->dbr_pa, pa_of(VA + 0x1000));
	ck_assert_uint_eq(cqc->log_cqes, 6);
	ck_assert_uint_eq(fake_nic_translate(rig.nic, cqc->mkey, 64 * 63), pa_of(VA + 64 * 63));
	ck_assert_uint_eq(fake_nic_translate(rig.nic, cqc->mkey, 64 * 64), 0);
	ck_assert_uint_eq(fake_nic_mpt(rig.nic, cqc->mkey)->pd, cqc->pd);
	ck_assert_uint_ne(cqc->pd, pd);
	ck_assert_uint_eq(qpc->dbr_pa, pa_of(VA + 0x5000));
	ck_assert_uint_eq(fake_nic_translate(rig.nic, qpc->sq_mkey, 0x1fff), pa_of(VA + 0x3fff));
	ck_assert_uint_eq(fake_nic_translate(rig.nic, qpc->rq_mkey, 0xfff), pa_of(VA + 0x4fff));
	ck_assert_uint_eq(qpc->pd, pd);
	ck_assert_uint_eq(qpc->log_rq_segments, 2);
	ck_assert_uint_eq(qpc->uar_page, user.info.uar_first);
	/* A record may lie in a page that could not be swapped. */
	ck_assert_int_eq(user_pin(&user, VA + 0x10000, 2, true), 0);
	ck_assert_int_eq(user_pin(&user, VA + 0x20000, 1, false), 0);

	struct rn_uapi_create_cq create = {
		.cqes = 64, .ring_va = VA + 0x10000, .dbr_va = VA + 0x20008};

	ck_assert_int_eq(user_call(&user, RN_UAPI_CREATE_CQ, &create, sizeof(create)), 0);
	ck_assert_uint_eq(fake_nic_cqc(rig.nic, user.answer.rsp.handle)->dbr_pa &
				  ((UINT64_C(1) << RN_PA_OFFSET_BITS) - 1),
			  VA + 0x20008);
}
END_TEST

static int create_qp_with(size_t offset, uint64_t value, uint32_t bytes, uint32_t pd, uint32_t cqn)
{
	struct rn_uapi_create_qp create = {.pd = pd,
					   .service = RN_QPT_RC,
					   .send_cq = cqn,
					   .recv_cq = cqn,
					   .sq_wqebbs = 64,
					   .rq_wqes = 64,
					   .rq_segments = 4,
					   .rq_max_sge = 4,
					   .sq_va = VA,
					   .rq_va = VA + 0x1000,
					   .dbr_va = VA + 0x2000};

	memcpy((char *)&create + offset, &value, bytes);

	const int error = user_call(&user, RN_UAPI_CREATE_QP, &create, sizeof(create));

	if (!error)
		user_op(&user, RN_UAPI_DESTROY_QP, user.answer.rsp.handle);
	return error;
}

#define QP_WITH(field, value)                                                                      \
	create_qp_with(offsetof(struct rn_uapi_create_qp, field), value,                           \
		       sizeof(((struct rn_uapi_create_qp *)0)->field), pd, cqn)

START_TEST(queue_pairs_that_make_no_sense_are_refused)
{
	uint32_t pd, cqn, qpn;

	user_make_qp(&user, VA, &pd, &cqn, &qpn);
	ck_assert_int_eq(QP_WITH(cookie, 1), 0);
	ck_assert_int_eq(QP_WITH(sq_wqebbs, 0), 0);
	ck_assert_int_eq(QP_WITH(rq_wqes, 0), 0);
	ck_assert_int_eq(QP_WITH(service, RN_QPT_UD), EOPNOTSUPP);
	ck_assert_int_eq(QP_WITH(sq_wqebbs, 63), EINVAL);
	ck_assert_int_eq(QP_WITH(sq_wqebbs, 1 << 16), EINVAL);
	ck_assert_int_eq(QP_WITH(sq_wqebbs, 1 << 15), EINVAL); /* beyond what is pinned */
	ck_assert_int_eq(QP_WITH(rq_wqes, 100), EINVAL);
	ck_assert_int_eq(QP_WITH(rq_segments, 3), EINVAL);
	ck_assert_int_eq(QP_WITH(rq_segments, 1u << 31), EINVAL);
	ck_assert_int_eq(QP_WITH(rq_max_sge, 5), EINVAL);
	ck_assert_int_eq(QP_WITH(sq_va, VA + 64), EINVAL);
	ck_assert_int_eq(QP_WITH(rq_va, VA + 0x100000), EINVAL);
	ck_assert_int_eq(QP_WITH(dbr_va, VA + 4), EINVAL);
	ck_assert_int_eq(QP_WITH(dbr_va, VA + 0x100000), EINVAL);
	ck_assert_int_eq(QP_WITH(uar_page, 1), EINVAL);
	ck_assert_int_eq(QP_WITH(pd, 77), ENOENT);
	ck_assert_int_eq(QP_WITH(send_cq, 0), ENOENT);
	ck_assert_int_eq(QP_WITH(recv_cq, UINT32_MAX), ENOENT);
	fake_nic_fail(rig.nic, RN_CMD_CREATE_QP, RN_CMD_BAD_PARAMETER);
	ck_assert_int_eq(QP_WITH(cookie, 1), EINVAL);
	/* Only the first is left: what it and its CQ use stays, the rest can go. */
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_QP, qpn), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cqn), 0);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DEALLOC_PD, pd), 0);
	ck_assert_int_eq(user_unpin(&user, VA, 8, true), 0);
}
END_TEST

START_TEST(a_resized_cq_has_a_new_ring_and_gives_the_old_one_back)
{
	uint32_t cqn;

	ck_assert_int_eq(user_pin(&user, VA, 4, true), 0);
	ck_assert_int_eq(user_create_cq(&user, VA, 32, 0, &cqn), 0);

	struct rn_uapi_resize_cq resize = {.req.handle = cqn, .cqes = 128, .ring_va = VA + 0x2000};
	const uint32_t old_key = fake_nic_cqc(rig.nic, cqn)->mkey;

	ck_assert_int_eq(user_call(&user, RN_UAPI_RESIZE_CQ, &resize, sizeof(resize)), 0);
	ck_assert_uint_eq(fake_nic_cqc(rig.nic, cqn)->log_cqes, 7);
	ck_assert_uint_eq(fake_nic_translate(rig.nic, fake_nic_cqc(rig.nic, cqn)->mkey, 0),
			  pa_of(VA + 0x2000));
	ck_assert_uint_eq(fake_nic_translate(rig.nic, old_key, 0), 0);
	fake_nic_fail(rig.nic, RN_CMD_MODIFY_CQ, RN_CMD_BAD_STATE);
	ck_assert_int_eq(user_call(&user, RN_UAPI_RESIZE_CQ, &resize, sizeof(resize)), EINVAL);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cqn), 0);
	ck_assert_int_eq(user_unpin(&user, VA, 4, true), 0);
}
END_TEST

/* --- doorbells --- */

START_TEST(a_doorbell_goes_to_the_clients_own_page)
{
	const struct rn_hw_sq_doorbell ring = {.qpn = 70, .pi = 3};

	ck_assert_int_eq(rn_driver_mmio(other.client, 0, 0, RN_UAR_SQ_DOORBELL, &ring, 8),
			 RN_DRIVER_MMIO_OK);
	ck_assert_uint_eq(fake_nic_write(rig.nic, 0)->offset,
			  RN_UAR_BASE + other.info.uar_first * 4096 + RN_UAR_SQ_DOORBELL);
	ck_assert_mem_eq(fake_nic_write(rig.nic, 0)->data, &ring, 8);
	ck_assert_uint_ne(other.info.uar_first, user.info.uar_first);
	fake_nic_set_full(rig.nic, true);
	ck_assert_int_eq(rn_driver_mmio(other.client, 0, 0, RN_UAR_SQ_DOORBELL, &ring, 8),
			 RN_DRIVER_MMIO_FULL);
	ck_assert_uint_eq(fake_nic_writes(rig.nic), 1);
}
END_TEST

START_TEST(writes_outside_the_clients_pages_are_violations)
{
	static const uint32_t bad[][3] = {/* page, offset, len */
					  {1, 0, 8},   {UINT32_MAX, 0, 8}, {0, 4096, 8},
					  {0, 60, 8},  {0, 0, 128},	   {0, 0, 0},
					  {0, 0, 3},   {0, 2, 4},	   {0, UINT32_MAX - 3, 4},
					  {0, 4092, 8}};
	const uint8_t data[128] = {0};

	for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++)
		ck_assert_int_eq(rn_driver_mmio(user.client, 0, bad[n][0], bad[n][1], data,
						bad[n][2]),
				 RN_DRIVER_MMIO_VIOLATION);
	ck_assert_uint_eq(fake_nic_writes(rig.nic), 0);
}
END_TEST

/* --- leaving --- */

/* A client that dies after a random number of wakes in the middle of whatever it does. */
static void die_at_random(struct rn_rng *rng)
{
	struct user doomed;
	uint32_t pd, cqn, qpn, key;
	bool is_gone = false;
	struct rn_uapi_create_qp create;

	user_init(&doomed, &rig);
	user_make_qp(&doomed, VA, &pd, &cqn, &qpn);
	ck_assert_int_eq(user_op(&doomed, RN_UAPI_CREATE_CHANNEL, 0), 0);
	ck_assert_int_eq(user_reg_mr(&doomed, pd, VA, 8 * 4096, 1, &key), 0);
	create = (struct rn_uapi_create_qp){.req = {.op = RN_UAPI_CREATE_QP,
						    .bytes = sizeof(create)},
					    .pd = pd,
					    .service = RN_QPT_RC,
					    .send_cq = cqn,
					    .recv_cq = cqn,
					    .sq_wqebbs = 64,
					    .rq_wqes = 64,
					    .rq_segments = 4,
					    .rq_max_sge = 4,
					    .sq_va = VA,
					    .rq_va = VA + 0x1000,
					    .dbr_va = VA + 0x2000};
	switch (rn_rng_below(rng, 4)) {
	case 0:
		ck_assert(rn_driver_request(doomed.client, &create, sizeof(create)));
		break;
	case 1:
		ck_assert(
			rn_driver_request(doomed.client,
					  &(struct rn_uapi_req){RN_UAPI_DESTROY_QP,
								sizeof(struct rn_uapi_req), qpn, 0},
					  sizeof(struct rn_uapi_req)));
		break;
	case 2:
		ck_assert(rn_driver_request(doomed.client,
					    &(struct rn_uapi_req){RN_UAPI_DEREG_MR,
								  sizeof(struct rn_uapi_req),
								  key >> 8, 0},
					    sizeof(struct rn_uapi_req)));
		break;
	default:
		break;
	}
	rn_sim_run(rig.sim, RN_TIME_NEVER, rn_rng_below(rng, 8));
	close(doomed.fd);
	rn_driver_detach(doomed.client, NULL, &is_gone);
	rig_run(&rig);
}

START_TEST(two_hundred_deaths_leave_nothing_behind)
{
	struct rn_driver_usage before, after;
	struct rn_rng rng;

	rn_rng_init(&rng, 1, "deaths");
	rn_driver_get_usage(rig.driver, &before);
	for (int n = 0; n < 200; n++)
		die_at_random(&rng);
	rn_driver_get_usage(rig.driver, &after);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	ck_assert_uint_eq(after.clients, 2);
}
END_TEST

START_TEST(leaving_with_more_objects_than_the_command_queue_holds_works)
{
	uint32_t pd, key;
	struct user many;

	user_init(&many, &rig);
	ck_assert_int_eq(user_op(&many, RN_UAPI_ALLOC_PD, 0), 0);
	pd = many.answer.rsp.handle;
	for (int n = 0; n < 500; n++)
		ck_assert_int_eq(user_reg_mr(&many, pd, 0, 0, 0, &key), 0);
	user_fini(&many);
	ck_assert_uint_eq(fake_nic_commands(rig.nic, RN_CMD_DESTROY_MKEY), 500);
}
END_TEST

START_TEST(a_driver_with_live_clients_can_be_freed)
{
	struct rig end;
	struct user one;
	uint32_t pd, cqn, qpn;

	rig_init(&end);
	user_init(&one, &end);
	user_make_qp(&one, VA, &pd, &cqn, &qpn);

	struct rn_uapi_req destroy = {RN_UAPI_DESTROY_QP, sizeof(destroy), qpn, 0};

	ck_assert(rn_driver_request(one.client, &destroy, sizeof(destroy)));
	rn_sim_run(end.sim, RN_TIME_NEVER, 1);
	rig_fini(&end);
}
END_TEST
int main(void)
{
	TCase *tcase = tcase_create("queues");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, busy_objects_refuse_to_go);
	tcase_add_test(tcase, nobody_touches_what_belongs_to_another);
	tcase_add_test(tcase, handles_out_of_any_range_are_refused);
	tcase_add_test(tcase, a_header_that_lies_is_refused);
	tcase_add_test(tcase, limits_of_the_device_answer_enomem);
	tcase_add_test(tcase, queue_contexts_point_at_rings_and_record);
	tcase_add_test(tcase, queue_pairs_that_make_no_sense_are_refused);
	tcase_add_test(tcase, a_resized_cq_has_a_new_ring_and_gives_the_old_one_back);
	tcase_add_test(tcase, a_doorbell_goes_to_the_clients_own_page);
	tcase_add_test(tcase, writes_outside_the_clients_pages_are_violations);
	tcase_add_test(tcase, two_hundred_deaths_leave_nothing_behind);
	tcase_add_test(tcase, leaving_with_more_objects_than_the_command_queue_holds_works);
	tcase_add_test(tcase, a_driver_with_live_clients_can_be_freed);
	return run_suite(tcase, "driver_queues");
}
