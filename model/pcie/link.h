/*
 * One direction of a PCIe link: a serialiser with an exact rate. Time on the link is handed out
 * in order of asking, so a direction needs no wake of its own: who sends knows at once when the
 * last bit arrives.
 */
#ifndef RN_PCIE_LINK_H
#define RN_PCIE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/msg/pcie.h"
#include "sim/stats.h"

#define RN_LINK_COUNTERS(X)                                                                        \
	X(posted_tlps, "TLPs", "memory writes and MSI-X sent")                                     \
	X(posted_bytes, "bytes", "their data")                                                     \
	X(nonposted_tlps, "TLPs", "memory reads sent")                                             \
	X(nonposted_bytes, "bytes", "data they asked for")                                         \
	X(completion_tlps, "TLPs", "completions sent")                                             \
	X(completion_bytes, "bytes", "their data")                                                 \
	X(wire_bytes, "bytes", "bytes of all TLPs with their overhead")                            \
	X(busy_ps, "ps", "time the link carried TLPs")                                             \
	X(credit_stall_ps, "ps", "time a TLP waited for flow-control credits alone")

struct rn_link_counters {
	RN_LINK_COUNTERS(RN_COUNTER_FIELD)
};

struct rn_link {
	/* Time of a byte: num / den picoseconds, DLLP overhead included. */
	uint64_t num;
	uint64_t den;
	uint64_t den_inverse;
	uint64_t free_ps;  /* end of what has been sent, rounded down */
	uint64_t fraction; /* and the rest of it, in 1/den ps */
	uint64_t propagation_ps;
	struct rn_link_counters counters;
};

void rn_link_init(struct rn_link *link, const struct rn_pcie_params *params);

/** Any other server of bytes: @num / @den picoseconds a byte, no propagation. */
void rn_link_init_rate(struct rn_link *link, uint64_t num, uint64_t den);

/** Register the counters as @instance. */
void rn_link_register(struct rn_link *link, struct rn_stats *stats, const char *instance);

/** When something sent now, but not before @at_ps, has its first bit on the link. */
static inline uint64_t rn_link_start_ps(const struct rn_link *link, uint64_t at_ps)
{
	return at_ps > link->free_ps ? at_ps : link->free_ps;
}

/**
 * Send @bytes (overhead included) no earlier than @at_ps. Returns when their last bit has left;
 * they are usable at the other end link->propagation_ps later.
 */
static inline uint64_t rn_link_send(struct rn_link *link, uint64_t at_ps, uint32_t bytes)
{
	if (at_ps > link->free_ps) {
		link->free_ps = at_ps;
		link->fraction = 0;
	}

	uint64_t parts = bytes * link->num + link->fraction;
	uint64_t ps = rn_clock_quotient(parts, link->den, link->den_inverse);

	link->fraction = parts - ps * link->den;
	link->free_ps += ps;
	link->counters.busy_ps += ps;
	link->counters.wire_bytes += bytes;
	return link->free_ps;
}

/** TLPs of a write of @len (>= 1) bytes: all but the last have MPS bytes. */
uint32_t rn_link_write_tlps(const struct rn_pcie_params *params, uint32_t len);

/**
 * Data bytes of the first completion of what remains of a read: @len bytes from @addr.
 * Completions end at a multiple of RCB, have at most MPS bytes, and are as long as that allows.
 */
uint32_t rn_link_completion_bytes(const struct rn_pcie_params *params, uint64_t addr, uint32_t len);

/** Completions of a read of @len bytes from @addr, when they are as few as can be. */
uint32_t rn_link_completion_tlps(const struct rn_pcie_params *params, uint64_t addr, uint32_t len);

/** Whether the sizes are powers of two and fit each other; otherwise *@why says what is legal. */
bool rn_pcie_params_check(const struct rn_pcie_params *params, const char **why);

#endif
