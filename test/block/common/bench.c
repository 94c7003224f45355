#include "block/common/bench.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

void bench_init(struct bench *bench, uint64_t permute_seed)
{
	*bench = (struct bench){.sim = rn_sim_new(permute_seed)};
	rn_clock_init(&bench->clock, "core", UINT64_C(1000000000));
	bench->stats = rn_stats_new();
	bench->buffers = rn_buffers_new();
	bench->env = (struct rn_nic_env){
		.sim = bench->sim,
		.core = &bench->clock,
		.mac = &bench->clock,
		.stats = bench->stats,
		.buffers = bench->buffers,
		.name = "nic",
		.seed = 1,
	};
}

void bench_fini(struct bench *bench)
{
	RN_ASSERT(!rn_buffers_in_use(bench->buffers));
	rn_stats_free(bench->stats);
	for (unsigned i = 0; i < bench->fifo_count; i++)
		rn_fifo_fini(&bench->fifos[i]);
	rn_buffers_free(bench->buffers);
	rn_sim_free(bench->sim);
}

struct rn_fifo *bench_fifo(struct bench *bench, const char *name, uint32_t depth,
			   uint32_t entry_bytes)
{
	RN_ASSERT(bench->fifo_count < BENCH_FIFOS);

	struct rn_fifo *fifo = &bench->fifos[bench->fifo_count++];

	rn_fifo_init(fifo, bench->sim, name, depth, entry_bytes, 1);
	return fifo;
}

void bench_run(struct bench *bench, uint64_t cycles)
{
	bench->cycle += cycles;
	rn_sim_run(bench->sim, bench->cycle * BENCH_CYCLE_PS, UINT64_MAX);
}

bool bench_wait(struct bench *bench, struct rn_fifo *fifo, uint64_t limit_cycles)
{
	for (uint64_t end = bench->cycle + limit_cycles; bench->cycle < end;) {
		if (rn_fifo_peek(fifo))
			return true;
		bench_run(bench, 1);
	}
	return rn_fifo_peek(fifo) != NULL;
}

uint64_t bench_counter(const struct bench *bench, const char *unit, const char *name)
{
	char *instance = rn_asprintf("nic.%s", unit);
	uint64_t value = rn_stats_value(bench->stats, instance, name);

	free(instance);
	RN_ASSERT(value != UINT64_MAX);
	return value;
}
