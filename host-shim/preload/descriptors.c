/*
 * Reading and writing of descriptors in virtual time. Loopback delivery is synchronous, so what another thread has
 * written before it gave the baton back is readable here.
 */
#include "preload/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/random.h"
#include "preload/waits.h"

static bool is_ready(void *arg)
{
	static const struct timespec zero;
	struct pollfd *fd = arg;

	fd->revents = 0;
	return RN_PROBE(syscall(SYS_ppoll, fd, 1, &zero, NULL, 0)) != 0;
}

/* A socket may have a timeout of its own. */
static uint64_t timeout_ps(int fd, int option)
{
	struct timeval time = {0};
	socklen_t bytes = sizeof(time);

	if (getsockopt(fd, SOL_SOCKET, option, &time, &bytes) || (!time.tv_sec && !time.tv_usec))
		return RN_TIME_NO_LIMIT;
	return rn_virtual_after_ps((uint64_t)time.tv_sec * RN_PS_PER_S +
				   (uint64_t)time.tv_usec * RN_PS_PER_US);
}

static bool is_nonblocking(int fd)
{
	return RN_REAL(fcntl)(fd, F_GETFL) & O_NONBLOCK;
}

static bool before(int fd, short events, bool now)
{
	struct pollfd look = {.fd = fd, .events = events};
	const bool writes = events & POLLOUT;

	if (fd < 0 || !rn_virtual_is_on())
		return true;
	rn_virtual_charge_call();
	if (is_ready(&look))
		return true;
	if (now || is_nonblocking(fd)) {
		rn_virtual_settle();
		return true;
	}
	if (writes && rn_descriptor_leaves_run(fd))
		return true;
	return rn_wait_call(is_ready, &look, timeout_ps(fd, writes ? SO_SNDTIMEO : SO_RCVTIMEO),
			    EAGAIN);
}

bool rn_descriptor_before_read(int fd, bool now)
{
	return before(fd, POLLIN | POLLRDHUP, now);
}

bool rn_descriptor_before_write(int fd, bool now)
{
	return before(fd, POLLOUT, now);
}

static bool before_until(int fd, short events, uint64_t until_ps)
{
	struct pollfd look = {.fd = fd, .events = events};

	rn_virtual_charge_call();
	if (is_nonblocking(fd))
		return true;
	return rn_wait_call(is_ready, &look, until_ps, ETIMEDOUT);
}

bool rn_descriptor_before_read_until(int fd, uint64_t until_ps)
{
	return before_until(fd, POLLIN, until_ps);
}

bool rn_descriptor_before_write_until(int fd, uint64_t until_ps)
{
	return before_until(fd, POLLOUT, until_ps);
}

void rn_descriptor_done(bool success)
{
	if (success)
		rn_virtual_act();
}

bool rn_descriptor_is_stream(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) == 0 &&
	       (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode) || isatty(fd));
}

bool rn_descriptor_is_big_write(int fd, size_t bytes, bool now)
{
	return bytes > RN_WRITE_BYTES && !now && rn_virtual_is_on() && !is_nonblocking(fd) &&
	       rn_descriptor_is_stream(fd) && !rn_descriptor_leaves_run(fd);
}

bool rn_descriptor_leaves_run(int fd)
{
	const char *text = getenv(RN_ENV_OUTPUT);
	struct stat stat;
	char *end;

	if (!text || fstat(fd, &stat))
		return false;
	for (; *text; text = end) {
		const unsigned long device = strtoul(text, &end, 16);
		unsigned long node;

		if (*end != ':')
			return false;
		node = strtoul(end + 1, &end, 16);
		if (device == stat.st_dev && node == stat.st_ino)
			return true;
		if (*end)
			end++;
	}
	return false;
}

/* --- reading --- */

RN_EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
	if (rn_virtual_is_on() && rn_random_is_source(fd)) {
		rn_random_fill(data, bytes);
		return (ssize_t)bytes;
	}
	RN_READS(fd, false, RN_REAL(read)(fd, data, bytes));
}

ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room);

RN_EXPORT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room)
{
	return bytes > room ? RN_REAL(__read_chk)(fd, data, bytes, room) : read(fd, data, bytes);
}

RN_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	if (count > 0 && rn_virtual_is_on() && rn_random_is_source(fd))
		return read(fd, parts[0].iov_base, parts[0].iov_len);
	RN_READS(fd, false, RN_REAL(readv)(fd, parts, count));
}

/* MSG_WAITALL blocks until all has come: here piece by piece. */
static ssize_t receive_all(int fd, char *data, size_t bytes, int flags)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = -1;

		if (rn_descriptor_before_read(fd, false))
			n = RN_REAL(recv)(fd, data + done, bytes - done,
					  (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN && rn_virtual_is_on())
			continue;
		if (n < 0 && !done)
			return -1;
		if (n <= 0)
			break;
		done += (size_t)n;
		rn_descriptor_done(true);
	}
	return (ssize_t)done;
}

RN_EXPORT ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
	if (flags & MSG_WAITALL && !(flags & (MSG_DONTWAIT | MSG_PEEK)) && rn_virtual_is_on() &&
	    !is_nonblocking(fd))
		return receive_all(fd, data, bytes, flags);
	RN_READS(fd, flags & MSG_DONTWAIT, RN_REAL(recv)(fd, data, bytes, flags));
}

ssize_t __recv_chk(int fd, void *data, size_t bytes, size_t room, int flags);

RN_EXPORT ssize_t __recv_chk(int fd, void *data, size_t bytes, size_t room, int flags)
{
	return bytes > room ? RN_REAL(__recv_chk)(fd, data, bytes, room, flags)
			    : recv(fd, data, bytes, flags);
}

RN_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	RN_READS(fd, flags & MSG_DONTWAIT, RN_REAL(recvmsg)(fd, message, flags));
}

RN_EXPORT int eventfd_read(int fd, eventfd_t *value)
{
	RN_READS(fd, false, RN_REAL(eventfd_read)(fd, value));
}

/* --- writing --- */

RN_EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
	if (rn_descriptor_is_big_write(fd, bytes, false)) {
		const struct iovec part = {(void *)(uintptr_t)data, bytes};

		return rn_write_portions(fd, &part, 1);
	}
	RN_WRITES(fd, false, RN_REAL(write)(fd, data, bytes));
}

static size_t sum(const struct iovec *parts, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

RN_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	if (count > 0 && rn_descriptor_is_big_write(fd, sum(parts, (size_t)count), false))
		return rn_write_portions(fd, parts, count);
	RN_WRITES(fd, false, RN_REAL(writev)(fd, parts, count));
}

RN_EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	if (rn_descriptor_is_big_write(fd, bytes, flags & MSG_DONTWAIT)) {
		struct iovec part = {(void *)(uintptr_t)data, bytes};
		const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

		return rn_send_portions(fd, &message, flags);
	}
	RN_WRITES(fd, flags & MSG_DONTWAIT, RN_REAL(send)(fd, data, bytes, flags));
}

RN_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (message && rn_descriptor_is_big_write(fd, sum(message->msg_iov, message->msg_iovlen),
						  flags & MSG_DONTWAIT))
		return rn_send_portions(fd, message, flags);
	RN_WRITES(fd, flags & MSG_DONTWAIT, RN_REAL(sendmsg)(fd, message, flags));
}

RN_EXPORT int eventfd_write(int fd, eventfd_t value)
{
	RN_WRITES(fd, false, RN_REAL(eventfd_write)(fd, value));
}

/* --- what others may see --- */

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
