/* Pipelines of blocks in several clock domains: the order within a cycle changes nothing. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "run_suite.h"
#include "sim/fifo.h"

#define STAGES 6
#define ITEMS 300

struct item {
	uint32_t serial;
	uint32_t hops;
};

/* Takes from its fifos in turn, works a drawn number of cycles, hands on; sometimes looks twice. */
struct stage {
	struct rn_block block;
	struct rn_fifo *in[2];
	struct rn_fifo *out[2];
	struct rn_rng rng;
	uint64_t busy_until;
	uint32_t given;
	FILE *trace;
};

static bool hand_on(struct stage *s, struct item item, uint64_t cycle)
{
	struct rn_fifo *out = s->out[item.serial % 2] ? s->out[item.serial % 2] : s->out[0];

	if (!out) {
		fprintf(s->trace, "%s %llu %u %u\n", s->block.name, (unsigned long long)cycle,
			item.serial, item.hops);
		return true;
	}
	if (!rn_fifo_can_push(out)) {
		rn_block_account(&s->block, 0, RN_STALL_OUTPUT);
		return false;
	}
	item.hops++;
	rn_fifo_push(out, &item);
	return true;
}

static void work(void *self, uint64_t cycle)
{
	struct stage *s = self;

	if (cycle < s->busy_until) {
		rn_block_wake_in(&s->block, s->busy_until - cycle);
		return;
	}
	if (!s->in[0]) {
		if (s->given < ITEMS && hand_on(s, (struct item){s->given, 0}, cycle)) {
			s->given++;
			rn_block_wake_next(&s->block);
		}
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct rn_fifo *in = s->in[(cycle + i) % 2];
		const struct item *item = in ? rn_fifo_peek(in) : NULL;

		if (!item)
			continue;
		if (!hand_on(s, *item, cycle))
			return;
		rn_block_account(&s->block, 1, RN_STALL_NONE);
		fprintf(s->trace, "%s %llu took %u\n", s->block.name, (unsigned long long)cycle,
			item->serial);
		rn_fifo_drop(in);
		s->busy_until = cycle + 1 + rn_rng_below(&s->rng, 3);
		rn_block_wake_in(&s->block, s->busy_until - cycle);
		return;
	}
}

/* stage 0 -> (1, 2); 1 -> 3; 2 -> 3; 3 -> (4, 5) */
static const struct {
	unsigned from, from_port, to, to_port, depth, latency;
} links[] = {
	{0, 0, 1, 0, 1, 1}, {0, 1, 2, 0, 2, 3}, {1, 0, 3, 0, 3, 1},
	{2, 0, 3, 1, 1, 2}, {3, 0, 4, 0, 2, 1}, {3, 1, 5, 0, 1, 1},
};

static void print_statistics(FILE *trace, struct stage *stages, struct rn_fifo *fifos)
{
	for (unsigned i = 0; i < STAGES; i++) {
		rn_block_settle(&stages[i].block);
		fprintf(trace, "%s busy %llu output %llu\n", stages[i].block.name,
			(unsigned long long)stages[i].block.busy_cycles,
			(unsigned long long)stages[i].block.stall_ps[RN_STALL_OUTPUT]);
	}
	for (unsigned i = 0; i < RN_ARRAY_LEN(links); i++) {
		rn_fifo_settle(&fifos[i]);
		fprintf(trace, "fifo %u %llu %u %llu %llu\n", i,
			(unsigned long long)fifos[i].pushes, fifos[i].max_occupancy,
			(unsigned long long)fifos[i].full_ps,
			(unsigned long long)fifos[i].occupancy_ps);
	}
}

static int by_line(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines of one picosecond come in the order of the ticks: sort them all. */
static char *sorted_lines(char *text)
{
	static char *lines[100000];
	size_t count = 0, bytes = strlen(text) + 1;
	char *sorted = calloc(bytes + 1, 1), *end = sorted;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		lines[count++] = line;
	qsort(lines, count, sizeof(*lines), by_line);
	for (size_t i = 0; i < count; i++)
		end += sprintf(end, "%s\n", lines[i]);
	free(text);
	return sorted;
}

static char *run_pipeline(uint64_t permute_seed, const uint64_t hz[2])
{
	static const char *const names[STAGES] = {"s0", "s1", "s2", "s3", "s4", "s5"};
	struct rn_sim *sim = rn_sim_new(permute_seed);
	struct rn_clock clocks[2];
	struct stage stages[STAGES] = {0};
	struct rn_fifo fifos[RN_ARRAY_LEN(links)];
	char *text = NULL;
	size_t bytes = 0;
	FILE *trace = open_memstream(&text, &bytes);

	for (unsigned i = 0; i < 2; i++)
		rn_clock_init(&clocks[i], "clock", hz[i]);
	for (unsigned i = 0; i < STAGES; i++) {
		rn_block_init(&stages[i].block, sim, &clocks[i / 2 % 2], names[i], work,
			      &stages[i]);
		rn_rng_init(&stages[i].rng, 1, names[i]);
		stages[i].trace = trace;
	}
	for (unsigned i = 0; i < RN_ARRAY_LEN(links); i++) {
		struct stage *from = &stages[links[i].from], *to = &stages[links[i].to];

		rn_fifo_init(&fifos[i], sim, "fifo", links[i].depth, sizeof(struct item),
			     links[i].latency);
		rn_fifo_set_producer(&fifos[i], &from->block);
		rn_fifo_set_consumer(&fifos[i], &to->block);
		from->out[links[i].from_port] = &fifos[i];
		to->in[links[i].to_port] = &fifos[i];
	}
	rn_block_wake_at(&stages[0].block, 0);
	rn_sim_run(sim, UINT64_C(1000000000), UINT64_MAX);
	ck_assert_uint_eq(rn_sim_next_ps(sim), RN_TIME_NEVER);
	ck_assert_uint_eq(fifos[4].pushes + fifos[5].pushes, ITEMS);
	print_statistics(trace, stages, fifos);
	fclose(trace);
	for (unsigned i = 0; i < RN_ARRAY_LEN(links); i++)
		rn_fifo_fini(&fifos[i]);
	rn_sim_free(sim);
	return sorted_lines(text);
}

static const uint64_t domains_hz[][2] = {
	{500000000, 500000000},
	{500000000, 250000000},
	{250000000, 500000000},
	{500000000, 322265625},
};

START_TEST(twenty_permutations_give_the_same_trace_and_statistics)
{
	char *first = run_pipeline(0, domains_hz[_i]);

	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *trace = run_pipeline(seed, domains_hz[_i]);

		ck_assert_msg(!strcmp(first, trace), "seed %llu differs", (unsigned long long)seed);
		free(trace);
	}
	free(first);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("pipeline");

	tcase_add_loop_test(tcase, twenty_permutations_give_the_same_trace_and_statistics, 0,
			    RN_ARRAY_LEN(domains_hz));
	return run_suite(tcase, "pipeline");
}
