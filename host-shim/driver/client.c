/*
 * Clients: attach, one request at a time, doorbell writes, and freeing everything when one leaves,
 * however it left.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "driver/internal.h"
#include "driver/post_stamp.h"

static void leave(struct rn_driver_client *client);

/* --- requests --- */

static void query_device(struct rn_driver_client *client, const void *request)
{
	struct rn_uapi_device response = client->driver->device;

	(void)request;
	rn_client_answer_with(client, &response, sizeof(response), 0, NULL, 0);
}

static void query_port(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	struct rn_uapi_port response = client->driver->port;

	/* Handle: port number; 0 stands for the only one. */
	if (req->handle > 1)
		rn_client_answer(client, EINVAL, 0);
	else
		rn_client_answer_with(client, &response, sizeof(response), 0, NULL, 0);
}

static void query_clock(struct rn_driver_client *client, const void *request)
{
	struct rn_uapi_clock response = {.now_ps = rn_sim_now_ps(client->driver->sim)};

	(void)request;
	rn_client_answer_with(client, &response, sizeof(response), 0, NULL, 0);
}

struct request_kind {
	void (*fn)(struct rn_driver_client *client, const void *request);
	uint32_t bytes; /* at least */
};

#define REQUEST(op, fn_, type) [op] = {fn_, sizeof(struct type)}

static const struct request_kind kinds[] = {
	REQUEST(RN_UAPI_QUERY_DEVICE, query_device, rn_uapi_req),
	REQUEST(RN_UAPI_QUERY_PORT, query_port, rn_uapi_req),
	REQUEST(RN_UAPI_ALLOC_PD, rn_pd_alloc_request, rn_uapi_req),
	REQUEST(RN_UAPI_DEALLOC_PD, rn_pd_dealloc_request, rn_uapi_req),
	REQUEST(RN_UAPI_PIN, rn_pin_request, rn_uapi_pin),
	REQUEST(RN_UAPI_UNPIN, rn_unpin_request, rn_uapi_unpin),
	REQUEST(RN_UAPI_REG_MR, rn_mr_reg_request, rn_uapi_reg_mr),
	REQUEST(RN_UAPI_DEREG_MR, rn_mr_dereg_request, rn_uapi_req),
	REQUEST(RN_UAPI_CREATE_CHANNEL, rn_channel_create_request, rn_uapi_req),
	REQUEST(RN_UAPI_DESTROY_CHANNEL, rn_channel_destroy_request, rn_uapi_req),
	REQUEST(RN_UAPI_CREATE_CQ, rn_cq_create_request, rn_uapi_create_cq),
	REQUEST(RN_UAPI_RESIZE_CQ, rn_cq_resize_request, rn_uapi_resize_cq),
	REQUEST(RN_UAPI_DESTROY_CQ, rn_cq_destroy_request, rn_uapi_req),
	REQUEST(RN_UAPI_CREATE_QP, rn_qp_create_request, rn_uapi_create_qp),
	REQUEST(RN_UAPI_MODIFY_QP, rn_qp_modify_request, rn_uapi_modify_qp),
	REQUEST(RN_UAPI_QUERY_QP, rn_qp_query_request, rn_uapi_req),
	REQUEST(RN_UAPI_DESTROY_QP, rn_qp_destroy_request, rn_uapi_req),
	REQUEST(RN_UAPI_OPEN_ASYNC, rn_async_open_request, rn_uapi_req),
	REQUEST(RN_UAPI_QUERY_CLOCK, query_clock, rn_uapi_req),
	REQUEST(RN_UAPI_CREATE_AH, rn_ah_create_request, rn_uapi_create_ah),
	REQUEST(RN_UAPI_DESTROY_AH, rn_ah_destroy_request, rn_uapi_req),
};

bool rn_driver_request(struct rn_driver_client *client, const void *request, uint32_t bytes)
{
	struct rn_uapi_req req;

	if (client->busy || client->leaving)
		return false;
	client->busy = true;
	if (bytes < sizeof(req) || bytes > sizeof(client->request)) {
		rn_client_answer(client, EINVAL, 0);
		return true;
	}
	memcpy(client->request, request, bytes);
	memcpy(&req, client->request, sizeof(req));
	client->request_bytes = bytes;
	if (req.bytes != bytes || req.op >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[req.op].fn ||
	    bytes < kinds[req.op].bytes)
		rn_client_answer(client, EINVAL, 0);
	else
		kinds[req.op].fn(client, client->request);
	return true;
}

