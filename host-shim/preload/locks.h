/*
 * Locks in virtual time: what the other files need of them.
 */
#ifndef RN_PRELOAD_LOCKS_H
#define RN_PRELOAD_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

/** From the second thread on somebody may wait for a lock; before, only where several processes share it. */
void rn_locks_set_threaded(void);
bool rn_locks_are_threaded(void);

/**
 * Take @object, which threads wait for: @take (0 or an error; EBUSY: not now) is repeated until it succeeds,
 * fails otherwise, or @until_ps (ETIMEDOUT). Virtual time is over: EBUSY.
 */
int rn_lock_take(int (*take)(void *object), void *object, uint64_t until_ps);

/** @object has been given back; @is_shared: threads of other processes may wait for it. */
void rn_lock_given(const void *object, bool is_shared);

#endif
