#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *mem)
{
	if (!mem) {
		fputs("rnicsim: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return mem;
}

void *rn_calloc(size_t count, size_t size)
{
	return count && size ? checked(calloc(count, size)) : checked(calloc(1, 1));
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
