/*
 * Writing to streams. Where the buffer has no room for what is printed and the descriptor may block, the buffer and
 * the text are written by write(), which waits in virtual time; else everything is the C library's.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "preload/descriptors.h"
#include "preload/streams.h"
#include "preload/waits.h"

/* A macro as well. */
#undef fwrite_unlocked

#define DIRECT_BYTES 1024 /* so much or more does not go through the buffer */

int __overflow(FILE *stream, int byte);

static bool may_block(FILE *stream)
{
	const int fd = stream->_fileno;

	return rn_virtual_is_on() && fd >= 0 && fwide(stream, 0) <= 0 &&
	       rn_descriptor_is_stream(fd) && !rn_descriptor_leaves_run(fd);
}

/* The buffer takes @bytes and writes nothing. */
static bool has_room(const FILE *stream, size_t bytes)
{
	return !(stream->_flags & (RN_STREAM_UNBUFFERED | RN_STREAM_LINE_BUFFERED)) &&
	       stream->_IO_write_end > stream->_IO_write_ptr &&
	       (size_t)(stream->_IO_write_end - stream->_IO_write_ptr) > bytes;
}

/* All of it; false: an error. */
static bool write_out(FILE *stream, const char *data, size_t bytes)
{
	while (bytes) {
		const ssize_t n = write(stream->_fileno, data, bytes);

		if (n < 0) {
			stream->_flags |= RN_STREAM_ERROR;
			return false;
		}
		data += n;
		bytes -= (size_t)n;
	}
	return true;
}

bool rn_stream_drain(FILE *stream)
{
	const size_t bytes = stream->_IO_write_ptr > stream->_IO_write_base
				     ? (size_t)(stream->_IO_write_ptr - stream->_IO_write_base)
				     : 0;

	if (!bytes || !may_block(stream))
		return true;
	if (!write_out(stream, stream->_IO_write_base, bytes))
		return false;
	stream->_IO_write_ptr = stream->_IO_write_base;
	return true;
}

static size_t direct_bytes(const FILE *stream, const char *data, size_t bytes)
{
	const char *end;

	if (stream->_flags & RN_STREAM_UNBUFFERED || bytes >= DIRECT_BYTES)
		return bytes;
	if (!(stream->_flags & RN_STREAM_LINE_BUFFERED))
		return 0;
	end = memrchr(data, '\n', bytes);
	return end ? (size_t)(end + 1 - data) : 0;
}

static bool put(FILE *stream, const char *data, size_t bytes)
{
	const size_t direct = direct_bytes(stream, data, bytes);

	if (has_room(stream, bytes))
		return RN_REAL(fwrite_unlocked)(data, 1, bytes, stream) == bytes;
	if (!rn_stream_drain(stream) || !write_out(stream, data, direct))
		return false;
	return bytes == direct ||
	       RN_REAL(fwrite_unlocked)(data + direct, 1, bytes - direct, stream) == bytes - direct;
}

static bool put_locked(FILE *stream, const char *data, size_t bytes)
{
	bool done;

	rn_stream_lock(stream);
	done = put(stream, data, bytes);
	rn_stream_unlock(stream);
	return done;
}

/* --- blocks, strings, bytes --- */

RN_EXPORT size_t fwrite_unlocked(const void *restrict data, size_t size, size_t count,
				 FILE *restrict stream)
{
	size_t bytes;

	if (!size || !count || __builtin_mul_overflow(size, count, &bytes) ||
	    has_room(stream, bytes) || !may_block(stream))
		return RN_REAL(fwrite_unlocked)(data, size, count, stream);
	return put(stream, data, bytes) ? count : 0;
}

RN_EXPORT size_t fwrite(const void *restrict data, size_t size, size_t count, FILE *restrict stream)
{
	size_t done;

	rn_stream_lock(stream);
	done = fwrite_unlocked(data, size, count, stream);
	rn_stream_unlock(stream);
	return done;
}

RN_EXPORT int fputs_unlocked(const char *restrict text, FILE *restrict stream)
{
	const size_t bytes = strlen(text);

	if (has_room(stream, bytes) || !may_block(stream))
		return RN_REAL(fputs_unlocked)(text, stream);
	return put(stream, text, bytes) ? 1 : EOF;
}

RN_EXPORT int fputs(const char *restrict text, FILE *restrict stream)
{
	int result;

	rn_stream_lock(stream);
	result = fputs_unlocked(text, stream);
	rn_stream_unlock(stream);
	return result;
}

RN_EXPORT int __overflow(FILE *stream, int byte)
{
	const char text = (char)byte;

	if (byte == EOF || has_room(stream, 1) || !may_block(stream))
		return RN_REAL(__overflow)(stream, byte);
	return put(stream, &text, 1) ? (unsigned char)byte : EOF;
}

RN_EXPORT int putc_unlocked(int byte, FILE *stream)
{
	const char text = (char)byte;

	if (has_room(stream, 1) || !may_block(stream))
		return RN_REAL(putc_unlocked)(byte, stream);
	return put(stream, &text, 1) ? (unsigned char)byte : EOF;
}

RN_EXPORT int fputc_unlocked(int byte, FILE *stream)
{
	return putc_unlocked(byte, stream);
}

RN_EXPORT int putchar_unlocked(int byte)
{
	return putc_unlocked(byte, stdout);
}

