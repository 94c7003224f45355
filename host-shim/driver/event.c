/*
 * Interrupt handler: event queue entries to commands, completion channels and asynchronous
 * descriptors. The queues are large enough for every armed CQ and every command; the NIC has no
 * consumer index to check.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/internal.h"

/* Verbs event types. */
#define EVENT_CQ_ERR 0
#define EVENT_QP_FATAL 1
#define EVENT_QP_ACCESS_ERR 3 /* 1 .. 3: fatal, request error, access error */

/* False: nobody listens, or too many wait; it is lost. */
static bool send_async(struct rn_driver_client *client, uint64_t cookie, uint32_t type,
		       uint32_t object);

static void flush_async(struct rn_outlet *outlet);

static void completion(struct rn_driver *driver, uint32_t cqn);

static void cq_error(struct rn_driver *driver, uint32_t cqn)
{
	struct rn_cq_object *cq = cqn >> driver->icm.log_cqs ? NULL : driver->cq[cqn];

	if (!cq || !cq->live)
		return;
	cq->async_events += send_async(cq->client, cq->cookie, EVENT_CQ_ERR, cqn);
}

static void qp_event(struct rn_driver *driver, uint32_t qpn, uint32_t type)
{
	struct rn_qp_object *qp = qpn >> driver->icm.log_qps ? NULL : driver->qp[qpn];

	if (!qp || !qp->live)
		return;
	if (type && type <= EVENT_QP_ACCESS_ERR)
		qp->failed = true;
	qp->async_events += send_async(qp->client, qp->cookie, type, qpn);
}

void rn_event_qp_fatal(struct rn_driver *driver, uint32_t qpn)
{
	qp_event(driver, qpn, EVENT_QP_FATAL);
}

static void port_event(struct rn_driver *driver, uint32_t port, uint32_t type)
{
	struct rn_list *node;

	for (node = driver->clients.next; node != &driver->clients; node = node->next)
		send_async(rn_list_entry(node, struct rn_driver_client, link), 0, type, port);
}

static void dispatch(struct rn_driver *driver, const struct rn_hw_eqe *eqe)
{
	driver->counters.eqes++;
	switch (eqe->type) {
	case RN_EQE_COMPLETION:
		completion(driver, eqe->number);
		break;
	case RN_EQE_COMMAND:
		rn_command_event(driver, eqe->number);
		break;
	case RN_EQE_QP_EVENT:
		qp_event(driver, eqe->number, eqe->subtype);
		break;
	case RN_EQE_CQ_ERROR:
		cq_error(driver, eqe->number);
		break;
	case RN_EQE_PORT_EVENT:
		port_event(driver, eqe->number, eqe->subtype);
		break;
	default:
		break;
	}
}

void rn_event_interrupt(void *arg, uint32_t vector)
{
	struct rn_driver *driver = arg;
	struct rn_eq *eq = vector < driver->icm.eqs ? &driver->eq[vector] : NULL;

	driver->counters.interrupts++;
	while (eq && eq->live) {
		const struct rn_hw_eqe *eqe = &eq->ring[eq->ci & ((1u << RN_DRIVER_EQ_LOG) - 1)];
		const uint8_t parity = ~(eq->ci >> RN_DRIVER_EQ_LOG) & 1;

		if ((__atomic_load_n(&eqe->owner, __ATOMIC_ACQUIRE) & 1) != parity)
			break;
		eq->ci++;

		const struct rn_hw_eqe copy = *eqe;

		dispatch(driver, &copy);
	}
}

/* Whoever lets the process's threads wait wants to know. */
static void tell(const struct rn_driver_client *client)
{
	const struct rn_driver_env *env = &client->driver->env;

	if (env->event)
		env->event(env->event_arg, client->pid);
}

/* --- completion channels --- */

static bool send_completion(struct rn_cq_object *cq)
{
	if (!rn_outlet_send(&cq->channel->outlet, &cq->cookie, sizeof(cq->cookie)))
		return false;
	cq->comp_events++;
	cq->client->driver->counters.comp_events++;
	tell(cq->client);
	return true;
}

static void completion(struct rn_driver *driver, uint32_t cqn)
{
	struct rn_cq_object *cq = cqn >> driver->icm.log_cqs ? NULL : driver->cq[cqn];

	if (!cq || !cq->live || !cq->channel || cq->client->leaving)
		return;
	if (rn_list_is_empty(&cq->channel->held) && send_completion(cq))
		return;
	driver->counters.comp_events_held++;
	if (!cq->comp_held++)
		rn_list_add(&cq->channel->held, &cq->held);
	rn_outlet_watch(&cq->channel->outlet, true);
}

static void flush_channel(struct rn_outlet *outlet)
{
	struct rn_channel_object *channel = (struct rn_channel_object *)(void *)outlet;

	while (!rn_list_is_empty(&channel->held)) {
		struct rn_cq_object *cq =
			rn_list_entry(channel->held.next, struct rn_cq_object, held);

		if (!send_completion(cq))
			return;
		if (!--cq->comp_held)
			rn_list_remove(&cq->held);
	}
	rn_outlet_watch(outlet, false);
}

struct rn_channel_object *rn_channel_find(struct rn_driver_client *client, uint32_t handle)
{
	if (!handle || handle > RN_DRIVER_CHANNELS_MAX)
		return NULL;
	return client->channel[handle - 1];
}

