/*
 * The doorbell unit's state, shared by its two sources.
 */
#ifndef RN_NIC_DOORBELL_INTERNAL_H
#define RN_NIC_DOORBELL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/doorbell/doorbell.h"
#include "nic/doorbell/pending.h"
#include "sim/stats.h"

#define DOORBELL_COUNTERS(X)                                                                       \
	X(sq_doorbells, "events", "send queue doorbells, BlueFlame ones included")                 \
	X(blueflame_wqes, "events", "WQEs passed on as BlueFlame data")                            \
	X(blueflame_dropped, "events", "BlueFlame WQEs whose data was dropped; the ring went on")  \
	X(cq_arms, "events", "CQ arm writes")                                                      \
	X(rq_kicks, "events", "receive queue kicks")                                               \
	X(rq_kicks_dropped, "events", "receive queue kicks without a place in the table")          \
	X(commands, "events", "command doorbells")                                                 \
	X(reads, "events", "register reads")                                                       \
	X(kept, "events", "doorbells kept per QP because the fifo behind was full")                \
	X(illegal_writes, "events", "writes to no register or of a wrong size, ignored")

struct doorbell_counters {
	DOORBELL_COUNTERS(RN_COUNTER_FIELD)
};

/* A write that has been taken in. */
struct held_write {
	uint64_t ready_cycle;
	struct rn_mmio_write write;
};

/* A BlueFlame WQE of which the first piece has come but not the last. */
struct collection {
	uint64_t since; /* order of age */
	uint32_t uar_page;
	uint32_t buf; /* RN_BUFFER_NONE: the entry is free */
	uint32_t qpn;
	uint16_t wqe_idx;
	uint8_t register_idx; /* which of the page's BlueFlame buffers */
	uint8_t wqebbs;
	uint8_t have;
};

/*
 * Cycles that the table of kept doorbells is looked at before a doorbell is kept behind others: its QP's place
 * is read in one, what is kept there in the next.
 */
#define RN_DOORBELL_LOOKUP_CYCLES 2

struct rn_doorbell {
	const struct rn_nic_env *env;
	struct rn_doorbell_params params;
	struct rn_doorbell_identity identity;
	struct rn_doorbell_ports ports;
	char *name;
	struct rn_block block;
	struct doorbell_counters count;
	/* Writes taken in and not yet decoded: a ring of fifo_entries. */
	struct held_write *held;
	uint64_t taken;	  /* writes taken in so far */
	uint64_t decoded; /* of them, decoded */
	uint64_t next_take_cycle;
	/* BlueFlame. */
	struct collection *collect;
	uint64_t collections;
	/* Doorbells that wait outside the fifo. */
	struct rn_doorbell_pending *sq_pending; /* NULL unless params.recover */
	struct rn_doorbell_pending *rq_pending;
	/* A port with kept doorbells at the start of the cycle is theirs in this cycle. */
	bool sq_is_theirs;
	bool rq_is_theirs;
	uint32_t lookup_cycles; /* done for the oldest write's doorbell */
	bool has_looked_up;	/* in this cycle */
	struct rn_cmd_ring cmd_pending;
	bool has_cmd_pending;
	/* Registers. */
	uint64_t cmd_queue_pa;
	uint32_t status;
	/* The register read being served. */
	bool has_read;
	uint64_t read_behind; /* it waits until so many writes are decoded */
	uint64_t read_ready_cycle;
	enum rn_stall stall;
};

/**
 * Carry out one posted write. False: a fifo behind is full and the write has to wait; nothing has been
 * done that doing it again would repeat.
 */
bool rn_doorbell_decode(struct rn_doorbell *db, const struct rn_mmio_write *write);

#endif
