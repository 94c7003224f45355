/*
 * State of the command unit, shared by its files: cmd.c (queue and completion), table.c (the commands),
 * steps.c (steps that wait for other blocks), objects.c (steps that check and change objects).
 */
#ifndef RN_NIC_CMD_STATE_H
#define RN_NIC_CMD_STATE_H

#include <stdbool.h>

#include "hw/gen/rnic_hw.h"
#include "nic/cmd/cmd.h"
#include "sim/block.h"
#include "sim/stats.h"

#define RN_CMD_CONFIG_BYTES ((uint32_t)offsetof(struct rn_hw_qpc, requester))

#define RN_CMD_COUNTERS(X)                                                                         \
	X(commands, "commands", "commands executed, whatever their status")                        \
	X(failed, "commands", "of them, with a status other than OK")                              \
	X(bad_rings, "doorbells", "command doorbells that name more than the queue holds")         \
	X(lost, "commands", "queue entries that could not be read or written back")

struct rn_cmd_counters {
	RN_CMD_COUNTERS(RN_COUNTER_FIELD)
};

/*
 * The steps of commands, X(name): each is one function, called in every tick until it returns true, and
 * then the next one a cycle later. After a failure only the steps that put things right again run
 * (release, end_pause).
 */
#define RN_CMD_STEPS(X)                                                                            \
	X(read_in)	 /* input mailbox */                                                       \
	X(execute)	 /* the command's latency */                                               \
	X(init)		 /* check, and tell the caches their tables */                             \
	X(eq_ctl)	 /* create or destroy an EQ */                                             \
	X(read_mpt)	 /* the MPT entry as it is */                                              \
	X(make_mpt)	 /* check the new MPT entry */                                             \
	X(kill_mpt)	 /* the entry must be live; make it free */                                \
	X(write_mpt)	 /* to ICM */                                                              \
	X(invalidate)	 /* the key and its translations in the PTE cache */                       \
	X(acquire)	 /* the context line, alone */                                             \
	X(release)	 /* the line, if it is held */                                             \
	X(flush)	 /* the line out of the cache */                                           \
	X(copy_line)	 /* for the output mailbox */                                              \
	X(check_cq)	 /* must be live */                                                        \
	X(create_cq)	 /* ... */                                                                 \
	X(modify_cq)	 /* ... */                                                                 \
	X(kill_cq)	 /* ... */                                                                 \
	X(drain_cq)	 /* cqe finishes what concerns it */                                       \
	X(create_qp)	 /* ... */                                                                 \
	X(modify_qp)	 /* check the state, replace the config section */                         \
	X(kill_qp)	 /* ... */                                                                 \
	X(pause)	 /* tx and rx hold the QP */                                               \
	X(end_pause)	 /* they go on, or forget it (to RESET, destroyed) */                      \
	X(acquire_reset) /* when the QP goes to RESET: the line again */                           \
	X(clear_qp)	 /* ... and clear what tx and rx keep in it */                             \
	X(write_out)	 /* output mailbox */

enum rn_cmd_step {
	RN_CMD_STEP_END,
#define RN_CMD_STEP_ENUM(name) RN_CMD_STEP_##name,
	RN_CMD_STEPS(RN_CMD_STEP_ENUM)
#undef RN_CMD_STEP_ENUM
		RN_CMD_STEP_COUNT
};

#define RN_CMD_MAX_STEPS 14

/* What the modifier counts. */
enum rn_cmd_index {
	RN_CMD_INDEX_NONE,
	RN_CMD_INDEX_EQ,
	RN_CMD_INDEX_MPT,
	RN_CMD_INDEX_CQ,
	RN_CMD_INDEX_QP
};

/* One row a command. */
struct rn_cmd_desc {
	uint8_t index;	     /* enum rn_cmd_index */
	uint8_t before_init; /* allowed before INIT_HCA */
	uint16_t in_bytes;   /* least size of the input mailbox; what is read */
	uint16_t out_bytes;
	size_t latency; /* offset of its latency in the parameters */
	uint8_t steps[RN_CMD_MAX_STEPS];
};

