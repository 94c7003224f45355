/*
 * The JSON report's file: there whole or not at all.
 */
#ifndef RN_RNICSIM_REPORT_FILE_H
#define RN_RNICSIM_REPORT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct rn_report_file;

/** Make sure, before a long run, that a report can be put at @path; NULL with a message on stderr when it cannot. */
struct rn_report_file *rn_report_file_new(const char *path);

/**
 * Let @write(stream, @arg) write it, put it in its place, and free. False with a message on stderr when anything of that has
 * failed; then nothing is left behind.
 */
bool rn_report_file_write(struct rn_report_file *file, void (*write)(FILE *stream, void *arg),
			  void *arg);

/** Forget it. NULL is ignored. */
void rn_report_file_free(struct rn_report_file *file);

#endif
