/*
 * Reading, writing and polling of descriptors in virtual time. Loopback delivery is synchronous, so what another
 * thread has written before it gave the baton back is readable here.
 */
#include "preload/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/virtual.h"

/* The system's poll without waiting. */
static int poll_now(struct pollfd *fds, nfds_t count)
{
	static const struct timespec zero;

	return (int)syscall(SYS_ppoll, fds, count, &zero, NULL, 0);
}

static bool is_ready(void *arg)
{
	struct pollfd *fd = arg;

	fd->revents = 0;
	return poll_now(fd, 1) != 0;
}

static bool before(int fd, short events, bool now)
{
	struct pollfd look = {.fd = fd, .events = events};
	bool restart = false;

	if (fd < 0 || !rn_virtual_is_on())
		return true;
	rn_virtual_charge_call();
	if (is_ready(&look))
		return true;
	if (now || fcntl(fd, F_GETFL) & O_NONBLOCK) {
		rn_virtual_settle();
		return true;
	}
	for (;;) {
		if (rn_virtual_wait_for(is_ready, &look, RN_TIME_NO_LIMIT, &restart) !=
			    RN_WAITED_SIGNAL ||
		    !rn_virtual_is_on())
			return true;
		if (!restart) {
			errno = EINTR;
			return false;
		}
	}
}

bool rn_descriptor_before_read(int fd, bool now)
{
	return before(fd, POLLIN | POLLRDHUP, now);
}

bool rn_descriptor_before_write(int fd, bool now)
{
	return before(fd, POLLOUT, now);
}

void rn_descriptor_done(bool success)
{
	if (success)
		rn_virtual_act();
}

/* A call of type ssize_t that reads or writes. */
#define READS(fd, now, call)                                                                       \
	do {                                                                                       \
		ssize_t done_;                                                                     \
                                                                                                   \
		if (!rn_descriptor_before_read(fd, now))                                           \
			return -1;                                                                 \
		done_ = (call);                                                                    \
		rn_descriptor_done(done_ >= 0);                                                    \
		return done_;                                                                      \
	} while (0)

#define WRITES(fd, now, call)                                                                      \
	do {                                                                                       \
		ssize_t done_;                                                                     \
                                                                                                   \
		if (!rn_descriptor_before_write(fd, now))                                          \
			return -1;                                                                 \
		done_ = (call);                                                                    \
		rn_descriptor_done(done_ >= 0);                                                    \
		return done_;                                                                      \
	} while (0)

RN_EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
	READS(fd, false, RN_REAL(read)(fd, data, bytes));
}

ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room);

RN_EXPORT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room)
{
	READS(fd, false, RN_REAL(__read_chk)(fd, data, bytes, room));
}

RN_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	READS(fd, false, RN_REAL(readv)(fd, parts, count));
}

RN_EXPORT ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
	READS(fd, flags & MSG_DONTWAIT, RN_REAL(recv)(fd, data, bytes, flags));
}

ssize_t __recv_chk(int fd, void *data, size_t bytes, size_t room, int flags);

RN_EXPORT ssize_t __recv_chk(int fd, void *data, size_t bytes, size_t room, int flags)
{
	READS(fd, flags & MSG_DONTWAIT, RN_REAL(__recv_chk)(fd, data, bytes, room, flags));
}

RN_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	READS(fd, flags & MSG_DONTWAIT, RN_REAL(recvmsg)(fd, message, flags));
}

RN_EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
	WRITES(fd, false, RN_REAL(write)(fd, data, bytes));
}

RN_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	WRITES(fd, false, RN_REAL(writev)(fd, parts, count));
}

RN_EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	WRITES(fd, flags & MSG_DONTWAIT, RN_REAL(send)(fd, data, bytes, flags));
}

RN_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	WRITES(fd, flags & MSG_DONTWAIT, RN_REAL(sendmsg)(fd, message, flags));
}

RN_EXPORT int close(int fd)
{
	const int result = RN_REAL(close)(fd);

	rn_descriptor_done(result == 0);
	return result;
}

RN_EXPORT int shutdown(int fd, int how)
{
	const int result = RN_REAL(shutdown)(fd, how);

	rn_descriptor_done(result == 0);
	return result;
}

RN_EXPORT int listen(int fd, int backlog)
{
	const int result = RN_REAL(listen)(fd, backlog);

	rn_descriptor_done(result == 0);
	return result;
}

/* --- polling --- */

struct poll_look {
	struct pollfd *fds;
	nfds_t count;
	const sigset_t *mask;
	int result;
};

static bool look_poll(void *arg)
{
	struct poll_look *look = arg;

	look->result = poll_now(look->fds, look->count);
	return look->result != 0;
}

