/*
 * The tree is written under a name of this process's own and renamed when it is complete: others see all of it or nothing.
 */
#include "preload/files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "driver/uapi.h"
#include "preload/address.h"
#include "preload/files/facts.h"
#include "preload/files/files.h"
#include "preload/files/table.h"
#include "preload/interfaces.h"

#define TEXT_MODE 0444
#define FOLDER_MODE 0755

/* @pattern with the device, the character device, the interface and @index for their signs. False: too long. */
static bool expand(const char *pattern, const struct rn_facts *facts, unsigned index,
		   char out[PATH_MAX])
{
	size_t at = 0;

	for (const char *c = pattern; *c && at < PATH_MAX; c++) {
		char *to = out + at;
		const size_t room = PATH_MAX - at;
		int used;

		switch (*c) {
		case '@':
			used = snprintf(to, room, "%s", facts->device);
			break;
		case '%':
			used = snprintf(to, room, "%s", facts->node);
			break;
		case '$':
			used = snprintf(to, room, "%s", rn_interfaces()[RN_INTERFACE_NIC].name);
			break;
		case '#':
			used = snprintf(to, room, "%u", index);
			break;
		default:
			used = snprintf(to, room, "%c", *c);
			break;
		}
		at += (size_t)used;
	}
	if (at >= PATH_MAX)
		return false;
	out[at] = '\0';
	return true;
}

/* The folders above @path. */
static bool make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return true;
}

static bool write_text(const char *path, const struct rn_file *file, const struct rn_facts *facts,
		       unsigned index)
{
	char text[PATH_MAX];
	FILE *out = fopen(path, "wxe");
	bool keep;

	if (!out)
		return false;
	if (file->print)
		keep = file->print(out, facts, index);
	else
		keep = expand(file->text, facts, index, text) && fputs(text, out) >= 0;
	if (fclose(out))
		return false;
	return keep ? chmod(path, TEXT_MODE) == 0 : unlink(path) == 0;
}

static bool mark_device(const char *path, dev_t number)
{
	const struct timespec times[2] = {{.tv_sec = (time_t)number}, {.tv_sec = (time_t)number}};
	FILE *out = fopen(path, "wxe");

	return out && fclose(out) == 0 && chmod(path, RN_FILES_DEVICE_MODE) == 0 &&
	       utimensat(AT_FDCWD, path, times, 0) == 0;
}

static bool make_one(const char *root, const struct rn_file *file, const struct rn_facts *facts,
		     unsigned index)
{
	char path[PATH_MAX], text[PATH_MAX];
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", root);

	if (!expand(file->path, facts, index, text) ||
	    (size_t)snprintf(path + used, sizeof(path) - used, "%s", text) >= sizeof(path) - used ||
	    !make_folders(path))
		return false;
	switch (file->kind) {
	case RN_FILE_TEXT:
		return write_text(path, file, facts, index);
	case RN_FILE_LINK:
		return expand(file->text, facts, index, text) && symlink(text, path) == 0;
	case RN_FILE_FOLDER:
		return mkdir(path, FOLDER_MODE) == 0 || errno == EEXIST;
	case RN_FILE_DEVICE:
		return mark_device(path, makedev(file->major, file->minor));
	}
	return false;
}

static bool is_about_device(const struct rn_file *file)
{
	return strpbrk(file->path, "@%$") || strstr(file->path, "/pci");
}

static bool make_all(const char *root, const struct rn_facts *facts)
{
	for (unsigned row = 0; row < rn_files_rows; row++) {
		const struct rn_file *file = &rn_files_table[row];
		const unsigned count = file->count ? file->count(facts) : 1;

		if (!facts->has_device && is_about_device(file))
			continue;
		for (unsigned index = 0; index < count; index++)
			if (!make_one(root, file, facts, index))
				return false;
	}
	return true;
}

/* Another process has been quicker, or it failed: what is there goes with the run's folder. */
static bool publish(const char *fresh, const char *place)
{
	return rename(fresh, place) == 0 || access(place, F_OK) == 0;
}

static bool make_tree(const char *place)
{
	struct rn_facts *facts = malloc(sizeof(*facts));
	char fresh[PATH_MAX];
	bool ok;

	if (!facts)
		return false;
	rn_facts_gather(facts);
	ok = (size_t)snprintf(fresh, sizeof(fresh), "%s.%d", place, (int)getpid()) <
		     sizeof(fresh) &&
	     make_all(fresh, facts) && publish(fresh, place);
	free(facts);
	return ok;
}

/* <run's folder>/files/host<n>; the run's folder is where its socket lies. */
static bool name_place(char place[PATH_MAX])
{
	const char *socket = getenv(RN_ENV_SOCKET);
	const char *slash = socket ? strrchr(socket, '/') : NULL;

	return slash &&
	       (size_t)snprintf(place, PATH_MAX, "%.*s/" RN_RUN_FILES "/host%u",
				(int)(slash - socket), socket, rn_address_own_host()) < PATH_MAX;
}

const char *rn_tree_root(void)
{
	static char root[PATH_MAX];
	char place[PATH_MAX];

	if (!name_place(place) || (access(place, F_OK) && !make_tree(place)))
		return NULL;
	return realpath(place, root);
}
