/*
 * Inside of the root complex, for its own sources: root_complex.c (writes, interrupts),
 * root_read.c, root_mmio.c, and endpoint.c, which sends what the NIC has.
 */
#ifndef RN_PCIE_ROOT_PORT_H
#define RN_PCIE_ROOT_PORT_H

#include "nic/msg/doorbell.h"
#include "nic/msg/pcie.h"
#include "pcie/link.h"
#include "pcie/ring.h"
#include "pcie/root_complex.h"
#include "sim/block.h"
#include "sim/stats.h"

#define RN_MMIO_READS_MAX 16

#define RN_ROOT_COMPLEX_COUNTERS(X)                                                                \
	X(reads, "requests", "memory reads served")                                                \
	X(read_bytes, "bytes", "their data")                                                       \
	X(read_aborts, "requests", "reads of memory that is not there: completer abort")           \
	X(writes, "bursts", "memory writes done")                                                  \
	X(write_bytes, "bytes", "their data")                                                      \
	X(write_aborts, "bursts", "writes to memory that is not there: dropped")                   \
	X(interrupts, "events", "MSI-X messages delivered")                                        \
	X(mmio_writes, "requests", "MMIO writes sent to the NIC")                                  \
	X(mmio_reads, "requests", "MMIO reads sent to the NIC")                                    \
	X(mmio_full, "events", "MMIO accesses refused because the queue was full")                 \
	X(reads_max, "requests", "most reads in the root complex at once")

struct rn_root_complex_counters {
	RN_ROOT_COMPLEX_COUNTERS(RN_COUNTER_FIELD)
};

struct rn_root_write {
	struct rn_tlp tlp;
	uint64_t visible_ps;
};

struct rn_root_read {
	struct rn_tlp tlp;
	uint64_t arrival_ps; /* of its last bit; not before earlier writes are visible */
	uint64_t ready_ps;   /* served then; valid when admitted */
};

struct rn_root_interrupt {
	uint64_t due_ps;
	uint32_t vector;
};

struct rn_mmio_op {
	uint64_t due_ps; /* at the root port */
	bool is_read;
	struct rn_mmio_write write; /* of a read: offset and len */
	uint32_t slot;		    /* of a read */
};

struct rn_mmio_slot {
	void (*done)(void *arg, uint64_t value);
	void *arg;
	uint64_t offset;
	uint32_t len;
	bool in_use;
};

struct rn_mmio_answer {
	uint64_t due_ps;
	uint32_t slot;
	uint64_t value;
};

struct rn_endpoint;

struct rn_root_complex {
	struct rn_block block;
	struct rn_block down_block;  /* never ticks: the account of the link's way down */
	struct rn_block write_block; /* the same of the memory's write side */
	struct rn_root_complex_env env;
	struct rn_root_complex_params params;
	struct rn_pcie_params pcie;
	struct rn_pcie_ports ports;
	struct rn_endpoint *endpoint;
	struct rn_link down;
	char *name;
	char *down_name;
	char *write_name;
	struct rn_root_complex_counters counters;

	struct rn_link write_server; /* memory bandwidth */
	uint64_t write_accounted_ps; /* of its busy time */
	struct rn_ring writes;	     /* struct rn_root_write, in order of arrival */
	struct rn_ring flushes;	     /* uint64_t: when writes must be done */
	struct rn_ring completions;  /* uint64_t: when CQEs among them become visible */
	uint64_t visible_ps;	     /* of the last write that arrived */
	struct rn_ring interrupts;   /* struct rn_root_interrupt */

	struct rn_link read_server;
	uint64_t accounted_ps; /* of its busy time */
	struct rn_ring reads;  /* struct rn_root_read, in order of arrival */
	uint64_t admitted;     /* reads admitted so far; those before reads.head have been served */
	uint64_t *slot_free_ps; /* at n modulo outstanding_reads: when the slot of read n came free */

	struct rn_mmio_op *mmio; /* a ring of params.mmio_queue_entries */
	uint32_t mmio_head;
	uint32_t mmio_count;
	uint64_t mmio_due_ps; /* of the last one posted */
	bool mmio_waits;      /* for space at the NIC */
	uint64_t mmio_credit_ps;
	struct rn_mmio_slot slots[RN_MMIO_READS_MAX];
	struct rn_ring answers; /* struct rn_mmio_answer */

	void (*msi)(void *arg, uint32_t vector);
	void *msi_arg;
	void (*abort_hook)(void *arg, uint64_t pa);
	void *abort_hook_arg;
	void (*write_hook)(void *arg, uint64_t pa);
	void *write_hook_arg;
	void (*completion_hook)(void *arg, uint64_t pa);
	void *completion_hook_arg;
};

/** The clock of whatever has no clock edges of its own: its cycles are picoseconds. */
extern const struct rn_clock rn_pcie_clock;

/*
 * endpoint -> root complex. Times of arrival do not go back, and are later than the present time.
 */

/** A write of @bytes arrives: when the memory system has taken it. */
static inline uint64_t rn_root_drain(struct rn_root_complex *rc, uint64_t arrival_ps,
				     uint32_t bytes)
{
	return rn_link_send(&rc->write_server, arrival_ps, bytes);
}

/** All TLPs of this write or MSI-X have been taken by @drained_ps. */
void rn_root_take_write(struct rn_root_complex *rc, const struct rn_tlp *tlp, uint64_t drained_ps);
void rn_root_take_read(struct rn_root_complex *rc, const struct rn_tlp *tlp, uint64_t arrival_ps);
void rn_root_take_answer(struct rn_root_complex *rc, const struct rn_mmio_read_rsp *rsp,
			 uint64_t arrival_ps);

/* Reads. */
void rn_root_serve_reads(struct rn_root_complex *rc, uint64_t now_ps);
/** When the next read is due, RN_TIME_NEVER if none is. */
uint64_t rn_root_next_read_ps(const struct rn_root_complex *rc);

/* MMIO. */
void rn_root_run_mmio(struct rn_root_complex *rc, uint64_t now_ps);
uint64_t rn_root_next_mmio_ps(const struct rn_root_complex *rc);
/** Whether a MMIO write waits for the NIC: completions may not pass it. */
static inline bool rn_root_mmio_is_blocked(const struct rn_root_complex *rc, uint64_t now_ps)
{
	const struct rn_mmio_op *op = &rc->mmio[rc->mmio_head];

	return rc->mmio_count && op->due_ps <= now_ps && !op->is_read;
}

/** Send on the way down: when the last bit has left. */
static inline uint64_t rn_root_send(struct rn_root_complex *rc, uint64_t at_ps, uint32_t bytes)
{
	uint64_t busy_ps = rc->down.counters.busy_ps;
	uint64_t end_ps = rn_link_send(&rc->down, at_ps, bytes);

	rn_block_account(&rc->down_block, rc->down.counters.busy_ps - busy_ps, RN_STALL_NONE);
	return end_ps;
}

#endif
