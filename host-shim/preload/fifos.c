/*
 * Opening of named pipes in virtual time: whoever opens one end waits until another one has opened the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/descriptors.h"
#include "preload/files/files.h"
#include "preload/waits.h"

struct open_look {
	int folder, flags, fd;
	const char *path;
};

static bool is_fifo(int folder, const char *path, int flags)
{
	struct stat stat;

	return rn_virtual_is_on() && !(flags & (O_NONBLOCK | O_PATH)) &&
	       (flags & O_ACCMODE) != O_RDWR && !fstatat(folder, path, &stat, 0) &&
	       S_ISFIFO(stat.st_mode);
}

/* Without a reader it cannot be opened for writing. */
static bool look_reader(void *arg)
{
	struct open_look *look = arg;

	look->fd = RN_REAL(openat)(look->folder, look->path, look->flags | O_NONBLOCK);
	return look->fd >= 0 || errno != ENXIO;
}

/* An empty pipe without writers is at its end, one with writers would block; one whose writers have left hangs up. */
static bool look_writer(void *arg)
{
	static const struct timespec zero;
	const struct open_look *look = arg;
	struct pollfd fd = {.fd = look->fd, .events = POLLIN};
	char byte;

	return RN_PROBE(syscall(SYS_ppoll, &fd, 1, &zero, NULL, 0)) != 0 ||
	       RN_REAL(read)(look->fd, &byte, 1) < 0;
}

static int open_fifo(int folder, const char *path, int flags)
{
	struct open_look look = {.folder = folder, .path = path, .flags = flags, .fd = -1};
	const bool reads = (flags & O_ACCMODE) == O_RDONLY;

	rn_virtual_charge_call();
	if (reads && !look_reader(&look))
		return -1;
	rn_virtual_act();
	if (!rn_wait_call(reads ? look_writer : look_reader, &look, RN_TIME_NO_LIMIT, 0)) {
		if (look.fd >= 0)
			RN_REAL(close)(look.fd);
		errno = EINTR;
		return -1;
	}
	if (look.fd >= 0)
		RN_REAL(fcntl)(look.fd, F_SETFL, RN_REAL(fcntl)(look.fd, F_GETFL) & ~O_NONBLOCK);
	rn_virtual_act();
	return look.fd;
}

static int open_any(int folder, const char *name, int flags, mode_t mode)
{
	struct rn_path room;
	const char *path = rn_files_path_to_open(name, &room, &flags);

	return is_fifo(folder, path, flags) ? open_fifo(folder, path, flags)
					    : RN_REAL(openat)(folder, path, flags, mode);
}

#define WITH_MODE(folder, path, flags)                                                             \
	do {                                                                                       \
		va_list list_;                                                                     \
		mode_t mode_;                                                                      \
                                                                                                   \
		va_start(list_, flags);                                                            \
		mode_ = va_arg(list_, mode_t);                                                     \
		va_end(list_);                                                                     \
		return open_any(folder, path, flags, mode_);                                       \
	} while (0)

RN_EXPORT int open(const char *path, int flags, ...)
{
	WITH_MODE(AT_FDCWD, path, flags);
}

RN_EXPORT int open64(const char *path, int flags, ...)
{
	WITH_MODE(AT_FDCWD, path, flags);
}

RN_EXPORT int openat(int folder, const char *path, int flags, ...)
{
	WITH_MODE(folder, path, flags);
}

RN_EXPORT int openat64(int folder, const char *path, int flags, ...)
{
	WITH_MODE(folder, path, flags);
}

/* Of programs that are built with checks: no mode, so no new file. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

RN_EXPORT int __openat_2(int folder, const char *name, int flags)
{
	struct rn_path room;
	const char *path = rn_files_path_to_open(name, &room, &flags);

	return is_fifo(folder, path, flags) ? open_fifo(folder, path, flags)
					    : RN_REAL(__openat_2)(folder, path, flags);
}

RN_EXPORT int __openat64_2(int folder, const char *path, int flags)
{
	return __openat_2(folder, path, flags);
}

RN_EXPORT int __open_2(const char *path, int flags)
{
	return __openat_2(AT_FDCWD, path, flags);
}

RN_EXPORT int __open64_2(const char *path, int flags)
{
	return __openat_2(AT_FDCWD, path, flags);
}
