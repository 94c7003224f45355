/*
 * /proc/cpuinfo whose "cpu MHz" agree with the virtual time stamp counter.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/virtual.h"

#define PATH "/proc/cpuinfo"

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

RN_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
	FILE *file = RN_REAL(fopen)(path, mode);

	return rn_virtual_is_on() && !strcmp(path, PATH) ? open_cpuinfo(file) : file;
}

RN_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	FILE *file = RN_REAL(fopen64)(path, mode);

	return rn_virtual_is_on() && !strcmp(path, PATH) ? open_cpuinfo(file) : file;
}
