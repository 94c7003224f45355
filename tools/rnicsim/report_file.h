/*
 * A file that is there whole or not at all: written under a temporary name beside its own, then renamed.
 */
#ifndef RN_RNICSIM_REPORT_FILE_H
#define RN_RNICSIM_REPORT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct rn_report_file {
	const char *path; /* borrowed */
	char *temporary; /* NULL: @path is no regular file (a pipe, /dev/stdout) and is written to directly */
	FILE *stream;
};

/** Open @path for writing; false with a message on stderr that names path and reason. */
bool rn_report_file_open(struct rn_report_file *file, const char *path);

/** Finish: false with a message on stderr when anything since the opening has failed; then nothing is left behind. */
bool rn_report_file_close(struct rn_report_file *file);

#endif