enum rn_cmd_state {
	RN_CMD_IDLE,
	RN_CMD_FETCH,	 /* the entry's read waits for the DMA port, then for its answer */
	RN_CMD_RUN,	 /* steps */
	RN_CMD_COMPLETE, /* the entry's write-back */
	RN_CMD_EVENT,	 /* the event waits for room */
};

struct rn_cmd {
	struct rn_block block;
	struct rn_nic_env env;
	struct rn_cmd_params params;
	struct rn_cmd_ports ports;
	/* The queue. */
	uint64_t queue_pa;
	uint32_t pi;
	uint32_t ci;
	/* The NIC as INIT_HCA has set it up. */
	bool is_initialised;
	struct rn_hw_init_hca hca;
	uint8_t eq_live[256];
	/* The command in hand. */
	enum rn_cmd_state state;
	struct rn_hw_cmd entry;
	const struct rn_cmd_desc *desc;
	uint32_t step;	/* index in desc->steps */
	uint8_t status; /* enum rn_cmd_status */
	union {
		struct rn_hw_init_hca hca;
		struct rn_hw_eqc eqc;
		struct rn_hw_mpt mpt;
		struct rn_hw_cqc cqc;
		struct rn_hw_modify_qp modify;
		uint8_t config[offsetof(struct rn_hw_qpc, requester)];
	} in;
	struct rn_hw_mpt mpt; /* entry as it is, or as it is to be */
	uint8_t out[sizeof(struct rn_hw_qpc)];
	/* The step in hand. */
	bool is_sent; /* its request is out, its answer awaited */
	uint32_t sent_count;
	uint64_t ready_ps;
	uint32_t buf; /* of a DMA in flight */
	bool tx_waits;
	bool rx_waits;
	/* What the command holds. */
	bool holds_line;
	bool is_dirty;
	uint32_t line;
	bool is_paused;
	uint8_t old_state; /* QP states of MODIFY_QP */
	uint8_t new_state;
	uint32_t token; /* of requests, counts up */
	char *name;
	struct rn_cmd_counters counters;
};

/** A step: true when it is done. On failure it sets cmd->status and is done. */
#define RN_CMD_STEP_PROTOTYPE(name) bool rn_cmd_step_##name(struct rn_cmd *cmd);
RN_CMD_STEPS(RN_CMD_STEP_PROTOTYPE)
#undef RN_CMD_STEP_PROTOTYPE

/** The row of @opcode, or NULL. */
const struct rn_cmd_desc *rn_cmd_find(uint8_t opcode);

/** Fail the command in hand with @status (enum rn_cmd_status), unless it has failed before. Returns true: the step is done. */
static inline bool rn_cmd_fail(struct rn_cmd *cmd, uint8_t status)
{
	if (cmd->status == RN_CMD_OK)
		cmd->status = status;
	return true;
}

/** Read @len bytes at @pa to @to, over several calls; true when done. False status fails the command. */
bool rn_cmd_dma_read(struct rn_cmd *cmd, uint64_t pa, void *to, uint32_t len);

/** Write @len bytes from @from to @pa with @flags (enum rn_dma_flag), over several calls; true when done. */
bool rn_cmd_dma_write(struct rn_cmd *cmd, uint64_t pa, const void *from, uint32_t len,
		      uint8_t flags);

/** The context type of the command in hand, enum rn_context_type. */
static inline uint8_t rn_cmd_context_type(const struct rn_cmd *cmd)
{
	return cmd->desc->index == RN_CMD_INDEX_CQ ? RN_CONTEXT_CQ : RN_CONTEXT_QP;
}

/** The line that the command holds. */
static inline void *rn_cmd_line(const struct rn_cmd *cmd)
{
	const struct rn_context_sram *sram =
		cmd->desc->index == RN_CMD_INDEX_CQ ? cmd->ports.cqc : cmd->ports.qpc;

	return rn_context_line(sram, cmd->line);
}

/** MTT entries of a region, 0 for a region of no bytes. */
uint64_t rn_cmd_mtt_count(const struct rn_hw_mpt *mpt);

#endif
