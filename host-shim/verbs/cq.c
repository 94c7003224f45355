/*
 * Completion queues: creation, arming, destruction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "verbs/maps.h"
#include "verbs/objects.h"

#define MIN_CQES 16u
#define CQ_FLAGS (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

static uint64_t page_align(uint64_t bytes)
{
	return (bytes + RN_PAGE_BYTES - 1) & ~(uint64_t)(RN_PAGE_BYTES - 1);
}

static int create_call(struct rn_verbs_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	struct rn_uapi_create_cq req = {
		.req.op = RN_UAPI_CREATE_CQ,
		.cqes = cq->queue.cqes,
		.channel = attr->channel ? rn_channel_handle(attr->channel) : 0,
		.cookie = cq->cookie,
		.ring_va = (uint64_t)(uintptr_t)cq->ring.base,
		.dbr_va = (uint64_t)(uintptr_t)cq->ring.dbr,
		.vector = attr->comp_vector,
		.uar_page = cq->uar_page,
	};
	struct rn_uapi_rsp rsp;
	const int error = rn_conn_call(cq->conn, &req, sizeof(req), &rsp, sizeof(rsp));

	cq->queue.cqn = cq->ibv.handle = rsp.handle;
	return error;
}

static int build(struct rn_verbs_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	/* One more than promised: an arm's index may be one ahead of the consumer's (rn_cq_arm). */
	const uint32_t cqes = 1u << rn_log2_ceil(attr->cqe < MIN_CQES ? MIN_CQES : attr->cqe + 1);
	int error = rn_ring_new(cq->conn, page_align((uint64_t)cqes * RN_CQE_BYTES), &cq->ring);

	if (error)
		return error;
	rn_cq_init(&cq->queue, cq->ring.base, cq->ring.dbr, cqes);
	cq->cookie = rn_registry_add(&cq->conn->registry, cq);
	error = cq->cookie ? create_call(cq, attr) : ENOMEM;
	if (!error)
		return 0;
	rn_registry_remove(&cq->conn->registry, cq->cookie);
	rn_ring_free(cq->conn, &cq->ring);
	return error;
}

static void init_public(struct rn_verbs_cq *cq, struct ibv_context *context,
			const struct ibv_cq_init_attr_ex *attr)
{
	cq->ibv.context = context;
	cq->ibv.channel = attr->channel;
	cq->ibv.cq_context = attr->cq_context;
	cq->ibv.cqe = (int)cq->queue.cqes - 1;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	if (attr->channel) {
		pthread_mutex_lock(&context->mutex);
		attr->channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}
}

static int check_attr(const struct rn_conn *conn, const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~(uint32_t)CQ_FLAGS))
		return EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > conn->device.max_cqe ||
	    attr->comp_vector >= conn->device.num_comp_vectors)
		return EINVAL;
	return 0;
}

static struct rn_verbs_cq *create(struct ibv_context *context,
				  const struct ibv_cq_init_attr_ex *attr)
{
	struct rn_conn *conn = rn_conn_of(context);
	struct rn_verbs_cq *cq;
	int error = check_attr(conn, attr);

	if (error) {
		errno = error;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->conn = conn;
	error = build(cq, attr);
	if (error) {
		free(cq);
		errno = error;
		return NULL;
	}
	init_public(cq, context, attr);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {.cqe = cqe < 0 ? 0 : (uint32_t)cqe,
						 .cq_context = cq_context,
						 .channel = channel,
						 .comp_vector = (uint32_t)comp_vector};
	struct rn_verbs_cq *cq = create(context, &attr);

	return cq ? &cq->ibv : NULL;
}

struct ibv_cq_ex *rn_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct rn_verbs_cq *cq;
	uint64_t epoch_ns = 0;

	if (attr->wc_flags & ~(uint64_t)RN_CQ_EX_FLAGS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) {
		const int error = rn_clock_find_epoch(rn_conn_of(context), &epoch_ns);

		if (error) {
			errno = error;
			return NULL;
		}
	}
	cq = create(context, attr);
	if (!cq)
		return NULL;
	cq->epoch_ns = epoch_ns;
	rn_cq_set_ex_ops(cq);
	return &cq->ex;
}

int rn_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct rn_verbs_cq *cq = rn_cq_of(ibv);
	struct rn_hw_cq_arm arm;
	struct rn_mmio write = {.offset = RN_UAR_CQ_ARM, .len = sizeof(arm), .data = &arm};
	int error;

	if (rn_conn_is_dead(cq->conn))
		return rn_return(EIO);
	pthread_mutex_lock(&cq->lock);
	arm = rn_cq_arm(&cq->queue, solicited_only != 0);
	error = rn_conn_mmio(cq->conn, cq->uar_page, &write, 1);
	pthread_mutex_unlock(&cq->lock);
	return rn_return(error);
}

/* Every event that the program was given must have been acknowledged before its object may go. */
static void await_acks(struct rn_verbs_cq *cq)
{
	pthread_mutex_lock(&cq->ibv.mutex);
	while (!rn_conn_is_dead(cq->conn) && (cq->ibv.comp_events_completed != cq->comp_events ||
					      cq->ibv.async_events_completed != cq->async_events))
		pthread_cond_wait(&cq->ibv.cond, &cq->ibv.mutex);
	pthread_mutex_unlock(&cq->ibv.mutex);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct rn_verbs_cq *cq = rn_cq_of(ibv);
	struct rn_uapi_req req = {.op = RN_UAPI_DESTROY_CQ, .handle = ibv->handle};
	struct rn_uapi_destroy_rsp rsp;
	const int error = rn_conn_call(cq->conn, &req, sizeof(req), &rsp, sizeof(rsp));

	if (error && !rn_conn_is_dead(cq->conn))
		return error;
	rn_registry_remove(&cq->conn->registry, cq->cookie);
	await_acks(cq);
	if (ibv->channel) {
		pthread_mutex_lock(&ibv->context->mutex);
		ibv->channel->refcnt--;
		pthread_mutex_unlock(&ibv->context->mutex);
	}
	rn_ring_free(cq->conn, &cq->ring);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&cq->lock);
	free(cq);
	return 0;
}
