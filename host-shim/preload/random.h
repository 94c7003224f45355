/*
 * Random numbers that repeat in virtual time.
 */
#ifndef RN_PRELOAD_RANDOM_H
#define RN_PRELOAD_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/** A number made of the run's seed, the host, the process's ordinal and @of_call. */
uint64_t rn_random_of(uint64_t of_call);

/** The next numbers of the process. */
void rn_random_fill(void *out, size_t bytes);

/** The process has joined virtual time. */
void rn_random_start(void);

/** A clock has been read: seeds are made of it. */
void rn_seeds_saw_time(uint64_t ns);

#endif
