/*
 * Five random clients on small caches: no deadlock, no lost or mixed-up data, and the same trace in
 * whatever order the blocks tick. Each client locks one line at a time, counts in it, and writes it back.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/context_cache/fixture.h"
#include "run_suite.h"

#define ROUNDS 400
#define NUMBERS 24
#define TRACE_BYTES (1u << 20)

struct client {
	struct rn_block block;
	struct rn_rng rng;
	struct fixture *f;
	unsigned id;
	uint8_t type;
	unsigned done;
	bool waits;
	bool holds;
	uint32_t number;
	uint32_t line;
	uint64_t release_cycle;
};

static struct fixture f;
static struct client clients[RN_CONTEXT_CLIENT_COUNT];

/* Every client counts in a word of its own: a section with one writer. */
static uint32_t *count_in(const struct client *client)
{
	return (uint32_t *)(void *)(line_at(client->f, client->type, client->line) + 4 +
				    4 * client->id);
}

static void start(struct client *client)
{
	if (client->done == ROUNDS)
		return;
	client->number = (uint32_t)rn_rng_below(&client->rng, NUMBERS);
	if (rn_rng_below(&client->rng, 4) == 0)
		request(client->f, client->id, RN_CONTEXT_PREFETCH, client->type,
			(client->number + 1) % NUMBERS, 0);
	bool exclusive = client->id == RN_CONTEXT_CLIENT_CMD;

	rn_fifo_push(client->f->ports.req[client->id],
		     &(struct rn_context_req){.op = RN_CONTEXT_ACQUIRE,
					      .type = client->type,
					      .exclusive = exclusive,
					      .token = (uint16_t)client->done,
					      .number = client->number});
	client->waits = true;
}

static void client_tick(void *self, uint64_t cycle)
{
	struct client *client = self;
	struct rn_context_rsp rsp;

	if (client->waits && rn_fifo_pop(client->f->ports.rsp[client->id], &rsp)) {
		ck_assert_uint_eq(rsp.status, RN_CONTEXT_OK);
		ck_assert_uint_eq(rsp.token, (uint16_t)client->done);
		client->waits = false;
		client->holds = true;
		client->line = rsp.line;
		ck_assert_mem_eq(line_at(client->f, client->type, client->line), &client->number,
				 4);
		++*count_in(client);
		client->release_cycle = cycle + 1 + rn_rng_below(&client->rng, 20);
	}
	if (client->holds && cycle >= client->release_cycle) {
		ck_assert_mem_eq(line_at(client->f, client->type, client->line), &client->number,
				 4);
		give_back(client->f, client->id, client->type, client->number, true);
		client->holds = false;
		client->done++;
		start(client);
	} else if (client->holds) {
		rn_block_wake_in(&client->block, client->release_cycle - cycle);
	} else if (!client->waits) {
		start(client);
	}
}

static void flush_all(void)
{
	for (uint8_t type = 0; type < RN_CONTEXT_TYPES; type++) {
		for (uint32_t number = 0; number < NUMBERS; number++) {
			request(&f, 0, RN_CONTEXT_FLUSH, type, number, 1);
			bench_run(&f.bench, 500);
			struct rn_context_rsp rsp;
			ck_assert(rn_fifo_pop(f.ports.rsp[0], &rsp));
		}
	}
}

static uint32_t counted(uint64_t pa, uint32_t bytes, unsigned id)
{
	uint32_t sum = 0, count;

	for (uint32_t number = 0; number < NUMBERS; number++) {
		memcpy(&count, f.memory.bytes + pa + (uint64_t)number * bytes + 4 + 4 * id, 4);
		sum += count;
	}
	return sum;
}

static char *run(uint64_t permute_seed)
{
	static const char *const names[] = {"c0", "c1", "c2", "c3", "c4"};
	static const uint8_t types[] = {RN_CONTEXT_QP, RN_CONTEXT_QP, RN_CONTEXT_QP, RN_CONTEXT_CQ,
					RN_CONTEXT_QP};
	char *trace = calloc(1, TRACE_BYTES);
	FILE *log = fmemopen(trace, TRACE_BYTES, "w");

	fixture_prepare(&f, permute_seed);
	f.params.qpc_sets = f.params.cqc_sets = 1;
	f.params.qpc_ways = 5;
	f.params.cqc_ways = 3;
	f.params.qpc_misses = 3;
	fixture_build(&f);
	f.dma->latency_cycles = 10;
	f.dma->spread_cycles = 30;
	rn_context_cache_set_log(f.cache, log);
	for (unsigned i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++) {
		struct client *client = &clients[i];

		*client = (struct client){.f = &f, .id = i, .type = types[i]};
		rn_rng_init(&client->rng, 9, names[i]);
		rn_block_init(&client->block, f.bench.sim, &f.bench.clock, names[i], client_tick,
			      client);
		rn_fifo_set_producer(f.ports.req[i], &client->block);
		rn_fifo_set_consumer(f.ports.rsp[i], &client->block);
		rn_block_wake_next(&client->block);
	}
	bench_run(&f.bench, 200000);
	for (unsigned i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++)
		ck_assert_uint_eq(clients[i].done, ROUNDS);
	rn_context_cache_set_log(f.cache, NULL);
	fclose(log);
	flush_all();
	for (unsigned i = 0; i < RN_CONTEXT_CLIENT_COUNT; i++)
		ck_assert_uint_eq(types[i] == RN_CONTEXT_QP ? counted(QPC_PA, RN_QPC_BYTES, i)
							    : counted(CQC_PA, RN_CQC_BYTES, i),
				  ROUNDS);
	fixture_free(&f);
	return trace;
}

START_TEST(random_clients_finish_lose_nothing_and_tick_order_does_not_matter)
{
	char *first = run(0);

	ck_assert_uint_gt(strlen(first), 10000);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *other = run(seed);

		ck_assert(!strcmp(first, other));
		free(other);
	}
	free(first);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("order");

	tcase_add_test(tcase, random_clients_finish_lose_nothing_and_tick_order_does_not_matter);
	return run_suite(tcase, "context_cache_order");
}
