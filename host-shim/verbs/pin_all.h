/*
 * Giving back every page that lies in the arena: at disconnect, and in a child after fork.
 */
#ifndef RN_VERBS_PIN_ALL_H
#define RN_VERBS_PIN_ALL_H

#include "verbs/maps.h"

/** Copy every mapping of the arena into private memory, in place. */
void rn_pin_all_back(const struct rn_maps_arena *arena);

#endif