void rn_channel_create_request(struct rn_driver_client *client, const void *request)
{
	uint32_t idx = 0;

	(void)request;
	while (idx < RN_DRIVER_CHANNELS_MAX && client->channel[idx])
		idx++;
	if (idx == RN_DRIVER_CHANNELS_MAX) {
		rn_client_answer(client, EMFILE, 0);
		return;
	}

	struct rn_channel_object *channel = rn_calloc(1, sizeof(*channel));
	const int error = rn_outlet_open(&channel->outlet, client->driver->epoll_fd, flush_channel);
	struct rn_uapi_rsp response;

	if (error) {
		free(channel);
		rn_client_answer(client, error, 0);
		return;
	}
	channel->client = client;
	channel->handle = idx + 1;
	rn_list_init(&channel->held);
	client->channel[idx] = channel;
	client->driver->channel_count++;
	rn_client_answer_with(client, &response, sizeof(response), channel->handle,
			      &channel->outlet.user_fd, 1);
}

void rn_channel_free(struct rn_channel_object *channel)
{
	struct rn_driver_client *client = channel->client;

	rn_outlet_close(&channel->outlet);
	client->channel[channel->handle - 1] = NULL;
	client->driver->channel_count--;
	free(channel);
}

void rn_channel_destroy_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	struct rn_channel_object *channel = rn_channel_find(client, req->handle);

	if (!channel || channel->cqs) {
		rn_client_answer(client, channel ? EBUSY : ENOENT, 0);
		return;
	}
	rn_channel_free(channel);
	rn_client_answer(client, 0, 0);
}

static bool is_of_cq(const void *record, uint32_t bytes, const void *arg)
{
	const struct rn_cq_object *cq = arg;

	return bytes == sizeof(cq->cookie) && !memcmp(record, &cq->cookie, sizeof(cq->cookie));
}

static bool is_async_of(const void *record, uint32_t bytes, const void *arg)
{
	const struct rn_uapi_async_event *event = record, *pattern = arg;
	const bool is_cq = event->event_type == EVENT_CQ_ERR;

	return bytes == sizeof(*event) && event->object == pattern->object &&
	       event->cookie == pattern->cookie && is_cq == (pattern->event_type == EVENT_CQ_ERR);
}

/* Events of an object in the pipe and behind it that nobody has read. */
static uint32_t forget_async(struct rn_async *async, uint64_t cookie, uint32_t type,
			     uint32_t object)
{
	const struct rn_uapi_async_event pattern = {cookie, type, object};
	uint32_t kept = 0, taken = 0;

	taken = rn_outlet_take_back(&async->outlet, is_async_of, &pattern);
	for (uint32_t n = 0; n < async->held_count; n++) {
		if (is_async_of(&async->held[n], sizeof(async->held[n]), &pattern))
			taken++;
		else
			async->held[kept++] = async->held[n];
	}
	async->held_count = kept;
	flush_async(&async->outlet); /* there is room now */
	return taken;
}

void rn_event_forget_cq(struct rn_cq_object *cq)
{
	if (cq->channel) {
		rn_list_remove(&cq->held);
		cq->comp_held = 0;
		/* The pipe is gone through only for those that may be in it. */
		if (cq->comp_events)
			cq->comp_events -= rn_outlet_take_back(&cq->channel->outlet, is_of_cq, cq);
		flush_channel(&cq->channel->outlet);
	}
	if (cq->async_events)
		cq->async_events -=
			forget_async(&cq->client->async, cq->cookie, EVENT_CQ_ERR, cq->cqn);
}

void rn_event_forget_qp(struct rn_qp_object *qp)
{
	if (qp->async_events)
		qp->async_events -=
			forget_async(&qp->client->async, qp->cookie, EVENT_QP_ACCESS_ERR, qp->qpn);
}

/* --- asynchronous events --- */

static bool send_async(struct rn_driver_client *client, uint64_t cookie, uint32_t type,
		       uint32_t object)
{
	struct rn_async *async = &client->async;
	const struct rn_uapi_async_event event = {cookie, type, object};

	if (async->outlet.fd >= 0 && !async->held_count &&
	    rn_outlet_send(&async->outlet, &event, sizeof(event))) {
		client->driver->counters.async_events++;
		tell(client);
		return true;
	}
	if (async->outlet.fd < 0 || async->held_count == RN_ASYNC_HELD_MAX) {
		client->driver->counters.async_events_lost++;
		return false;
	}
	async->held[async->held_count++] = event;
	rn_outlet_watch(&async->outlet, true);
	return true;
}

static void flush_async(struct rn_outlet *outlet)
{
	struct rn_async *async = (struct rn_async *)(void *)outlet;
	uint32_t sent = 0;

	while (sent < async->held_count &&
	       rn_outlet_send(outlet, &async->held[sent], sizeof(async->held[sent])))
		sent++;
	async->driver->counters.async_events += sent;
	async->held_count -= sent;
	memmove(async->held, async->held + sent, async->held_count * sizeof(async->held[0]));
	if (!async->held_count)
		rn_outlet_watch(outlet, false);
}

/* A process that opens the device twice reads the same events twice over one pipe. */
void rn_async_open_request(struct rn_driver_client *client, const void *request)
{
	struct rn_async *async = &client->async;
	int error = 0;
	struct rn_uapi_rsp response;

	(void)request;
	if (async->outlet.fd < 0)
		error = rn_outlet_open(&async->outlet, client->driver->epoll_fd, flush_async);
	if (error)
		rn_client_answer(client, error, 0);
	else
		rn_client_answer_with(client, &response, sizeof(response), 0,
				      &async->outlet.user_fd, 1);
}
