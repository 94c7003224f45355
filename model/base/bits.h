/*
 * Bit arithmetic and byte order. Loads and stores work on unaligned bytes.
 */
#ifndef RN_BASE_BITS_H
#define RN_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RN_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline bool rn_is_pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/** Smallest l with 2^l >= v; 0 for v <= 1. */
static inline unsigned rn_log2_ceil(uint64_t v)
{
	return v <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(v - 1);
}

static inline uint64_t rn_div_ceil(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

static inline uint64_t rn_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t rn_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#define RN_DEFINE_ENDIAN(bits)                                                                     \
	static inline uint##bits##_t rn_get_be##bits(const void *p)                                \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
		memcpy(&v, p, sizeof(v));                                                          \
		return __builtin_bswap##bits(v);                                                   \
	}                                                                                          \
	static inline void rn_put_be##bits(void *p, uint##bits##_t v)                              \
	{                                                                                          \
		v = __builtin_bswap##bits(v);                                                      \
		memcpy(p, &v, sizeof(v));                                                          \
	}                                                                                          \
	static inline uint##bits##_t rn_get_le##bits(const void *p)                                \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
		memcpy(&v, p, sizeof(v));                                                          \
		return v;                                                                          \
	}                                                                                          \
	static inline void rn_put_le##bits(void *p, uint##bits##_t v)                              \
	{                                                                                          \
		memcpy(p, &v, sizeof(v));                                                          \
	}

RN_DEFINE_ENDIAN(16)
RN_DEFINE_ENDIAN(32)
RN_DEFINE_ENDIAN(64)

#undef RN_DEFINE_ENDIAN

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rnicsim runs on little-endian hosts"
#endif

#endif
