/* A run's outcome made by hand: counters, blocks, fifos, stamps and faults as a test wants them. */
#ifndef RN_TEST_REPORT_FIXTURE_H
#define RN_TEST_REPORT_FIXTURE_H

#include "simulator.h"

#define FIXTURE_HOSTS_MAX 12

struct fixture {
	struct rn_options options;
	struct rn_outcome outcome;
	struct rn_scenario scenario;
	struct rn_scenario_host host[FIXTURE_HOSTS_MAX];
};

/*
 * @hosts hosts: 100 Gb/s lines, 400 Gb/s memory, 64 reads of 300 ns at once, 500 MHz cores whose stages take a cycle.
 * Measured from 1 ms to 11 ms.
 */
struct fixture *fixture_new(unsigned hosts);
void fixture_free(struct fixture *fixture);

/* Set counter @counter of @instance; made at first use. */
void fixture_set(struct fixture *fixture, const char *instance, const char *counter,
		 uint64_t value);

/* Traffic at @host's port: active for @active_ps, from first to last frame 2 ms. */
void fixture_set_active(struct fixture *fixture, unsigned host, uint64_t active_ps);

/* A block with a clock of 500 MHz (2000 ps); for the test to fill in. */
struct rn_block *fixture_block(struct fixture *fixture, const char *name);

/* A fifo of @depth; its statistics are for the test to fill in. */
struct rn_fifo *fixture_fifo(struct fixture *fixture, const char *name, uint32_t depth);

void fixture_stamp(struct fixture *fixture, const struct rn_stamp *stamp);

#endif
