/*
 * The C block and two Verilated ones side by side. All three get the same inputs in the same cycles; every port is
 * compared in every cycle, and with it counters, stall reason and account. One of the Verilated ones is clocked in
 * every cycle, the other in those alone in which it says that it has something to do.
 */
#ifndef RN_TEST_COSIM_DOORBELL_RIG_H
#define RN_TEST_COSIM_DOORBELL_RIG_H

#include "block/common/bench.h"
#include "cosim/doorbell/dut.h"
#include "nic/doorbell/internal.h"

#define RIG_WRITE_FIFO 1024

struct rig {
	const struct rn_rtl_kind *kind;
	struct rn_doorbell_params params;
	struct rn_doorbell_identity identity;
	struct bench bench;
	struct rn_doorbell_ports ports;
	struct rn_fifo *out_fifo[OUT_COUNT];
	struct rn_doorbell *model;
	struct cosim_dut *always; /* clocked in every cycle */
	struct cosim_dut *gated;
	/* Of the cycle that runs next, set by the caller; 1 after rig_init. */
	bool ready[OUT_COUNT];
	bool compares_ports_alone; /* set by the caller: no counters, stalls and deadlines */
	/* How far the RTL's cycle numbers are ahead, set by the caller after rig_init or rig_restart: time is relative. */
	uint64_t cycle_offset;

	/* The cycle that ran last. */
	struct dut_inputs in;
	struct dut_outputs out; /* of the one that is always clocked */
	bool has_ticked;	/* the C block */
	uint64_t cycles;	/* compared so far */
	/* The gated one: its outputs when it was clocked last, and when it wants to be next. */
	struct dut_outputs gated_out;
	struct dut_inputs gated_in;
	uint64_t gated_cycles;
	uint64_t gated_due;
	bool gated_took_write, gated_took_read;

	uint64_t counts_before[10];
	uint64_t head_before[3];
	uint64_t tail_before[OUT_COUNT];
	bool waits_before[OUT_COUNT];
	uint64_t busy_before;
	uint32_t wake_before; /* wake_o that the C block's deadlines make */
	uint64_t ticks_before;
	/* The first difference; the rig stands still after it. */
	bool has_failed;
	char difference[256];
};

extern const char *const rig_out_name[OUT_COUNT];

/** A world for @kind whose cycles begin after @first_cycle; @plusarg selects a fault or is NULL; @seed is of what registers hold and idle wires carry. */
void rig_init(struct rig *rig, const struct rn_rtl_kind *kind, uint64_t first_cycle,
	      const char *plusarg, uint64_t seed);
void rig_fini(struct rig *rig);

/** Reset both Verilated blocks with what their memories hold, and begin with a new C block. */
void rig_restart(struct rig *rig, const struct rn_doorbell_identity *identity);

/** Run the next cycle and compare; false after a difference. */
bool rig_cycle(struct rig *rig);

/** Messages for the next cycle; the fifo has space. */
void rig_write(struct rig *rig, const struct rn_mmio_write *write);
void rig_read(struct rig *rig, const struct rn_mmio_read *read);
void rig_status(struct rig *rig, uint32_t status);

#endif
