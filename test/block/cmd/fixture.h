/*
 * A command unit with both caches, a driver's memory, and stand-ins for tx, rx, cqe and eq that note what
 * they are told and answer after a while.
 */
#ifndef RN_TEST_BLOCK_CMD_FIXTURE_H
#define RN_TEST_BLOCK_CMD_FIXTURE_H

#include "block/common/bench.h"
#include "block/common/fake_dma.h"
#include "hw/gen/rnic_hw.h"
#include "nic/cmd/cmd.h"
#include "nic/context_cache/context_cache.h"
#include "nic/pte_cache/pte_cache.h"

#define LOG_NUMBERS 8
#define LOG_MTTS 12
#define QUEUE_PA UINT64_C(0x1000)
#define IN_PA UINT64_C(0x10000)	 /* input mailbox of slot n: + n * 4096 */
#define OUT_PA UINT64_C(0x60000) /* output mailbox */
#define QPC_PA UINT64_C(0x100000)
#define CQC_PA UINT64_C(0x140000)
#define SRQC_PA UINT64_C(0x150000)
#define MPT_PA UINT64_C(0x160000)
#define MTT_PA UINT64_C(0x170000)
#define MEMORY_BYTES UINT64_C(0x180000)
#define NOTES 4096

/* What a stand-in was told. */
struct note {
	uint64_t at_ps;
	uint32_t number; /* QPN, CQN, EQN */
	char who;	 /* 't'x, 'r'x, 'c'qe, 'e'q */
	uint8_t op;	 /* enum rn_qp_ctl_op; eq: create; cqe: drain_only */
	uint8_t old_state, new_state;
};

struct stand_in {
	struct rn_block block;
	struct fixture *f;
	struct rn_fifo *ctl;
	struct rn_fifo *done;
	char who;
	uint64_t latency_cycles;
	uint64_t answer_cycle; /* 0: none owed */
	uint32_t token;
};

struct fixture {
	struct bench bench;
	struct rn_cmd_params params;
	struct fake_memory memory;
	struct fake_dma *cmd_dma, *context_dma, *pte_dma;
	struct rn_context_sram sram[RN_CONTEXT_TYPES];
	struct rn_nic_identity identity;
	struct rn_cmd_ports ports;
	struct rn_context_cache_ports context;
	struct rn_pte_cache_ports pte;
	struct rn_cmd *cmd;
	struct rn_context_cache *context_cache;
	struct rn_pte_cache *pte_cache;
	struct stand_in tx, rx, cqe, eq;
	uint32_t pi;
	unsigned note_count;
	struct note notes[NOTES];
};

void fixture_prepare(struct fixture *f, uint64_t permute_seed);
/** Build; the NIC is not initialised. */
void fixture_build(struct fixture *f);
/** Prepare, build and INIT_HCA. */
void fixture_start(struct fixture *f);
void fixture_free(struct fixture *f);

struct rn_hw_init_hca init_hca(void);

/** Write a command with its input into the next slot and ring; the slot. */
uint32_t submit(struct fixture *f, uint8_t opcode, uint32_t modifier, const void *in,
		uint32_t in_bytes);
struct rn_hw_cmd *entry_at(struct fixture *f, uint32_t slot);
void ring(struct fixture *f);
/** Wait for the event of @slot (at most 100,000 cycles); the entry's status. */
uint8_t finish(struct fixture *f, uint32_t slot);
/** submit and finish. */
uint8_t execute(struct fixture *f, uint8_t opcode, uint32_t modifier, const void *in,
		uint32_t in_bytes);
/** Output mailbox of the last command submitted. */
void *out_of_last(struct fixture *f);
/** Contexts in host memory. */
struct rn_hw_qpc *qpc_at(struct fixture *f, uint32_t qpn);
struct rn_hw_cqc *cqc_at(struct fixture *f, uint32_t cqn);
struct rn_hw_mpt *mpt_at(struct fixture *f, uint32_t index);
/** The last note of @who, or NULL. */
const struct note *last_note(struct fixture *f, char who);
/** Acquire a context as @client and return its line. */
void *acquire(struct fixture *f, unsigned client, uint8_t type, uint32_t number);
void release(struct fixture *f, unsigned client, uint8_t type, uint32_t number, bool dirty);

#endif
