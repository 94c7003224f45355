/*
 * See world.h. What fails here ends the process: tests and benchmarks use it alike.
 */
#include "world.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "driver/address.h"

void world_init(struct world *world, unsigned hosts)
{
	RN_ASSERT(hosts <= WORLD_HOSTS_MAX);
	*world = (struct world){.hosts = hosts};
	world->scenario = rn_scenario_default(hosts);
}

static void is_up(void *arg, int error)
{
	RN_ASSERT(error == 0);
	((struct world *)arg)->ready++;
}

static void make_driver(struct world *world, unsigned host)
{
	char *name = rn_asprintf("host%u.driver", host);
	struct rn_driver_env env = {
		.sim = world->sim,
		.root_complex = rn_system_root_complex(world->system, host),
		.stats = rn_system_stats(world->system),
		.name = name,
		.seed = world->scenario->seed,
		.host = host,
		.hosts = world->hosts,
	};

	rn_address_default_device(&env.device, host);
	rn_address_default_port(&env.port, host);
	world->driver[host] = rn_driver_new(&env);
	rn_driver_start(world->driver[host], is_up, world);
	free(name);
}

void world_start(struct world *world, const struct rn_system_options *options)
{
	static const struct rn_system_options plain;
	char *error = NULL;

	world->system = rn_system_new(world->scenario, options ? options : &plain, &error);
	RN_ASSERT(world->system);
	world->sim = rn_system_sim(world->system);
	for (unsigned n = 0; n < world->hosts; n++)
		make_driver(world, n);
	rn_sim_run(world->sim, RN_SCRIPTED_SECOND_PS, UINT64_MAX);
	RN_ASSERT(world->ready == world->hosts);
	for (unsigned n = 0; n < world->hosts; n++) {
		world->host[n] = rn_scripted_new(
			&(struct rn_scripted_env){.sim = world->sim, .driver = world->driver[n]});
		RN_ASSERT(world->host[n]);
	}
}

void world_fini(struct world *world)
{
	for (unsigned n = 0; n < world->hosts; n++) {
		struct rn_driver_usage usage;

		if (world->host[n])
			rn_scripted_free(world->host[n]);
		rn_driver_get_usage(world->driver[n], &usage);
		RN_ASSERT(usage.clients == 0);
		RN_ASSERT(usage.qps + usage.cqs + usage.mpts + usage.pds == 0);
		RN_ASSERT(usage.frames + usage.mtts == 0);
	}
	for (unsigned n = 0; n < world->hosts; n++)
		rn_driver_free(world->driver[n]);
	RN_ASSERT(rn_system_free(world->system, NULL) == 0);
	rn_scenario_free(world->scenario);
}

void world_connect(struct world *world, unsigned a, unsigned b, uint64_t bytes,
		   const struct rn_scripted_path *path, struct link_pair *pair)
{
	struct rn_scripted *const host[2] = {world->host[a], world->host[b]};

	for (unsigned n = 0; n < 2; n++) {
		RN_ASSERT(rn_scripted_alloc_mr(host[n], bytes, &pair->buffer[n], &pair->key[n]));
		pair->cq[n] = rn_scripted_cq_new(host[n], 512);
		RN_ASSERT(pair->cq[n]);
		pair->qp[n] = rn_scripted_qp_new(
			host[n], &(struct rn_scripted_qp_spec){.send_cq = pair->cq[n]});
		RN_ASSERT(pair->qp[n]);
	}
	RN_ASSERT(!rn_scripted_connect(pair->qp[0], pair->qp[1], path));
}

uint64_t world_counter(struct world *world, const char *instance, const char *counter)
{
	const uint64_t value = rn_stats_value(rn_system_stats(world->system), instance, counter);

	RN_ASSERT(value != UINT64_MAX);
	return value;
}

uint8_t world_transfer(struct link_pair *pair, const struct rn_scripted_wr *wr)
{
	struct rn_scripted_wr signaled = *wr;
	struct rn_scripted_wc wc;

	signaled.flags |= RN_WQE_SIGNALED;
	RN_ASSERT(rn_scripted_post(pair->qp[0], &signaled) == RN_POST_OK);
	rn_scripted_ring(pair->qp[0]);
	if (!rn_scripted_wait(pair->cq[0], &wc, 1, 2 * RN_SCRIPTED_SECOND_PS))
		return 255;
	return wc.status;
}
