/*
 * Random translations, releases and invalidations against the smallest caches: every request is answered
 * rightly, an answer to an invalidation is never early, and the trace is the same in whatever order
 * the blocks tick.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/pte_cache/fixture.h"
#include "run_suite.h"

#define VA UINT64_C(0x7f0000001000)
#define REGIONS 8u
#define PAGES 32u
#define REQUESTS 3000u
#define HELD_MAX 16
#define TRACE_BYTES (1u << 22)

/* Sends translations, holds each for a while, releases it. */
struct client {
	struct rn_block block;
	struct rn_rng rng;
	unsigned asked, answered;
	struct {
		uint64_t until_cycle;
		uint8_t epoch;
		uint32_t index; /* of the key */
		uint32_t born;	/* generation of the region when it was handed out */
	} held[HELD_MAX];
	unsigned held_count;
	uint32_t page[REQUESTS];
	uint32_t index[REQUESTS];
};

/* Moves regions to other pages, as the driver would: free, invalidate, make anew. Software: it acts between edges. */
struct mover {
	struct rn_wake wake;
	struct rn_rng rng;
	unsigned moves;
	bool waits;
	uint32_t index;
};

static struct fixture f;
static struct client client;
static struct mover mover;
static uint32_t generation[REGIONS]; /* of each region's pages */
static FILE *trace;

static uint64_t place(uint32_t index, uint32_t page)
{
	return page_pa(generation[index] * 1000u + index * PAGES + page);
}

static void release_due(uint64_t cycle)
{
	for (unsigned i = 0; i < client.held_count;) {
		if (client.held[i].until_cycle > cycle || !rn_fifo_can_push(f.ports.release)) {
			i++;
			continue;
		}
		give_back(&f, client.held[i].epoch);
		client.held[i] = client.held[--client.held_count];
		return;
	}
}

static void take_answer(uint64_t cycle)
{
	struct rn_pte_rsp rsp;

	if (client.held_count == HELD_MAX || !rn_fifo_pop(f.ports.rsp[DMA], &rsp))
		return;

	uint32_t index = client.index[rsp.id];

	client.answered++;
	fprintf(trace, "%llu %u %u %u %llx\n", (unsigned long long)cycle, rsp.id, rsp.status,
		rsp.hit, (unsigned long long)rsp.pa);
	if (rsp.status == RN_PTE_BAD_KEY)
		return;
	ck_assert_uint_eq(rsp.status, RN_PTE_OK);
	client.held[client.held_count].until_cycle = cycle + rn_rng_below(&client.rng, 60);
	client.held[client.held_count].epoch = rsp.epoch;
	client.held[client.held_count].index = index;
	client.held[client.held_count++].born = generation[index];
	/* While a move waits for the old translations they are still right. */
	if (!(mover.waits && mover.index == index))
		ck_assert_uint_eq(rsp.pa, place(index, client.page[rsp.id]));
}

static void client_tick(void *self, uint64_t cycle)
{
	(void)self;
	release_due(cycle);
	take_answer(cycle);
	if (client.asked < REQUESTS && rn_rng_below(&client.rng, 3) == 0 &&
	    rn_fifo_can_push(f.ports.req[DMA])) {
		uint32_t index = (uint32_t)rn_rng_below(&client.rng, REGIONS);
		uint32_t page = (uint32_t)rn_rng_below(&client.rng, PAGES);

		client.index[client.asked] = index;
		client.page[client.asked] = page;
		ask(&f, DMA, (uint16_t)client.asked++, index << 8 | 0x5a, VA + page * PAGE, 8);
	}
	if (client.answered < REQUESTS || client.held_count)
		rn_block_wake_next(&client.block);
}

