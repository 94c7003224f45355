/*
 * Things under way to one place inside the fabric, sorted by the time at which they get there.
 */
#ifndef RN_FABRIC_TRANSIT_H
#define RN_FABRIC_TRANSIT_H

#include <stddef.h>
#include <stdint.h>

#include "nic/msg/frame.h"
#include "wire/packet.h"

struct rn_transit {
	uint64_t at_ps; /* when it gets there */
	uint64_t seq;	/* of its input port */
	uint32_t input;
	int32_t bytes; /* of a buffer's account: in or, negative, out */
	struct rn_frame frame;
};

/* Sorted by (time, input port, sequence): a ring that grows. */
struct rn_transit_list {
	struct rn_transit *item;
	uint32_t room; /* power of two */
	uint32_t head;
	uint32_t count;
};

static inline struct rn_transit *rn_transit_at(const struct rn_transit_list *list, uint32_t i)
{
	return &list->item[(list->head + i) & (list->room - 1)];
}

/** The first of @list if it is there by @now_ps, else NULL. */
static inline const struct rn_transit *rn_transit_due(const struct rn_transit_list *list,
						      uint64_t now_ps)
{
	if (!list->count || rn_transit_at(list, 0)->at_ps > now_ps)
		return NULL;
	return rn_transit_at(list, 0);
}

static inline void rn_transit_drop(struct rn_transit_list *list)
{
	list->head = (list->head + 1) & (list->room - 1);
	list->count--;
}

void rn_transit_insert(struct rn_transit_list *list, const struct rn_transit *transit);

/** Free the list, and with @packets the frames in it. */
void rn_transit_fini(struct rn_transit_list *list, struct rn_packets *packets);

#endif
