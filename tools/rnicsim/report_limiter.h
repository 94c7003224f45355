/*
 * What limits a NIC. Every resource that can be used up is a row: serial ones (a line, a link, memory, a block's
 * pipeline) by the time they were busy, finite ones (credits, tags, buffers, miss registers) by the time somebody
 * waited for one. A rule names the limiter from the rows; docs/results.md states it.
 */
#ifndef RN_RNICSIM_REPORT_LIMITER_H
#define RN_RNICSIM_REPORT_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/stats.h"
#include "system/scenario.h"

/* A serial resource that was busy for this part of the time limits. */
#define RN_LIMIT_SATURATED_SHARE 0.9
/* Else a finite one that was waited for, for this part of the time or, with its use, for as much as above. */
#define RN_LIMIT_WAIT_SHARE 0.5

#define RN_LIMITS_MAX 128
#define RN_LIMIT_NAME_BYTES 48

enum rn_limit_kind {
	RN_LIMIT_SERIAL,
	RN_LIMIT_WAIT,
	RN_LIMIT_LATENCY, /* nothing is used up: the round trip with what is outstanding */
	RN_LIMIT_IDLE,	  /* there was no traffic */
};

struct rn_limit {
	enum rn_limit_kind kind;
	char name[RN_LIMIT_NAME_BYTES]; /* stable: "ethernet_line", "dma_tags", "block:transport_tx" ... */
	char where[RN_LIMIT_NAME_BYTES]; /* unit of the NIC or its host: "mac.rx", "pcie_up", "root_complex.read" */
	double share;			 /* busy or waited for, of the active time: 0 .. 1 */
	bool is_always_wanted; /* a wait: together with its use it fills the time */
	unsigned rank;	       /* of a wait: 0 is furthest downstream */
};

struct rn_limits {
	unsigned count;
	struct rn_limit limit[RN_LIMITS_MAX];
};

struct rn_limits_env {
	const struct rn_stats *stats; /* settled */
	const char *host;	      /* "host0" */
	const char *nic;	      /* "host0.nic0" */
	uint64_t active_ps; /* the time that shares are parts of; 0: there was no traffic */
	uint64_t link_mbps;
	const struct rn_scenario_host *params; /* of this host */
};

/** Fill @limits with a row for each resource; none when active_ps is 0. */
void rn_limits_find(struct rn_limits *limits, const struct rn_limits_env *env);

struct rn_limiter {
	enum rn_limit_kind kind;
	const char *name; /* "latency" and "idle" are names too */
	const char *where;
	double share;
	unsigned idx; /* of the struct rn_limits that it was found in */
};

/**
 * The limiter among @count NICs: the busiest serial resource if RN_LIMIT_SATURATED_SHARE or more; else what was waited
 * for RN_LIMIT_WAIT_SHARE or more (or is_always_wanted), the furthest downstream, and of several NICs' the longest; else
 * latency; idle when there are no rows. Points into @limits.
 */
struct rn_limiter rn_limits_choose(const struct rn_limits *const *limits, unsigned count);

/** "serial", "wait", "latency", "idle". */
const char *rn_limit_kind_name(enum rn_limit_kind kind);

/**
 * The unit of instance @name ("host0.nic0.transport.tx") under @prefix ("host0.nic0"): "transport.tx". NULL when it is not
 * under it, or belongs to a NIC under it ("host0.nic0.dma" under "host0").
 */
const char *rn_report_unit(const char *name, const char *prefix);

/** The sum of a counter over the units under @prefix. */
uint64_t rn_report_sum(const struct rn_stats *stats, const char *prefix, const char *counter);

/** Time of @cycles cycles of @block's clock. */
double rn_report_block_ps(const struct rn_block *block, uint64_t cycles);

#endif
