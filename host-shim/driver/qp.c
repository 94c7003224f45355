/*
 * Queue pairs: creation and destruction. Rings lie in the program's memory under keys in the QP's PD;
 * the doorbell record's physical address goes into the context.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "driver/internal.h"

struct rn_qp_object *rn_qp_find(struct rn_driver_client *client, uint32_t qpn)
{
	const struct rn_driver *driver = client->driver;
	struct rn_qp_object *qp = qpn >> driver->icm.log_qps ? NULL : driver->qp[qpn];

	return qp && qp->client == client && qp->live ? qp : NULL;
}

void rn_qp_free(struct rn_qp_object *qp)
{
	struct rn_driver *driver = qp->client->driver;

	qp->send_cq->qps--;
	qp->recv_cq->qps--;
	qp->pd->users--;
	rn_pin_unuse(qp->client, qp->dbr_va);
	driver->qp[qp->qpn] = NULL;
	rn_ids_put(&driver->qpns, qp->qpn);
	rn_list_remove(&qp->link);
	free(qp);
}

/* --- destroy: the QP first, then its rings' keys --- */

static void drop_rings(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_qp_object *qp = arg;
	struct rn_mkey *gone = qp->sq ? qp->sq : qp->rq;

	(void)mkey;
	(void)error;
	if (!gone) {
		qp->then(qp);
		return;
	}
	if (qp->sq)
		qp->sq = NULL;
	else
		qp->rq = NULL;
	rn_mkey_destroy(gone, drop_rings, qp);
}

static void destroyed(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_qp_object *qp = arg;

	(void)status;
	(void)out;
	rn_event_forget_qp(qp);
	drop_rings(qp, NULL, 0);
}

void rn_qp_release(struct rn_qp_object *qp, void (*then)(struct rn_qp_object *qp))
{
	qp->live = false;
	qp->then = then;
	rn_command_submit(qp->client->driver, RN_CMD_DESTROY_QP, qp->qpn, NULL, 0, 0, destroyed,
			  qp);
}

static void answer_destroy(struct rn_qp_object *qp)
{
	struct rn_driver_client *client = qp->client;
	struct rn_uapi_destroy_rsp response = {.async_events = qp->async_events};

	rn_qp_free(qp);
	rn_client_answer_with(client, &response, sizeof(response), 0, NULL, 0);
}

void rn_qp_destroy_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	struct rn_qp_object *qp = rn_qp_find(client, req->handle);

	if (qp)
		rn_qp_release(qp, answer_destroy);
	else
		rn_client_answer(client, ENOENT, 0);
}

/* --- create: keys of the rings, then the QP --- */

static void answer_failure(struct rn_qp_object *qp)
{
	struct rn_driver_client *client = qp->client;
	const int error = qp->error;

	rn_qp_free(qp);
	rn_client_answer(client, error, 0);
}

static void give_up(struct rn_qp_object *qp, int error)
{
	qp->error = error;
	qp->then = answer_failure;
	drop_rings(qp, NULL, 0);
}

static void created(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_qp_object *qp = arg;
	const int error = rn_command_errno(status);

	(void)out;
	if (error) {
		give_up(qp, error);
		return;
	}
	qp->live = true;
	rn_client_answer(qp->client, 0, qp->qpn);
}

static void ring_made(void *arg, struct rn_mkey *mkey, int error);

static int make_ring(struct rn_qp_object *qp, uint64_t va, uint32_t bytes)
{
	const struct rn_mkey_spec spec = {
		.pd = qp->pd,
		.access = RN_ACCESS_LOCAL_WRITE,
		.va = va,
		.length = bytes,
	};

	return rn_mkey_create(qp->client, &spec, ring_made, qp);
}

static void make_next(struct rn_qp_object *qp)
{
	int error = 0;

	if (qp->sq_bytes && !qp->sq) {
		error = make_ring(qp, qp->sq_va, qp->sq_bytes);
	} else if (qp->rq_bytes && !qp->rq) {
		error = make_ring(qp, qp->rq_va, qp->rq_bytes);
	} else {
		qp->fresh.sq_mkey = qp->sq ? qp->sq->key : 0;
		qp->fresh.rq_mkey = qp->rq ? qp->rq->key : 0;
		qp->config = qp->fresh;
		rn_command_submit(qp->client->driver, RN_CMD_CREATE_QP, qp->qpn, &qp->config,
				  RN_QPC_BYTES, 0, created, qp);
	}
	if (error)
		give_up(qp, error);
}

