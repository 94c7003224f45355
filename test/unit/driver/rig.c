/*
 * See rig.h.
 */
#include "rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "driver/address.h"

void rig_make_env(struct rig *rig, struct rn_driver_env *env)
{
	*rig = (struct rig){.sim = rn_sim_new(0)};
	rig->nic = fake_nic_new(rig->sim);
	*env = (struct rn_driver_env){
		.sim = rig->sim,
		.root_complex = rig->nic,
		.name = "host0.driver",
		.seed = 1,
		.hosts = 2,
		.arena_bytes = UINT64_C(4) << 30,
	};
	rn_address_default_device(&env->device, 0);
	rn_address_default_port(&env->port, 0);
}

static void started(void *arg, int error)
{
	struct rig *rig = arg;

	rig->started = true;
	rig->start_error = error;
}

void rig_start(struct rig *rig, const struct rn_driver_env *env)
{
	rig->driver = rn_driver_new(env);
	rn_driver_start(rig->driver, started, rig);
	rig_run(rig);
	ck_assert(rig->started);
}

void rig_init(struct rig *rig)
{
	struct rn_driver_env env;

	rig_make_env(rig, &env);
	rig_start(rig, &env);
	ck_assert_int_eq(rig->start_error, 0);
}

void rig_fini(struct rig *rig)
{
	rn_driver_free(rig->driver);
	fake_nic_free(rig->nic);
	rn_sim_free(rig->sim);
}

void rig_run(struct rig *rig)
{
	rn_sim_run(rig->sim, RN_TIME_NEVER, UINT64_MAX);
}

static void answered(void *arg, const struct rn_uapi_rsp *rsp, uint32_t bytes, const int *fds,
		     uint32_t fd_count)
{
	struct user *user = arg;

	ck_assert_uint_eq(rsp->bytes, bytes);
	ck_assert_uint_le(bytes, sizeof(user->answer));
	memcpy(&user->answer, rsp, bytes);
	user->bytes = bytes;
	user->answered = true;
	if (fd_count)
		user->fd = dup(fds[0]);
}

void user_init(struct user *user, struct rig *rig)
{
	int error = -1;

	memset(user, 0, offsetof(struct user, answer));
	user->rig = rig;
	user->fd = -1;
	user->client = rn_driver_attach(rig->driver, getpid(), answered, user, &error);
	ck_assert_ptr_nonnull(user->client);
	rn_driver_client_get_info(user->client, &user->info);
}

static void gone(void *arg)
{
	*(bool *)arg = true;
}

void user_fini(struct user *user)
{
	bool is_gone = false;

	rn_driver_detach(user->client, gone, &is_gone);
	rig_run(user->rig);
	ck_assert(is_gone);
	if (user->fd >= 0)
		close(user->fd);
}

int user_call(struct user *user, uint32_t op, void *request, uint32_t bytes)
{
	struct rn_uapi_req *req = request;

	req->op = op;
	req->bytes = bytes;
	user->answered = false;
	ck_assert(rn_driver_request(user->client, request, bytes));
	rig_run(user->rig);
	ck_assert(user->answered);
	return user->answer.rsp.error;
}

int user_op(struct user *user, uint32_t op, uint32_t handle)
{
	struct rn_uapi_req req = {.handle = handle};

	return user_call(user, op, &req, sizeof(req));
}

int user_pin(struct user *user, uint64_t va, uint32_t pages, bool swap)
{
	const uint32_t bytes = (uint32_t)sizeof(struct rn_uapi_pin) + (pages + 7) / 8;
	struct rn_uapi_pin *pin = rn_calloc(1, bytes);

	pin->va = va;
	pin->pages = pages;
	memset(pin->swap, swap ? 0xff : 0, (pages + 7) / 8);

	const int error = user_call(user, RN_UAPI_PIN, pin, bytes);

	free(pin);
	return error;
}

