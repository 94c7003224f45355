#include "report_units.h"

#include <stdio.h>
#include <string.h>

#include "report_limiter.h"

#define HITS "_hits"

json_t *rn_report_integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

double rn_report_hit_rate(uint64_t hits, uint64_t misses, uint64_t merges)
{
	uint64_t all = hits + misses + merges;

	return all ? (double)hits / (double)all : 0;
}

static double part(double ps, uint64_t active_ps)
{
	return active_ps ? ps / (double)active_ps : 0;
}

static uint64_t value_at(const struct rn_stats_counters *counters, size_t row)
{
	return *(const uint64_t *)((const char *)counters->values + counters->descs[row].offset);
}

/* The object at @key of @parent, made when it is not there. Borrowed. */
static json_t *object_at(json_t *parent, const char *key)
{
	json_t *object = json_object_get(parent, key);

	if (!object) {
		object = json_object();
		json_object_set_new(parent, key, object);
	}
	return object;
}

static void put_counters(json_t *units, const char *unit, const struct rn_stats_counters *counters)
{
	json_t *object = object_at(object_at(units, unit), "counters");

	for (size_t row = 0; row < counters->count; row++)
		json_object_set_new(object, counters->descs[row].name,
				    rn_report_integer(value_at(counters, row)));
}

static void put_block(json_t *units, const char *unit, const struct rn_block *block,
		      uint64_t active_ps)
{
	json_t *object = object_at(units, unit);
	json_t *stalls = object_at(object, "stalls_ps");
	double busy_ps = rn_report_block_ps(block, block->busy_cycles);

	json_object_set_new(object, "busy_cycles", rn_report_integer(block->busy_cycles));
	json_object_set_new(object, "utilisation", json_real(part(busy_ps, active_ps)));
	for (unsigned stall = RN_STALL_NONE + 1; stall < RN_STALL_COUNT; stall++)
		json_object_set_new(stalls, rn_stall_name(stall),
				    rn_report_integer(block->stall_ps[stall]));
}

json_t *rn_report_units(const struct rn_stats *stats, const char *prefix, uint64_t active_ps)
{
	const struct rn_stats_counters *counters;
	const struct rn_block *block;
	json_t *units = json_object();

	for (size_t i = 0; (counters = rn_stats_counters_at(stats, i)); i++) {
		const char *unit = rn_report_unit(counters->instance, prefix);

		if (unit)
			put_counters(units, unit, counters);
	}
	for (size_t i = 0; (block = rn_stats_block_at(stats, i)); i++) {
		const char *unit = rn_report_unit(block->name, prefix);

		if (unit)
			put_block(units, unit, block, active_ps);
	}
	return units;
}

json_t *rn_report_ticks(const struct rn_stats *stats)
{
	const struct rn_block *block;
	json_t *ticks = json_object();

	for (size_t i = 0; (block = rn_stats_block_at(stats, i)); i++)
		json_object_set_new(ticks, block->name, rn_report_integer(block->ticks));
	return ticks;
}

/* How many units under @prefix have a counter @name. */
static unsigned uses(const struct rn_stats *stats, const char *prefix, const char *name)
{
	const struct rn_stats_counters *counters;
	unsigned count = 0;

	for (size_t i = 0; (counters = rn_stats_counters_at(stats, i)); i++) {
		if (!rn_report_unit(counters->instance, prefix))
			continue;
		for (size_t row = 0; row < counters->count; row++)
			count += !strcmp(counters->descs[row].name, name);
	}
	return count;
}

json_t *rn_report_flat_counters(const struct rn_stats *stats, const char *prefix)
{
	const struct rn_stats_counters *counters;
	json_t *flat = json_object();

	for (size_t i = 0; (counters = rn_stats_counters_at(stats, i)); i++) {
		if (!rn_report_unit(counters->instance, prefix))
			continue;
		for (size_t row = 0; row < counters->count; row++)
			if (uses(stats, prefix, counters->descs[row].name) == 1)
				json_object_set_new(flat, counters->descs[row].name,
						    rn_report_integer(value_at(counters, row)));
	}
	return flat;
}

json_t *rn_report_fifos(const struct rn_stats *stats, const char *prefix, uint64_t active_ps)
{
	const struct rn_fifo *fifo;
	json_t *fifos = json_object();

	for (size_t i = 0; (fifo = rn_stats_fifo_at(stats, i)); i++) {
		const char *name = rn_report_unit(fifo->name, prefix);

		if (!name)
			continue;
		json_object_set_new(fifos, name,
				    json_pack("{s:I, s:o, s:I, s:f, s:o}", "depth",
					      (json_int_t)fifo->depth, "pushes",
					      rn_report_integer(fifo->pushes), "max_occupancy",
					      (json_int_t)fifo->max_occupancy, "mean_occupancy",
					      part((double)fifo->occupancy_ps, active_ps),
					      "full_ps", rn_report_integer(fifo->full_ps)));
	}
	return fifos;
}

static uint64_t sibling(const struct rn_stats *stats, const char *instance, const char *what,
			const char *ending)
{
	char name[80];
	uint64_t value;

	snprintf(name, sizeof(name), "%s%s", what, ending);
	value = rn_stats_value(stats, instance, name);
	return value == UINT64_MAX ? 0 : value;
}

static json_t *cache(const struct rn_stats *stats, const char *instance, const char *what)
{
	uint64_t hits = sibling(stats, instance, what, HITS);
	uint64_t misses = sibling(stats, instance, what, "_misses");
	uint64_t merges = sibling(stats, instance, what, "_merges");

	return json_pack("{s:o, s:o, s:o, s:f}", "hits", rn_report_integer(hits), "misses",
			 rn_report_integer(misses), "merges", rn_report_integer(merges), "hit_rate",
			 rn_report_hit_rate(hits, misses, merges));
}

json_t *rn_report_caches(const struct rn_stats *stats, const char *prefix)
{
	const struct rn_stats_counters *counters;
	json_t *caches = json_object();

	for (size_t i = 0; (counters = rn_stats_counters_at(stats, i)); i++) {
		const char *unit = rn_report_unit(counters->instance, prefix);

		for (size_t row = 0; unit && row < counters->count; row++) {
			const char *name = counters->descs[row].name;
			size_t len = strlen(name);
			char what[64], misses[80];

			if (len <= strlen(HITS) || len >= sizeof(what) ||
			    strcmp(name + len - strlen(HITS), HITS))
				continue;
			snprintf(what, sizeof(what), "%.*s", (int)(len - strlen(HITS)), name);
			snprintf(misses, sizeof(misses), "%s_misses", what);
			if (rn_stats_value(stats, counters->instance, misses) != UINT64_MAX)
				json_object_set_new(object_at(caches, unit), what,
						    cache(stats, counters->instance, what));
		}
	}
	return caches;
}
