/*
 * A DMA engine with its PCIe link, root complex and host memory, a translation stub, and the far
 * ends of all fifos in the test's hand. Time advances by core cycles of a nanosecond.
 */
#ifndef RN_TEST_BLOCK_DMA_RIG_H
#define RN_TEST_BLOCK_DMA_RIG_H

#include <stdio.h>

#include "nic/dma/dma.h"
#include "nic/msg/doorbell.h"
#include "nic/msg/env.h"
#include "pcie/host_memory.h"
#include "pcie/root_complex.h"
#include "pcie/tlp_log.h"
#include "sim/buffer.h"
#include "sim/sim.h"
#include "sim/stats.h"

#define RIG_CYCLE_PS 1000
#define RIG_MEMORY_BYTES (UINT64_C(16) << 20)
#define RIG_BAD_KEY 0xbadu
#define RIG_ABORT_KEY 0xab0u	   /* the table entry cannot be read */
#define RIG_SECOND_BAD_KEY 0x25adu /* pages with an odd number cannot be translated */
#define RIG_SILENT_KEY 0x511eu	   /* never answered */

struct rig {
	/* Set before rig_start(). */
	uint64_t permute_seed;
	struct rn_dma_params dma_params;
	struct rn_pcie_params pcie;
	struct rn_root_complex_params root;
	uint32_t pte_latency_cycles;
	uint32_t req_depth;
	uint32_t rsp_depth;
	uint32_t tlp_depth;
	uint32_t mmio_depth;
	FILE *log_file; /* NULL: no log */

	struct rn_sim *sim;
	struct rn_clock clock;
	struct rn_stats *stats;
	struct rn_buffers *buffers;
	struct rn_host_memory *memory;
	uint8_t *bytes; /* arena 0 */
	struct rn_tlp_log *log;
	struct rn_dma *dma;
	struct rn_root_complex *rc;
	uint64_t cycle; /* the present one */

	struct rn_fifo req[RN_DMA_CH_COUNT];
	struct rn_fifo rsp[RN_DMA_CH_COUNT];
	struct rn_fifo pte_req, pte_rsp, pte_release;
	struct rn_fifo posted, nonposted, completion;
	struct rn_fifo mmio_write, mmio_read, mmio_read_rsp;

	/* The translation stub: physical = virtual, 4 KiB pages. */
	struct rn_block pte;
	uint32_t translations_held;
	uint32_t translations_served;
	uint32_t interrupts;
	uint64_t interrupt_ps;
	uint64_t hook_ps;
	uint64_t hook_pa;
};

/** Defaults; to be changed before rig_start(). */
void rig_init(struct rig *rig);
void rig_start(struct rig *rig);
/** Ends everything; checks that no buffer but @buffers and no translation is held. */
void rig_stop(struct rig *rig, uint32_t buffers);

/** Advance @cycles. */
void rig_run(struct rig *rig, uint64_t cycles);
/** Advance until @fifo has something to pop, at most @limit cycles: cycles advanced, or @limit. */
uint64_t rig_wait(struct rig *rig, struct rn_fifo *fifo, uint64_t limit);

/** Push a request; its fifo has room. */
void rig_ask(struct rig *rig, enum rn_dma_channel ch, struct rn_dma_req req);
/** Wait for an answer of @ch (at most 100,000 cycles) and return it. */
struct rn_dma_rsp rig_answer(struct rig *rig, enum rn_dma_channel ch);
uint64_t rig_counter(const struct rig *rig, const char *instance, const char *counter);
uint64_t rig_now_ps(const struct rig *rig);

/** Whole picoseconds that @bytes take on an idle link, computed with long double. */
uint64_t rig_link_ps(const struct rn_pcie_params *pcie, uint64_t bytes);

#endif
