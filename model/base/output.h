/*
 * Output files, all of them: opened here, so that none unlinks what stands at its path, and every failed write is
 * remembered with its errno until the file is closed. A FIFO's opening waits for its reader, as open() does.
 */
#ifndef RN_BASE_OUTPUT_H
#define RN_BASE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct rn_output;

/**
 * Open @path for writing from its beginning: a regular file is made or emptied, a device, FIFO or link's target is
 * written to. NULL and *@message (the caller free()s it), which names @what ("a capture"), path and reason, when it
 * cannot be opened.
 */
struct rn_output *rn_output_open(const char *path, const char *what, char **message);

/** To write to, with a large buffer; closing it (as libpcap does) is allowed. NULL after that. */
FILE *rn_output_stream(const struct rn_output *output);

/**
 * Write out, close and free. 0, or the errno of the first write that failed since the opening; *@message (may be NULL, or hold an
 * earlier message, which stays) then names path and reason. NULL is ignored.
 */
int rn_output_close(struct rn_output *output, char **message);

/**
 * A file that is there whole or not at all, or that somebody else's code has to write by its path: a temporary regular file,
 * put in its place in the end.
 */
struct rn_whole_file;

/**
 * Make the temporary file: beside @path, or, where that is no regular file or lies in a folder that cannot be written to, in the
 * temporary folder ($TMPDIR or /tmp); then @path is opened at once. Errors as rn_output_open().
 */
struct rn_whole_file *rn_whole_file_new(const char *path, const char *what, char **message);

/** Where to write. */
const char *rn_whole_file_path(const struct rn_whole_file *file);

/**
 * Put it in its place (@keep) or forget it, and free. 0 or an errno with *@message as rn_output_close(); a regular file that
 * was at the path before is then unchanged. NULL is ignored.
 */
int rn_whole_file_finish(struct rn_whole_file *file, bool keep, char **message);

/** Forget it, and free, since writing it has failed with @error; *@message as rn_output_close(). */
void rn_whole_file_drop(struct rn_whole_file *file, int error, char **message);

#endif
