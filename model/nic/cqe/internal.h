/*
 * The CQE writer's state, shared by its two sources.
 */
#ifndef RN_NIC_CQE_INTERNAL_H
#define RN_NIC_CQE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"
#include "nic/cqe/arms.h"
#include "nic/cqe/cqe.h"
#include "sim/stats.h"

#define CQ_INDEX_MASK 0xffffffu /* CQ indexes in doorbells and records have 24 bits */

#define CQE_COUNTERS(X)                                                                            \
	X(cqes, "events", "CQEs written")                                                          \
	X(error_cqes, "events", "of them, with an error status")                                   \
	X(completion_events, "events", "events raised for armed CQs")                              \
	X(arms, "events", "arms taken")                                                            \
	X(arms_ignored, "events", "arms from a page that is not the CQ's, or of no live CQ")       \
	X(ci_reads, "events", "doorbell records read because a ring looked full")                  \
	X(cq_overruns, "events", "CQs put into error by an overrun")                               \
	X(cq_write_errors, "events", "CQEs that could not be written")                             \
	X(completions_dropped, "events", "completions to a CQ in error or to none")

struct cqe_counters {
	CQE_COUNTERS(RN_COUNTER_FIELD)
};

enum cqe_state { IDLE, ACQUIRING, HOLDING, READING };
enum cqe_source { SOURCE_TX, SOURCE_RX, SOURCE_PENDING, SOURCES };

/* A CQE on its way to memory, or its event on the way to eq. */
struct cqe_slot {
	uint64_t order;
	uint32_t buf; /* RN_BUFFER_NONE: written */
	uint32_t cqn;
	uint8_t eqn;
	bool is_used;
	bool fires;
};

struct rn_cqe {
	const struct rn_nic_env *env;
	struct rn_cqe_params params;
	struct rn_cqe_ports ports;
	char *name;
	struct rn_block block;
	struct cqe_counters count;
	struct rn_cq_arms *arms;
	/* The job that has, or waits for, a line. */
	enum cqe_state state;
	enum cqe_source source;
	enum cqe_source turn; /* source to look at first */
	uint32_t cqn;
	uint32_t line;
	struct rn_completion completion;
	struct rn_cq_pending pending;
	bool is_ci_fresh;
	uint32_t ci_buf;
	uint64_t next_acquire_cycle;
	/* CQEs in flight. */
	struct cqe_slot *slot;
	uint16_t *free_slot; /* stack */
	uint32_t free_count;
	uint64_t written;
	uint16_t *event; /* slots whose event waits, a ring of in_flight entries */
	uint32_t event_head;
	uint32_t event_count;
	/* The CQ control request being served. */
	bool has_ctl;
	uint64_t taken[2];	/* completions taken from tx, rx */
	uint64_t ctl_behind[2]; /* the request waits until so many are taken */
	enum rn_stall stall;
};

static inline struct rn_hw_cqc *held_cqc(const struct rn_cqe *cqe)
{
	return rn_context_line(cqe->ports.cqc, cqe->line);
}

/** Push an event; the port has space. */
void rn_cqe_push_event(struct rn_cqe *cqe, uint8_t eqn, uint8_t type, uint32_t cqn);

/**
 * Do the job for which a line is held and release the line (state IDLE), or go on to read the consumer
 * index (state READING). False: something is missing, try again; the stall reason is set.
 */
bool rn_cqe_do_job(struct rn_cqe *cqe);

#endif
