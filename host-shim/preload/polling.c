/*
 * Polling of descriptors in virtual time: poll, select, epoll.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/waits.h"

/* --- with a mask that holds during the wait --- */

struct masked {
	bool (*look)(void *arg);
	void *arg;
	const sigset_t *mask;
	bool is_interrupted;
};

static bool look_masked(void *arg)
{
	struct masked *masked = arg;
	sigset_t pending;

	if (masked->look(masked->arg))
		return true;
	masked->is_interrupted =
		!sigpending(&pending) && rn_wait_has_effect(&pending, masked->mask);
	return masked->is_interrupted;
}

static bool wait_masked(bool (*look)(void *arg), void *arg, uint64_t until_ps, const sigset_t *mask)
{
	struct masked masked = {.look = look, .arg = arg, .mask = mask};
	sigset_t held, old;
	bool is_ready;

	rn_wait_held_signals(&held);
	pthread_sigmask(SIG_BLOCK, &held, &old);
	is_ready = rn_wait_once(look_masked, &masked, until_ps, 0);
	if (masked.is_interrupted) {
		/* The handlers run here. */
		pthread_sigmask(SIG_SETMASK, mask, NULL);
		is_ready = false;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (masked.is_interrupted)
		errno = EINTR;
	return is_ready;
}

/* 1: @look succeeded, 0: the time is over, -1: interrupted. */
static int wait_look(bool (*look)(void *arg), void *arg, const struct timespec *timeout,
		     const sigset_t *mask)
{
	const int saved_errno = errno;
	uint64_t until_ps;
	bool is_ready;

	rn_virtual_charge_call();
	until_ps = rn_wait_after_ps(timeout);
	if (until_ps <= rn_virtual_now_ps())
		rn_virtual_settle();
	is_ready = mask ? wait_masked(look, arg, until_ps, mask)
			: rn_wait_once(look, arg, until_ps, 0);
	if (is_ready)
		return 1;
	if (errno)
		return -1;
	errno = saved_errno;
	return 0;
}

static const struct timespec *of_ms(int ms, struct timespec *out)
{
	out->tv_sec = ms / 1000;
	out->tv_nsec = ms % 1000 * 1000000;
	return ms < 0 ? NULL : out;
}

/* --- poll --- */

struct poll_look {
	struct pollfd *fds;
	nfds_t count;
	int result;
};

static bool look_poll(void *arg)
{
	static const struct timespec zero;
	struct poll_look *look = arg;

	look->result = (int)RN_PROBE(syscall(SYS_ppoll, look->fds, look->count, &zero, NULL, 0));
	return look->result != 0;
}

static int virtual_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			const sigset_t *mask)
{
	struct poll_look look = {.fds = fds, .count = count};
	const int waited = wait_look(look_poll, &look, timeout, mask);

	return waited > 0 ? look.result : waited;
}

RN_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec time;

	if (!rn_virtual_is_on())
		return RN_REAL(poll)(fds, count, timeout);
	return virtual_poll(fds, count, of_ms(timeout, &time), NULL);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);

RN_EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
	if (!rn_virtual_is_on() || room / sizeof(*fds) < count)
		return RN_REAL(__poll_chk)(fds, count, timeout, room);
	return poll(fds, count, timeout);
}

RN_EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		    const sigset_t *mask)
{
	if (!rn_virtual_is_on())
		return RN_REAL(ppoll)(fds, count, timeout, mask);
	return virtual_poll(fds, count, timeout, mask);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

RN_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			  const sigset_t *mask, size_t room)
{
	if (!rn_virtual_is_on() || room / sizeof(*fds) < count)
		return RN_REAL(__ppoll_chk)(fds, count, timeout, mask, room);
	return ppoll(fds, count, timeout, mask);
}

/* --- select --- */

struct select_look {
	int count;
	fd_set *set[3];
	size_t bytes;
	unsigned char asked[3][FD_SETSIZE / 8];
	int result;
};

