/*
 * The format: blocks, each a byte with its kind, eight bytes with its length, which counts them and what follows, most
 * significant byte first. A block that was being written has the kind 255.
 */
#include "systemc/cosim/fst_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"

#define HEADER_BYTES 9
#define LENGTH_BYTES 8
#define PROBE_BYTES 4096

enum { HEADER = 0, HIERARCHY = 4, HIERARCHY_LZ4 = 6, HIERARCHY_LZ4DUO = 7, UNFINISHED = 255 };

static bool is_hierarchy(uint8_t kind)
{
	return kind == HIERARCHY || kind == HIERARCHY_LZ4 || kind == HIERARCHY_LZ4DUO;
}

static uint64_t length_of(const uint8_t *block)
{
	uint64_t length = 0;

	for (unsigned i = 1; i < HEADER_BYTES; i++)
		length = length << 8 | block[i];
	return length;
}

static bool walk(int fd, uint64_t file_bytes)
{
	bool has_header = false, has_hierarchy = false;
	uint8_t block[HEADER_BYTES];
	uint64_t at = 0;

	while (at < file_bytes) {
		uint64_t length;

		if (pread(fd, block, HEADER_BYTES, (off_t)at) != HEADER_BYTES)
			return false;
		length = length_of(block);
		if (block[0] == UNFINISHED || length < LENGTH_BYTES || length > file_bytes - at - 1)
			return false;
		has_header = has_header || (at == 0 && block[0] == HEADER);
		has_hierarchy = has_hierarchy || is_hierarchy(block[0]);
		at += 1 + length;
	}
	return has_header && has_hierarchy;
}

int rn_fst_check(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	int error = 0;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) != 0) {
		error = errno;
	} else if (!walk(fd, (uint64_t)st.st_size)) {
		error = posix_fallocate(fd, st.st_size, PROBE_BYTES);
		error = error ? error : EIO;
	}
	close(fd);
	return error;
}

int rn_fst_finish(struct rn_whole_file *file, char **message)
{
	const int error = rn_fst_check(rn_whole_file_path(file));

	if (!error)
		return rn_whole_file_finish(file, true, message);
	rn_whole_file_drop(file, error, message);
	return error;
}
