/*
 * The per-WQE timeline: time stamps grouped into WQEs, and each WQE's time divided among its stages without a rest.
 */
#ifndef RN_RNICSIM_REPORT_WQES_H
#define RN_RNICSIM_REPORT_WQES_H

#include <jansson.h>
#include <stdio.h>

#include "sim/stamp.h"

/* One WQE: consecutive stamps of the sorted array. */
struct rn_report_wqe {
	const struct rn_stamp *stamp; /* by time */
	size_t count;
	bool is_complete;			/* acknowledged or completed */
	uint64_t total_ps;			/* first to last stamp; the sum of took_ps */
	uint64_t took_ps[RN_STAMP_STAGE_COUNT]; /* time that passed before each of the stage's stamps */
};

struct rn_report_wqes {
	const struct rn_stamp *stamp;
	size_t count;
	uint64_t lost;	  /* stamps that were not kept */
	uint64_t from_ps; /* WQEs that began before are left out */
};

/** All WQEs that @stamps knows and that began at @from_ps or later. */
void rn_report_wqes_init(struct rn_report_wqes *wqes, struct rn_stamps *stamps, uint64_t from_ps);

/**
 * The next WQE at *@pos (0 at first), and *@pos moved past it; false after the last. A queue's index wraps at 65536:
 * when a WQE is acknowledged or completed, an earlier stage of its index is that of another WQE.
 */
bool rn_report_wqes_next(const struct rn_report_wqes *wqes, size_t *pos, struct rn_report_wqe *wqe);

/**
 * {queue: {stage: {count, min_ps, mean_ps, max_ps, p50_ps, p90_ps, p99_ps, p999_ps}}} over the complete WQEs of send and
 * receive queues, with "total" beside the stages. New reference.
 */
json_t *rn_report_wqes_statistics(const struct rn_report_wqes *wqes);

/** Write the array of all WQEs, one a line, to @out. */
void rn_report_wqes_write(const struct rn_report_wqes *wqes, FILE *out);

#endif