static long select_now(struct select_look *look)
{
	struct timespec zero = {0};

	for (unsigned i = 0; i < 3; i++)
		if (look->set[i])
			memcpy(look->set[i], look->asked[i], look->bytes);
	return syscall(SYS_pselect6, look->count, look->set[0], look->set[1], look->set[2], &zero,
		       NULL);
}

static bool look_select(void *arg)
{
	struct select_look *look = arg;

	look->result = (int)RN_PROBE(select_now(look));
	return look->result != 0;
}

static int virtual_select(int count, fd_set *in, fd_set *out, fd_set *other,
			  const struct timespec *timeout, const sigset_t *mask)
{
	struct select_look look = {.count = count, .set = {in, out, other}};
	int waited;

	look.bytes = count > 0 ? ((size_t)count + 63) / 64 * 8 : 0;
	for (unsigned i = 0; i < 3; i++)
		if (look.set[i])
			memcpy(look.asked[i], look.set[i], look.bytes);
	waited = wait_look(look_select, &look, timeout, mask);
	return waited > 0 ? look.result : waited;
}

RN_EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
		     struct timeval *restrict timeout)
{
	struct timespec time;
	uint64_t until_ps, left_ps;
	int result;

	if (!rn_virtual_is_on() || count > FD_SETSIZE)
		return RN_REAL(select)(count, in, out, other, timeout);
	if (!timeout)
		return virtual_select(count, in, out, other, NULL, NULL);
	time.tv_sec = timeout->tv_sec;
	time.tv_nsec = timeout->tv_usec * 1000;
	until_ps = rn_wait_after_ps(&time);
	result = virtual_select(count, in, out, other, &time, NULL);
	/* As the system does, say how much time is left. */
	left_ps = until_ps > rn_virtual_now_ps() ? until_ps - rn_virtual_now_ps() : 0;
	if (until_ps != RN_TIME_NO_LIMIT) {
		timeout->tv_sec = (time_t)(left_ps / RN_PS_PER_S);
		timeout->tv_usec = (suseconds_t)(left_ps % RN_PS_PER_S / RN_PS_PER_US);
	}
	return result;
}

RN_EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
		      const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	if (!rn_virtual_is_on() || count > FD_SETSIZE)
		return RN_REAL(pselect)(count, in, out, other, timeout, mask);
	return virtual_select(count, in, out, other, timeout, mask);
}

/* --- epoll --- */

struct epoll_look {
	int fd, room, result;
	struct epoll_event *events;
};

static bool look_epoll(void *arg)
{
	struct epoll_look *look = arg;

	look->result = (int)RN_PROBE(
		syscall(SYS_epoll_pwait, look->fd, look->events, look->room, 0, NULL, _NSIG / 8));
	return look->result != 0;
}

static int virtual_epoll(int fd, struct epoll_event *events, int room,
			 const struct timespec *timeout, const sigset_t *mask)
{
	struct epoll_look look = {.fd = fd, .room = room, .events = events};
	const int waited = wait_look(look_epoll, &look, timeout, mask);

	return waited > 0 ? look.result : waited;
}

RN_EXPORT int epoll_wait(int fd, struct epoll_event *events, int room, int timeout)
{
	struct timespec time;

	if (!rn_virtual_is_on())
		return RN_REAL(epoll_wait)(fd, events, room, timeout);
	return virtual_epoll(fd, events, room, of_ms(timeout, &time), NULL);
}

RN_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout,
			  const sigset_t *mask)
{
	struct timespec time;

	if (!rn_virtual_is_on())
		return RN_REAL(epoll_pwait)(fd, events, room, timeout, mask);
	return virtual_epoll(fd, events, room, of_ms(timeout, &time), mask);
}

RN_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int room,
			   const struct timespec *timeout, const sigset_t *mask)
{
	if (!rn_virtual_is_on())
		return RN_REAL(epoll_pwait2)(fd, events, room, timeout, mask);
	return virtual_epoll(fd, events, room, timeout, mask);
}
