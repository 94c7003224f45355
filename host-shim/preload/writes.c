/*
 * Writes that may block halfway: in portions that do not, with a wait before each. And calls that move data from one
 * descriptor to another, which may return with less than they were asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/descriptors.h"
#include "preload/waits.h"

#define PARTS_MAX 64

/* What is left of a list of parts. */
struct rest {
	const struct iovec *parts;
	size_t count, skip;
};

static void advance(struct rest *rest, size_t bytes)
{
	rest->skip += bytes;
	while (rest->count && rest->skip >= rest->parts->iov_len) {
		rest->skip -= rest->parts->iov_len;
		rest->parts++;
		rest->count--;
	}
}

/* The next at most @bytes; the number of parts. */
static size_t portion(const struct rest *rest, size_t bytes, struct iovec *out)
{
	size_t skip = rest->skip, n = 0;

	for (size_t i = 0; i < rest->count && n < PARTS_MAX && bytes; i++, skip = 0) {
		const size_t left = rest->parts[i].iov_len - skip;

		if (!left)
			continue;
		out[n].iov_base = (char *)rest->parts[i].iov_base + skip;
		out[n].iov_len = left < bytes ? left : bytes;
		bytes -= out[n++].iov_len;
	}
	return n;
}

static bool is_socket(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) == 0 && S_ISSOCK(stat.st_mode);
}

ssize_t rn_write_portions(int fd, const struct iovec *parts, int count)
{
	struct rest rest = {parts, (size_t)count, 0};
	struct iovec out[PARTS_MAX];
	ssize_t done = 0;

	if (is_socket(fd)) {
		const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
					       .msg_iovlen = (size_t)count};

		return rn_send_portions(fd, &message, 0);
	}
	for (;;) {
		const size_t n = portion(&rest, RN_WRITE_BYTES, out);
		ssize_t written;

		if (!n)
			return done;
		if (!rn_descriptor_before_write(fd, false))
			return done ? done : -1;
		written = RN_REAL(writev)(fd, out, (int)n);
		if (written < 0)
			return done ? done : -1;
		rn_descriptor_done(true);
		done += written;
		advance(&rest, (size_t)written);
	}
}

/* --- sockets: they take what fits --- */

struct send_look {
	int fd, flags;
	struct msghdr message;
	ssize_t result;
};

static bool look_send(void *arg)
{
	struct send_look *look = arg;

	look->result = RN_REAL(sendmsg)(look->fd, &look->message, look->flags | MSG_DONTWAIT);
	return look->result >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static uint64_t send_limit_ps(int fd)
{
	struct timeval time = {0};
	socklen_t bytes = sizeof(time);

	if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, &bytes) ||
	    (!time.tv_sec && !time.tv_usec))
		return RN_TIME_NO_LIMIT;
	return rn_virtual_after_ps((uint64_t)time.tv_sec * RN_PS_PER_S +
				   (uint64_t)time.tv_usec * RN_PS_PER_US);
}

ssize_t rn_send_portions(int fd, const struct msghdr *message, int flags)
{
	struct rest rest = {message->msg_iov, message->msg_iovlen, 0};
	struct send_look look = {.fd = fd, .flags = flags, .message = *message};
	struct iovec out[PARTS_MAX];
	ssize_t done = 0;
	size_t n;

	rn_virtual_charge_call();
	while ((n = portion(&rest, SIZE_MAX, out)) && rn_virtual_is_on()) {
		look.message.msg_iov = out;
		look.message.msg_iovlen = n;
		if (!rn_wait_call(look_send, &look, send_limit_ps(fd), EAGAIN) || look.result < 0)
			return done ? done : -1;
		rn_descriptor_done(true);
		/* Descriptors and credentials go with the first byte. */
		look.message.msg_control = NULL;
		look.message.msg_controllen = 0;
		done += look.result;
		advance(&rest, (size_t)look.result);
	}
	return done;
}

/* --- from one descriptor to another --- */

static bool before_move(int in, int out, size_t *bytes)
{
	if (!rn_virtual_is_on())
		return true;
	if (rn_descriptor_is_big_write(out, *bytes, false))
		*bytes = RN_WRITE_BYTES;
	return rn_descriptor_before_read(in, false) && rn_descriptor_before_write(out, false);
}

RN_EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t bytes)
{
	ssize_t moved;

	if (!before_move(in, out, &bytes))
		return -1;
	moved = RN_REAL(sendfile)(out, in, offset, bytes);
	rn_descriptor_done(moved >= 0);
	return moved;
}

RN_EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t bytes)
{
	return sendfile(out, in, offset, bytes);
}

RN_EXPORT ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t bytes,
			 unsigned flags)
{
	ssize_t moved;

	if (!(flags & SPLICE_F_NONBLOCK) && !before_move(in, out, &bytes))
		return -1;
	moved = RN_REAL(splice)(in, in_offset, out, out_offset, bytes, flags);
	rn_descriptor_done(moved >= 0);
	return moved;
}

RN_EXPORT ssize_t tee(int in, int out, size_t bytes, unsigned flags)
{
	ssize_t moved;

	if (!(flags & SPLICE_F_NONBLOCK) && !before_move(in, out, &bytes))
		return -1;
	moved = RN_REAL(tee)(in, out, bytes, flags);
	rn_descriptor_done(moved >= 0);
	return moved;
}

RN_EXPORT ssize_t vmsplice(int fd, const struct iovec *parts, size_t count, unsigned flags)
{
	ssize_t moved;

	if (!(flags & SPLICE_F_NONBLOCK) && rn_virtual_is_on()) {
		/* What a pipe has no room for is left to another call. */
		if (!rn_descriptor_before_write(fd, false))
			return -1;
		flags |= SPLICE_F_NONBLOCK;
	}
	moved = RN_REAL(vmsplice)(fd, parts, count, flags);
	rn_descriptor_done(moved >= 0);
	return moved;
}

/* --- several messages at once --- */

static bool is_over(unsigned flags, bool any)
{
	return flags & MSG_DONTWAIT || (flags & MSG_WAITFORONE && any) || !rn_virtual_is_on();
}

RN_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned room, int flags,
		       struct timespec *timeout)
{
	uint64_t until_ps;
	unsigned done = 0;

	if (!rn_virtual_is_on())
		return RN_REAL(recvmmsg)(fd, messages, room, flags, timeout);
	until_ps = rn_wait_after_ps(timeout);
	do {
		int got;

		if (!rn_descriptor_before_read(fd, flags & MSG_DONTWAIT))
			return done ? (int)done : -1;
		got = RN_REAL(recvmmsg)(fd, messages + done, room - done, flags | MSG_DONTWAIT,
					NULL);
		if (got < 0 && (errno != EAGAIN || is_over((unsigned)flags, done)))
			return done ? (int)done : -1;
		done += got > 0 ? (unsigned)got : 0;
		rn_descriptor_done(got > 0);
		/* As in the kernel, the time is looked at after each. */
	} while (done < room && !is_over((unsigned)flags, done) && rn_virtual_now_ps() < until_ps);
	return (int)done;
}

RN_EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	RN_WRITES(fd, flags & MSG_DONTWAIT,
		  RN_REAL(sendmmsg)(fd, messages, count,
				    rn_virtual_is_on() ? flags | MSG_DONTWAIT : flags));
}
