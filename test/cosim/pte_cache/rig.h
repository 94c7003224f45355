/*
 * The C block and two Verilated ones side by side, with the same inputs in the same cycles. Every port is compared in
 * every cycle, and counters, stall reason and busy cycles with it. One of the Verilated ones is clocked in every
 * cycle, the other only when it says that it has something to do, or an input has changed.
 */
#ifndef RN_TEST_COSIM_PTE_CACHE_RIG_H
#define RN_TEST_COSIM_PTE_CACHE_RIG_H

#include "block/common/bench.h"
#include "cosim/common/ports.h"
#include "cosim/pte_cache/dut.h"
#include "nic/pte_cache/pte_cache.h"

#define RIG_IN_DEPTH 64
#define RIG_DATA_BYTES DUT_DATA_BYTES
#define RIG_BUFFERS 512 /* reads under way at most: tokens */
#define RIG_LOG 48	/* transactions remembered for the message of a difference */

struct rig_transaction {
	uint64_t cycle;
	const char *port;
	const struct rn_msg_desc *desc;
	uint32_t words[COSIM_WORDS];
};

struct rig {
	const struct rn_rtl_kind *kind;
	struct rn_pte_cache_params params;
	bool compares_ports_alone; /* set by the caller: no counters, stalls and log lines */
	struct bench bench;
	struct rn_pte_cache *model;
	struct cosim_in in[IN_COUNT];
	struct cosim_out out[OUT_COUNT];
	struct cosim_dut *always; /* clocked in every cycle */
	struct cosim_dut *gated;
	FILE *record; /* stimulus of this run; or NULL */
	/* The model's log of lookups, a cycle's lines. */
	FILE *lookups;
	char *lookup_text;
	size_t lookup_bytes;
	bool was_ready[OUT_COUNT];
	bool was_ready_before[OUT_COUNT];

	uint64_t first_cycle;	 /* behind it the cycles that were run and compared begin */
	uint64_t earlier_cycles; /* compared before the last reset */
	/* The cycle that ran last. */
	uint64_t cycle;
	struct dut_inputs inputs;
	struct dut_outputs outputs; /* of the one that is always clocked */
	uint64_t counts[DUT_COUNTERS];
	uint64_t busy_cycles;
	/* The gated one. */
	uint64_t gated_cycles; /* clocked so far */
	uint64_t gated_due;
	uint8_t gated_stall;
	bool gated_slept;
	bool gated_valid[OUT_COUNT];

	/* Answers of the DMA engine on their way: data by token, and the model's buffer. */
	uint8_t data[RIG_BUFFERS][RIG_DATA_BYTES];
	uint32_t buffers[RIG_BUFFERS];

	struct rig_transaction log[RIG_LOG];
	uint64_t logged;
	/* The first difference; the rig stands still after it. */
	bool has_failed;
	char difference[256];
};

/**
 * A world for @kind whose cycles begin after @first_cycle; @plusarg selects a fault or is NULL; @seed is of what registers
 * hold and idle wires carry.
 */
void rig_init(struct rig *rig, const struct rn_rtl_kind *kind, uint64_t first_cycle,
	      const char *plusarg, uint64_t seed);
void rig_fini(struct rig *rig);

/** Reset both Verilated blocks in whatever state they are, and begin after @first_cycle with a new C block. */
void rig_restart(struct rig *rig, uint64_t first_cycle);

/** Cycles compared so far. */
uint64_t rig_cycles(const struct rig *rig);

/** Run the next cycle and compare; false after a difference. */
bool rig_cycle(struct rig *rig);

/** Let @cycles pass in which neither block is clocked: nothing is under way. */
void rig_skip(struct rig *rig, uint64_t cycles);

bool rig_can_push(struct rig *rig, enum dut_in port);

/** A message (C struct) for the next cycle. */
void rig_push(struct rig *rig, enum dut_in port, const void *message);

/** The answer to the read with @token for the next cycle; @data has RIG_DATA_BYTES. */
void rig_answer(struct rig *rig, uint16_t token, uint8_t status, const uint8_t *data);

/** Whether an output is ready in the next cycle. */
void rig_ready(struct rig *rig, enum dut_out port, bool ready);

/** Print the difference and the last transactions. */
void rig_explain(const struct rig *rig, FILE *file);

#endif
