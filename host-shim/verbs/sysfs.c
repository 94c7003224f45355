/*
 * The few files of /sys that programs read through this library; those of the simulated device are made
 * up here, all others are read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "verbs/conn.h"
#include "verbs/export.h"

#define CLASS_DIR "/sys/class/infiniband/"

/* copy_*.c and others of the same interface are declared nowhere in the installed headers. */
RN_EXPORT const char *ibv_get_sysfs_path(void);
RN_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

const char *ibv_get_sysfs_path(void)
{
	const char *path = getenv("SYSFS_PATH");

	return path ? path : "/sys";
}

static int print_guid(char *buf, size_t size, uint64_t guid_be)
{
	const uint64_t guid = __builtin_bswap64(guid_be);

	return snprintf(buf, size, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
			(unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
			(unsigned)(guid & 0xffff));
}

/* Returns the length, or -1 when the device has no such file. */
static int device_file(const struct rn_uapi_device *device, const char *file, char *buf,
		       size_t size)
{
	if (!strcmp(file, "board_id"))
		return snprintf(buf, size, "%s", device->board_id);
	if (!strcmp(file, "fw_ver"))
		return snprintf(buf, size, "%s", device->fw_ver);
	if (!strcmp(file, "hca_type"))
		return snprintf(buf, size, "MT%u", device->vendor_part_id);
	if (!strcmp(file, "hw_rev"))
		return snprintf(buf, size, "%x", device->hw_ver);
	if (!strcmp(file, "node_type"))
		return snprintf(buf, size, "1: CA");
	if (!strcmp(file, "node_desc"))
		return snprintf(buf, size, "%s", device->name);
	if (!strcmp(file, "node_guid"))
		return print_guid(buf, size, device->node_guid_be);
	if (!strcmp(file, "sys_image_guid"))
		return print_guid(buf, size, device->sys_image_guid_be);
	errno = ENOENT;
	return -1;
}

static int simulated_file(const char *name, const char *file, char *buf, size_t size)
{
	struct rn_conn *conn = rn_conn_get();
	int len = -1;

	if (!conn)
		return -1;
	if (!strcmp(name, conn->device.name))
		len = device_file(&conn->device, file, buf, size);
	else
		errno = ENOENT;
	rn_conn_put(conn);
	return len < (int)size ? len : (int)size;
}

static int real_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	ssize_t len;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	close(fd);
	if (len > 0 && buf[len - 1] == '\n')
		buf[--len] = 0;
	else if (len >= 0 && (size_t)len < size)
		buf[len] = 0;
	return (int)len;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	if (rn_conn_in_run() && !strncmp(dir, CLASS_DIR, strlen(CLASS_DIR)))
		return simulated_file(dir + strlen(CLASS_DIR), file, buf, size);
	return real_file(dir, file, buf, size);
}
