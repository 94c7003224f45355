/*
 * Which paths are virtual, and where they lead.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/uapi.h"
#include "preload/address.h"
#include "preload/files/files.h"
#include "preload/files/table.h"
#include "preload/files/tree.h"
#include "preload/virtual.h"

static __thread bool is_making; /* the tree: its own paths are the system's */
static const char *root;
static size_t root_bytes;

static dev_t root_device;

static void find_root(void)
{
	struct stat status;

	is_making = true;
	rn_virtual_enter_native();
	root = rn_tree_root();
	rn_virtual_leave_native();
	is_making = false;
	if (!root)
		return;
	root_bytes = strlen(root);
	if (!RN_REAL(stat)(root, &status))
		root_device = status.st_dev;
}

static bool have_root(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_root);
	return root;
}

/* Slashes and dots that mean nothing left out; false when it is too long. */
static bool normalise(const char *path, char out[PATH_MAX])
{
	size_t at = 0;

	while (*path) {
		const bool is_idle =
			path[0] == '/' &&
			(path[1] == '/' || (path[1] == '.' && (path[2] == '/' || path[2] == '\0')));

		if (is_idle) {
			path += path[1] == '.' ? 2 : 1;
			continue;
		}
		if (at + 1 >= PATH_MAX)
			return false;
		out[at++] = *path++;
	}
	out[at] = '\0';
	return true;
}

static bool is_virtual(const char *path)
{
	for (const char *const *one = rn_files_roots; *one; one++) {
		const size_t bytes = strlen(*one);

		if (!strncmp(path, *one, bytes) && (path[bytes] == '/' || path[bytes] == '\0'))
			return true;
	}
	return false;
}

/* Most paths are none, and cost no more than this. */
static bool may_be_virtual(const char *path)
{
	return path && path[0] == '/' &&
	       (path[1] == '/' || path[1] == '.' || !strncmp(path, "/sys/", 5) ||
		!strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6)) &&
	       !is_making;
}

const char *rn_files_path(const char *path, struct rn_path *room)
{
	const int saved_errno = errno;
	char plain[PATH_MAX];
	size_t bytes;

	if (!may_be_virtual(path) || !rn_address_is_active() || !normalise(path, plain) ||
	    !is_virtual(plain) || !have_root()) {
		errno = saved_errno;
		return path;
	}
	errno = saved_errno;
	bytes = strlen(plain);
	if (root_bytes + bytes >= sizeof(room->text))
		return path;
	memcpy(room->text, root, root_bytes);
	memcpy(room->text + root_bytes, plain, bytes + 1);
	return room->text;
}

const char *rn_files_path_to_open(const char *path, struct rn_path *room, int *flags)
{
	const char *where = rn_files_path(path, room);
	struct stat status;
	dev_t number;

	if (where != path && !RN_REAL(stat)(where, &status) &&
	    rn_files_is_device(status.st_dev, status.st_mode, status.st_mtime, &number))
		*flags = (*flags & ~(O_ACCMODE | O_TRUNC | O_APPEND)) | O_RDONLY;
	return where;
}

/* A process may have been started in there, or have been given a descriptor. */
static bool looks_like_place(const char *text, size_t length)
{
	static const char middle[] = "/" RN_RUN_FILES "/host";

	return memmem(text, length, middle, sizeof(middle) - 1) && !is_making &&
	       rn_address_is_active() && have_root();
}

size_t rn_files_show(char *text, size_t length)
{
	if (!looks_like_place(text, length) || length < root_bytes ||
	    memcmp(text, root, root_bytes) || (length > root_bytes && text[root_bytes] != '/'))
		return length;
	memmove(text, text + root_bytes, length - root_bytes);
	return length - root_bytes;
}

/* The tree marks it: a mode that no other file has, and its number for the time of its last change. */
bool rn_files_is_device(dev_t device, mode_t mode, int64_t changed_s, dev_t *number)
{
	if (!root || device != root_device || mode != (S_IFREG | RN_FILES_DEVICE_MODE))
		return false;
	*number = (dev_t)changed_s;
	return true;
}
