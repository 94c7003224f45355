/*
 * Files that have another content in virtual time: /proc/cpuinfo, whose "cpu MHz" agree with the virtual time stamp
 * counter, and the system's random numbers.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/files/files.h"
#include "preload/random.h"
#include "preload/virtual.h"

#define CPUINFO "/proc/cpuinfo"

static void copy_lines(FILE *from, FILE *to)
{
	const uint64_t hz = rn_virtual_page()->tsc_hz;
	char line[4096];

	while (fgets(line, sizeof(line), from)) {
		if (!strncmp(line, "cpu MHz", 7))
			fprintf(to, "cpu MHz\t\t: %.3f\n", (double)hz / 1e6);
		else
			fputs(line, to);
	}
}

static FILE *open_cpuinfo(FILE *from)
{
	FILE *to = from ? fdopen(memfd_create("cpuinfo", MFD_CLOEXEC), "w+") : NULL;

	if (!to)
		return from;
	copy_lines(from, to);
	fclose(from);
	rewind(to);
	return to;
}

static ssize_t read_random(void *cookie, char *data, size_t bytes)
{
	(void)cookie;
	rn_random_fill(data, bytes);
	return (ssize_t)bytes;
}

/* In virtual time another file than the one that the system has opened. */
static FILE *replace(FILE *file, const char *path)
{
	const cookie_io_functions_t random = {.read = read_random};

	if (!file || !rn_virtual_is_on())
		return file;
	if (!strcmp(path, CPUINFO))
		return open_cpuinfo(file);
	if (strcmp(path, "/dev/urandom") && strcmp(path, "/dev/random"))
		return file;
	fclose(file);
	return fopencookie(NULL, "r", random);
}

/* The C library opens by a call of its own, which a named pipe would block. */
static FILE *open_fifo(const char *path, const char *mode)
{
	const bool reads = mode[0] == 'r';
	struct stat stat;
	FILE *file;
	int fd;

	if (!rn_virtual_is_on() || strchr(mode, '+') || lstat(path, &stat) ||
	    !S_ISFIFO(stat.st_mode))
		return NULL;
	fd = open(path, (reads ? O_RDONLY : O_WRONLY) | (strchr(mode, 'e') ? O_CLOEXEC : 0));
	file = fd < 0 ? NULL : fdopen(fd, mode);
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

RN_EXPORT FILE *fopen(const char *restrict name, const char *restrict mode)
{
	struct rn_path room;
	const char *path = rn_files_path(name, &room);
	FILE *fifo = open_fifo(path, mode);

	if (fifo)
		return fifo;
	return replace(RN_REAL(fopen)(path, mode), path);
}

RN_EXPORT FILE *fopen64(const char *restrict name, const char *restrict mode)
{
	struct rn_path room;
	const char *path = rn_files_path(name, &room);
	FILE *fifo = open_fifo(path, mode);

	if (fifo)
		return fifo;
	return replace(RN_REAL(fopen64)(path, mode), path);
}
