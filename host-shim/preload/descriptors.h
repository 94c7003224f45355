/*
 * Blocking calls on descriptors in virtual time: the call waits in the shim until the descriptor is ready, then
 * the system's own call does not block.
 */
#ifndef RN_PRELOAD_DESCRIPTORS_H
#define RN_PRELOAD_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/virtual.h"

/* After such a wait a pipe or a socket takes so much without blocking. */
#define RN_WRITE_BYTES 4096u

/**
 * Before a call that reads (accepts) from, or writes to @fd. False: errno is EINTR, or EAGAIN where the socket's own
 * timeout is over. @now: the call does not block (MSG_DONTWAIT).
 */
bool rn_descriptor_before_read(int fd, bool now);
bool rn_descriptor_before_write(int fd, bool now);

/** The same for a call with a deadline: then errno is ETIMEDOUT. */
bool rn_descriptor_before_read_until(int fd, uint64_t until_ps);
bool rn_descriptor_before_write_until(int fd, uint64_t until_ps);

/** After a call that others may see. */
void rn_descriptor_done(bool success);

/** Whether a write of @bytes may block halfway, @now as above. */
bool rn_descriptor_is_big_write(int fd, size_t bytes, bool now);

/** Whether a read from @fd may have to wait for another thread of the run: a pipe, a socket, a terminal. */
bool rn_descriptor_is_stream(int fd);

/** Whether @fd is where the output of a run's programs leaves it: whoever reads there has no virtual time. */
bool rn_descriptor_leaves_run(int fd);

struct sockaddr;
/** Connect by the system's function @real, which does not block. */
int rn_descriptor_connect(int (*real)(int fd, const struct sockaddr *to, unsigned bytes), int fd,
			  const struct sockaddr *to, unsigned bytes);

/* writes.c */
struct msghdr;
struct iovec;
/** A big write in portions that do not block. */
ssize_t rn_write_portions(int fd, const struct iovec *parts, int count);
ssize_t rn_send_portions(int fd, const struct msghdr *message, int flags);

/* random.c */
/** Whether @fd is the system's source of random numbers. */
bool rn_random_is_source(int fd);

/*
 * A call of type ssize_t (or int) that reads or writes. Meanwhile the simulator asks nothing: a signal would cut a
 * long transfer short.
 */
#define RN_TRANSFER(before, fd, now, call)                                                         \
	do {                                                                                       \
		__typeof__(call) done_;                                                            \
                                                                                                   \
		if (!before(fd, now))                                                              \
			return -1;                                                                 \
		rn_virtual_hold_questions(true);                                                   \
		done_ = (call);                                                                    \
		rn_virtual_hold_questions(false);                                                  \
		rn_descriptor_done(done_ >= 0);                                                    \
		return done_;                                                                      \
	} while (0)

#define RN_READS(fd, now, call) RN_TRANSFER(rn_descriptor_before_read, fd, now, call)
#define RN_WRITES(fd, now, call) RN_TRANSFER(rn_descriptor_before_write, fd, now, call)

#endif
