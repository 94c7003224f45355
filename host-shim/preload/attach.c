/*
 * How a process asks the simulator for its time page.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "driver/uapi.h"
#include "preload/virtual.h"

static int connect_to_simulator(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv(RN_ENV_SOCKET);
	const size_t bytes = path ? strlen(path) : 0;
	int fd;

	if (!bytes || bytes >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, bytes);
	fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && syscall(SYS_connect, fd, &address,
			       offsetof(struct sockaddr_un, sun_path) + bytes + 1)) {
		syscall(SYS_close, fd);
		fd = -1;
	}
	return fd;
}

/* The answer's descriptor, -1 when there is no virtual time. */
static int ask(int fd, uint64_t now_ps)
{
	const char *host = getenv(RN_ENV_HOST);
	const struct rn_uapi_attach_time request = {
		.req = {.op = RN_UAPI_ATTACH_TIME, .bytes = sizeof(request)},
		.version = RN_UAPI_VERSION,
		.host = host ? (uint32_t)strtoul(host, NULL, 10) : 0,
		.tid = (uint32_t)syscall(SYS_gettid),
		.flags = rn_program_is_bare() ? RN_UAPI_TIME_BARE : 0,
		.now_ps = now_ps,
	};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct rn_uapi_rsp answer = {.error = EIO};
	struct iovec part = {&answer, sizeof(answer)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	int got = -1;

	if (syscall(SYS_sendto, fd, &request, sizeof(request), MSG_NOSIGNAL, NULL, 0) !=
		    sizeof(request) ||
	    syscall(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC) <= 0 || answer.error)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&got, CMSG_DATA(header), sizeof(got));
	return got;
}

int rn_virtual_ask_for_page(uint64_t now_ps)
{
	const int fd = connect_to_simulator();
	int page_fd;

	if (fd < 0)
		return -1;
	page_fd = ask(fd, now_ps);
	syscall(SYS_close, fd);
	return page_fd;
}