int user_unpin(struct user *user, uint64_t va, uint32_t pages, bool commit)
{
	struct rn_uapi_unpin unpin = {.va = va, .pages = pages, .commit = commit};

	return user_call(user, RN_UAPI_UNPIN, &unpin, sizeof(unpin));
}

int user_reg_mr(struct user *user, uint32_t pd, uint64_t va, uint64_t length, uint32_t access,
		uint32_t *key)
{
	struct rn_uapi_reg_mr reg = {
		.pd = pd, .va = va, .length = length, .iova = va, .access = access};
	const int error = user_call(user, RN_UAPI_REG_MR, &reg, sizeof(reg));

	*key = error ? 0 : user->answer.mr.lkey;
	return error;
}

int user_create_cq(struct user *user, uint64_t va, uint32_t cqes, uint32_t channel, uint32_t *cqn)
{
	struct rn_uapi_create_cq create = {
		.cqes = cqes,
		.channel = channel,
		.cookie = 0xc0ffee0000 + va,
		.ring_va = va,
		.dbr_va = va + (uint64_t)cqes * 64,
	};
	const int error = user_call(user, RN_UAPI_CREATE_CQ, &create, sizeof(create));

	*cqn = user->answer.rsp.handle;
	return error;
}

int user_create_qp(struct user *user, uint32_t pd, uint32_t cqn, uint64_t va, uint32_t *qpn)
{
	struct rn_uapi_create_qp create = {
		.pd = pd,
		.service = RN_QPT_RC,
		.send_cq = cqn,
		.recv_cq = cqn,
		.sq_wqebbs = 128,
		.rq_wqes = 64,
		.rq_segments = 4,
		.rq_max_sge = 3,
		.sq_va = va,
		.rq_va = va + 0x2000,
		.dbr_va = va + 0x3000,
		.cookie = 0xbeef0000 + va,
	};
	const int error = user_call(user, RN_UAPI_CREATE_QP, &create, sizeof(create));

	*qpn = user->answer.rsp.handle;
	return error;
}

int user_modify(struct user *user, uint32_t qpn, uint32_t mask, const struct rn_uapi_qp_attr *attr)
{
	struct rn_uapi_modify_qp modify = {.req.handle = qpn, .attr_mask = mask, .attr = *attr};

	return user_call(user, RN_UAPI_MODIFY_QP, &modify, sizeof(modify));
}

const struct rn_uapi_qp_attr legal_attr = {
	.path_mtu = 5,
	.rq_psn = 0x123456,
	.sq_psn = 0x654321,
	.dest_qpn = 0x77,
	.access = RN_ACCESS_REMOTE_WRITE | RN_ACCESS_REMOTE_READ,
	.max_rd_atomic = 4,
	.max_dest_rd_atomic = 8,
	.min_rnr_timer = 12,
	.port_num = 1,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 6,
	.is_global = 1,
	.hop_limit = 1,
	.ah_port = 1,
	.dgid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
};

int user_connect(struct user *user, uint32_t qpn)
{
	static const uint32_t masks[] = {MASK_INIT, MASK_RTR, MASK_RTS};
	struct rn_uapi_qp_attr attr = legal_attr;
	int error = 0;

	for (unsigned n = 0; !error && n < 3; n++) {
		attr.qp_state = RN_QPS_INIT + n;
		error = user_modify(user, qpn, masks[n], &attr);
	}
	return error;
}

void user_make_qp(struct user *user, uint64_t va, uint32_t *pd, uint32_t *cqn, uint32_t *qpn)
{
	ck_assert_int_eq(user_pin(user, va, 8, true), 0);
	ck_assert_int_eq(user_op(user, RN_UAPI_ALLOC_PD, 0), 0);
	*pd = user->answer.rsp.handle;
	ck_assert_int_eq(user_create_cq(user, va, 64, 0, cqn), 0);
	ck_assert_int_eq(user_create_qp(user, *pd, *cqn, va + 0x2000, qpn), 0);
}
