/*
 * scanf from streams that have to be waited for: the C library scans a stream without buffer of ours whose bytes
 * come one at a time from the true one; what it has read too much goes back there.
 */
#include <stdarg.h>
#include <stdio.h>

#include "preload/descriptors.h"
#include "preload/streams.h"
#include "preload/waits.h"

/* The functions of one standard: its header gives them other names than the library, so all are named here. */
struct family {
	const char *name;
	int (*scan)(FILE *stream, const char *format, va_list list);
};

static ssize_t read_byte(void *cookie, char *data, size_t bytes)
{
	FILE *stream = cookie;
	const int byte = bytes ? getc_unlocked(stream) : EOF;

	if (byte == EOF)
		return stream->_flags & RN_STREAM_ERROR ? -1 : 0;
	*data = (char)byte;
	return 1;
}

static int scan_bytes(const struct family *family, FILE *stream, const char *format, va_list list)
{
	FILE *bytes = fopencookie(stream, "r", (cookie_io_functions_t){.read = read_byte});
	int result;

	if (!bytes)
		return EOF;
	setvbuf(bytes, NULL, _IONBF, 0);
	result = family->scan(bytes, format, list);
	if (bytes->_IO_read_ptr < bytes->_IO_read_end)
		ungetc((unsigned char)*bytes->_IO_read_ptr, stream);
	RN_REAL(fclose)(bytes);
	return result;
}

static int scan(struct family *family, FILE *stream, const char *format, va_list list)
{
	int result;

	if (!family->scan)
		*(void **)&family->scan = dlsym(RTLD_NEXT, family->name);
	rn_stream_lock(stream);
	if (!rn_virtual_is_on() || stream->_fileno < 0 || !rn_descriptor_is_stream(stream->_fileno))
		result = family->scan(stream, format, list);
	else
		result = scan_bytes(family, stream, format, list);
	rn_stream_unlock(stream);
	return result;
}

/* The four functions of a family under the names that they have in the library. */
#define FAMILY(kind, prefix)                                                                       \
	static struct family kind = {.name = prefix "vfscanf"};                                    \
                                                                                                   \
	RN_EXPORT int kind##_vfscanf(FILE *stream, const char *format,                             \
				     va_list list) __asm__(prefix "vfscanf");                      \
	RN_EXPORT int kind##_vscanf(const char *format, va_list list) __asm__(prefix "vscanf");    \
	RN_EXPORT int kind##_fscanf(FILE *stream, const char *format,                              \
				    ...) __asm__(prefix "fscanf");                                 \
	RN_EXPORT int kind##_scanf(const char *format, ...) __asm__(prefix "scanf");               \
                                                                                                   \
	int kind##_vfscanf(FILE *stream, const char *format, va_list list)                         \
	{                                                                                          \
		return scan(&kind, stream, format, list);                                          \
	}                                                                                          \
                                                                                                   \
	int kind##_vscanf(const char *format, va_list list)                                        \
	{                                                                                          \
		return scan(&kind, stdin, format, list);                                           \
	}                                                                                          \
                                                                                                   \
	int kind##_fscanf(FILE *stream, const char *format, ...)                                   \
	{                                                                                          \
		va_list list;                                                                      \
		int result;                                                                        \
                                                                                                   \
		va_start(list, format);                                                            \
		result = scan(&kind, stream, format, list);                                        \
		va_end(list);                                                                      \
		return result;                                                                     \
	}                                                                                          \
                                                                                                   \
	int kind##_scanf(const char *format, ...)                                                  \
	{                                                                                          \
		va_list list;                                                                      \
		int result;                                                                        \
                                                                                                   \
		va_start(list, format);                                                            \
		result = scan(&kind, stdin, format, list);                                         \
		va_end(list);                                                                      \
		return result;                                                                     \
	}                                                                                          \
	_Static_assert(1, "ends with a semicolon")

FAMILY(gnu, "");
FAMILY(c99, "__isoc99_");
