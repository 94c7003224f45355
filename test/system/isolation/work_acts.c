/* Work requests that no library would write, on queue pairs that work; also while the NIC reads them. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "hostile.h"
#include "hw/gen/rnic_hw.h"
#include "world.h"

static uint32_t some_key(const struct world *world)
{
	struct rn_rng *rng = world->raw.rng;

	switch (below(rng, 8)) {
	case 0: /* another index, perhaps another client's */
		return nearby(rng, world->mr >> 8) << 8 | below(rng, 4);
	case 1: /* the stale or the next variant */
		return world->mr + 1 - 2 * below(rng, 2);
	case 2:
		return nasty(rng);
	default:
		return world->mr;
	}
}

static uint64_t some_va(const struct world *world)
{
	struct rn_rng *rng = world->raw.rng;
	const uint64_t data = (uintptr_t)world_data(world);

	if (one_in(rng, 8))
		return nasty64(rng);
	return data + (one_in(rng, 8) ? nasty(rng) : below(rng, WORLD_DATA_BYTES));
}

static uint32_t some_bytes(struct rn_rng *rng)
{
	return one_in(rng, 8) ? nasty(rng) : below(rng, 1u << below(rng, 15));
}

static struct rn_hw_wqe_data some_data(const struct world *world)
{
	return (struct rn_hw_wqe_data){
		.bytes = some_bytes(world->raw.rng), .lkey = some_key(world), .va = some_va(world)};
}

/* One send WQE at block @at; returns its blocks. */
static uint32_t write_wqe(const struct world *world, unsigned qp, uint32_t at)
{
	struct rn_rng *rng = world->raw.rng;
	const uint32_t segments = 2 + below(rng, 7);
	_Alignas(16) char wqe[160] = {0};
	const struct rn_hw_wqe_ctrl ctrl = {
		.opcode = (uint8_t)below(rng, 10),
		.flags = (uint8_t)below(rng, 16),
		.wqe_idx = (uint16_t)at,
		.qpn_ds = world->qp[qp] << 8 | segments,
		.imm_be = nasty(rng),
	};
	const struct rn_hw_wqe_raddr raddr = {.va = some_va(world), .rkey = some_key(world)};

	memcpy(wqe, &ctrl, sizeof(ctrl));
	for (uint32_t n = 1; n < segments; n++) {
		const struct rn_hw_wqe_data data = some_data(world);

		memcpy(wqe + n * 16, &data, sizeof(data));
	}
	if (ctrl.opcode >= RN_WQE_RDMA_WRITE)
		memcpy(wqe + 16, &raddr, sizeof(raddr));
	if (one_in(rng, 6))
		mutate(rng, wqe, segments * 16, 0);

	const uint32_t blocks = (segments * 16 + 63) / 64;

	for (uint32_t n = 0; n < blocks; n++)
		memcpy(world_sq(world, qp) + (at + n) % WORLD_SQ_WQEBBS * 64, wqe + n * 64, 64);
	return blocks;
}

static void post_receives(const struct world *world, unsigned qp)
{
	struct rn_rng *rng = world->raw.rng;

	for (uint32_t n = 0; n < WORLD_RQ_WQES * 2; n++) {
		struct rn_hw_wqe_data data = {
			.bytes = 4096, .lkey = world->mr, .va = (uintptr_t)world_data(world)};

		if (one_in(rng, 4))
			data = some_data(world);
		memcpy(world_rq(world, qp) + n * 16, &data, sizeof(data));
	}
	world_qp_dbr(world, qp)[0] = one_in(rng, 4) ? nasty(rng) : WORLD_RQ_WQES / 2;
}

static void ring_send(struct world *world, unsigned qp, uint32_t pi)
{
	struct rn_rng *rng = world->raw.rng;
	const struct rn_hw_sq_doorbell doorbell = {.qpn = world->qp[qp],
						   .pi = one_in(rng, 8) ? nasty(rng) : pi};
	uint32_t arm[2] = {world->cq | below(rng, 64) << 24, nasty(rng)};

	world_qp_dbr(world, qp)[1] = one_in(rng, 8) ? nasty(rng) : doorbell.pi;
	raw_ring(&world->raw, 0, RN_UAR_SQ_DOORBELL, &doorbell, sizeof(doorbell));
	if (one_in(rng, 4))
		raw_ring(&world->raw, 0, RN_UAR_CQ_ARM, arm, sizeof(arm));
	if (one_in(rng, 8))
		world_cq_dbr(world)[0] = nasty(rng); /* the CQ overruns, or seems to */
}