static void end_move(void)
{
	uint32_t index = mover.index;

	fprintf(trace, "moved %u\n", index);
	for (unsigned i = 0; i < client.held_count; i++)
		ck_assert(client.held[i].index != index);
	generation[index]++;
	make_region(&f, index, VA, PAGES, index * PAGES);
	for (uint32_t page = 0; page < PAGES; page++)
		set_mtt(&f, index * PAGES + page, place(index, page) | RN_MTT_PRESENT);
	mover.waits = false;
	mover.moves++;
}

static void mover_wake(void *arg)
{
	(void)arg;
	if (mover.waits) {
		if (is_invalidated(&f))
			end_move();
	} else if (client.answered < REQUESTS && rn_rng_below(&mover.rng, 40) == 0) {
		mover.index = (uint32_t)rn_rng_below(&mover.rng, REGIONS);
		mover.waits = true;
		mpt_at(&f, mover.index)->state = 0;
		invalidate(&f, mover.index << 8, mover.index * PAGES, PAGES);
	}
	if (client.answered < REQUESTS || mover.waits)
		rn_wake_at(f.bench.sim, &mover.wake, rn_sim_now_ps(f.bench.sim) + BENCH_CYCLE_PS);
}

static void build(uint64_t permute_seed, uint32_t ways, uint32_t misses, uint32_t slots)
{
	fixture_prepare(&f, permute_seed);
	f.params.mpt_sets = 1;
	f.params.mpt_ways = f.params.mtt_ways = ways;
	f.params.mtt_sets = 2;
	f.params.mpt_misses = f.params.mtt_misses = misses;
	f.params.request_slots = slots;
	f.params.interval_cycles = 2;
	fixture_build(&f);
	f.dma->latency_cycles = 5;
	f.dma->spread_cycles = 30;
	memset(generation, 0, sizeof(generation));
	memset(&client, 0, sizeof(client));
	memset(&mover, 0, sizeof(mover));
	for (uint32_t i = 0; i < REGIONS; i++)
		make_region(&f, i, VA, PAGES, i * PAGES);
}

static char *run(uint64_t permute_seed, uint32_t ways, uint32_t misses, uint32_t slots)
{
	char *text = calloc(1, TRACE_BYTES);

	trace = fmemopen(text, TRACE_BYTES, "w");
	build(permute_seed, ways, misses, slots);
	rn_rng_init(&client.rng, 1, "client");
	rn_rng_init(&mover.rng, 1, "mover");
	rn_block_init(&client.block, f.bench.sim, &f.bench.clock, "client", client_tick, &client);
	rn_wake_init(f.bench.sim, &mover.wake, mover_wake, NULL);
	rn_fifo_set_producer(f.ports.req[DMA], &client.block);
	rn_fifo_set_consumer(f.ports.rsp[DMA], &client.block);
	rn_fifo_set_producer(f.ports.release, &client.block);
	rn_block_wake_next(&client.block);
	rn_wake_at(f.bench.sim, &mover.wake, f.bench.cycle * BENCH_CYCLE_PS + BENCH_CYCLE_PS / 2);
	bench_run(&f.bench, 1000000);
	ck_assert_uint_eq(client.answered, REQUESTS);
	ck_assert_uint_gt(mover.moves, 50);
	fclose(trace);
	fixture_free(&f);
	return text;
}

START_TEST(requests_among_invalidations_are_answered_rightly_in_the_smallest_caches)
{
	static const uint32_t shapes[][3] = {
		{1, 1, 1}, {1, 1, 8}, {1, 4, 16}, {2, 1, 3}, {4, 4, 64}};

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		free(run(0, shapes[i][0], shapes[i][1], shapes[i][2]));
}
END_TEST

START_TEST(tick_order_does_not_matter)
{
	char *first = run(0, 2, 3, 12);

	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *other = run(seed, 2, 3, 12);

		ck_assert(!strcmp(first, other));
		free(other);
	}
	free(first);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("order");

	tcase_add_test(tcase,
		       requests_among_invalidations_are_answered_rightly_in_the_smallest_caches);
	tcase_add_test(tcase, tick_order_does_not_matter);
	return run_suite(tcase, "pte_cache_order");
}
