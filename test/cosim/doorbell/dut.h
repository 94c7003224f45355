/*
 * A Verilated rn_doorbell as the bench sees it: structs of messages in and out.
 */
#ifndef RN_TEST_COSIM_DOORBELL_DUT_H
#define RN_TEST_COSIM_DOORBELL_DUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cosim/common/dut.h"
#include "hw/gen/rnic_hw.h"
#include "nic/msg/doorbell.h"

#define DUT_COUNTERS(X)                                                                            \
	X(sq_doorbells)                                                                            \
	X(blueflame_wqes)                                                                          \
	X(blueflame_dropped)                                                                       \
	X(cq_arms)                                                                                 \
	X(rq_kicks)                                                                                \
	X(rq_kicks_dropped)                                                                        \
	X(commands)                                                                                \
	X(reads)                                                                                   \
	X(kept)                                                                                    \
	X(illegal_writes)

enum dut_out { OUT_RSP, OUT_SQ, OUT_BLUEFLAME, OUT_CQ, OUT_RQ, OUT_CMD, OUT_COUNT };

struct dut_inputs {
	uint64_t cycle;
	struct rn_mmio_write write;
	struct rn_mmio_read read;
	uint32_t status;
	uint16_t write_level;
	bool write_valid;
	bool read_valid;
	bool status_valid;
	bool ready[OUT_COUNT];
};

struct dut_outputs {
	bool write_ready;
	bool read_ready;
	bool status_ready;
	bool valid[OUT_COUNT];
	/* Messages of the valid ones; those of the others are 0. */
	struct rn_mmio_read_rsp rsp;
	struct rn_sq_ring sq;
	struct rn_blueflame blueflame;
	struct rn_cq_ring cq;
	struct rn_rq_ring rq;
	struct rn_cmd_ring cmd;
	uint8_t blueflame_data[RN_UAR_BLUEFLAME_BYTES];
	uint32_t count[10]; /* in the order of DUT_COUNTERS */
	bool is_busy;
	uint8_t stall;
	bool is_idle;
	uint32_t wake_cycles;
};

/** Two clocks of reset, what memories hold stays. */
void dut_reset(struct cosim_dut *dut, const struct rn_doorbell_identity *identity);

/** The outputs that @in has. */
void dut_settle(struct cosim_dut *dut, const struct dut_inputs *in, struct dut_outputs *out);

#endif
