/*
 * Doorbell unit: decodes posted writes and register reads of BAR0.
 */
#ifndef RN_NIC_DOORBELL_DOORBELL_H
#define RN_NIC_DOORBELL_DOORBELL_H

#include "nic/msg/doorbell.h"
#include "nic/msg/env.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_DOORBELL_PARAMS(X)                                                                      \
	X(u32, fifo_entries, 64, 1, 4096, "writes", "BAR writes taken in and not yet decoded")     \
	X(u32, interval_cycles, 1, 1, 1000, "cycles", "least distance of two writes taken in")     \
	X(u32, decode_latency_cycles, 4, 1, 1000, "cycles",                                        \
	  "from taking in to the decoded message")                                                 \
	X(u32, read_latency_cycles, 8, 1, 1000, "cycles", "from a register read to its answer")    \
	X(u32, blueflame_buffers, 16, 1, 256, "buffers", "BlueFlame WQEs being collected at once") \
	X(bool, recover, 0, 0, 1, "",                                                              \
	  "keep SQ doorbells per QP while the scheduler's port is busy, instead of stalling")      \
	X(u32, max_qps, 16384, 1, 1048576, "QPs", "QPs whose doorbells can be kept")

RN_PARAM_STRUCT(rn_doorbell_params, RN_DOORBELL_PARAMS);
extern const struct rn_param_table rn_doorbell_param_table;

struct rn_doorbell_ports {
	/* In. */
	struct rn_fifo *status; /* uint32_t, new value of REG_STATUS, from cmd; NULL: it reads 0 */
	struct rn_fifo *mmio_write; /* struct rn_mmio_write, from the PCIe endpoint */
	struct rn_fifo *mmio_read;  /* struct rn_mmio_read */
	/* Out. */
	struct rn_fifo *mmio_read_rsp; /* struct rn_mmio_read_rsp */
	struct rn_fifo *sq_ring;       /* struct rn_sq_ring, to sched */
	struct rn_fifo *blueflame;     /* struct rn_blueflame, to wqe_fetch */
	struct rn_fifo *cq_ring;       /* struct rn_cq_ring, to cqe */
	struct rn_fifo *rq_ring;       /* struct rn_rq_ring, to transport rx */
	struct rn_fifo *cmd_ring;      /* struct rn_cmd_ring, to cmd */
};

struct rn_doorbell;

/**
 * Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer).
 * @env and what it names are borrowed; @params, @identity and @ports are copied.
 */
struct rn_doorbell *rn_doorbell_new(const struct rn_nic_env *env,
				    const struct rn_doorbell_params *params,
				    const struct rn_doorbell_identity *identity,
				    const struct rn_doorbell_ports *ports);
void rn_doorbell_free(struct rn_doorbell *doorbell);

#endif