bool rn_driver_is_busy(const struct rn_driver_client *client)
{
	return client->busy;
}

static void finish(struct rn_driver_client *client, const struct rn_uapi_rsp *response,
		   uint32_t bytes, const int *fds, uint32_t fd_count)
{
	RN_ASSERT(client->busy);
	client->busy = false;
	client->driver->counters.requests++;
	client->driver->counters.request_errors += response->error != 0;
	if (client->leaving)
		leave(client);
	else
		client->answer(client->answer_arg, response, bytes, fds, fd_count);
}

void rn_client_answer(struct rn_driver_client *client, int error, uint32_t handle)
{
	const struct rn_uapi_rsp response = {
		.error = error,
		.bytes = sizeof(response),
		.handle = handle,
	};

	finish(client, &response, sizeof(response), NULL, 0);
}

void rn_client_answer_with(struct rn_driver_client *client, void *response, uint32_t bytes,
			   uint32_t handle, const int *fds, uint32_t fd_count)
{
	struct rn_uapi_rsp *rsp = response;

	*rsp = (struct rn_uapi_rsp){.bytes = bytes, .handle = handle};
	finish(client, rsp, bytes, fds, fd_count);
}

/* --- arenas --- */

pid_t rn_driver_arena_pid(const struct rn_driver *driver, int arena)
{
	for (struct rn_list *node = driver->clients.next; node != &driver->clients;
	     node = node->next) {
		const struct rn_driver_client *client =
			rn_list_entry(node, struct rn_driver_client, link);

		if (client->arena == arena || client->process_arena == arena)
			return client->pid;
	}
	return 0;
}

/* --- doorbells --- */

enum rn_driver_mmio rn_driver_mmio(struct rn_driver_client *client, uint64_t at_ps, uint32_t page,
				   uint32_t offset, const void *data, uint32_t len)
{
	struct rn_driver *driver = client->driver;
	const uint64_t uar = (uint64_t)client->uar_group * driver->uar_pages + page;
	const uint64_t now_ps = rn_sim_now_ps(driver->sim);

	if (page >= driver->uar_pages || len < 4 || len > 64 || len % 4 || offset % 4 ||
	    offset >= RN_UAR_BYTES || offset % 64 + len > 64) {
		driver->counters.clients_ended++;
		return RN_DRIVER_MMIO_VIOLATION;
	}
	if (client->leaving)
		return RN_DRIVER_MMIO_OK;
	if (!rn_root_complex_mmio_write(driver->rc, at_ps > now_ps ? at_ps : now_ps,
					RN_UAR_BASE + uar * RN_UAR_BYTES + offset, data, len))
		return RN_DRIVER_MMIO_FULL;
	driver->counters.mmio_writes++;
	rn_post_stamp(client, at_ps > now_ps ? at_ps : now_ps, offset, data, len);
	return RN_DRIVER_MMIO_OK;
}

/* --- attach --- */

static int make_memory(struct rn_driver_client *client)
{
	struct rn_driver *driver = client->driver;
	char *name = rn_asprintf("%s.client%llu", driver->name,
				 (unsigned long long)driver->clients_ever);
	const int error =
		rn_frames_init(&client->frames, driver->env.arena_bytes, driver->env.seed, name);

	rn_rng_init(&client->rng, driver->env.seed, name);
	free(name);
	if (error)
		return error;
	client->arena =
		rn_host_memory_add(driver->memory, client->frames.base, client->frames.bytes);
	return client->arena < 0 ? ENOMEM : 0;
}

static int make_client(struct rn_driver_client *client)
{
	struct rn_driver *driver = client->driver;
	int error = make_memory(client);

	if (!error && !rn_ids_get(&driver->uars, &client->uar_group)) {
		client->uar_group = UINT32_MAX;
		error = ENOMEM;
	}
	if (!error) {
		client->pd = rn_pd_new(client, true);
		error = client->pd ? 0 : ENOMEM;
	}
	return error;
}

