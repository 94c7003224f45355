/*
 * Where rewritten instructions are: asked by signal handlers, at any moment.
 */
#ifndef RN_PRELOAD_TSC_SITES_H
#define RN_PRELOAD_TSC_SITES_H

#include <stdbool.h>
#include <stdint.h>

/** @bytes (2 rdtsc, 3 rdtscp) at @at have become ud2. One caller at a time. False: no memory. */
bool rn_tsc_sites_add(uintptr_t at, uint8_t bytes);

/** Bytes of the instruction that stood at @at; 0: none did. */
uint8_t rn_tsc_sites_bytes(uintptr_t at);

#endif
