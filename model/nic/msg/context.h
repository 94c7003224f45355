/*
 * Ports of the context caches (QPC, CQC, SRQC) and the SRAM their lines lie in. A line is
 * acquired (pinned), read and written in place by section, and released. A block holds at
 * most one line of a type at a time; a prefetch takes none.
 */
#ifndef RN_NIC_MSG_CONTEXT_H
#define RN_NIC_MSG_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

enum rn_context_type { RN_CONTEXT_QP, RN_CONTEXT_CQ, RN_CONTEXT_SRQ, RN_CONTEXT_TYPES };

/* Clients: each has a request and a response fifo. */
enum rn_context_client {
	RN_CONTEXT_CLIENT_WQE_FETCH,
	RN_CONTEXT_CLIENT_TX,
	RN_CONTEXT_CLIENT_RX,
	RN_CONTEXT_CLIENT_CQE,
	RN_CONTEXT_CLIENT_CMD,
	RN_CONTEXT_CLIENT_COUNT
};

enum rn_context_op {
	RN_CONTEXT_ACQUIRE,  /* answered with the line when it is present */
	RN_CONTEXT_RELEASE,  /* not answered */
	RN_CONTEXT_PREFETCH, /* not answered, no pin; dropped when no miss register is free */
	RN_CONTEXT_FLUSH,    /* wait until nobody pins it, write back if dirty, drop; answered */
};

struct rn_context_req {
	uint8_t op;
	uint8_t type;
	uint8_t dirty; /* release: the line was written */
	uint8_t exclusive; /* acquire: wait until nobody else holds the line, and keep others out until the release */
	uint16_t token;
	uint16_t reserved2;
	uint32_t number; /* QPN, CQN, SRQN */
};

enum rn_context_status {
	RN_CONTEXT_OK,
	RN_CONTEXT_BAD_NUMBER, /* beyond the table */
	RN_CONTEXT_ABORT,      /* its DMA read failed */
};

struct rn_context_rsp {
	uint16_t token;
	uint8_t status;
	uint8_t hit;
	uint32_t line; /* index into the type's SRAM */
};

/* What sq_next of a line was before the cycle that ended at @at_ps changed it. */
struct rn_context_before {
	uint64_t at_ps;
	uint32_t sq_next;
};

/*
 * The SRAM of one context type: @bytes a line. Every section of a line has one writing block;
 * readers of a foreign section read it only when a message has told them that it is stable. The one exception is
 * sq_next, which transport may set back while a grant is under way: reads of it are registered, so that what is
 * written in a cycle is read from the next on.
 */
struct rn_context_sram {
	uint8_t *lines;
	uint32_t bytes;
	uint32_t count;
	struct rn_context_before *before; /* one a line; NULL: reads are not registered */
};

static inline void *rn_context_line(const struct rn_context_sram *sram, uint32_t line)
{
	return sram->lines + (uint64_t)line * sram->bytes;
}

/** The writer is about to change sq_next of @line, perhaps; @sq_next is what it is. */
static inline void rn_context_note_sq_next(const struct rn_context_sram *sram, uint32_t line,
					   uint64_t now_ps, uint32_t sq_next)
{
	struct rn_context_before *before = sram->before ? &sram->before[line] : NULL;

	if (before && before->at_ps != now_ps)
		*before = (struct rn_context_before){.at_ps = now_ps, .sq_next = sq_next};
}

/** What a reader sees in this cycle; @sq_next is what stands in @line now. */
static inline uint32_t rn_context_read_sq_next(const struct rn_context_sram *sram, uint32_t line,
					       uint64_t now_ps, uint32_t sq_next)
{
	return sram->before && sram->before[line].at_ps == now_ps ? sram->before[line].sq_next
								  : sq_next;
}

/* Base and size of a table in host memory; from CMD_INIT_HCA to the caches. */
struct rn_context_base {
	uint8_t type; /* enum rn_context_type */
	uint8_t log_entries;
	uint8_t reserved[6];
	uint64_t base_pa;
};

#endif