struct rn_driver_client *rn_driver_attach(struct rn_driver *driver, pid_t pid,
					  rn_driver_answer *answer, void *arg, int *error)
{
	if (!driver->ready) {
		*error = ENODEV;
		return NULL;
	}

	struct rn_driver_client *client = rn_calloc(1, sizeof(*client));

	client->driver = driver;
	client->answer = answer;
	client->answer_arg = arg;
	client->pid = pid;
	client->arena = -1;
	client->process_arena = -1;
	client->uar_group = UINT32_MAX;
	client->async.driver = driver;
	client->async.outlet.fd = -1;
	rn_list_init(&client->pds);
	rn_list_init(&client->ahs);
	rn_list_init(&client->mrs);
	rn_list_init(&client->cqs);
	rn_list_init(&client->qps);
	rn_list_init(&client->link);
	rn_list_add(&driver->clients, &client->link);
	driver->client_count++;
	rn_pages_init(&client->pages);
	*error = make_client(client);
	if (*error) {
		rn_client_free(client);
		return NULL;
	}
	driver->clients_ever++;
	driver->counters.clients_attached++;
	return client;
}

void rn_driver_client_get_info(const struct rn_driver_client *client,
			       struct rn_driver_client_info *info)
{
	*info = (struct rn_driver_client_info){
		.arena_fd = client->frames.fd,
		.arena = client->frames.base,
		.arena_bytes = client->frames.bytes,
		.uar_first = client->uar_group * client->driver->uar_pages,
		.uar_pages = client->driver->uar_pages,
	};
}

/* --- leaving: QPs, then CQs, then memory keys, then what no hardware knows of --- */

/* Everything but the objects that only commands can end. */
void rn_client_free(struct rn_driver_client *client)
{
	struct rn_driver *driver = client->driver;

	while (!rn_list_is_empty(&client->ahs))
		rn_ah_free(rn_list_entry(client->ahs.next, struct rn_ah_object, link));
	while (!rn_list_is_empty(&client->pds))
		rn_pd_free(rn_list_entry(client->pds.next, struct rn_pd, link));
	if (client->pd)
		rn_pd_free(client->pd);
	for (uint32_t idx = 0; idx < RN_DRIVER_CHANNELS_MAX; idx++)
		if (client->channel[idx])
			rn_channel_free(client->channel[idx]);
	rn_outlet_close(&client->async.outlet);
	rn_pin_fini(client);
	if (client->process_arena >= 0)
		rn_host_memory_remove(driver->memory, client->process_arena);
	if (client->arena >= 0)
		rn_host_memory_remove(driver->memory, client->arena);
	rn_frames_fini(&client->frames);
	if (client->uar_group != UINT32_MAX)
		rn_ids_put(&driver->uars, client->uar_group);
	rn_list_remove(&client->link);
	driver->client_count--;
	free(client);
}

static void one_gone(struct rn_driver_client *client)
{
	client->pending--;
	leave(client);
}

static void qp_gone(struct rn_qp_object *qp)
{
	struct rn_driver_client *client = qp->client;

	rn_qp_free(qp);
	one_gone(client);
}

static void cq_gone(struct rn_cq_object *cq)
{
	struct rn_driver_client *client = cq->client;

	rn_cq_free(cq);
	one_gone(client);
}

static void mr_gone(void *arg, struct rn_mkey *mkey, int error)
{
	(void)mkey;
	(void)error;
	one_gone(arg);
}

/* Start ending every object of one kind; they leave their list when they are gone. */
static void end_stage(struct rn_driver_client *client)
{
	struct rn_list *const head[] = {&client->qps, &client->cqs, &client->mrs};
	struct rn_list *node, *next;

	for (node = head[client->stage]->next; node != head[client->stage]; node = next) {
		next = node->next;
		client->pending++;
		if (client->stage == 0)
			rn_qp_release(rn_list_entry(node, struct rn_qp_object, link), qp_gone);
		else if (client->stage == 1)
			rn_cq_release(rn_list_entry(node, struct rn_cq_object, link), cq_gone);
		else
			rn_mkey_destroy(rn_list_entry(node, struct rn_mkey, link), mr_gone, client);
	}
	client->stage++;
}

static void leave(struct rn_driver_client *client)
{
	void (*gone)(void *) = client->gone;
	void *arg = client->gone_arg;

	while (!client->pending && client->stage < 3)
		end_stage(client);
	if (client->pending)
		return;
	rn_client_free(client);
	if (gone)
		gone(arg);
}

void rn_driver_detach(struct rn_driver_client *client, void (*done)(void *arg), void *arg)
{
	RN_ASSERT(!client->leaving);
	client->leaving = true;
	client->gone = done;
	client->gone_arg = arg;
	if (!client->busy)
		leave(client);
}
