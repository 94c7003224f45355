/* Processes that die in the middle of transfers, over whole NICs: nothing is left, and others go on. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "run_suite.h"
#include "world.h"

#define KILLS_DEFAULT 100

static struct world world;

static struct rn_scripted *new_process(unsigned host)
{
	struct rn_scripted *process = rn_scripted_new(
		&(struct rn_scripted_env){.sim = world.sim, .driver = world.driver[host]});

	ck_assert_ptr_nonnull(process);
	return process;
}

static bool are_gone(void *arg)
{
	const struct rn_driver_usage *before = arg;
	struct rn_driver_usage now;

	for (unsigned host = 0; host < 2; host++) {
		rn_driver_get_usage(world.driver[host], &now);
		if (memcmp(&now, &before[host], sizeof(now)))
			return false;
	}
	return true;
}

/* Two processes talk over @world's NICs; one or both die after a random time. */
static void kill_once(struct rn_rng *rng, const struct rn_driver_usage before[2])
{
	static const uint8_t opcodes[] = {RN_WQE_SEND, RN_WQE_RDMA_WRITE, RN_WQE_RDMA_READ,
					  RN_WQE_RDMA_WRITE_IMM};
	struct world visitors = world;
	struct link_pair pair;
	struct rn_scripted_flow flow;
	const unsigned first = (unsigned)rn_rng_below(rng, 2);

	for (unsigned host = 0; host < 2; host++)
		visitors.host[host] = new_process(host);
	world_connect(&visitors, 0, 1, 1 << 17, &RN_SCRIPTED_PATH, &pair);
	rn_scripted_flow_start(&flow, &(struct rn_scripted_flow_spec){
					      .from = pair.qp[0],
					      .to = pair.qp[1],
					      .from_cq = pair.cq[0],
					      .to_cq = pair.cq[1],
					      .opcode = opcodes[rn_rng_below(rng, 4)],
					      .bytes = (uint32_t)rn_rng_below(rng, 30000),
					      .depth = 1 + (uint32_t)rn_rng_below(rng, 30),
					      .count = UINT64_MAX,
					      .va = pair.buffer[0].va,
					      .lkey = pair.key[0],
					      .remote_va = pair.buffer[1].va,
					      .rkey = pair.key[1],
				      });
	rn_scripted_run_for(world.host[0], rn_rng_below(rng, 200000000));
	rn_scripted_kill(visitors.host[first]);
	if (rn_rng_below(rng, 2))
		rn_scripted_run_for(world.host[0], rn_rng_below(rng, 50000000));
	rn_scripted_kill(visitors.host[!first]);
	ck_assert(rn_scripted_run_until(world.host[0], are_gone, (void *)(uintptr_t)before,
					rn_scripted_now_ps(world.host[0]) + RN_SCRIPTED_SECOND_PS));
}

static void get_usage(struct rn_driver_usage usage[2])
{
	for (unsigned host = 0; host < 2; host++)
		rn_driver_get_usage(world.driver[host], &usage[host]);
}

START_TEST(kills_at_random_times_leave_nothing_behind_and_a_witness_goes_on)
{
	const char *wanted = getenv("RN_TEST_KILLS");
	const int kills = wanted ? atoi(wanted) : KILLS_DEFAULT;
	struct link_pair witness;
	struct rn_scripted_flow flow;
	struct rn_driver_usage before[2];
	struct rn_rng rng;

	rn_rng_init(&rng, 1, "kills");
	world_init(&world, 2);
	world_start(&world, NULL);
	world_connect(&world, 0, 1, 1 << 17, &RN_SCRIPTED_PATH, &witness);
	get_usage(before);
	for (int n = 0; n < kills; n++) {
		rn_scripted_fill(witness.buffer[0].data, 1 << 17, (uint64_t)n);
		rn_scripted_flow_start(&flow, &(struct rn_scripted_flow_spec){
						      .from = witness.qp[0],
						      .to = witness.qp[1],
						      .from_cq = witness.cq[0],
						      .to_cq = witness.cq[1],
						      .opcode = RN_WQE_RDMA_WRITE,
						      .bytes = 1 << 15,
						      .depth = 4,
						      .count = 16,
						      .va = witness.buffer[0].va,
						      .lkey = witness.key[0],
						      .remote_va = witness.buffer[1].va,
						      .rkey = witness.key[1],
						      .stride = 1 << 15,
					      });
		kill_once(&rng, before);
		ck_assert(rn_scripted_flow_run(&flow, RN_SCRIPTED_SECOND_PS));
		rn_scripted_flow_stop(&flow);
		rn_scripted_run_for(world.host[0], 10000000);
		ck_assert(rn_scripted_holds(witness.buffer[1].data, 1 << 17, (uint64_t)n));
	}
	world_fini(&world);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("kill");

	tcase_add_test(tcase, kills_at_random_times_leave_nothing_behind_and_a_witness_goes_on);
	return run_suite(tcase, "scripted_kill");
}
