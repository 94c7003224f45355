/*
 * Giving back pages that lie in the arena, wherever the program has put them and whatever protection it gave them.
 */
#ifndef RN_VERBS_PIN_ALL_H
#define RN_VERBS_PIN_ALL_H

#include <stdbool.h>
#include <stdint.h>

#include "verbs/maps.h"

/** Copy every mapping of the arena into private memory, in place: at disconnect, and in a child after fork. */
void rn_pin_all_back(const struct rn_maps_arena *arena);

/** Copy the pages of [@va, @va + @pages) back, which are mapped with @protection and keep it. 0, ENOMEM or EBUSY. */
int rn_pin_back(uint64_t va, unsigned pages, int protection);

/**
 * Copy back what the program has moved elsewhere (mremap): mappings of the pages at these @count @offsets of the
 * arena, ascending. False when one of them had to stay. Reads the whole address map.
 */
bool rn_pin_moved_back(const struct rn_maps_arena *arena, const uint64_t *offsets, unsigned count);

#endif
