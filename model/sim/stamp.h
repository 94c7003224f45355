/*
 * Time stamps of the stages of each WQE, for the per-WQE timeline. Off costs one load
 * and a branch.
 */
#ifndef RN_SIM_STAMP_H
#define RN_SIM_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RN_STAMP_STAGES(X)                                                                         \
	X(POST, "post", "the WQE was written by host software")                                    \
	X(DOORBELL, "doorbell", "its doorbell reached the doorbell unit")                          \
	X(SCHED, "sched", "the scheduler granted its queue pair")                                  \
	X(FETCH, "fetch", "the WQE is decoded on the NIC")                                         \
	X(CONTEXT, "context", "the QP context is held by transport")                               \
	X(TRANSLATION, "translation", "the first local page is translated")                        \
	X(DMA, "dma", "the first packet's payload has arrived from host memory")                   \
	X(FIRST_PACKET, "first_packet", "first bit of the first packet left the port")             \
	X(LAST_PACKET, "last_packet", "first bit of the last packet left the port")                \
	X(ACK, "ack", "the acknowledgement or last response was processed")                        \
	X(CQE, "cqe", "the CQE's PCIe write was issued")                                           \
	X(CQE_VISIBLE, "cqe_visible", "the CQE is visible in host memory")

enum rn_stamp_stage {
#define RN_STAMP_ENUM(id, name, help) RN_STAMP_##id,
	RN_STAMP_STAGES(RN_STAMP_ENUM)
#undef RN_STAMP_ENUM
		RN_STAMP_STAGE_COUNT
};

struct rn_stamp {
	uint64_t at_ps;
	uint32_t host;
	uint32_t qpn;
	uint32_t wqe_idx; /* free-running WQE index within the queue, low 16 bits */
	uint8_t stage;	  /* enum rn_stamp_stage */
	uint8_t receive;  /* 1: receive queue */
	uint16_t count; /* nth time this stage was recorded for it (retransmission): filled when read */
};

struct rn_stamps;

/** @enabled false makes every record a no-op. @limit bounds memory; later stamps are counted, not kept. */
struct rn_stamps *rn_stamps_new(bool enabled, size_t limit);
void rn_stamps_free(struct rn_stamps *stamps);
void rn_stamps_record_slow(struct rn_stamps *stamps, const struct rn_stamp *stamp);
bool rn_stamps_is_enabled(const struct rn_stamps *stamps);

/** Sort by (host, qpn, receive, wqe_idx, time, stage) and return the array; owned by @stamps. */
const struct rn_stamp *rn_stamps_sorted(struct rn_stamps *stamps, size_t *count, uint64_t *lost);
const char *rn_stamp_stage_name(enum rn_stamp_stage stage);
const char *rn_stamp_stage_help(enum rn_stamp_stage stage);

static inline void rn_stamps_record(struct rn_stamps *stamps, const struct rn_stamp *stamp)
{
	if (stamps && rn_stamps_is_enabled(stamps))
		rn_stamps_record_slow(stamps, stamp);
}

#endif