static void post_some(struct world *world, uint32_t *pi)
{
	const unsigned qp = below(world->raw.rng, WORLD_QPS);
	const uint32_t count = 1 + below(world->raw.rng, 8);

	for (uint32_t n = 0; n < count; n++)
		pi[qp] += write_wqe(world, qp, pi[qp]);
	ring_send(world, qp, pi[qp]);
}

/* A queue pair that went to the error state is brought up again. */
static void bring_up_again(struct world *world, uint32_t *pi)
{
	for (unsigned qp = 0; qp < WORLD_QPS; qp++) {
		struct rn_uapi_modify_qp reset = {
			.req = {.op = RN_UAPI_MODIFY_QP, .handle = world->qp[qp]}, .attr_mask = 1};

		raw_call(&world->raw, &reset, sizeof(reset), NULL, 0);
		pi[qp] = 0;
		world_qp_dbr(world, qp)[0] = 0;
	}
	for (uint32_t stage = WORLD_INIT; stage < WORLD_STAGES; stage++)
		world_step(world, stage);
	for (unsigned qp = 0; qp < WORLD_QPS; qp++)
		post_receives(world, qp);
}

static void work(struct rn_rng *rng, uint32_t host, bool lies, unsigned rounds)
{
	uint32_t pi[WORLD_QPS] = {0, 0};
	struct world world;

	if (!world_open(&world, rng, host))
		return;
	for (uint32_t stage = 0; stage < WORLD_INIT; stage++)
		world_step(&world, stage);
	for (unsigned round = 0; round < rounds && !world.raw.gone; round++) {
		world.lies = lies && one_in(rng, 3);
		bring_up_again(&world, pi);
		for (unsigned n = 0; n < 8; n++) {
			post_some(&world, pi);
			if (one_in(rng, 10)) /* to see the state costs the NIC a command */
				raw_call_handle(&world.raw, RN_UAPI_QUERY_QP, world.qp[0]);
		}
	}
	while (one_in(rng, 2))
		world_destroy_something(&world);
	world_close(&world);
}

void act_work_requests(struct rn_rng *rng, uint32_t host)
{
	work(rng, host, true, 12);
}

/* --- rings that change while the NIC reads them --- */

struct scribbler {
	const struct world *world;
	struct rn_rng rng;
	atomic_bool stop;
};

static void *scribble(void *arg)
{
	const struct timespec pause = {.tv_nsec = 20000};
	struct scribbler *scribbler = arg;

	while (!atomic_load_explicit(&scribbler->stop, memory_order_relaxed)) {
		const unsigned qp = below(&scribbler->rng, WORLD_QPS);

		mutate(&scribbler->rng, world_sq(scribbler->world, qp), 2 * PAGE, 0);
		mutate(&scribbler->rng, world_rq(scribbler->world, qp), PAGE, 0);
		if (one_in(&scribbler->rng, 16))
			mutate(&scribbler->rng, world_qp_dbr(scribbler->world, qp), 8, 0);
		if (one_in(&scribbler->rng, 16))
			mutate(&scribbler->rng, world_cq_ring(scribbler->world), 2 * PAGE, 0);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

void act_rewritten_work(struct rn_rng *rng, uint32_t host)
{
	struct scribbler scribbler = {.stop = false};
	uint32_t pi[WORLD_QPS] = {0, 0};
	struct world world;
	pthread_t thread;

	if (!world_open(&world, rng, host))
		return;
	for (uint32_t stage = 0; stage < WORLD_INIT; stage++)
		world_step(&world, stage);
	scribbler.world = &world;
	rn_rng_init(&scribbler.rng, rn_rng_next(rng), "scribbler");
	if (pthread_create(&thread, NULL, scribble, &scribbler) == 0) {
		for (unsigned round = 0; round < 8 && !world.raw.gone; round++) {
			bring_up_again(&world, pi);
			for (unsigned n = 0; n < 8; n++)
				post_some(&world, pi);
		}
		atomic_store(&scribbler.stop, true);
		pthread_join(thread, NULL);
	}
	world_close(&world);
}
