/*
 * Allocation that cannot fail: out of memory at construction time ends the
 * simulator with a clear message. The cycle path does not allocate.
 */
#ifndef RN_BASE_MEM_H
#define RN_BASE_MEM_H

#include <stddef.h>

/** Zeroed memory for @count items of @size bytes; the caller free()s it. Never NULL. */
void *rn_calloc(size_t count, size_t size);

/** Grow @old (may be NULL) to @count items of @size bytes; new bytes are not cleared. Never NULL. */
void *rn_reallocarray(void *old, size_t count, size_t size);

/** Copy of @text; the caller free()s it. Never NULL. */
char *rn_strdup(const char *text);

/** printf into a new string; the caller free()s it. Never NULL. */
char *rn_asprintf(const char *format, ...) __attribute__((format(printf, 1, 2), nonnull(1)));

#endif
