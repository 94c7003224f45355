/*
 * Virtual files: programs of a run open, list and ask for paths of /sys, /dev and /proc that the run answers. The files
 * of a host lie in its run's folder, made by the first of its programs that asks; calls with a path are led there
 * (and what comes back is led back).
 */
#ifndef RN_PRELOAD_FILES_H
#define RN_PRELOAD_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Room for a path that is led elsewhere. */
struct rn_path {
	char text[PATH_MAX];
};

/** Where the system finds @path: @path itself, or a virtual file's place in @room. errno stays. */
const char *rn_files_path(const char *path, struct rn_path *room);

/** The same for a path to be opened; *@flags are narrowed for a device, which cannot be written to. */
const char *rn_files_path_to_open(const char *path, struct rn_path *room, int *flags);

/** If the @length bytes at @text begin with the place of the virtual files, leave what programs see. The new length. */
size_t rn_files_show(char *text, size_t length);

/* How the tree marks a character device's place. */
#define RN_FILES_DEVICE_MODE (01000 | 0666)

/**
 * Whether a file on @device with @mode, last changed at @changed_s, is the place of a virtual character device. Its
 * number in *@number.
 */
bool rn_files_is_device(dev_t device, mode_t mode, int64_t changed_s, dev_t *number);

#endif
