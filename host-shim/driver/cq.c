/*
 * Completion queues: a ring in the program's memory under a key of the client's own PD, a doorbell record, an
 * event queue by vector.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "driver/internal.h"

struct rn_cq_object *rn_cq_find(struct rn_driver_client *client, uint32_t cqn)
{
	const struct rn_driver *driver = client->driver;
	struct rn_cq_object *cq = cqn >> driver->icm.log_cqs ? NULL : driver->cq[cqn];

	return cq && cq->client == client && cq->live ? cq : NULL;
}

void rn_cq_free(struct rn_cq_object *cq)
{
	struct rn_driver *driver = cq->client->driver;

	if (cq->channel)
		cq->channel->cqs--;
	rn_pin_unuse(cq->client, cq->dbr_va);
	driver->cq[cq->cqn] = NULL;
	rn_ids_put(&driver->cqns, cq->cqn);
	rn_list_remove(&cq->held);
	rn_list_remove(&cq->link);
	free(cq);
}

static struct rn_mkey_spec ring_spec(const struct rn_driver_client *client, uint64_t va,
				     uint32_t cqes)
{
	return (struct rn_mkey_spec){
		.pd = client->pd,
		.access = RN_ACCESS_LOCAL_WRITE,
		.va = va,
		.length = (uint64_t)cqes * RN_CQE_BYTES,
	};
}

/* --- create --- */

static void give_up(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_cq_object *cq = arg;
	struct rn_driver_client *client = cq->client;

	(void)mkey;
	(void)error;
	error = cq->error;
	rn_cq_free(cq);
	rn_client_answer(client, error, 0);
}

static void created(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_cq_object *cq = arg;

	(void)out;
	cq->error = rn_command_errno(status);
	if (cq->error) {
		rn_mkey_destroy(cq->mkey, give_up, cq);
		return;
	}
	cq->live = true;
	rn_client_answer(cq->client, 0, cq->cqn);
}

static void ring_made(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_cq_object *cq = arg;

	if (error) {
		cq->error = error;
		give_up(cq, NULL, 0);
		return;
	}
	cq->mkey = mkey;
	cq->config.mkey = mkey->key;
	rn_command_submit(cq->client->driver, RN_CMD_CREATE_CQ, cq->cqn, &cq->config,
			  sizeof(cq->config), 0, created, cq);
}

static bool is_ring(const struct rn_driver *driver, uint32_t cqes, uint64_t va)
{
	return rn_is_pow2(cqes) && cqes <= 1u << rn_log2_ceil(driver->device.max_cqe) &&
	       va % RN_FRAME_BYTES == 0;
}

static int check_create(struct rn_driver_client *client, const struct rn_uapi_create_cq *create)
{
	const struct rn_driver *driver = client->driver;

	if (!is_ring(driver, create->cqes, create->ring_va) ||
	    create->dbr_va % sizeof(struct rn_hw_cq_dbr))
		return EINVAL;
	if (create->channel && !rn_channel_find(client, create->channel))
		return EINVAL;
	if (create->vector >= driver->device.num_comp_vectors ||
	    create->uar_page >= driver->uar_pages)
		return EINVAL;
	return 0;
}

static struct rn_cq_object *make_cq(struct rn_driver_client *client,
				    const struct rn_uapi_create_cq *create, int *error)
{
	struct rn_driver *driver = client->driver;
	uint64_t dbr_pa;
	uint32_t cqn;

	*error = EINVAL;
	if (!rn_pin_use(client, create->dbr_va, &dbr_pa))
		return NULL;
	*error = ENOMEM;
	if (!rn_ids_get(&driver->cqns, &cqn)) {
		rn_pin_unuse(client, create->dbr_va);
		return NULL;
	}

	struct rn_cq_object *cq = rn_calloc(1, sizeof(*cq));

	cq->client = client;
	cq->cookie = create->cookie;
	cq->dbr_va = create->dbr_va;
	cq->cqn = cqn;
	cq->channel = rn_channel_find(client, create->channel);
	if (cq->channel)
		cq->channel->cqs++;
	cq->config = (struct rn_hw_cqc){
		.state = 1,
		.log_cqes = (uint8_t)rn_log2_ceil(create->cqes),
		.eqn = (uint8_t)(1 + create->vector),
		.uar_page = client->uar_group * driver->uar_pages + create->uar_page,
		.cqn = cqn,
		.dbr_pa = dbr_pa,
		.pd = client->pd->number,
	};
	rn_list_init(&cq->held);
	rn_list_init(&cq->link);
	rn_list_add(&client->cqs, &cq->link);
	driver->cq[cqn] = cq;
	*error = 0;
	return cq;
}

