/*
 * Scheduler: which queue pair sends next (round robin).
 */
#ifndef RN_NIC_SCHED_SCHED_H
#define RN_NIC_SCHED_SCHED_H

#include "nic/msg/doorbell.h"
#include "nic/msg/env.h"
#include "nic/msg/work.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_SCHED_PARAMS(X)                                                                         \
	X(u32, max_qps, 16384, 1, 1048576, "QPs", "queue pairs with pending state on the chip")    \
	X(u32, grants_outstanding, 16, 1, 1024, "grants",                                          \
	  "queue pairs in the fetch and transport pipe at once")                                   \
	X(u32, interval_cycles, 1, 1, 1000, "cycles", "least distance of two grants")

RN_PARAM_STRUCT(rn_sched_params, RN_SCHED_PARAMS);
extern const struct rn_param_table rn_sched_param_table;

struct rn_sched_ports {
	/* In. */
	struct rn_fifo *sq_ring; /* struct rn_sq_ring, from doorbell */
	struct rn_fifo *turn;	 /* struct rn_turn, from transport tx */
	struct rn_fifo *
		bind; /* struct rn_bind, from wqe_fetch; NULL: doorbell pages are not learnt (unit tests) */
	/* Out. */
	struct rn_fifo *grant; /* struct rn_grant, to wqe_fetch */
};

struct rn_sched;

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_sched *rn_sched_new(const struct rn_nic_env *env, const struct rn_sched_params *params,
			      const struct rn_sched_ports *ports);
void rn_sched_free(struct rn_sched *sched);

#endif
