/*
 * Blocking calls on descriptors in virtual time: the call waits in the shim until the descriptor is ready, then
 * the system's own call does not block.
 */
#ifndef RN_PRELOAD_DESCRIPTORS_H
#define RN_PRELOAD_DESCRIPTORS_H

#include <stdbool.h>

/**
 * Before a call that reads (accepts) from, or writes to @fd. False: it is interrupted, errno is EINTR. @now: the call
 * does not block (MSG_DONTWAIT).
 */
bool rn_descriptor_before_read(int fd, bool now);
bool rn_descriptor_before_write(int fd, bool now);

/** After a call that others may see. */
void rn_descriptor_done(bool success);

#endif
