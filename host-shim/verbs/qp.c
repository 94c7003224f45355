/*
 * Queue pairs: creation with rounded capabilities, destruction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "verbs/maps.h"
#include "verbs/objects.h"

#define MAX_RING_ENTRIES 32768u
#define QP_COMP_MASK                                                                               \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS)

/* Sizes of a QP's rings. */
struct shape {
	uint32_t sq_wqebbs, wqe_wqebbs; /* ring; largest WQE */
	uint32_t rq_wqes, rq_segments;
	size_t sq_bytes, rq_bytes;
};

static uint32_t pow2_ceil(uint64_t value)
{
	return 1u << rn_log2_ceil(value);
}

static size_t page_align(size_t bytes)
{
	return (bytes + RN_PAGE_BYTES - 1) & ~(size_t)(RN_PAGE_BYTES - 1);
}

/* The largest WQE the capabilities allow; WRITE has the longest header of what is supported. */
static uint32_t largest_wqe(const struct ibv_qp_cap *cap)
{
	const uint32_t gather = rn_sq_wqebbs(RN_WQE_RDMA_WRITE, cap->max_send_sge, 0);
	const uint32_t inlined = rn_sq_wqebbs(RN_WQE_RDMA_WRITE, 0, cap->max_inline_data);

	if (gather == 0 || inlined == 0)
		return 0;
	return gather > inlined ? gather : inlined;
}

static int shape_send(const struct rn_uapi_device *device, struct ibv_qp_cap *cap,
		      struct shape *shape)
{
	uint64_t wqebbs;

	if (cap->max_send_wr > device->max_qp_wr || cap->max_send_sge > device->max_sge ||
	    cap->max_inline_data > device->max_inline_data)
		return EINVAL;
	shape->wqe_wqebbs = largest_wqe(cap);
	wqebbs = (uint64_t)cap->max_send_wr * shape->wqe_wqebbs;
	if (shape->wqe_wqebbs == 0 || wqebbs > MAX_RING_ENTRIES || wqebbs > device->max_sq_wqebbs)
		return EINVAL;
	shape->sq_wqebbs = wqebbs ? pow2_ceil(wqebbs) : 0;
	return 0;
}

static int shape_receive(const struct rn_uapi_device *device, struct ibv_qp_cap *cap,
			 struct shape *shape)
{
	if (cap->max_recv_wr > device->max_qp_wr || cap->max_recv_wr > MAX_RING_ENTRIES ||
	    cap->max_recv_sge > device->max_recv_sge)
		return EINVAL;
	shape->rq_wqes = cap->max_recv_wr ? pow2_ceil(cap->max_recv_wr) : 0;
	shape->rq_segments = pow2_ceil(cap->max_recv_sge ? cap->max_recv_sge : 1);
	return 0;
}

/* Work out ring sizes and raise @cap to what they give. */
static int make_shape(const struct rn_uapi_device *device, struct ibv_qp_cap *cap,
		      struct shape *shape)
{
	int error = shape_send(device, cap, shape);

	if (!error)
		error = shape_receive(device, cap, shape);
	if (error)
		return error;
	if (shape->sq_wqebbs) {
		const uint32_t room =
			shape->wqe_wqebbs * (RN_WQEBB_BYTES / RN_WQE_SEGMENT_BYTES) - 2;

		cap->max_send_wr = shape->sq_wqebbs / shape->wqe_wqebbs;
		cap->max_send_sge = (uint32_t)rn_min_u64(room, device->max_sge);
		cap->max_inline_data = (uint32_t)rn_min_u64(room * RN_WQE_SEGMENT_BYTES -
								    sizeof(struct rn_hw_wqe_inline),
							    device->max_inline_data);
	}
	if (shape->rq_wqes) {
		cap->max_recv_wr = shape->rq_wqes;
		cap->max_recv_sge = (uint32_t)rn_max_u64(cap->max_recv_sge, 1);
	}
	shape->sq_bytes = page_align((size_t)shape->sq_wqebbs * RN_WQEBB_BYTES);
	shape->rq_bytes =
		page_align((size_t)shape->rq_wqes * shape->rq_segments * RN_RQ_SEGMENT_BYTES);
	return 0;
}

static int check_attr(const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type != IBV_QPT_RC)
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || !attr->send_cq ||
	    !attr->recv_cq)
		return EINVAL;
	if ((attr->comp_mask & ~(uint32_t)QP_COMP_MASK) || attr->srq)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & ~(uint64_t)RN_SEND_OPS))
		return EOPNOTSUPP;
	return 0;
}

/* ---- memory of a QP ---- */

static int alloc_queues(struct rn_verbs_qp *qp, const struct shape *shape)
{
	struct rn_sq_slot *slots = calloc(shape->sq_wqebbs + 1, sizeof(*slots));
	uint64_t *wr_ids = calloc(shape->rq_wqes + 1, sizeof(*wr_ids));
	int error = slots && wr_ids ? 0 : ENOMEM;

	if (!error)
		error = rn_ring_new(qp->conn, shape->sq_bytes + shape->rq_bytes, &qp->ring);
	if (error) {
		free(slots);
		free(wr_ids);
		return error;
	}
	qp->dbr = qp->ring.dbr;
	rn_sq_init(&qp->sq, qp->ring.base, slots, shape->sq_wqebbs, qp->cap.max_send_wr);
	rn_rq_init(&qp->rq, qp->ring.base + shape->sq_bytes, wr_ids, shape->rq_wqes,
		   shape->rq_segments);
	qp->rq.max_sge = qp->cap.max_recv_sge;
	return 0;
}

