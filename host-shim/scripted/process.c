/*
 * The process of a scripted host: its connection to the driver and its time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "scripted/internal.h"

#define CALL_LIMIT_PS (10 * RN_SCRIPTED_SECOND_PS)
/* Virtual addresses are the script's own and the same in every run; they name no memory of this process. */
#define FIRST_VA UINT64_C(0x10000000000)

bool rn_scripted_step(struct rn_scripted *host, uint64_t until_ps)
{
	if (host->env.step)
		return host->env.step(host->env.step_arg, until_ps);

	const uint64_t next_ps = rn_sim_next_ps(host->env.sim);

	/* Not towards @until_ps: after the last wake the time would go there. */
	return next_ps <= until_ps && next_ps != RN_TIME_NEVER &&
	       rn_sim_run(host->env.sim, next_ps, 1) > 0;
}

uint64_t rn_scripted_now_ps(const struct rn_scripted *host)
{
	return rn_sim_now_ps(host->env.sim);
}

void rn_scripted_run_for(struct rn_scripted *host, uint64_t ps)
{
	const uint64_t until_ps = rn_scripted_now_ps(host) + ps;

	if (host->env.step)
		while (host->env.step(host->env.step_arg, until_ps))
			;
	else
		rn_sim_run(host->env.sim, until_ps, UINT64_MAX);
}

bool rn_scripted_run_until(struct rn_scripted *host, bool (*is_true)(void *arg), void *arg,
			   uint64_t deadline_ps)
{
	while (!is_true(arg)) {
		if (rn_scripted_step(host, deadline_ps))
			continue;
		/* Nothing more until then: let the time pass. */
		if (rn_scripted_now_ps(host) < deadline_ps && deadline_ps != RN_TIME_NEVER)
			rn_scripted_run_for(host, deadline_ps - rn_scripted_now_ps(host));
		return is_true(arg);
	}
	return true;
}

/* --- requests --- */

static void answer(void *arg, const struct rn_uapi_rsp *rsp, uint32_t bytes, const int *fds,
		   uint32_t fd_count)
{
	struct rn_scripted *host = arg;

	host->answered = true;
	host->error = rsp->error;
	if (host->answer)
		memcpy(host->answer, rsp, bytes < host->answer_room ? bytes : host->answer_room);
	if (fd_count)
		host->fd = dup(fds[0]);
}

static bool is_answered(void *arg)
{
	return ((struct rn_scripted *)arg)->answered;
}

int rn_scripted_call(struct rn_scripted *host, uint32_t op, void *request, uint32_t bytes, void *to,
		     uint32_t room)
{
	struct rn_uapi_req *req = request;

	req->op = op;
	req->bytes = bytes;
	host->answered = false;
	host->answer = to;
	host->answer_room = room;
	if (!rn_driver_request(host->client, request, bytes))
		return EBUSY;
	if (!rn_scripted_run_until(host, is_answered, host,
				   rn_scripted_now_ps(host) + CALL_LIMIT_PS)) {
		host->answer = NULL;
		return ETIMEDOUT;
	}
	return host->error;
}

int rn_scripted_watch_async(struct rn_scripted *host)
{
	struct rn_uapi_req request = {0};
	int error;

	if (host->async_fd >= 0)
		return 0;
	error = rn_scripted_call(host, RN_UAPI_OPEN_ASYNC, &request, sizeof(request), NULL, 0);
	if (error)
		return error;
	host->async_fd = host->fd;
	host->fd = -1;
	return 0;
}

bool rn_scripted_take_async(struct rn_scripted *host, struct rn_uapi_async_event *event)
{
	rn_driver_poll(host->env.driver); /* a full pipe may have held it up */
	return recv(host->async_fd, event, sizeof(*event), MSG_DONTWAIT) == sizeof(*event);
}

/* --- life --- */

static bool make_pd(struct rn_scripted *host)
{
	struct rn_uapi_req request = {0};
	struct rn_uapi_rsp rsp;

	if (rn_scripted_call(host, RN_UAPI_ALLOC_PD, &request, sizeof(request), &rsp, sizeof(rsp)))
		return false;
	host->pd = rsp.handle;
	return true;
}

struct rn_scripted *rn_scripted_new(const struct rn_scripted_env *env)
{
	struct rn_scripted *host = rn_calloc(1, sizeof(*host));
	int error;

	host->env = *env;
	host->next_va = FIRST_VA;
	host->fd = -1;
	host->async_fd = -1;
	rn_list_init(&host->maps);
	rn_list_init(&host->cqs);
	rn_list_init(&host->qps);
	rn_scripted_writes_init(host);
	host->client = rn_driver_attach(env->driver, getpid(), answer, host, &error);
	if (!host->client) {
		free(host);
		return NULL;
	}
	rn_driver_client_get_info(host->client, &host->info);
	if (!make_pd(host)) {
		rn_scripted_kill(host);
		return NULL;
	}
	return host;
}

static void gone(void *arg)
{
	((struct rn_scripted *)arg)->gone = true;
}

static bool is_gone(void *arg)
{
	return ((struct rn_scripted *)arg)->gone;
}

/* What lies in this process alone. */
static void drop(struct rn_scripted *host)
{
	while (!rn_list_is_empty(&host->qps))
		rn_scripted_qp_drop(rn_list_entry(host->qps.next, struct rn_scripted_qp, link));
	while (!rn_list_is_empty(&host->cqs))
		rn_scripted_cq_drop(rn_list_entry(host->cqs.next, struct rn_scripted_cq, link));
	while (!rn_list_is_empty(&host->maps)) {
		struct rn_scripted_map *map =
			rn_list_entry(host->maps.next, struct rn_scripted_map, link);

		munmap(map->buffer.data, map->buffer.bytes);
		rn_list_remove(&map->link);
		free(map);
	}
	if (host->async_fd >= 0)
		close(host->async_fd);
	rn_scripted_writes_fini(host);
	free(host->by_qpn);
	free(host);
}

void rn_scripted_free(struct rn_scripted *host)
{
	rn_scripted_writes_fini(host);
	rn_driver_detach(host->client, gone, host);
	RN_ASSERT(rn_scripted_run_until(host, is_gone, host,
					rn_scripted_now_ps(host) + CALL_LIMIT_PS));
	drop(host);
}

void rn_scripted_kill(struct rn_scripted *host)
{
	rn_driver_detach(host->client, NULL, NULL);
	drop(host);
}

struct rn_driver *rn_scripted_driver(struct rn_scripted *host)
{
	return host->env.driver;
}

struct rn_driver_client *rn_scripted_client(struct rn_scripted *host)
{
	return host->client;
}

uint32_t rn_scripted_pd(const struct rn_scripted *host)
{
	return host->pd;
}
