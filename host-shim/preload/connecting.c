/*
 * Connecting in virtual time. Over loopback it succeeds at once, but for a listener whose queue is full.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/descriptors.h"
#include "preload/waits.h"

struct connect_look {
	int (*real)(int fd, const struct sockaddr *to, unsigned bytes);
	int fd, result, error;
	const struct sockaddr *to;
	unsigned bytes;
	bool in_progress;
};

static void look_progress(struct connect_look *look)
{
	static const struct timespec zero;
	struct pollfd fd = {.fd = look->fd, .events = POLLOUT};
	socklen_t bytes = sizeof(look->error);

	if (RN_PROBE(syscall(SYS_ppoll, &fd, 1, &zero, NULL, 0)) <= 0)
		return;
	getsockopt(look->fd, SOL_SOCKET, SO_ERROR, &look->error, &bytes);
	look->result = look->error ? -1 : 0;
	look->in_progress = false;
}

/* One of AF_UNIX is tried again, one of TCP goes on by itself. */
static bool look_connect(void *arg)
{
	struct connect_look *look = arg;

	if (look->in_progress) {
		look_progress(look);
		return !look->in_progress;
	}
	look->result = look->real(look->fd, look->to, look->bytes);
	look->error = look->result ? errno : 0;
	look->in_progress = look->error == EINPROGRESS;
	/* The listener's answer is there as soon as the call has returned. */
	if (look->in_progress)
		look_progress(look);
	return !look->in_progress && look->error != EAGAIN;
}

int rn_descriptor_connect(int (*real)(int fd, const struct sockaddr *to, unsigned bytes), int fd,
			  const struct sockaddr *to, unsigned bytes)
{
	struct connect_look look = {.real = real, .fd = fd, .to = to, .bytes = bytes};
	const int flags = rn_virtual_is_on() ? RN_REAL(fcntl)(fd, F_GETFL) : -1;
	bool is_over;

	if (flags < 0 || flags & O_NONBLOCK)
		return real(fd, to, bytes);
	rn_virtual_charge_call();
	RN_REAL(fcntl)(fd, F_SETFL, flags | O_NONBLOCK);
	is_over = rn_wait_call(look_connect, &look, RN_TIME_NO_LIMIT, 0);
	RN_REAL(fcntl)(fd, F_SETFL, flags);
	if (!is_over)
		return -1;
	if (look.error)
		errno = look.error;
	return look.result;
}
