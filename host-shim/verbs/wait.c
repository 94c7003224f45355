/*
 * Waiting. Pure spinning starves the simulator where processors are few, and a futex or eventfd round trip
 * costs tens of microseconds, hence the three stages.
 */
#include "verbs/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "verbs/conn.h"
#include "verbs/virtual_time.h"

enum {
	SPIN_TRIES = 32,
	YIELD_TRIES = 512,
	LIVENESS_TRIES = 64, /* power of two */
};

#define SLEEP_NS 30000

static bool is_gone(struct rn_conn *conn)
{
	char byte;
	ssize_t got;

	if (atomic_load_explicit(&conn->channel->dead, memory_order_relaxed))
		return true;
	got = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* Sleep until the socket says something, at most SLEEP_NS (for an answer: without limit). */
static void sleep_on_socket(struct rn_conn *conn, enum rn_wait_for what)
{
	const struct timespec limit = {.tv_nsec = SLEEP_NS};
	struct pollfd pfd = {.fd = conn->fd, .events = POLLIN};

	/* An answer that belongs to another thread must not turn the poll of an empty CQ into a spin. */
	if (what != RN_WAIT_ANSWER)
		pfd.events = 0;
	ppoll(&pfd, 1, what == RN_WAIT_ANSWER ? NULL : &limit, NULL);
}

/* In virtual time a look costs no wall time: the next one comes when there is something to see. */
static int wait_virtually(struct rn_conn *conn, enum rn_wait_for what, unsigned tries)
{
	if (conn->channel && atomic_load_explicit(&conn->channel->dead, memory_order_relaxed)) {
		rn_conn_set_dead(conn);
		return EIO;
	}
	switch (what) {
	case RN_WAIT_ANSWER:
		rn_time_wait_answer();
		break;
	case RN_WAIT_ROOM:
		rn_vt_charge(RN_TIME_DOORBELL, 1);
		rn_vt_settle();
		break;
	case RN_WAIT_CQE:
		if (tries)
			rn_time_wait_change();
		else
			rn_vt_settle_memory();
		break;
	}
	return 0;
}

int rn_shim_wait(struct rn_conn *conn, enum rn_wait_for what, unsigned *tries)
{
	const int saved_errno = errno;
	const unsigned n = (*tries)++;

	if (rn_conn_is_dead(conn))
		return EIO;
	if (rn_vt_is_on())
		return wait_virtually(conn, what, n);
	/* The answer's reader finds out by itself when the socket ends. */
	if (what != RN_WAIT_ANSWER && n % LIVENESS_TRIES == LIVENESS_TRIES - 1 && is_gone(conn)) {
		rn_conn_set_dead(conn);
		errno = saved_errno;
		return EIO;
	}
	if (n < SPIN_TRIES)
		__builtin_ia32_pause();
	else if (n < YIELD_TRIES)
		sched_yield();
	else
		sleep_on_socket(conn, what);
	errno = saved_errno;
	return 0;
}

int rn_shim_read_event(struct rn_conn *conn, int fd, void *record, size_t bytes)
{
	ssize_t got;

	if (rn_conn_is_dead(conn))
		return EIO;
	got = read(fd, record, bytes);
	if (got == (ssize_t)bytes)
		return 0;
	if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == EBADF))
		return errno;
	rn_conn_set_dead(conn);
	return EIO;
}
