/* Lies about objects: handles of others, absurd sizes, memory that is not there. */
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/mman.h>

#include "hostile.h"
#include "world.h"

/* A world half built, or built with a lie, and left. */
void act_objects(struct rn_rng *rng, uint32_t host)
{
	struct world world;
	uint32_t stages = below(rng, WORLD_STAGES + 1);

	if (!world_open(&world, rng, host))
		return;
	world.lies = one_in(rng, 2);
	for (uint32_t n = 0; n < stages; n++)
		world_step(&world, n);
	while (one_in(rng, 2))
		world_destroy_something(&world);
	world_close(&world);
}

/* An object's number next to one of its own, or anywhere. */
static uint32_t foreign(const struct world *world, uint32_t own)
{
	struct rn_rng *rng = world->raw.rng;

	return one_in(rng, 4) ? below(rng, 1u << below(rng, 18)) : nearby(rng, own);
}

static void touch_foreign(struct world *world)
{
	struct raw *raw = &world->raw;
	struct rn_uapi_modify_qp modify = {
		.req = {.op = RN_UAPI_MODIFY_QP, .handle = foreign(world, world->qp[0])},
		.attr_mask = IBV_QP_STATE,
		.attr.qp_state = below(raw->rng, 8),
	};
	/* Keys have their number in the upper bits. */
	const uint32_t key = foreign(world, world->mr >> 8) << 8 | below(raw->rng, 8);

	raw_call(raw, &modify, sizeof(modify), NULL, 0);
	raw_call_handle(raw, RN_UAPI_QUERY_QP, foreign(world, world->qp[0]));
	raw_call_handle(raw, RN_UAPI_DESTROY_QP, foreign(world, world->qp[0]));
	raw_call_handle(raw, RN_UAPI_DESTROY_CQ, foreign(world, world->cq));
	raw_call_handle(raw, RN_UAPI_DEREG_MR, key);
	raw_call_handle(raw, RN_UAPI_DEALLOC_PD, foreign(world, world->pd));
	raw_call_handle(raw, RN_UAPI_DESTROY_CHANNEL, foreign(world, world->channel));
}

/* Every operation that takes a handle, with handles that may be another client's. */
void act_foreign_handles(struct rn_rng *rng, uint32_t host)
{
	struct world world;

	if (!world_open(&world, rng, host))
		return;
	for (uint32_t stage = 0; stage < WORLD_INIT; stage++)
		world_step(&world, stage);
	for (unsigned n = 0; n < 100 && !world.raw.gone; n++)
		touch_foreign(&world);
	world_close(&world);
}

void act_absurd_sizes(struct rn_rng *rng, uint32_t host)
{
	struct world world;

	if (!world_open(&world, rng, host))
		return;
	world_step(&world, WORLD_PD);
	world_step(&world, WORLD_MEMORY);
	for (unsigned n = 0; n < 40 && !world.raw.gone; n++) {
		struct rn_uapi_reg_mr mr = {.req.op = RN_UAPI_REG_MR,
					    .pd = world.pd,
					    .access = nasty(rng),
					    .va = (uintptr_t)world.memory + nasty(rng),
					    .length = nasty64(rng),
					    .iova = nasty64(rng)};
		struct rn_uapi_pin pin = {
			.req.op = RN_UAPI_PIN, .va = nasty64(rng) & ~0xfffull, .pages = nasty(rng)};
		struct rn_uapi_unpin unpin = {.req.op = RN_UAPI_UNPIN,
					      .va = (uintptr_t)world.memory,
					      .pages = nasty(rng),
					      .commit = below(rng, 2)};

		raw_call(&world.raw, &mr, sizeof(mr), NULL, 0);
		raw_call(&world.raw, &pin, sizeof(pin), NULL, 0);
		raw_call(&world.raw, &unpin, sizeof(unpin), NULL, 0);
	}
	world_close(&world);
}

/* Pins of far more than it has, in swapped and in fallback pages, and keys over both. */
void act_pin_flood(struct rn_rng *rng, uint32_t host)
{
	_Alignas(8) char room[sizeof(struct rn_uapi_pin) + RN_UAPI_MAX_PAGES / 8];
	_Alignas(8) static char answer[RN_UAPI_MAX_BYTES];
	struct rn_uapi_pin *pin = (struct rn_uapi_pin *)(void *)room;
	uint64_t va = 0x100000000u;
	struct raw raw;

	if (!raw_attach(&raw, rng, host))
		return;
	memset(room, one_in(rng, 2) ? 0xff : one_in(rng, 2) ? 0x55 : 0, sizeof(room));
	for (unsigned n = 0; n < 16; n++) {
		*pin = (struct rn_uapi_pin){
			.req.op = RN_UAPI_PIN, .va = va, .pages = RN_UAPI_MAX_PAGES};
		raw_call(&raw, pin, sizeof(room), answer, sizeof(answer));
		va += (uint64_t)RN_UAPI_MAX_PAGES * PAGE;
	}
	raw_close(&raw);
}
