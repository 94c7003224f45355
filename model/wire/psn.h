/*
 * 24-bit sequence numbers (PSN, MSN): the only place where they are compared.
 */
#ifndef RN_WIRE_PSN_H
#define RN_WIRE_PSN_H

#include <stdint.h>

#define RN_PSN_MASK 0xffffffu

static inline uint32_t rn_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & RN_PSN_MASK;
}

/** How far @psn lies ahead of @base, modulo 2^24: 0 .. 2^24-1. For windows of up to 2^23 PSNs. */
static inline uint32_t rn_psn_ahead(uint32_t psn, uint32_t base)
{
	return (psn - base) & RN_PSN_MASK;
}

/** Signed distance a - b in -2^23 .. 2^23-1. */
static inline int32_t rn_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
