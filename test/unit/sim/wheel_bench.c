/* How long an event, a block tick and a fifo transfer take; not part of the test run. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"
#include "base/rng.h"
#include "sim/fifo.h"

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct hopper {
	struct rn_sim *sim;
	struct rn_wake wake;
	struct rn_rng rng;
	uint64_t below_ps;
};

static void hop(void *arg)
{
	struct hopper *h = arg;

	rn_wake_at(h->sim, &h->wake,
		   rn_sim_now_ps(h->sim) + 1 + rn_rng_below(&h->rng, h->below_ps));
}

static void bench_wakes(unsigned pending, uint64_t below_ps)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct hopper *hoppers = calloc(pending, sizeof(*hoppers));
	uint64_t count = 10000000;

	for (unsigned i = 0; i < pending; i++) {
		hoppers[i].sim = sim;
		hoppers[i].below_ps = below_ps;
		rn_rng_init(&hoppers[i].rng, i, "hop");
		rn_wake_init(sim, &hoppers[i].wake, hop, &hoppers[i]);
		rn_wake_at(sim, &hoppers[i].wake, i);
	}

	double start = now_ns();

	rn_sim_run(sim, RN_TIME_NEVER, count);
	printf("wake, %u pending, up to %llu ps ahead: %.1f ns\n", pending,
	       (unsigned long long)below_ps, (now_ns() - start) / (double)count);
	free(hoppers);
	rn_sim_free(sim);
}

struct stage {
	struct rn_block block;
	struct rn_fifo *in;
	struct rn_fifo *out;
	uint64_t value;
};

static void tick(void *self, uint64_t cycle)
{
	struct stage *s = self;
	uint64_t entry[4] = {cycle, s->value};

	if (s->out && !rn_fifo_can_push(s->out))
		return;
	if (s->in) {
		const uint64_t *oldest = rn_fifo_peek(s->in);

		if (!oldest)
			return;
		s->value += oldest[0];
		if (s->out)
			rn_fifo_push(s->out, oldest);
		rn_fifo_drop(s->in);
		return;
	}
	rn_fifo_push(s->out, entry);
	rn_block_wake_next(&s->block);
}

static void bench_pipeline(unsigned stages, const uint64_t *hz, const char *what)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clocks[2];
	struct stage *stage = calloc(stages, sizeof(*stage));
	struct rn_fifo *fifos = calloc(stages, sizeof(*fifos));

	for (unsigned i = 0; i < 2; i++)
		rn_clock_init(&clocks[i], "clock", hz[i]);
	for (unsigned i = 0; i < stages; i++)
		rn_block_init(&stage[i].block, sim, &clocks[hz[0] == hz[1] ? 0 : i % 2], "stage",
			      tick, &stage[i]);
	for (unsigned i = 0; i + 1 < stages; i++) {
		rn_fifo_init(&fifos[i], sim, "fifo", 8, 32, 1);
		rn_fifo_set_producer(&fifos[i], &stage[i].block);
		rn_fifo_set_consumer(&fifos[i], &stage[i + 1].block);
		stage[i].out = &fifos[i];
		stage[i + 1].in = &fifos[i];
	}
	rn_block_wake_at(&stage[0].block, 0);

	double start = now_ns();

	rn_sim_run(sim, RN_TIME_NEVER, 10000000);
	printf("%s: %.1f ns a tick, %.1f ns a fifo transfer\n", what, (now_ns() - start) / 1e7,
	       (now_ns() - start) / ((double)fifos[stages - 2].pushes * (stages - 1)));
	for (unsigned i = 0; i + 1 < stages; i++)
		rn_fifo_fini(&fifos[i]);
	free(fifos);
	free(stage);
	rn_sim_free(sim);
}

struct napper {
	struct rn_block block;
	struct rn_rng rng;
};

static void nap(void *self, uint64_t cycle)
{
	struct napper *n = self;

	(void)cycle;
	rn_block_wake_in(&n->block, 1 + rn_rng_below(&n->rng, 8));
}

static void bench_blocks(unsigned count)
{
	struct rn_sim *sim = rn_sim_new(0);
	struct rn_clock clock;
	struct napper *nappers = calloc(count, sizeof(*nappers));

	rn_clock_init(&clock, "clock", 500000000);
	for (unsigned i = 0; i < count; i++) {
		rn_block_init(&nappers[i].block, sim, &clock, "napper", nap, &nappers[i]);
		rn_rng_init(&nappers[i].rng, i, "napper");
		rn_block_wake_at(&nappers[i].block, 0);
	}

	double start = now_ns();

	rn_sim_run(sim, RN_TIME_NEVER, 10000000);
	printf("%u blocks, each every 1 to 8 cycles: %.1f ns a tick\n", count,
	       (now_ns() - start) / 1e7);
	free(nappers);
	rn_sim_free(sim);
}

int main(void)
{
	bench_blocks(12);
	bench_blocks(768);
	bench_wakes(32, 4000);
	bench_wakes(32, 1000000);
	bench_wakes(1000, 1000000);
	bench_wakes(1000, 100000000);
	bench_pipeline(8, (uint64_t[]){500000000, 500000000}, "pipeline, 500 MHz");
	bench_pipeline(8, (uint64_t[]){322265625, 322265625}, "pipeline, 322.265625 MHz");
	bench_pipeline(8, (uint64_t[]){500000000, 250000000}, "pipeline, 500 and 250 MHz");
	return 0;
}
