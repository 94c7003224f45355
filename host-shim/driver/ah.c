/*
 * Address handles: the driver checks the address and remembers who holds which protection domain. No hardware knows of
 * them; what datagrams need of one is in their work requests.
 */
#include <errno.h>
#include <stdlib.h>

#include "driver/internal.h"

void rn_ah_free(struct rn_ah_object *ah)
{
	struct rn_driver *driver = ah->client->driver;

	ah->pd->users--;
	driver->ah[ah->number] = NULL;
	rn_ids_put(&driver->ahs, ah->number);
	rn_list_remove(&ah->link);
	free(ah);
}

static struct rn_ah_object *find(const struct rn_driver_client *client, uint32_t number)
{
	const struct rn_driver *driver = client->driver;
	struct rn_ah_object *ah = number < driver->ahs.end ? driver->ah[number] : NULL;

	return ah && ah->client == client ? ah : NULL;
}

static int check(struct rn_driver_client *client, const struct rn_uapi_create_ah *create)
{
	if (!rn_pd_find(client, create->pd))
		return EINVAL;
	/* RoCE has no local routes: an address handle without GRH leads nowhere. */
	if (!create->attr.is_global)
		return EINVAL;
	return rn_qp_check_address(client->driver, &create->attr);
}

void rn_ah_create_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_create_ah *create = request;
	struct rn_driver *driver = client->driver;
	int error = check(client, create);
	uint32_t number;

	if (!error && !rn_ids_get(&driver->ahs, &number))
		error = ENOMEM;
	if (error) {
		rn_client_answer(client, error, 0);
		return;
	}

	struct rn_ah_object *ah = rn_calloc(1, sizeof(*ah));

	ah->client = client;
	ah->pd = rn_pd_find(client, create->pd);
	ah->pd->users++;
	ah->number = number;
	rn_list_init(&ah->link);
	rn_list_add(&client->ahs, &ah->link);
	driver->ah[number] = ah;
	rn_client_answer(client, 0, number);
}

void rn_ah_destroy_request(struct rn_driver_client *client, const void *request)
{
	const struct rn_uapi_req *req = request;
	struct rn_ah_object *ah = find(client, req->handle);

	if (ah)
		rn_ah_free(ah);
	rn_client_answer(client, ah ? 0 : ENOENT, 0);
}
