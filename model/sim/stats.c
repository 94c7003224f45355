#include "sim/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct rn_stats {
	struct rn_stats_counters *counters;
	struct rn_block **blocks;
	struct rn_fifo **fifos;
	size_t counters_count;
	size_t blocks_count;
	size_t fifos_count;
};

struct rn_stats *rn_stats_new(void)
{
	return rn_calloc(1, sizeof(struct rn_stats));
}

void rn_stats_free(struct rn_stats *stats)
{
	if (!stats)
		return;
	for (size_t i = 0; i < stats->counters_count; i++)
		free((char *)stats->counters[i].instance);
	free(stats->counters);
	free(stats->blocks);
	free(stats->fifos);
	free(stats);
}

void rn_stats_add_counters(struct rn_stats *stats, const char *instance,
			   const struct rn_counter_desc *descs, size_t count, void *values)
{
	stats->counters = rn_reallocarray(stats->counters, stats->counters_count + 1,
					  sizeof(*stats->counters));
	stats->counters[stats->counters_count++] = (struct rn_stats_counters){
		.instance = rn_strdup(instance),
		.descs = descs,
		.count = count,
		.values = values,
	};
}

void rn_stats_add_block(struct rn_stats *stats, struct rn_block *block)
{
	stats->blocks =
		rn_reallocarray(stats->blocks, stats->blocks_count + 1, sizeof(*stats->blocks));
	stats->blocks[stats->blocks_count++] = block;
}

void rn_stats_add_fifo(struct rn_stats *stats, struct rn_fifo *fifo)
{
	stats->fifos = rn_reallocarray(stats->fifos, stats->fifos_count + 1, sizeof(*stats->fifos));
	stats->fifos[stats->fifos_count++] = fifo;
}

const struct rn_stats_counters *rn_stats_counters_at(const struct rn_stats *stats, size_t idx)
{
	return idx < stats->counters_count ? &stats->counters[idx] : NULL;
}

struct rn_block *rn_stats_block_at(const struct rn_stats *stats, size_t idx)
{
	return idx < stats->blocks_count ? stats->blocks[idx] : NULL;
}

struct rn_fifo *rn_stats_fifo_at(const struct rn_stats *stats, size_t idx)
{
	return idx < stats->fifos_count ? stats->fifos[idx] : NULL;
}

static uint64_t *value_at(const struct rn_stats_counters *counters, size_t row)
{
	return (uint64_t *)((char *)counters->values + counters->descs[row].offset);
}

uint64_t rn_stats_value(const struct rn_stats *stats, const char *instance, const char *counter)
{
	for (size_t i = 0; i < stats->counters_count; i++) {
		const struct rn_stats_counters *counters = &stats->counters[i];

		if (strcmp(counters->instance, instance))
			continue;
		for (size_t row = 0; row < counters->count; row++)
			if (!strcmp(counters->descs[row].name, counter))
				return *value_at(counters, row);
	}
	return UINT64_MAX;
}

void rn_stats_clear(struct rn_stats *stats)
{
	for (size_t i = 0; i < stats->counters_count; i++)
		for (size_t row = 0; row < stats->counters[i].count; row++)
			*value_at(&stats->counters[i], row) = 0;
	for (size_t i = 0; i < stats->blocks_count; i++)
		rn_block_clear_stats(stats->blocks[i]);
	for (size_t i = 0; i < stats->fifos_count; i++)
		rn_fifo_clear_stats(stats->fifos[i]);
}

void rn_stats_settle(struct rn_stats *stats)
{
	for (size_t i = 0; i < stats->blocks_count; i++)
		rn_block_settle(stats->blocks[i]);
	for (size_t i = 0; i < stats->fifos_count; i++)
		rn_fifo_settle(stats->fifos[i]);
}
