/*
 * Busy cycles of a block whose parts work side by side, each for several cycles at a time: the
 * cycles in which at least one of them was occupied.
 */
#ifndef RN_NIC_TRANSPORT_OCCUPANCY_H
#define RN_NIC_TRANSPORT_OCCUPANCY_H

#include <stdint.h>

struct rn_occupancy {
	uint64_t to_cycle;	/* some part is occupied up to here */
	uint64_t counted_cycle; /* up to here it has been counted */
};

/** Some part is occupied from @cycle on for @cycles. */
static inline void rn_occupy(struct rn_occupancy *occupancy, uint64_t cycle, uint64_t cycles)
{
	if (occupancy->to_cycle < cycle + cycles)
		occupancy->to_cycle = cycle + cycles;
}

/** Busy cycles to be counted in the tick of @cycle, future ones of a part occupied now included. */
static inline uint64_t rn_occupancy_count(struct rn_occupancy *occupancy, uint64_t cycle)
{
	uint64_t from = occupancy->counted_cycle > cycle ? occupancy->counted_cycle : cycle;

	if (occupancy->to_cycle <= from)
		return 0;
	occupancy->counted_cycle = occupancy->to_cycle;
	return occupancy->to_cycle - from;
}

#endif
