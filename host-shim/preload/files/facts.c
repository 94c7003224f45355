/*
 * Facts come by the public verbs from libibverbs, which is preloaded as well: the same that the program would be told.
 */
#include "preload/files/facts.h"

#include <arpa/inet.h>
#include <string.h>

#include "preload/address.h"

#pragma weak ibv_get_device_list
#pragma weak ibv_free_device_list
#pragma weak ibv_open_device
#pragma weak ibv_close_device
#pragma weak ibv_query_device
#pragma weak ibv_query_port
#pragma weak _ibv_query_gid_ex
#pragma weak ibv_query_pkey

extern int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
	__attribute__((weak));

static void gather_tables(struct rn_facts *facts, struct ibv_context *context)
{
	for (int i = 0; i < facts->port.gid_tbl_len && i < RN_FACTS_GIDS; i++)
		facts->has_gid[i] = !ibv_query_gid_ex(context, 1, (uint32_t)i, &facts->gid[i], 0);
	for (int i = 0; i < facts->port.pkey_tbl_len && i < RN_FACTS_PKEYS; i++) {
		__be16 pkey = 0;

		if (!ibv_query_pkey(context, 1, i, &pkey))
			facts->pkey[i] = ntohs(pkey);
	}
}

static bool gather_device(struct rn_facts *facts, struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	bool ok;

	if (!context)
		return false;
	memcpy(facts->device, device->name, sizeof(facts->device));
	memcpy(facts->node, device->dev_name, sizeof(facts->node));
	ok = !ibv_query_device(context, &facts->attr) && !ibv_query_port(context, 1, &facts->port);
	if (ok)
		gather_tables(facts, context);
	if (ibv_read_sysfs_file)
		ibv_read_sysfs_file(device->ibdev_path, "board_id", facts->board_id,
				    sizeof(facts->board_id));
	facts->board_id[sizeof(facts->board_id) - 1] = '\0';
	ibv_close_device(context);
	return ok;
}

void rn_facts_gather(struct rn_facts *facts)
{
	struct ibv_device **list = ibv_get_device_list ? ibv_get_device_list(NULL) : NULL;

	memset(facts, 0, sizeof(*facts));
	rn_names_print(rn_address_own_host(), facts->host_name);
	if (!list)
		return;
	facts->has_device = *list && gather_device(facts, *list);
	ibv_free_device_list(list);
}
