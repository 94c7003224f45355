/*
 * A whole simulated fabric with drivers and one scripted process a host: what tests of the system and
 * benchmarks start from.
 */
#ifndef RN_TEST_SCRIPTED_WORLD_H
#define RN_TEST_SCRIPTED_WORLD_H

#include "scripted/flow.h"
#include "scripted/scripted.h"
#include "system/system.h"

#define WORLD_HOSTS_MAX 4

struct world {
	struct rn_scenario *scenario;
	struct rn_system *system;
	struct rn_sim *sim;
	unsigned hosts;
	unsigned ready;
	struct rn_driver *driver[WORLD_HOSTS_MAX];
	struct rn_scripted *host[WORLD_HOSTS_MAX];
};

/* A connection with a CQ and a buffer a side. */
struct link_pair {
	struct rn_scripted_cq *cq[2];
	struct rn_scripted_qp *qp[2];
	struct rn_scripted_buffer buffer[2];
	uint32_t key[2];
};

/** Default scenario of @hosts hosts; the test may change it before world_start(). */
void world_init(struct world *world, unsigned hosts);
/** Build it, bring the NICs up, attach a process to each. @options may be NULL. */
void world_start(struct world *world, const struct rn_system_options *options);
/** Free the processes (checks that their objects are gone), drivers, system. */
void world_fini(struct world *world);

/** Connect processes @a and @b with buffers of @bytes each. */
void world_connect(struct world *world, unsigned a, unsigned b, uint64_t bytes,
		   const struct rn_scripted_path *path, struct link_pair *pair);

/** A counter, e.g. world_counter(w, "host0.nic0.port", "tx_packets"). */
uint64_t world_counter(struct world *world, const char *instance, const char *counter);

/** Post one message from side 0, ring, and wait for its completion: the status, or 255 when none came within 2 s. */
uint8_t world_transfer(struct link_pair *pair, const struct rn_scripted_wr *wr);

#endif
