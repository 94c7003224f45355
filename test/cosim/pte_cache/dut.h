/*
 * A Verilated rn_pte_cache as the bench sees it: messages as packed words at its ports. dut.cc is compiled once for
 * each geometry and build.
 */
#ifndef RN_TEST_COSIM_PTE_CACHE_DUT_H
#define RN_TEST_COSIM_PTE_CACHE_DUT_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/pte_cache/pte_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dut_in { IN_REQ0, IN_REQ1, IN_RELEASE, IN_INVAL, IN_BASE, IN_DMA_RSP, IN_COUNT };
enum dut_out { OUT_RSP0, OUT_RSP1, OUT_DONE, OUT_DMA_REQ, OUT_COUNT };

#define DUT_WORDS 8	/* of the widest message */
#define DUT_WAYS 8	/* of the MTT cache at most */
#define DUT_COUNTERS 16 /* of the block, in the order of its list */

struct dut_inputs {
	uint64_t cycle;
	const uint32_t *words[IN_COUNT];
	const uint8_t *data; /* beside the DMA's answer; NULL: as before */
	bool valid[IN_COUNT];
	bool is_new[IN_COUNT]; /* words differ from those of the last call */
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

struct dut_kind {
	const char *geometry;
	struct rn_pte_cache_params params; /* what it was built with */
	/** In reset; @plusarg: a "+name=value" for it, or NULL. */
	void *(*make)(const char *plusarg);
	void (*free)(void *dut);
	void (*settle)(void *dut, const struct dut_inputs *in, struct dut_outputs *out);
	/** The rising edge that ends the cycle. */
	void (*clock)(void *dut);
	/** Whether an assertion has failed. */
	bool (*has_failed)(void *dut);
	/** Line and toggle coverage into @path; nothing when it was built without. */
	void (*write_coverage)(void *dut, const char *path);
};

extern const struct dut_kind DUT_KIND;

#ifdef __cplusplus
}
#endif

#endif
