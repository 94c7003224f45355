/*
 * Time on an Ethernet line: preamble, FCS and inter-packet gap are paid by every frame; rates are
 * exact (the remainder of each division is carried on).
 */
#ifndef RN_WIRE_LINE_H
#define RN_WIRE_LINE_H

#include <stdint.h>

#define RN_LINE_PREAMBLE_BYTES 8u
#define RN_LINE_FCS_BYTES 4u
#define RN_LINE_GAP_BYTES 12u
#define RN_LINE_MIN_FRAME_BYTES 60u /* without FCS */

/* One direction of a line: when it is free again, and the carried fraction of a picosecond. */
struct rn_line {
	uint64_t bps;
	uint64_t free_ps;
	uint64_t carry; /* of 1/bps picoseconds */
};

/** @bps: 10^6 .. 10^12 bits a second. */
static inline void rn_line_init(struct rn_line *line, uint64_t bps)
{
	line->bps = bps;
	line->free_ps = 0;
	line->carry = 0;
}

/** Bytes that a frame of @bytes (without FCS) takes on the line, gap included. */
static inline uint32_t rn_line_bytes(uint32_t bytes)
{
	if (bytes < RN_LINE_MIN_FRAME_BYTES)
		bytes = RN_LINE_MIN_FRAME_BYTES;
	return bytes + RN_LINE_PREAMBLE_BYTES + RN_LINE_FCS_BYTES + RN_LINE_GAP_BYTES;
}

/**
 * Send a frame of @bytes no earlier than @at_ps. Returns the time of its first bit; *@end_ps is when the
 * last bit of its FCS has left. The line is busy for the gap as well.
 */
static inline uint64_t rn_line_send(struct rn_line *line, uint64_t at_ps, uint32_t bytes,
				    uint64_t *end_ps)
{
	const uint64_t ps_per_s = 1000000000000u;
	uint64_t start_ps = at_ps > line->free_ps ? at_ps : line->free_ps;
	uint64_t gap = (uint64_t)RN_LINE_GAP_BYTES * 8 * ps_per_s / line->bps;
	uint64_t scaled;

	if (start_ps > line->free_ps)
		line->carry = 0; /* the line was idle */
	scaled = (uint64_t)rn_line_bytes(bytes) * 8 * ps_per_s + line->carry;
	line->free_ps = start_ps + scaled / line->bps;
	line->carry = scaled % line->bps;
	*end_ps = line->free_ps - gap;
	return start_ps;
}

#endif