RN_EXPORT int fputc(int byte, FILE *stream)
{
	int result;

	rn_stream_lock(stream);
	result = putc_unlocked(byte, stream);
	rn_stream_unlock(stream);
	return result;
}

RN_EXPORT int putc(int byte, FILE *stream)
{
	return fputc(byte, stream);
}

int _IO_putc(int byte, FILE *stream);

RN_EXPORT int _IO_putc(int byte, FILE *stream)
{
	return fputc(byte, stream);
}

RN_EXPORT int putchar(int byte)
{
	return fputc(byte, stdout);
}

RN_EXPORT int puts(const char *text)
{
	int result = EOF;

	rn_stream_lock(stdout);
	if (fputs_unlocked(text, stdout) != EOF && putc_unlocked('\n', stdout) != EOF)
		result = 1;
	rn_stream_unlock(stdout);
	return result;
}

/* --- flushing --- */

RN_EXPORT int fflush_unlocked(FILE *stream)
{
	if (!stream)
		rn_stream_drain_all();
	else if (!rn_stream_drain(stream))
		return EOF;
	return RN_REAL(fflush_unlocked)(stream);
}

RN_EXPORT int fflush(FILE *stream)
{
	int result;

	if (!stream) {
		rn_stream_drain_all();
		return RN_REAL(fflush)(NULL);
	}
	rn_stream_lock(stream);
	result = fflush_unlocked(stream);
	rn_stream_unlock(stream);
	return result;
}

RN_EXPORT int fclose(FILE *stream)
{
	int result;

	rn_stream_lock(stream);
	rn_stream_drain(stream);
	rn_stream_unlock(stream);
	result = RN_REAL(fclose)(stream);
	rn_descriptor_done(true);
	return result;
}

/* What the C library flushes at the end of the program. */
__attribute__((destructor)) static void drain_at_end(void)
{
	rn_stream_drain_all();
}

/* --- formats --- */

int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list);
int __vasprintf_chk(char **out, int flag, const char *format, va_list list);

struct text {
	char *data;
	int bytes;
};

static int put_text(FILE *stream, struct text *text)
{
	int result = text->bytes;

	if (result > 0 && !put_locked(stream, text->data, (size_t)text->bytes))
		result = -1;
	if (text->bytes >= 0)
		free(text->data);
	return result;
}

RN_EXPORT int vfprintf(FILE *restrict stream, const char *restrict format, va_list list)
{
	struct text text;

	if (!may_block(stream))
		return RN_REAL(vfprintf)(stream, format, list);
	text.bytes = RN_REAL(vasprintf)(&text.data, format, list);
	return put_text(stream, &text);
}

RN_EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list)
{
	struct text text;

	if (!may_block(stream))
		return RN_REAL(__vfprintf_chk)(stream, flag, format, list);
	text.bytes = RN_REAL(__vasprintf_chk)(&text.data, flag, format, list);
	return put_text(stream, &text);
}

RN_EXPORT int vprintf(const char *restrict format, va_list list)
{
	return vfprintf(stdout, format, list);
}

int __vprintf_chk(int flag, const char *format, va_list list);

RN_EXPORT int __vprintf_chk(int flag, const char *format, va_list list)
{
	return __vfprintf_chk(stdout, flag, format, list);
}

#define PRINTS(call)                                                                               \
	do {                                                                                       \
		va_list list;                                                                      \
		int result_;                                                                       \
                                                                                                   \
		va_start(list, format);                                                            \
		result_ = (call);                                                                  \
		va_end(list);                                                                      \
		return result_;                                                                    \
	} while (0)

RN_EXPORT int fprintf(FILE *restrict stream, const char *restrict format, ...)
{
	PRINTS(vfprintf(stream, format, list));
}

RN_EXPORT int printf(const char *restrict format, ...)
{
	PRINTS(vfprintf(stdout, format, list));
}

int __fprintf_chk(FILE *stream, int flag, const char *format, ...);

RN_EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...)
{
	PRINTS(__vfprintf_chk(stream, flag, format, list));
}

int __printf_chk(int flag, const char *format, ...);

RN_EXPORT int __printf_chk(int flag, const char *format, ...)
{
	PRINTS(__vfprintf_chk(stdout, flag, format, list));
}

static int print_fd(int fd, struct text *text)
{
	ssize_t written = text->bytes;

	if (text->bytes > 0)
		written = write(fd, text->data, (size_t)text->bytes);
	if (text->bytes >= 0)
		free(text->data);
	return (int)written;
}

RN_EXPORT int vdprintf(int fd, const char *restrict format, va_list list)
{
	struct text text;

	text.bytes = RN_REAL(vasprintf)(&text.data, format, list);
	return print_fd(fd, &text);
}

RN_EXPORT int dprintf(int fd, const char *restrict format, ...)
{
	PRINTS(vdprintf(fd, format, list));
}

int __vdprintf_chk(int fd, int flag, const char *format, va_list list);

RN_EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list list)
{
	struct text text;

	text.bytes = RN_REAL(__vasprintf_chk)(&text.data, flag, format, list);
	return print_fd(fd, &text);
}

int __dprintf_chk(int fd, int flag, const char *format, ...);

RN_EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	PRINTS(__vdprintf_chk(fd, flag, format, list));
}
