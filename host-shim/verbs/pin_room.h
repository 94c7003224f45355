/*
 * How many mappings the process may still have. Exchanging pages makes mappings, the kernel limits them
 * (vm.max_map_count), and the program wants some for itself.
 */
#ifndef RN_VERBS_PIN_ROOM_H
#define RN_VERBS_PIN_ROOM_H

#include <stdbool.h>
#include <stddef.h>

struct rn_pin_room {
	size_t limit;	/* mappings up to which pages are exchanged */
	size_t counted; /* when they were last counted */
	size_t added;	/* by exchanges since, at most */
	size_t refused; /* since then */
};

/** Count the mappings and read the kernel's limit. */
void rn_pin_room_init(struct rn_pin_room *room);

/** Whether @exchanges runs of pages may be exchanged. Mostly a comparison; now and then the mappings are counted anew. */
bool rn_pin_room_has(struct rn_pin_room *room, unsigned exchanges);

/** One run has been exchanged. */
void rn_pin_room_take(struct rn_pin_room *room);

#endif