static void ring_made(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_qp_object *qp = arg;

	if (error) {
		give_up(qp, error);
		return;
	}
	if (qp->sq_bytes && !qp->sq)
		qp->sq = mkey;
	else
		qp->rq = mkey;
	make_next(qp);
}

static bool is_size(uint32_t entries, uint32_t max)
{
	return !entries || (rn_is_pow2(entries) && entries <= max);
}

static int check_create(const struct rn_driver *driver, const struct rn_uapi_create_qp *create)
{
	const struct rn_uapi_device *device = &driver->device;

	if (create->service != RN_QPT_RC)
		return EOPNOTSUPP;
	if (!is_size(create->sq_wqebbs, device->max_sq_wqebbs) ||
	    !is_size(create->rq_wqes, device->max_qp_wr))
		return EINVAL;
	if (create->rq_wqes &&
	    (!rn_is_pow2(create->rq_segments) ||
	     create->rq_segments > 1u << rn_log2_ceil(device->max_recv_sge) ||
	     create->rq_max_sge > create->rq_segments || create->rq_max_sge > device->max_recv_sge))
		return EINVAL;
	if (create->sq_va % RN_FRAME_BYTES || create->rq_va % RN_FRAME_BYTES ||
	    create->dbr_va % sizeof(struct rn_hw_qp_dbr) || create->uar_page >= driver->uar_pages)
		return EINVAL;
	return 0;
}

static void fill_config(struct rn_qp_object *qp, const struct rn_uapi_create_qp *create,
			uint64_t dbr_pa)
{
	const struct rn_driver_client *client = qp->client;

	qp->fresh = (struct rn_hw_qpc){
		.state = RN_QPS_RESET,
		.service = (uint8_t)create->service,
		.qpn = qp->qpn,
		.pd = qp->pd->number,
		.uar_page = client->uar_group * client->driver->uar_pages + create->uar_page,
		.log_sq_wqebbs = (uint8_t)rn_log2_ceil(create->sq_wqebbs),
		.log_rq_wqes = (uint8_t)rn_log2_ceil(create->rq_wqes),
		.log_rq_segments = (uint8_t)rn_log2_ceil(create->rq_segments),
		.send_cqn = qp->send_cq->cqn,
		.recv_cqn = qp->recv_cq->cqn,
		.dbr_pa = dbr_pa,
		.rq_max_sge = (uint8_t)create->rq_max_sge,
	};
}

static struct rn_qp_object *make_qp(struct rn_driver_client *client,
				    const struct rn_uapi_create_qp *create, int *error)
{
	struct rn_driver *driver = client->driver;
	struct rn_pd *pd = rn_pd_find(client, create->pd);
	struct rn_cq_object *send_cq = rn_cq_find(client, create->send_cq);
	struct rn_cq_object *recv_cq = rn_cq_find(client, create->recv_cq);
	uint64_t dbr_pa;
	uint32_t qpn;

	*error = ENOENT;
	if (!pd || !send_cq || !recv_cq)
		return NULL;
	*error = EINVAL;
	if (!rn_pin_use(client, create->dbr_va, &dbr_pa))
		return NULL;
	*error = ENOMEM;
	if (!rn_ids_get(&driver->qpns, &qpn)) {
		rn_pin_unuse(client, create->dbr_va);
		return NULL;
	}

	struct rn_qp_object *qp = rn_calloc(1, sizeof(*qp));

	qp->client = client;
	qp->pd = pd;
	qp->send_cq = send_cq;
	qp->recv_cq = recv_cq;
	qp->sq_va = create->sq_va;
	qp->rq_va = create->rq_va;
	qp->dbr_va = create->dbr_va;
	qp->sq_bytes = create->sq_wqebbs * RN_WQEBB_BYTES;
	qp->rq_bytes = create->rq_wqes * create->rq_segments * RN_RQ_SEGMENT_BYTES;
	qp->cookie = create->cookie;
	qp->qpn = qpn;
	fill_config(qp, create, dbr_pa);
	pd->users++;
	send_cq->qps++;
	recv_cq->qps++;
	rn_list_init(&qp->link);
	rn_list_add(&client->qps, &qp->link);
	driver->qp[qpn] = qp;
	*error = 0;
	return qp;
}

void rn_qp_create_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_create_qp *create = request;
	int error = check_create(client->driver, create);
	struct rn_qp_object *qp = error ? NULL : make_qp(client, create, &error);

	if (qp)
		make_next(qp);
	else
		rn_client_answer(client, error, 0);
}
