/*
 * A connection on which something goes wrong: MTU 1024, PSNs that wrap, asynchronous events watched, the target
 * filled with 0xee.
 */
#ifndef RN_TEST_SYSTEM_ERROR_RIG_H
#define RN_TEST_SYSTEM_ERROR_RIG_H

#include "frames.h"
#include "world.h"

#define ERROR_BUFFER (1u << 16)
#define ERROR_MTU 1024u
#define ERROR_BYTES (3 * ERROR_MTU) /* of a message: first, middle, last */
#define ERROR_FIRST_PSN 0xfffffeu

/* enum ibv_event_type */
#define EVENT_CQ_ERR 0u
#define EVENT_QP_REQ_ERR 2u
#define EVENT_QP_ACCESS_ERR 3u
#define EVENT_SQ_DRAINED 5u
#define NO_EVENT UINT32_MAX

struct error_rig {
	struct world world;
	struct world_link link;
	struct frames frames;
};

void error_start(struct error_rig *rig);
/** The run is over: read the capture. */
void error_load(struct error_rig *rig);
void error_finish(struct error_rig *rig);

/** Post on side 0 under @wr_id; not rung. */
void error_post(struct error_rig *rig, const struct rn_scripted_wr *wr, uint64_t wr_id);

/** The next completions of a side are these, in the order of their wr_ids from @wr_id on, and no more. */
void error_expect(struct error_rig *rig, unsigned side, uint64_t wr_id, const uint8_t *statuses,
		  unsigned count);

/** The asynchronous events of a side: this one and no other. */
void error_expect_event(struct error_rig *rig, unsigned side, uint32_t type, uint32_t object);

#endif