void rn_cq_create_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_create_cq *create = request;
	int error = check_create(client, create);
	struct rn_cq_object *cq = error ? NULL : make_cq(client, create, &error);

	if (!cq) {
		rn_client_answer(client, error, 0);
		return;
	}

	const struct rn_mkey_spec spec = ring_spec(client, create->ring_va, create->cqes);

	cq->error = rn_mkey_create(client, &spec, ring_made, cq);
	if (cq->error)
		give_up(cq, NULL, 0);
}

/* --- resize --- */

static void old_ring_gone(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_cq_object *cq = arg;

	(void)mkey;
	(void)error;
	rn_client_answer(cq->client, cq->error, cq->cqn);
}

static void resized(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_cq_object *cq = arg;
	struct rn_mkey *gone = cq->new_mkey;

	(void)out;
	cq->error = rn_command_errno(status);
	if (!cq->error) {
		gone = cq->mkey;
		cq->mkey = cq->new_mkey;
		cq->config = cq->new_config;
	}
	cq->new_mkey = NULL;
	rn_mkey_destroy(gone, old_ring_gone, cq);
}

static void new_ring_made(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_cq_object *cq = arg;
	const struct rn_uapi_resize_cq *resize = (const void *)cq->client->request;

	if (error) {
		rn_client_answer(cq->client, error, 0);
		return;
	}
	cq->new_mkey = mkey;
	cq->new_config = cq->config;
	cq->new_config.mkey = mkey->key;
	cq->new_config.log_cqes = (uint8_t)rn_log2_ceil(resize->cqes);
	rn_command_submit(cq->client->driver, RN_CMD_MODIFY_CQ, cq->cqn, &cq->new_config,
			  sizeof(cq->new_config), 0, resized, cq);
}

void rn_cq_resize_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_resize_cq *resize = request;
	struct rn_cq_object *cq = rn_cq_find(client, resize->req.handle);
	int error = EINVAL;

	if (cq && is_ring(client->driver, resize->cqes, resize->ring_va)) {
		const struct rn_mkey_spec spec = ring_spec(client, resize->ring_va, resize->cqes);

		error = rn_mkey_create(client, &spec, new_ring_made, cq);
	}
	if (error)
		rn_client_answer(client, error, 0);
}

/* --- destroy --- */

static void ring_gone(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_cq_object *cq = arg;

	(void)mkey;
	(void)error;
	cq->then(cq);
}

static void destroyed(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_cq_object *cq = arg;

	(void)status;
	(void)out;
	rn_event_forget_cq(cq);
	rn_mkey_destroy(cq->mkey, ring_gone, cq);
}

/* @then frees it: its event counts are still wanted. */
void rn_cq_release(struct rn_cq_object *cq, void (*then)(struct rn_cq_object *cq))
{
	cq->live = false;
	cq->then = then;
	rn_command_submit(cq->client->driver, RN_CMD_DESTROY_CQ, cq->cqn, NULL, 0, 0, destroyed,
			  cq);
}

static void answer_destroy(struct rn_cq_object *cq)
{
	struct rn_driver_client *client = cq->client;
	struct rn_uapi_destroy_rsp response = {
		.comp_events = cq->comp_events,
		.async_events = cq->async_events,
	};

	rn_cq_free(cq);
	rn_client_answer_with(client, &response, sizeof(response), 0, NULL, 0);
}

void rn_cq_destroy_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	struct rn_cq_object *cq = rn_cq_find(client, req->handle);

	if (!cq || cq->qps)
		rn_client_answer(client, cq ? EBUSY : ENOENT, 0);
	else
		rn_cq_release(cq, answer_destroy);
}
