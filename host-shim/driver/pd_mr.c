/*
 * Protection domains and memory regions. A handle that is none gives the errno of Linux 6.1 with rdma-core 44:
 * ENOENT where the call is an ioctl (everything that ends an object, and the creation of queues), EINVAL where it still
 * is a write (registration, modification and query of queue pairs).
 */
#include <errno.h>
#include <stdlib.h>

#include "driver/internal.h"

struct rn_pd *rn_pd_new(struct rn_driver_client *client, bool internal)
{
	struct rn_driver *driver = client->driver;
	uint32_t number;

	if (!internal && driver->pd_count >= driver->device.max_pd)
		return NULL;
	if (!rn_ids_get(&driver->pds, &number))
		return NULL;
	driver->pd_count += !internal;

	struct rn_pd *pd = rn_calloc(1, sizeof(*pd));

	pd->client = client;
	pd->number = number;
	pd->internal = internal;
	rn_list_init(&pd->link);
	if (!internal)
		rn_list_add(&client->pds, &pd->link);
	driver->pd[number] = pd;
	return pd;
}

void rn_pd_free(struct rn_pd *pd)
{
	struct rn_driver *driver = pd->client->driver;

	driver->pd_count -= !pd->internal;
	driver->pd[pd->number] = NULL;
	rn_ids_put(&driver->pds, pd->number);
	rn_list_remove(&pd->link);
	free(pd);
}

struct rn_pd *rn_pd_find(struct rn_driver_client *client, uint32_t number)
{
	const struct rn_driver *driver = client->driver;
	struct rn_pd *pd = number < driver->pds.end ? driver->pd[number] : NULL;

	return pd && pd->client == client && !pd->internal ? pd : NULL;
}

void rn_pd_alloc_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_pd *pd = rn_pd_new(client, false);

	(void)request;
	rn_client_answer(client, pd ? 0 : ENOMEM, pd ? pd->number : 0);
}

void rn_pd_dealloc_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	struct rn_pd *pd = rn_pd_find(client, req->handle);

	if (!pd || pd->users) {
		rn_client_answer(client, pd ? EBUSY : ENOENT, 0);
		return;
	}
	rn_pd_free(pd);
	rn_client_answer(client, 0, 0);
}

static void registered(void *arg, struct rn_mkey *mkey, int error)
{
	struct rn_driver_client *client = arg;
	struct rn_uapi_reg_mr_rsp response = {0};

	if (error) {
		rn_client_answer(client, error, 0);
		return;
	}
	rn_list_add(&client->mrs, &mkey->link);
	response.lkey = mkey->key;
	response.rkey = mkey->key;
	rn_client_answer_with(client, &response, sizeof(response), mkey->key >> 8, NULL, 0);
}

static int check_access(uint32_t access)
{
	const uint32_t known = RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_WRITE |
			       RN_ACCESS_REMOTE_READ | RN_ACCESS_REMOTE_ATOMIC;

	/* Remote write and atomic need local write (IBA 10.6.3.1, ib_check_mr_access). */
	if (access & (RN_ACCESS_REMOTE_WRITE | RN_ACCESS_REMOTE_ATOMIC) &&
	    !(access & RN_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return access & ~known ? EINVAL : 0;
}

void rn_mr_reg_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_reg_mr *reg = request;
	const struct rn_mkey_spec spec = {
		.pd = rn_pd_find(client, reg->pd),
		.is_mr = true,
		.access = (uint8_t)reg->access,
		.va = reg->va,
		.length = reg->length,
		.iova = reg->iova,
	};
	int error = spec.pd ? check_access(reg->access) : EINVAL;

	if (!error)
		error = rn_mkey_create(client, &spec, registered, client);
	if (error)
		rn_client_answer(client, error, 0);
}

static void deregistered(void *arg, struct rn_mkey *mkey, int error)
{
	(void)mkey;
	(void)error; /* the key is gone, whatever the NIC thought of the command */
	rn_client_answer(arg, 0, 0);
}

void rn_mr_dereg_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	const struct rn_driver *driver = client->driver;
	struct rn_mkey *mkey =
		req->handle >> driver->icm.log_mpts ? NULL : driver->mkey[req->handle];

	if (!mkey || mkey->client != client || !mkey->is_mr)
		rn_client_answer(client, ENOENT, 0);
	else
		rn_mkey_destroy(mkey, deregistered, client);
}
