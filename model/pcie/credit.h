/*
 * Flow-control credits of one class at the sender (PCIe base specification, 2.6): a TLP takes a
 * header credit and a data credit per 16 bytes; the receiver gives them back in the order in
 * which it frees its buffer.
 */
#ifndef RN_PCIE_CREDIT_H
#define RN_PCIE_CREDIT_H

#include <stdint.h>

#include "base/assert.h"
#include "sim/sim.h"

#define RN_CREDIT_HEADERS_MAX 128 /* without scaled flow control: 127 */

struct rn_credit {
	uint32_t header_limit;
	uint32_t data_limit;
	uint32_t headers; /* taken, not known to be back */
	uint32_t data;
	uint32_t known;	     /* of these headers: whose return time is known */
	uint32_t oldest_idx; /* of these headers, in back[] */
	uint64_t free_ps;    /* when the credits given back last became usable */
	struct {
		uint64_t at_ps;
		uint32_t data;
	} back[RN_CREDIT_HEADERS_MAX];
};

/** @headers: 1 .. 127; @data: in units of 16 bytes, at least what the largest TLP needs. */
void rn_credit_init(struct rn_credit *credit, uint32_t headers, uint32_t data);

static inline uint32_t rn_credit_idx(const struct rn_credit *credit, uint32_t nth)
{
	return (credit->oldest_idx + nth) % RN_CREDIT_HEADERS_MAX;
}

/* Take credits back, the oldest first, until there are enough. */
uint64_t rn_credit_take_back(struct rn_credit *credit, uint32_t data);

/** When a TLP of @data units can have its credits; RN_TIME_NEVER when that is not known yet. */
static inline uint64_t rn_credit_ready_ps(struct rn_credit *credit, uint32_t data)
{
	RN_ASSERT(data <= credit->data_limit);
	if (credit->headers == credit->header_limit || credit->data + data > credit->data_limit)
		return rn_credit_take_back(credit, data);
	return credit->free_ps;
}

/** Take them; rn_credit_ready_ps() has just returned a time. */
static inline void rn_credit_take(struct rn_credit *credit, uint32_t data)
{
	RN_ASSERT(credit->headers < credit->header_limit);
	credit->back[rn_credit_idx(credit, credit->headers)].data = data;
	credit->headers++;
	credit->data += data;
}

/**
 * The credits of the oldest TLP whose return was not known become usable at @at_ps (not before
 * earlier ones).
 */
static inline void rn_credit_give(struct rn_credit *credit, uint64_t at_ps)
{
	RN_ASSERT(credit->known < credit->headers);
	credit->back[rn_credit_idx(credit, credit->known)].at_ps = at_ps;
	credit->known++;
}

static inline uint32_t rn_credit_units(uint32_t bytes)
{
	return (bytes + 15) / 16;
}

#endif
