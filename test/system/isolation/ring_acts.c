/* Lies in shared memory: the channel and the frames. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"
#include "hw/gen/rnic_hw.h"
#include "world.h"

/* Take the memory away from under the simulator. */
void act_shared_memory(struct rn_rng *rng, uint32_t host)
{
	struct raw raw;

	if (!raw_attach(&raw, rng, host))
		return;
	for (unsigned n = 0; n < 16; n++) {
		const int fd = one_in(rng, 2) ? raw.channel_fd : raw.arena_fd;
		const off_t at = (off_t)(nasty64(rng) >> below(rng, 64));

		switch (below(rng, 5)) {
		case 0:
			if (ftruncate(fd, at) == 0)
				break;
			break;
		case 1:
			fcntl(fd, F_ADD_SEALS, (int)nasty(rng));
			break;
		case 2:
			fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at / PAGE * PAGE,
				  (off_t)PAGE * (1 + below(rng, 64)));
			break;
		case 3:
			fallocate(fd, 0, at, 1 + below(rng, PAGE));
			break;
		default:
			raw_ring(&raw, 0, below(rng, 64) * 64, "doorbell", 8);
		}
	}
	raw_call_handle(&raw, RN_UAPI_ALLOC_PD, 0);
	raw_close(&raw);
}

/* Indexes and flags of the ring. */
void act_scribbled_channel(struct rn_rng *rng, uint32_t host)
{
	struct rn_channel *channel;
	struct raw raw;

	if (!raw_attach(&raw, rng, host))
		return;
	channel = raw.channel;
	atomic_store(&channel->head, nasty64(rng));
	atomic_store(&channel->asleep, nasty(rng));
	atomic_store(&channel->dead, nasty(rng));
	channel->magic = nasty(rng);
	channel->entries = nasty(rng);
	for (unsigned n = 0; n < 8; n++)
		mutate(rng, channel->entry, sizeof(channel->entry), 0);
	raw_call_handle(&raw, RN_UAPI_ALLOC_PD, 0);
	atomic_store(&channel->tail, one_in(rng, 2) ? below(rng, 2000) : nasty64(rng));
	rn_channel_kick(channel, raw.wake_fd);
	raw_call_handle(&raw, RN_UAPI_QUERY_DEVICE, 0);
	raw_close(&raw);
}

/* A QPN or CQN that may be somebody's. */
static uint32_t somebody(struct rn_rng *rng, uint32_t own)
{
	return one_in(rng, 8) ? nasty(rng) : nearby(rng, own);
}

/* A doorbell whose place is legal and whose contents are another's. */
static void foreign_doorbell(struct world *world)
{
	struct rn_rng *rng = world->raw.rng;
	const bool arm = one_in(rng, 3);
	const uint32_t offset = arm		 ? RN_UAR_CQ_ARM
				: one_in(rng, 2) ? RN_UAR_SQ_DOORBELL
						 : RN_UAR_RQ_KICK;
	const uint32_t data[2] = {somebody(rng, arm ? world->cq : world->qp[0]), nasty(rng)};

	raw_ring(&world->raw, 0, offset, data, 8);
}

/* Objects tell the client where others' numbers are. */
static bool open_with_objects(struct world *world, struct rn_rng *rng, uint32_t host)
{
	if (!world_open(world, rng, host))
		return false;
	for (uint32_t stage = 0; stage < WORLD_INIT; stage++)
		world_step(world, stage);
	return true;
}

/* A WQE in the doorbell write, of a QP that may be another's. */
static void foreign_blueflame(struct world *world)
{
	struct rn_rng *rng = world->raw.rng;
	const uint32_t segments = 1 + below(rng, 16);
	uint32_t wqe[64] = {below(rng, 12), somebody(rng, world->qp[0]) << 8 | segments};
	const uint32_t buffer = RN_UAR_BLUEFLAME + below(rng, 2) * RN_UAR_BLUEFLAME_BYTES;

	mutate(rng, wqe, sizeof(wqe), 8);
	for (uint32_t at = 0; at < segments * 16; at += 64)
		raw_ring(&world->raw, 0, buffer + at, (const char *)wqe + at, 64);
}

void act_doorbells(struct rn_rng *rng, uint32_t host)
{
	struct world world;
	struct raw *raw = &world.raw;

	if (!open_with_objects(&world, rng, host))
		return;
	for (unsigned n = 0; n < 300; n++) {
		const uint32_t data[16] = {nasty(rng), nasty(rng), nasty(rng)};

		switch (below(rng, 8)) {
		case 0:
			foreign_blueflame(&world);
			break;
		case 1: /* any place in the own page, any length in words */
			raw_ring(raw, 0, below(rng, 64) * 64, data, 4 + below(rng, 16) * 4);
			break;
		default:
			foreign_doorbell(&world);
		}
		if (one_in(rng, 300)) /* outside: the end of this client */
			raw_ring(raw, nasty(rng), nasty(rng), data, nasty(rng));
	}
	raw_call_handle(raw, RN_UAPI_QUERY_DEVICE, 0);
	if (one_in(rng, 2))
		raw_ring(raw, 1 + below(rng, 4), 0, "anything", 8);
	raw_call_handle(raw, RN_UAPI_QUERY_DEVICE, 0);
	world_close(&world);
}

/* --- entries that change while they are read --- */

struct rewriter {
	struct rn_channel *channel;
	struct rn_rng rng;
	atomic_bool stop;
};

static void *rewrite(void *arg)
{
	struct rewriter *rewriter = arg;

	while (!atomic_load_explicit(&rewriter->stop, memory_order_relaxed)) {
		struct rn_channel_entry *entry =
			&rewriter->channel->entry[below(&rewriter->rng, RN_CHANNEL_ENTRIES)];

		entry->len = 4 * below(&rewriter->rng, 20);
		entry->offset = 4 * below(&rewriter->rng, 1030);
		entry->page = one_in(&rewriter->rng, 500);
		mutate(&rewriter->rng, entry->data, sizeof(entry->data), 0);
	}
	return NULL;
}

void act_rewritten_entries(struct rn_rng *rng, uint32_t host)
{
	struct rewriter rewriter = {.stop = false};
	pthread_t thread;
	struct world world;

	if (!open_with_objects(&world, rng, host))
		return;
	rewriter.channel = world.raw.channel;
	rn_rng_init(&rewriter.rng, rn_rng_next(rng), "rewriter");
	if (pthread_create(&thread, NULL, rewrite, &rewriter) == 0) {
		for (unsigned n = 0; n < 2000 && !atomic_load(&rewriter.channel->dead); n++)
			foreign_doorbell(&world);
		raw_call_handle(&world.raw, RN_UAPI_QUERY_DEVICE, 0);
		atomic_store(&rewriter.stop, true);
		pthread_join(thread, NULL);
	}
	world_close(&world);
}

/* As many doorbells as go in, for a moment. */
void act_ring_flood(struct rn_rng *rng, uint32_t host)
{
	struct world world;

	if (!open_with_objects(&world, rng, host))
		return;

	const uint32_t data[2] = {somebody(rng, world.qp[0]), nasty(rng)};

	for (unsigned n = 0; n < 20000; n++)
		raw_ring(&world.raw, 0, RN_UAR_SQ_DOORBELL, data, 8);
	world_close(&world);
}
