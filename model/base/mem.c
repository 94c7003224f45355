#define _POSIX_C_SOURCE 200112L /* posix_memalign() */

#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 64
#define LARGE_BYTES 65536

static void *checked(void *mem)
{
	if (!mem) {
		fputs("rnicsim: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return mem;
}

/*
 * What the cycle path touches is spread over as few cache lines as can be: small objects start at one. Large
 * ones come from calloc(), which gives zeroed pages for nothing.
 */
void *rn_calloc(size_t count, size_t size)
{
	size_t bytes = count && size ? size : 1;
	void *mem;

	if (count > 1 && __builtin_mul_overflow(count, bytes, &bytes))
		return checked(NULL);
	if (bytes >= LARGE_BYTES)
		return checked(calloc(1, bytes));
	if (posix_memalign(&mem, LINE_BYTES, bytes))
		return checked(NULL);
	return memset(mem, 0, bytes);
}

void *rn_reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
		return checked(NULL);
	return checked(realloc(old, bytes ? bytes : 1));
}

char *rn_strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;

	return memcpy(rn_calloc(bytes, 1), text, bytes);
}

char *rn_asprintf(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);

	char *text = rn_calloc((size_t)(length < 0 ? 0 : length) + 1, 1);

	va_start(args, format);
	vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format, args);
	va_end(args);
	return text;
}
