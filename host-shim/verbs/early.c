/*
 * A process with the superuser's rights connects when the library is loaded, and in a child after fork: before main() or the
 * child can drop them. Nothing is said on that connection until the device is asked for; who never asks holds one
 * descriptor. The program may have closed it (daemons close everything) or have something else there: looked at before use.
 *
 * Constructors run before those of libraries that this one does not depend on: no function is called that they may interpose.
 */
#include "verbs/early.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "driver/uapi.h"
#include "verbs/raw.h"

static int early_fd = -1;
static struct stat early_stat; /* what is there */

static int raw_result(long result)
{
	if (result >= 0)
		return (int)result;
	errno = (int)-result;
	return -1;
}

static int connect_to(const char *path, size_t len)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	/* An abstract name has no end. */
	const size_t bytes = offsetof(struct sockaddr_un, sun_path) + len + (path[0] != '@');
	int fd;
	long error;

	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = 0;
	fd = raw_result(
		rn_raw_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, 0, 0));
	if (fd < 0)
		return -1;
	error = rn_raw_call(SYS_connect, fd, (long)&addr, (long)bytes, 0, 0, 0);
	if (error) {
		rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
		return raw_result(error);
	}
	return fd;
}

int rn_early_connect(void)
{
	const char *path = getenv(RN_ENV_SOCKET);
	const size_t len = path ? strlen(path) : 0;

	if (len == 0 || len >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		errno = len ? ENAMETOOLONG : ENODEV;
		return -1;
	}
	return connect_to(path, len);
}

static void connect_early(void)
{
	const int saved_errno = errno;
	const char *path = getenv(RN_ENV_SOCKET);

	early_fd = -1;
	if (path && path[0] && rn_raw_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) == 0)
		early_fd = rn_early_connect();
	if (early_fd >= 0 && rn_raw_call(SYS_fstat, early_fd, (long)&early_stat, 0, 0, 0, 0))
		early_fd = -1;
	errno = saved_errno;
}

static bool is_still_there(int fd)
{
	struct stat now;

	return rn_raw_call(SYS_fstat, fd, (long)&now, 0, 0, 0, 0) == 0 &&
	       now.st_dev == early_stat.st_dev && now.st_ino == early_stat.st_ino;
}

int rn_early_take(void)
{
	const int fd = early_fd;

	early_fd = -1;
	return fd >= 0 && is_still_there(fd) ? fd : -1;
}

/* The parent's connection is the parent's. */
static void reconnect(void)
{
	const int fd = rn_early_take();

	if (fd >= 0)
		rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	connect_early();
}

__attribute__((constructor)) static void begin(void)
{
	connect_early();
	pthread_atfork(NULL, NULL, reconnect);
}
