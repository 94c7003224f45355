/*
 * Diagnostics about user input: collected, all reported, then the caller stops
 * with a non-zero exit status.
 */
#ifndef RN_BASE_DIAG_H
#define RN_BASE_DIAG_H

#include <stdio.h>

struct rn_diag; /* list of messages; owned by whoever called rn_diag_new() */

struct rn_diag *rn_diag_new(void);
void rn_diag_free(struct rn_diag *diag);

/**
 * Add "file:line:column: message". @file may be NULL (command line: no position);
 * @line and @column count from 1, 0 when unknown.
 */
void rn_diag_add(struct rn_diag *diag, const char *file, unsigned line, unsigned column,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/** Number of messages so far. */
unsigned rn_diag_count(const struct rn_diag *diag);

/** Message @idx as rn_diag_print() prints it, owned by @diag; NULL when there are not so many. */
const char *rn_diag_message(const struct rn_diag *diag, unsigned idx);

/** Print every message on a line of its own. */
void rn_diag_print(const struct rn_diag *diag, FILE *out);

#endif