static void free_queues(struct rn_verbs_qp *qp)
{
	free(qp->sq.slot);
	free(qp->rq.wr_id);
	rn_ring_free(qp->conn, &qp->ring);
}

/* ---- creation ---- */

static int create_call(struct rn_verbs_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct rn_uapi_create_qp req = {
		.req.op = RN_UAPI_CREATE_QP,
		.pd = attr->pd->handle,
		.service = RN_QPT_RC,
		.send_cq = attr->send_cq->handle,
		.recv_cq = attr->recv_cq->handle,
		.sq_wqebbs = qp->sq.wqebbs,
		.rq_wqes = qp->rq.wqes,
		.rq_segments = qp->rq.segments,
		.rq_max_sge = qp->rq.max_sge,
		.sq_va = (uint64_t)(uintptr_t)qp->sq.ring,
		.rq_va = (uint64_t)(uintptr_t)qp->rq.ring,
		.dbr_va = (uint64_t)(uintptr_t)qp->dbr,
		.cookie = qp->cookie,
		.uar_page = qp->uar_page,
	};
	struct rn_uapi_rsp rsp;
	const int error = rn_conn_call(qp->conn, &req, sizeof(req), &rsp, sizeof(rsp));

	qp->ibv.handle = qp->ibv.qp_num = qp->sq.qpn = rsp.handle;
	return error;
}

static int destroy_call(struct rn_verbs_qp *qp)
{
	struct rn_uapi_req req = {.op = RN_UAPI_DESTROY_QP, .handle = qp->ibv.handle};
	struct rn_uapi_destroy_rsp rsp;
	const int error = rn_conn_call(qp->conn, &req, sizeof(req), &rsp, sizeof(rsp));

	return rn_conn_is_dead(qp->conn) ? 0 : error;
}

static int create_object(struct rn_verbs_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	int error;

	qp->cookie = rn_registry_add(&qp->conn->registry, qp);
	if (!qp->cookie)
		return ENOMEM;
	error = create_call(qp, attr);
	if (!error) {
		error = rn_registry_set_qp(&qp->conn->registry, qp->ibv.qp_num, qp);
		if (error)
			destroy_call(qp);
	}
	if (error)
		rn_registry_remove(&qp->conn->registry, qp->cookie);
	return error;
}

static void init_public(struct rn_verbs_qp *qp, struct ibv_context *context,
			const struct ibv_qp_init_attr_ex *attr)
{
	qp->ibv.context = context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = attr->pd;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = attr->qp_type;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	pthread_mutex_init(&qp->sq_lock, NULL);
	pthread_mutex_init(&qp->rq_lock, NULL);
	qp->sq_sig_all = attr->sq_sig_all != 0;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->is_ex = true;
		rn_qp_set_ex_ops(qp);
	}
}

static int build(struct rn_verbs_qp *qp, struct ibv_context *context,
		 struct ibv_qp_init_attr_ex *attr)
{
	struct shape shape = {0};
	struct ibv_qp_cap cap = attr->cap;
	int error = make_shape(&qp->conn->device, &cap, &shape);

	if (error)
		return error;
	qp->cap = cap;
	error = alloc_queues(qp, &shape);
	if (error)
		return error;
	init_public(qp, context, attr);
	error = create_object(qp, attr);
	if (error)
		free_queues(qp);
	else
		attr->cap = cap;
	return error;
}

struct ibv_qp *rn_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct rn_verbs_qp *qp;
	int error = check_attr(attr);

	if (error) {
		errno = error;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->conn = rn_conn_of(context);
	error = build(qp, context, attr);
	if (error) {
		free(qp);
		errno = error;
		return NULL;
	}
	return &qp->ibv;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
	struct ibv_qp *qp;

	/* The short struct is the long one's beginning. */
	memcpy(&ex, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	qp = rn_create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return rn_qp_of(qp)->is_ex ? &rn_qp_of(qp)->ex : NULL;
}

/* ---- destruction ---- */

void rn_qp_lock_cqs(struct rn_verbs_qp *qp, bool lock)
{
	struct rn_verbs_cq *a = rn_cq_of(qp->ibv.send_cq), *b = rn_cq_of(qp->ibv.recv_cq);
	struct rn_verbs_cq *first = a < b ? a : b, *second = a < b ? b : a;

	if (lock) {
		pthread_mutex_lock(&first->lock);
		if (first != second)
			pthread_mutex_lock(&second->lock);
	} else {
		if (first != second)
			pthread_mutex_unlock(&second->lock);
		pthread_mutex_unlock(&first->lock);
	}
}

void rn_qp_forget_completions(struct rn_verbs_qp *qp)
{
	struct rn_verbs_cq *send_cq = rn_cq_of(qp->ibv.send_cq),
			   *recv_cq = rn_cq_of(qp->ibv.recv_cq);

	rn_cq_forget_qp(send_cq, qp->ibv.qp_num);
	if (recv_cq != send_cq)
		rn_cq_forget_qp(recv_cq, qp->ibv.qp_num);
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct rn_verbs_qp *qp = rn_qp_of(ibv);
	const int error = destroy_call(qp);

	if (error)
		return error;
	if (!rn_conn_is_dead(qp->conn)) {
		rn_qp_lock_cqs(qp, true);
		rn_registry_set_qp(&qp->conn->registry, ibv->qp_num, NULL);
		rn_qp_forget_completions(qp);
		rn_qp_lock_cqs(qp, false);
	}
	rn_registry_remove(&qp->conn->registry, qp->cookie);
	pthread_mutex_lock(&ibv->mutex);
	while (!rn_conn_is_dead(qp->conn) && ibv->events_completed != qp->async_events)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	free_queues(qp);
	free(qp);
	return 0;
}
