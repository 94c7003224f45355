/*
 * JSON of what the statistics registry holds under a prefix ("host0.nic0", "host0", "fabric").
 * Every function returns a new reference.
 */
#ifndef RN_RNICSIM_REPORT_UNITS_H
#define RN_RNICSIM_REPORT_UNITS_H

#include <jansson.h>
#include <stdint.h>

#include "sim/stats.h"

/** A JSON integer; what does not fit one becomes the largest. */
json_t *rn_report_integer(uint64_t value);

/**
 * {unit: {counters: {name: value}, busy_cycles, utilisation, stalls_ps: {reason: ps}}} of every unit
 * under @prefix; counters or the block's keys are left out where a unit has none. Utilisation is of @active_ps.
 */
json_t *rn_report_units(const struct rn_stats *stats, const char *prefix, uint64_t active_ps);

/** {name: value} of all units under @prefix in one: the counters whose name only one unit uses. */
json_t *rn_report_flat_counters(const struct rn_stats *stats, const char *prefix);

/** {name: {depth, pushes, max_occupancy, mean_occupancy, full_ps}} of the fifos; the mean is over @active_ps. */
json_t *rn_report_fifos(const struct rn_stats *stats, const char *prefix, uint64_t active_ps);

/** {instance: ticks} of all blocks: what the simulation cost, no result of the hardware's. */
json_t *rn_report_ticks(const struct rn_stats *stats);

/** {unit: {what: {hits, misses, merges, hit_rate}}} of all counters <what>_hits with <what>_misses beside. */
json_t *rn_report_caches(const struct rn_stats *stats, const char *prefix);

/** Hits of hits, misses and merges (a lookup that joins a miss is no hit); 0 when there were none. */
double rn_report_hit_rate(uint64_t hits, uint64_t misses, uint64_t merges);

#endif
