/*
 * Every wait of a program on the simulator goes through here, and nothing hangs: a simulator that
 * has gone ends each of them. This is the place where virtual time will take over.
 */
#ifndef RN_VERBS_WAIT_H
#define RN_VERBS_WAIT_H

#include <stddef.h>
#include <sys/types.h>

struct rn_conn;

enum rn_wait_for {
	RN_WAIT_ANSWER, /* the driver's answer on the control socket */
	RN_WAIT_ROOM,	/* room in the channel */
	RN_WAIT_CQE,	/* an empty poll; returns soon whatever happens */
};

/**
 * Wait a little for @what. @tries counts the caller's fruitless looks and picks the way of waiting: a few
 * looks spin, then the processor is yielded, then the thread sleeps. Returns 0 (look again) or EIO.
 */
int rn_shim_wait(struct rn_conn *conn, enum rn_wait_for what, unsigned *tries);

/**
 * Read one event record. Blocks unless the program made the descriptor non-blocking; a signal interrupts it
 * exactly as it would interrupt read(2). Returns 0, or a positive errno (EAGAIN, EINTR, EIO).
 */
int rn_shim_read_event(struct rn_conn *conn, int fd, void *record, size_t bytes);

#endif
