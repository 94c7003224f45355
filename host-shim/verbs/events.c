/*
 * Completion channels and asynchronous events. Both are real descriptors, which programs poll; records carry
 * cookies, and an event of an object that has gone meanwhile is passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/objects.h"
#include "verbs/virtual_time.h"
#include "verbs/wait.h"

struct channel {
	struct ibv_comp_channel ibv;
	uint32_t handle;
};

static struct channel *channel_of(const struct ibv_comp_channel *ibv)
{
	return (struct channel *)(uintptr_t)ibv;
}

uint32_t rn_channel_handle(const struct ibv_comp_channel *channel)
{
	return channel_of(channel)->handle;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct rn_uapi_req req = {.op = RN_UAPI_CREATE_CHANNEL};
	struct rn_uapi_rsp rsp;
	struct channel *channel = calloc(1, sizeof(*channel));
	int error, fd;

	if (!channel)
		return NULL;
	error = rn_conn_call_fds(rn_conn_of(context), &req, sizeof(req), &rsp, sizeof(rsp), &fd, 1);
	if (error || fd < 0) {
		free(channel);
		errno = error ? error : EPROTO;
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = fd;
	channel->handle = rsp.handle;
	return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct channel *channel = channel_of(ibv);
	struct rn_conn *conn = rn_conn_of(ibv->context);
	struct rn_uapi_req req = {.op = RN_UAPI_DESTROY_CHANNEL, .handle = channel->handle};
	struct rn_uapi_rsp rsp;
	int error = EBUSY;

	pthread_mutex_lock(&ibv->context->mutex);
	if (ibv->refcnt == 0) {
		error = rn_conn_call(conn, &req, sizeof(req), &rsp, sizeof(rsp));
		if (rn_conn_is_dead(conn))
			error = 0;
	}
	pthread_mutex_unlock(&ibv->context->mutex);
	if (error)
		return rn_return(error);
	close(ibv->fd);
	free(channel);
	return 0;
}

/* Count the event as given to the program: from now on the CQ stays until it is acknowledged. */
static void count_comp_event(void *object)
{
	struct rn_verbs_cq *cq = object;

	pthread_mutex_lock(&cq->ibv.mutex);
	cq->comp_events++;
	pthread_mutex_unlock(&cq->ibv.mutex);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out, void **cq_context)
{
	struct rn_conn *conn = rn_conn_of(channel->context);

	for (;;) {
		uint64_t cookie;
		struct rn_verbs_cq *cq;
		const int error = rn_shim_read_event(conn, channel->fd, &cookie, sizeof(cookie));

		if (error) {
			errno = error;
			return -1;
		}
		cq = rn_registry_use(&conn->registry, cookie, count_comp_event);
		if (cq) {
			pthread_mutex_lock(&cq->lock);
			rn_cq_event(&cq->queue);
			pthread_mutex_unlock(&cq->lock);
			rn_cq_worked();
			rn_vt_charge(RN_TIME_CQ_EVENT, 1);
			*out = &cq->ibv;
			*cq_context = cq->ibv.cq_context;
			return 0;
		}
	}
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

static void count_cq_async(void *object)
{
	struct rn_verbs_cq *cq = object;

	pthread_mutex_lock(&cq->ibv.mutex);
	cq->async_events++;
	pthread_mutex_unlock(&cq->ibv.mutex);
}

static void count_qp_async(void *object)
{
	struct rn_verbs_qp *qp = object;

	pthread_mutex_lock(&qp->ibv.mutex);
	qp->async_events++;
	pthread_mutex_unlock(&qp->ibv.mutex);
}

static bool is_qp_event(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

/* False when the event's object is gone. */
static bool translate(struct rn_conn *conn, const struct rn_uapi_async_event *in,
		      struct ibv_async_event *out)
{
	out->event_type = (enum ibv_event_type)in->event_type;
	if (is_qp_event(out->event_type)) {
		struct rn_verbs_qp *qp =
			rn_registry_use(&conn->registry, in->cookie, count_qp_async);

		if (!qp)
			return false;
		if (out->event_type == IBV_EVENT_QP_FATAL ||
		    out->event_type == IBV_EVENT_QP_REQ_ERR ||
		    out->event_type == IBV_EVENT_QP_ACCESS_ERR)
			atomic_store(&qp->flushing, true);
		out->element.qp = &qp->ibv;
		return true;
	}
	if (out->event_type == IBV_EVENT_CQ_ERR) {
		struct rn_verbs_cq *cq =
			rn_registry_use(&conn->registry, in->cookie, count_cq_async);

		out->element.cq = cq ? &cq->ibv : NULL;
		return cq != NULL;
	}
	out->element.port_num = (int)in->object;
	return true;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct rn_conn *conn = rn_conn_of(context);
	struct rn_uapi_async_event record;

	do {
		const int error =
			rn_shim_read_event(conn, context->async_fd, &record, sizeof(record));

		if (error) {
			errno = error;
			return -1;
		}
	} while (!translate(conn, &record, event));
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (is_qp_event(event->event_type)) {
		struct ibv_qp *qp = event->element.qp;

		pthread_mutex_lock(&qp->mutex);
		qp->events_completed++;
		pthread_cond_broadcast(&qp->cond);
		pthread_mutex_unlock(&qp->mutex);
	} else if (event->event_type == IBV_EVENT_CQ_ERR) {
		struct ibv_cq *cq = event->element.cq;

		pthread_mutex_lock(&cq->mutex);
		cq->async_events_completed++;
		pthread_cond_broadcast(&cq->cond);
		pthread_mutex_unlock(&cq->mutex);
	}
}
