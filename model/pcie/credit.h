/*
 * Flow-control credits of one class at the sender (PCIe base specification, 2.6): a TLP takes a
 * header credit and a data credit per 16 bytes; the receiver gives them back in the order in
 * which it frees its buffer.
 */
#ifndef RN_PCIE_CREDIT_H
#define RN_PCIE_CREDIT_H

#include <stdint.h>

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

/** When a TLP of @data units can have its credits; RN_TIME_NEVER when that is not known yet. */
uint64_t rn_credit_ready_ps(struct rn_credit *credit, uint32_t data);

/** Take them; rn_credit_ready_ps() has just returned a time. */
void rn_credit_take(struct rn_credit *credit, uint32_t data);

/**
 * The credits of the oldest TLP whose return was not known become usable at @at_ps (not before
 * earlier ones).
 */
void rn_credit_give(struct rn_credit *credit, uint64_t at_ps);

static inline uint32_t rn_credit_units(uint32_t bytes)
{
	return (bytes + 15) / 16;
}

#endif
