/*
 * The device list: one device in a run, none outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "verbs/objects.h"

#define UVERBS_NAME "uverbs0"

/* Stands where a provider's table of operations would; nobody else has this address. */
static const int not_a_provider;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static struct rn_device *device_of(struct ibv_device *ibv)
{
	return (struct rn_device *)(void *)ibv;
}

static struct rn_device *device_new(struct rn_conn *conn)
{
	struct rn_device *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	device->ibv.node_type = IBV_NODE_CA;
	device->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(device->ibv.name, sizeof(device->ibv.name), "%s", conn->device.name);
	snprintf(device->ibv.dev_name, sizeof(device->ibv.dev_name), UVERBS_NAME);
	snprintf(device->ibv.dev_path, sizeof(device->ibv.dev_path),
		 "/sys/class/infiniband_verbs/" UVERBS_NAME);
	snprintf(device->ibv.ibdev_path, sizeof(device->ibv.ibdev_path), "/sys/class/infiniband/%s",
		 conn->device.name);
	device->ops = &not_a_provider;
	device->refcount = 1;
	device->conn = conn;
	return device;
}

static void device_ref(struct rn_device *device)
{
	pthread_mutex_lock(&list_lock);
	device->refcount++;
	pthread_mutex_unlock(&list_lock);
}

static void device_put(struct rn_device *device)
{
	bool last;

	pthread_mutex_lock(&list_lock);
	last = --device->refcount == 0;
	pthread_mutex_unlock(&list_lock);
	if (last) {
		rn_conn_put(device->conn);
		free(device);
	}
}

/* What the distribution's library answers on this machine when it has no NIC. */
static struct ibv_device **list_without_run(void)
{
	if (access("/sys/class/infiniband_verbs/abi_version", F_OK)) {
		errno = ENOSYS;
		return NULL;
	}
	return calloc(1, sizeof(struct ibv_device *));
}

static struct ibv_device **list_of_one(void)
{
	struct ibv_device **list = calloc(2, sizeof(*list));
	struct rn_conn *conn = list ? rn_conn_get() : NULL;
	struct rn_device *device = conn ? device_new(conn) : NULL;

	if (device) {
		list[0] = &device->ibv;
		return list;
	}
	if (conn)
		rn_conn_put(conn);
	free(list);
	return NULL;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	const bool in_run = rn_conn_in_run();
	struct ibv_device **list = in_run ? list_of_one() : list_without_run();

	if (num_devices)
		*num_devices = in_run && list ? 1 : 0;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	for (unsigned i = 0; list[i]; i++)
		device_put(device_of(list[i]));
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return device_of(device)->conn->device.node_guid_be;
}

int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return 0;
}

/* ---- contexts ---- */

static int open_async(struct rn_conn *conn)
{
	struct rn_uapi_req req = {.op = RN_UAPI_OPEN_ASYNC};
	struct rn_uapi_rsp rsp;
	int error = 0, fd;

	/* One stream a process; contexts have duplicates of its descriptor. */
	pthread_mutex_lock(&list_lock);
	if (conn->async_fd < 0) {
		error = rn_conn_call_fds(conn, &req, sizeof(req), &rsp, sizeof(rsp), &fd, 1);
		conn->async_fd = error ? -1 : fd;
	}
	fd = conn->async_fd >= 0 ? fcntl(conn->async_fd, F_DUPFD_CLOEXEC, 0) : -1;
	pthread_mutex_unlock(&list_lock);
	if (fd < 0)
		errno = error ? error : EMFILE;
	return fd;
}

struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
	struct rn_device *device = device_of(ibv);
	struct rn_context *context = calloc(1, sizeof(*context));
	struct ibv_context *out;

	if (!context)
		return NULL;
	out = &context->verbs.context;
	out->async_fd = open_async(device->conn);
	if (out->async_fd < 0) {
		free(context);
		return NULL;
	}
	context->conn = device->conn;
	context->device = device;
	device_ref(device);
	rn_conn_ref(context->conn);
	out->device = ibv;
	out->cmd_fd = context->conn->fd;
	out->num_comp_vectors = (int)context->conn->device.num_comp_vectors;
	out->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->verbs.sz = sizeof(context->verbs);
	pthread_mutex_init(&out->mutex, NULL);
	rn_context_set_ops(context);
	return out;
}

int ibv_close_device(struct ibv_context *ibv)
{
	struct rn_context *context = rn_context_of(ibv);

	close(ibv->async_fd);
	rn_conn_put(context->conn);
	device_put(context->device);
	pthread_mutex_destroy(&ibv->mutex);
	free(context);
	return 0;
}
