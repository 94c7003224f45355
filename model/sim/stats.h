/*
 * Registry of what a run can report: counters, blocks and fifos by instance name.
 * Everything registered is borrowed and outlives the registry.
 */
#ifndef RN_SIM_STATS_H
#define RN_SIM_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "sim/block.h"
#include "sim/fifo.h"

/* One row a counter: the value is a uint64_t at @offset in the owner's counter struct. */
struct rn_counter_desc {
	const char *name; /* mlx5's name where the hardware has one */
	const char *unit; /* "packets", "bytes", "events", "ps" */
	const char *help;
	size_t offset;
};

/*
 * A counter list: X(field, unit, help). RN_COUNTER_FIELDS makes the struct's fields,
 * RN_COUNTER_ROW the rows.
 */
#define RN_COUNTER_FIELD(field, unit, help) uint64_t field;
#define RN_COUNTER_ROW(type, field, unit, help) {#field, unit, help, offsetof(type, field)},

struct rn_stats;

struct rn_stats_counters {
	const char *instance; /* "host0.nic0.port" */
	const struct rn_counter_desc *descs;
	size_t count;
	void *values;
};

struct rn_stats *rn_stats_new(void);
void rn_stats_free(struct rn_stats *stats);

/** @instance is copied; @descs and @values are borrowed. */
void rn_stats_add_counters(struct rn_stats *stats, const char *instance,
			   const struct rn_counter_desc *descs, size_t count, void *values);
void rn_stats_add_block(struct rn_stats *stats, struct rn_block *block);
void rn_stats_add_fifo(struct rn_stats *stats, struct rn_fifo *fifo);

/** Iterate in order of registration; NULL after the last. */
const struct rn_stats_counters *rn_stats_counters_at(const struct rn_stats *stats, size_t idx);
struct rn_block *rn_stats_block_at(const struct rn_stats *stats, size_t idx);
struct rn_fifo *rn_stats_fifo_at(const struct rn_stats *stats, size_t idx);

/** Value of one counter; UINT64_MAX when there is no such instance or counter. */
uint64_t rn_stats_value(const struct rn_stats *stats, const char *instance, const char *counter);

/** Cut off the warm-up: zero every counter, block and fifo statistic. */
void rn_stats_clear(struct rn_stats *stats);

/** Close open intervals of all blocks and fifos at the present time. */
void rn_stats_settle(struct rn_stats *stats);

#endif
