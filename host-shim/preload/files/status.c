/*
 * stat() in all its forms.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "preload/files/files.h"
#include "preload/virtual.h"

static int shown(int result, struct stat *status)
{
	dev_t number;

	if (result == 0 &&
	    rn_files_is_device(status->st_dev, status->st_mode, status->st_mtime, &number)) {
		status->st_mode = S_IFCHR | 0666;
		status->st_rdev = number;
	}
	return result;
}

RN_EXPORT int stat(const char *restrict path, struct stat *restrict status)
{
	struct rn_path room;

	return shown(RN_REAL(stat)(rn_files_path(path, &room), status), status);
}

RN_EXPORT int lstat(const char *restrict path, struct stat *restrict status)
{
	struct rn_path room;

	return shown(RN_REAL(lstat)(rn_files_path(path, &room), status), status);
}

RN_EXPORT int fstat(int fd, struct stat *status)
{
	return shown(RN_REAL(fstat)(fd, status), status);
}

RN_EXPORT int fstatat(int folder, const char *restrict path, struct stat *restrict status,
		      int flags)
{
	struct rn_path room;

	return shown(RN_REAL(fstatat)(folder, rn_files_path(path, &room), status, flags), status);
}

/* The same structure on this machine. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64 bits");

RN_EXPORT int stat64(const char *restrict path, struct stat64 *restrict status)
{
	return stat(path, (struct stat *)status);
}

RN_EXPORT int lstat64(const char *restrict path, struct stat64 *restrict status)
{
	return lstat(path, (struct stat *)status);
}

RN_EXPORT int fstat64(int fd, struct stat64 *status)
{
	return fstat(fd, (struct stat *)status);
}

RN_EXPORT int fstatat64(int folder, const char *restrict path, struct stat64 *restrict status,
			int flags)
{
	return fstatat(folder, path, (struct stat *)status, flags);
}

/* Of programs that were built before version 2.33 of the C library. */
int __xstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstat64(int version, int fd, struct stat64 *status);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);

RN_EXPORT int __xstat(int version, const char *path, struct stat *status)
{
	(void)version;
	return stat(path, status);
}

RN_EXPORT int __lxstat(int version, const char *path, struct stat *status)
{
	(void)version;
	return lstat(path, status);
}

RN_EXPORT int __fxstat(int version, int fd, struct stat *status)
{
	(void)version;
	return fstat(fd, status);
}

RN_EXPORT int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags)
{
	(void)version;
	return fstatat(folder, path, status, flags);
}

RN_EXPORT int __xstat64(int version, const char *path, struct stat64 *status)
{
	(void)version;
	return stat64(path, status);
}

RN_EXPORT int __lxstat64(int version, const char *path, struct stat64 *status)
{
	(void)version;
	return lstat64(path, status);
}

RN_EXPORT int __fxstat64(int version, int fd, struct stat64 *status)
{
	(void)version;
	return fstat64(fd, status);
}

RN_EXPORT int __fxstatat64(int version, int folder, const char *path, struct stat64 *status,
			   int flags)
{
	(void)version;
	return fstatat64(folder, path, status, flags);
}

RN_EXPORT int statx(int folder, const char *restrict path, int flags, unsigned mask,
		    struct statx *restrict status)
{
	struct rn_path room;
	dev_t number;
	const int result = RN_REAL(statx)(folder, rn_files_path(path, &room), flags,
					  mask | STATX_MODE | STATX_TYPE | STATX_MTIME, status);

	if (result == 0 &&
	    rn_files_is_device(makedev(status->stx_dev_major, status->stx_dev_minor),
			       status->stx_mode, status->stx_mtime.tv_sec, &number)) {
		status->stx_mode = S_IFCHR | 0666;
		status->stx_rdev_major = major(number);
		status->stx_rdev_minor = minor(number);
	}
	return result;
}
