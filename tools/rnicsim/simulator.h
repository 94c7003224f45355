/*
 * The simulator process: the modelled world, a driver and a server for each host, and the loop that lets
 * simulated time pass. Free-run: simulated time never runs ahead of the wall clock since the start.
 */
#ifndef RN_RNICSIM_SIMULATOR_H
#define RN_RNICSIM_SIMULATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "options.h"
#include "system/system.h"
#include "virtual_time.h"

/* What a report is made of. */
struct rn_outcome {
	const struct rn_options *options;
	const struct rn_config *config;
	struct rn_system *system;
	const struct rn_cosim *cosim;
	struct rn_driver *const *driver; /* one a host */
	uint64_t measured_from_ps;	 /* end of the warm-up */
	uint64_t end_ps;
	double wall_s;
	double largest_lag_s; /* of simulated time behind the wall clock */
	uint64_t wakes;
	const struct rn_virtual_counts *virtual_time; /* NULL in free-run */
};

/**
 * Serve until @stop_fd becomes readable or is closed, or SIGTERM comes. Programs attach at @dir/socket. When
 * everything is up, one byte is written to @ready_fd. Then write captures and the report and print the summary.
 * Returns the process's exit status.
 */
int rn_simulator_run(const struct rn_options *options, const struct rn_scenario *scenario,
		     const struct rn_config *config, const char *dir, int ready_fd, int stop_fd);

struct rn_report_file;

/** Write the JSON report and free @file; false (message printed) when that fails. */
bool rn_report_write_json(struct rn_report_file *file, const struct rn_outcome *outcome);

/** Print the readable summary to stdout's neighbour, stderr. */
void rn_report_print_text(const struct rn_outcome *outcome);

#endif