static uint64_t deadline_ps(const struct timespec *timeout)
{
	if (!timeout || timeout->tv_sec > 10000000)
		return RN_TIME_NO_LIMIT;
	return rn_virtual_now_ps() + (uint64_t)timeout->tv_sec * RN_PS_PER_S +
	       (uint64_t)timeout->tv_nsec * RN_PS_PER_NS;
}

/* 1: @look succeeded, 0: the time is over, -1: interrupted. */
static int wait_look(bool (*look)(void *arg), void *arg, const struct timespec *timeout)
{
	uint64_t until_ps;

	rn_virtual_charge_call();
	until_ps = deadline_ps(timeout);
	if (until_ps <= rn_virtual_now_ps())
		rn_virtual_settle();
	switch (rn_virtual_wait_for(look, arg, until_ps, NULL)) {
	case RN_WAITED_OK:
		return 1;
	case RN_WAITED_TIMEOUT:
		return 0;
	default:
		errno = EINTR;
		return -1;
	}
}

static int virtual_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout)
{
	struct poll_look look = {.fds = fds, .count = count};
	const int waited = wait_look(look_poll, &look, timeout);

	return waited > 0 ? look.result : waited;
}

static const struct timespec *of_ms(int ms, struct timespec *out)
{
	out->tv_sec = ms / 1000;
	out->tv_nsec = ms % 1000 * 1000000;
	return ms < 0 ? NULL : out;
}

RN_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec time;

	if (!rn_virtual_is_on())
		return RN_REAL(poll)(fds, count, timeout);
	return virtual_poll(fds, count, of_ms(timeout, &time));
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);

RN_EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
	if (!rn_virtual_is_on())
		return RN_REAL(__poll_chk)(fds, count, timeout, room);
	return poll(fds, count, timeout);
}

RN_EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		    const sigset_t *mask)
{
	sigset_t old;
	int result;

	if (!rn_virtual_is_on())
		return RN_REAL(ppoll)(fds, count, timeout, mask);
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &old);
	result = virtual_poll(fds, count, timeout);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	return result;
}

struct select_look {
	int count;
	fd_set *set[3];
	fd_set asked[3];
	int result;
};

static bool look_select(void *arg)
{
	struct select_look *look = arg;
	struct timespec zero = {0};

	for (unsigned i = 0; i < 3; i++)
		if (look->set[i])
			*look->set[i] = look->asked[i];
	look->result = (int)syscall(SYS_pselect6, look->count, look->set[0], look->set[1],
				    look->set[2], &zero, NULL);
	return look->result != 0;
}

static int virtual_select(int count, fd_set *in, fd_set *out, fd_set *other,
			  const struct timespec *timeout)
{
	struct select_look look = {.count = count, .set = {in, out, other}};
	int waited;

	for (unsigned i = 0; i < 3; i++)
		if (look.set[i])
			look.asked[i] = *look.set[i];
	waited = wait_look(look_select, &look, timeout);
	return waited > 0 ? look.result : waited;
}

RN_EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
		     struct timeval *restrict timeout)
{
	struct timespec time;

	if (!rn_virtual_is_on())
		return RN_REAL(select)(count, in, out, other, timeout);
	if (timeout) {
		time.tv_sec = timeout->tv_sec;
		time.tv_nsec = timeout->tv_usec * 1000;
	}
	return virtual_select(count, in, out, other, timeout ? &time : NULL);
}

RN_EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
		      const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	sigset_t old;
	int result;

	if (!rn_virtual_is_on())
		return RN_REAL(pselect)(count, in, out, other, timeout, mask);
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &old);
	result = virtual_select(count, in, out, other, timeout);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	return result;
}

struct epoll_look {
	int fd, room, result;
	struct epoll_event *events;
};

static bool look_epoll(void *arg)
{
	struct epoll_look *look = arg;

	look->result = (int)syscall(SYS_epoll_pwait, look->fd, look->events, look->room, 0, NULL,
				    _NSIG / 8);
	return look->result != 0;
}

RN_EXPORT int epoll_wait(int fd, struct epoll_event *events, int room, int timeout)
{
	struct epoll_look look = {.fd = fd, .room = room, .events = events};
	struct timespec time;
	int waited;

	if (!rn_virtual_is_on())
		return RN_REAL(epoll_wait)(fd, events, room, timeout);
	waited = wait_look(look_epoll, &look, of_ms(timeout, &time));
	return waited > 0 ? look.result : waited;
}

RN_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout,
			  const sigset_t *mask)
{
	sigset_t old;
	int result;

	if (!rn_virtual_is_on())
		return RN_REAL(epoll_pwait)(fd, events, room, timeout, mask);
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &old);
	result = epoll_wait(fd, events, room, timeout);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	return result;
}
