/*
 * Calls with a path that ask, list or go there. Opening is with those that may wait: fifos.c, cpuinfo.c.
 */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/files/files.h"
#include "preload/virtual.h"

/* --- permission --- */

RN_EXPORT int access(const char *path, int mode)
{
	struct rn_path room;

	return RN_REAL(access)(rn_files_path(path, &room), mode);
}

RN_EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
	struct rn_path room;

	return RN_REAL(faccessat)(folder, rn_files_path(path, &room), mode, flags);
}

RN_EXPORT int euidaccess(const char *path, int mode)
{
	struct rn_path room;

	return RN_REAL(euidaccess)(rn_files_path(path, &room), mode);
}

RN_EXPORT int eaccess(const char *path, int mode)
{
	return euidaccess(path, mode);
}

/* --- folders --- */

RN_EXPORT DIR *opendir(const char *path)
{
	struct rn_path room;

	return RN_REAL(opendir)(rn_files_path(path, &room));
}

RN_EXPORT int scandir(const char *restrict path, struct dirent ***restrict list,
		      int (*keep)(const struct dirent *),
		      int (*compare)(const struct dirent **, const struct dirent **))
{
	struct rn_path room;

	return RN_REAL(scandir)(rn_files_path(path, &room), list, keep, compare);
}

RN_EXPORT int scandir64(const char *restrict path, struct dirent64 ***restrict list,
			int (*keep)(const struct dirent64 *),
			int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	struct rn_path room;

	return RN_REAL(scandir64)(rn_files_path(path, &room), list, keep, compare);
}

RN_EXPORT int chdir(const char *path)
{
	struct rn_path room;

	return RN_REAL(chdir)(rn_files_path(path, &room));
}

RN_EXPORT char *getcwd(char *buffer, size_t bytes)
{
	char *text = RN_REAL(getcwd)(buffer, bytes);

	if (text)
		text[rn_files_show(text, strlen(text))] = '\0';
	return text;
}

char *__getcwd_chk(char *buffer, size_t bytes, size_t room);

RN_EXPORT char *__getcwd_chk(char *buffer, size_t bytes, size_t room)
{
	char *text = RN_REAL(__getcwd_chk)(buffer, bytes, room);

	if (text)
		text[rn_files_show(text, strlen(text))] = '\0';
	return text;
}

RN_EXPORT int statfs(const char *path, struct statfs *status)
{
	struct rn_path room;

	return RN_REAL(statfs)(rn_files_path(path, &room), status);
}

RN_EXPORT int statvfs(const char *restrict path, struct statvfs *restrict status)
{
	struct rn_path room;

	return RN_REAL(statvfs)(rn_files_path(path, &room), status);
}

RN_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t bytes)
{
	struct rn_path room;

	return RN_REAL(getxattr)(rn_files_path(path, &room), name, value, bytes);
}

RN_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t bytes)
{
	struct rn_path room;

	return RN_REAL(lgetxattr)(rn_files_path(path, &room), name, value, bytes);
}

/* --- links --- */

/* What did not fit is told by its length: there may be more of it than fits, too. */
RN_EXPORT ssize_t readlinkat(int folder, const char *restrict path, char *restrict buffer,
			     size_t bytes)
{
	struct rn_path room;
	char text[PATH_MAX];
	ssize_t length =
		RN_REAL(readlinkat)(folder, rn_files_path(path, &room), text, sizeof(text));

	if (length < 0)
		return length;
	length = (ssize_t)rn_files_show(text, (size_t)length);
	if ((size_t)length > bytes)
		length = (ssize_t)bytes;
	memcpy(buffer, text, (size_t)length);
	return length;
}

RN_EXPORT ssize_t readlink(const char *restrict path, char *restrict buffer, size_t bytes)
{
	struct rn_path room;
	char text[PATH_MAX];
	ssize_t length = RN_REAL(readlink)(rn_files_path(path, &room), text, sizeof(text));

	if (length < 0)
		return length;
	length = (ssize_t)rn_files_show(text, (size_t)length);
	if ((size_t)length > bytes)
		length = (ssize_t)bytes;
	memcpy(buffer, text, (size_t)length);
	return length;
}

ssize_t __readlink_chk(const char *restrict path, char *restrict buffer, size_t bytes, size_t room);
ssize_t __readlinkat_chk(int folder, const char *restrict path, char *restrict buffer, size_t bytes,
			 size_t room);

RN_EXPORT ssize_t __readlink_chk(const char *restrict path, char *restrict buffer, size_t bytes,
				 size_t room)
{
	if (bytes > room)
		return RN_REAL(__readlink_chk)(path, buffer, bytes, room); /* ends the program */
	return readlink(path, buffer, bytes);
}

RN_EXPORT ssize_t __readlinkat_chk(int folder, const char *restrict path, char *restrict buffer,
				   size_t bytes, size_t room)
{
	if (bytes > room)
		return RN_REAL(__readlinkat_chk)(folder, path, buffer, bytes, room);
	return readlinkat(folder, path, buffer, bytes);
}

RN_EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
	/* The C library has one of this name that wants a buffer; dlsym() finds today's. */
	static char *(*real)(const char *restrict, char *restrict);
	struct rn_path room;
	char *text;

	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3");
	text = real(rn_files_path(path, &room), resolved);
	if (text)
		text[rn_files_show(text, strlen(text))] = '\0';
	return text;
}

char *__realpath_chk(const char *restrict path, char *restrict resolved, size_t room);

RN_EXPORT char *__realpath_chk(const char *restrict path, char *restrict resolved, size_t room)
{
	if (room < PATH_MAX)
		return RN_REAL(__realpath_chk)(path, resolved, room); /* ends the program */
	return realpath(path, resolved);
}

RN_EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* --- patterns --- */

static void show_all(char **paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (paths[i])
			paths[i][rn_files_show(paths[i], strlen(paths[i]))] = '\0';
}

RN_EXPORT int glob(const char *restrict pattern, int flags, int (*on_error)(const char *, int),
		   glob_t *restrict found)
{
	struct rn_path room;
	const int result = RN_REAL(glob)(rn_files_path(pattern, &room), flags, on_error, found);

	if (result == 0)
		show_all(found->gl_pathv + (flags & GLOB_DOOFFS ? found->gl_offs : 0),
			 found->gl_pathc);
	return result;
}

RN_EXPORT int glob64(const char *restrict pattern, int flags, int (*on_error)(const char *, int),
		     glob64_t *restrict found)
{
	struct rn_path room;
	const int result = RN_REAL(glob64)(rn_files_path(pattern, &room), flags, on_error, found);

	if (result == 0)
		show_all(found->gl_pathv + (flags & GLOB_DOOFFS ? found->gl_offs : 0),
			 found->gl_pathc);
	return result;
}
