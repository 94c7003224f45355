/*
 * A Verilated rn_pte_cache as the bench sees it: messages as packed words at its ports.
 */
#ifndef RN_TEST_COSIM_PTE_CACHE_DUT_H
#define RN_TEST_COSIM_PTE_CACHE_DUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cosim/common/dut.h"
#include "nic/pte_cache/pte_cache.h"

enum dut_in { IN_REQ0, IN_REQ1, IN_RELEASE, IN_INVAL, IN_BASE, IN_DMA_RSP, IN_COUNT };
enum dut_out { OUT_RSP0, OUT_RSP1, OUT_DONE, OUT_DMA_REQ, OUT_COUNT };

#define DUT_WORDS 8	   /* of the widest message */
#define DUT_WAYS 16	   /* of the MTT cache at most */
#define DUT_DATA_BYTES 512 /* beside the answer of a DMA read */
#define DUT_COUNTERS 16	   /* of the block, in the order of its list */

struct dut_inputs {
	uint64_t cycle;
	const uint32_t *words[IN_COUNT];
	const uint8_t *data; /* beside the DMA's answer; NULL: as before */
	bool valid[IN_COUNT];
	bool ready[OUT_COUNT];
};

struct dut_outputs {
	bool ready[IN_COUNT];
	bool valid[OUT_COUNT];
	uint32_t words[OUT_COUNT][DUT_WORDS]; /* of the valid ones */
	uint64_t busy_cycles;
	uint64_t counts[DUT_COUNTERS];
	/* Behind the counts of lookups: what was looked up, what was evicted, what an invalidation dropped. */
	uint64_t mpt_number;
	uint64_t mtt_number;
	uint64_t victim;
	uint64_t mpt_drop;
	uint64_t mtt_drops[DUT_WAYS];
	bool has_victim;
	bool has_mpt_drop;
	uint16_t mtt_drop_ways;
	uint8_t stall;
	bool is_idle;
	uint32_t wake_cycles;
};

void dut_settle(struct cosim_dut *dut, const struct dut_inputs *in, struct dut_outputs *out);

#endif
