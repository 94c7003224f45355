/*
 * Reading from streams. What the buffer cannot give is taken byte by byte, with a wait before each fill; so a line
 * that comes in two portions is waited for twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "preload/descriptors.h"
#include "preload/locks.h"
#include "preload/streams.h"
#include "preload/waits.h"

/* A macro as well. */
#undef fread_unlocked

int __uflow(FILE *stream);
int __underflow(FILE *stream);

/* --- the lock --- */

static bool look_lock(void *arg)
{
	return RN_REAL(ftrylockfile)(arg) == 0;
}

static unsigned lock_waiters;

static bool wait_lock(FILE *stream)
{
	bool has_it;

	lock_waiters++;
	has_it = rn_wait_stubbornly(look_lock, stream, RN_TIME_NO_LIMIT, NULL);
	lock_waiters--;
	return has_it;
}

void rn_stream_lock(FILE *stream)
{
	if (!rn_virtual_is_on() || !rn_locks_are_threaded() ||
	    (!look_lock(stream) && !wait_lock(stream)))
		RN_REAL(flockfile)(stream);
}

void rn_stream_unlock(FILE *stream)
{
	RN_REAL(funlockfile)(stream);
	if (lock_waiters)
		rn_virtual_act();
}

RN_EXPORT void flockfile(FILE *stream)
{
	rn_stream_lock(stream);
}

RN_EXPORT void funlockfile(FILE *stream)
{
	rn_stream_unlock(stream);
}

/* --- bytes --- */

static size_t buffered(const FILE *stream)
{
	return (size_t)(stream->_IO_read_end - stream->_IO_read_ptr);
}

bool rn_stream_must_wait(FILE *stream)
{
	if (!rn_virtual_is_on() || buffered(stream) || stream->_flags & RN_STREAM_EOF ||
	    fwide(stream, 0) > 0)
		return false;
	/* Behind a byte that was put back there may be more. */
	if (stream->_flags & RN_STREAM_IN_BACKUP && stream->_IO_save_end > stream->_IO_save_base)
		return false;
	return stream->_fileno >= 0 && rn_descriptor_is_stream(stream->_fileno);
}

/* Before a fill; false: an error. What it takes out of a pipe makes room for who waits to write. */
static bool wait_fill(FILE *stream)
{
	if (!rn_stream_must_wait(stream))
		return true;
	if (!rn_descriptor_before_read(stream->_fileno, false)) {
		stream->_flags |= RN_STREAM_ERROR;
		return false;
	}
	rn_virtual_act();
	return true;
}

static int next_byte(FILE *stream)
{
	return wait_fill(stream) ? RN_REAL(getc_unlocked)(stream) : EOF;
}

/* Whether the call can be left to the C library: the buffer has @bytes, or there is nothing to wait for. */
static bool is_plain(FILE *stream, size_t bytes)
{
	return !rn_virtual_is_on() || buffered(stream) >= bytes || fwide(stream, 0) > 0 ||
	       stream->_fileno < 0 || !rn_descriptor_is_stream(stream->_fileno);
}

RN_EXPORT int __uflow(FILE *stream)
{
	return wait_fill(stream) ? RN_REAL(__uflow)(stream) : EOF;
}

RN_EXPORT int __underflow(FILE *stream)
{
	return wait_fill(stream) ? RN_REAL(__underflow)(stream) : EOF;
}

RN_EXPORT int getc_unlocked(FILE *stream)
{
	return is_plain(stream, 1) ? RN_REAL(getc_unlocked)(stream) : next_byte(stream);
}

RN_EXPORT int fgetc_unlocked(FILE *stream)
{
	return getc_unlocked(stream);
}

RN_EXPORT int getchar_unlocked(void)
{
	return getc_unlocked(stdin);
}

RN_EXPORT int fgetc(FILE *stream)
{
	int byte;

	if (is_plain(stream, 1))
		return RN_REAL(fgetc)(stream);
	rn_stream_lock(stream);
	byte = next_byte(stream);
	rn_stream_unlock(stream);
	return byte;
}

RN_EXPORT int getc(FILE *stream)
{
	return fgetc(stream);
}

int _IO_getc(FILE *stream);

RN_EXPORT int _IO_getc(FILE *stream)
{
	return fgetc(stream);
}

RN_EXPORT int getchar(void)
{
	return fgetc(stdin);
}

/* --- lines --- */

static bool has_line(const FILE *stream, size_t most, int end)
{
	const size_t bytes = buffered(stream);

	return bytes >= most || (bytes && memchr(stream->_IO_read_ptr, end, bytes));
}

static char *get_line(char *line, int room, FILE *stream)
{
	int n = 0, byte = 0;
	const bool was_error = stream->_flags & RN_STREAM_ERROR;

	while (n + 1 < room && byte != '\n') {
		byte = next_byte(stream);
		if (byte == EOF)
			break;
		line[n++] = (char)byte;
	}
	if (room < 1 || (room > 1 && !n) || (!was_error && stream->_flags & RN_STREAM_ERROR))
		return NULL;
	line[n] = 0;
	return line;
}

RN_EXPORT char *fgets_unlocked(char *restrict line, int room, FILE *restrict stream)
{
	if (room < 2 || has_line(stream, (size_t)room - 1, '\n') || is_plain(stream, SIZE_MAX))
		return RN_REAL(fgets_unlocked)(line, room, stream);
	return get_line(line, room, stream);
}

RN_EXPORT char *fgets(char *restrict line, int room, FILE *restrict stream)
{
	char *result;

	rn_stream_lock(stream);
	result = fgets_unlocked(line, room, stream);
	rn_stream_unlock(stream);
	return result;
}

char *__fgets_chk(char *line, size_t size, int room, FILE *stream);
char *__fgets_unlocked_chk(char *line, size_t size, int room, FILE *stream);

RN_EXPORT char *__fgets_chk(char *line, size_t size, int room, FILE *stream)
{
	return room > 0 && (size_t)room > size ? RN_REAL(__fgets_chk)(line, size, room, stream)
					       : fgets(line, room, stream);
}

RN_EXPORT char *__fgets_unlocked_chk(char *line, size_t size, int room, FILE *stream)
{
	return room > 0 && (size_t)room > size
		       ? RN_REAL(__fgets_unlocked_chk)(line, size, room, stream)
		       : fgets_unlocked(line, room, stream);
}

static bool grow(char **line, size_t *room, size_t needed)
{
	size_t more = *room < 60 ? 120 : 2 * *room;
	char *grown;

	if (*line && *room >= needed)
		return true;
	grown = realloc(*line, more < needed ? needed : more);
	if (!grown)
		return false;
	*line = grown;
	*room = more < needed ? needed : more;
	return true;
}

static ssize_t get_until(char **line, size_t *room, int end, FILE *stream)
{
	size_t n = 0;
	int byte = 0;

	if (!*line)
		*room = 0;
	do {
		byte = next_byte(stream);
		if (byte == EOF)
			break;
		if (!grow(line, room, n + 2))
			return -1;
		(*line)[n++] = (char)byte;
	} while (byte != end);
	if (!n)
		return -1;
	(*line)[n] = 0;
	return (ssize_t)n;
}

RN_EXPORT ssize_t getdelim(char **restrict line, size_t *restrict room, int end,
			   FILE *restrict stream)
{
	ssize_t result;

	rn_stream_lock(stream);
	if (!line || !room || has_line(stream, SIZE_MAX, end) || is_plain(stream, SIZE_MAX))
		result = RN_REAL(getdelim)(line, room, end, stream);
	else
		result = get_until(line, room, end, stream);
	rn_stream_unlock(stream);
	return result;
}

ssize_t __getdelim(char **line, size_t *room, int end, FILE *stream);

RN_EXPORT ssize_t __getdelim(char **line, size_t *room, int end, FILE *stream)
{
	return getdelim(line, room, end, stream);
}

RN_EXPORT ssize_t getline(char **restrict line, size_t *restrict room, FILE *restrict stream)
{
	return getdelim(line, room, '\n', stream);
}

/* --- blocks --- */

static size_t get_block(char *data, size_t bytes, FILE *stream)
{
	size_t done = 0;

	while (done < bytes) {
		size_t ready = buffered(stream);
		int byte;

		if (ready > bytes - done)
			ready = bytes - done;
		memcpy(data + done, stream->_IO_read_ptr, ready);
		stream->_IO_read_ptr += ready;
		done += ready;
		if (done == bytes)
			break;
		byte = next_byte(stream);
		if (byte == EOF)
			break;
		data[done++] = (char)byte;
	}
	return done;
}

RN_EXPORT size_t fread_unlocked(void *restrict data, size_t size, size_t count,
				FILE *restrict stream)
{
	size_t bytes;

	if (!size || !count || __builtin_mul_overflow(size, count, &bytes) ||
	    is_plain(stream, bytes))
		return RN_REAL(fread_unlocked)(data, size, count, stream);
	return get_block(data, bytes, stream) / size;
}

RN_EXPORT size_t fread(void *restrict data, size_t size, size_t count, FILE *restrict stream)
{
	size_t result;

	rn_stream_lock(stream);
	result = fread_unlocked(data, size, count, stream);
	rn_stream_unlock(stream);
	return result;
}

size_t __fread_chk(void *data, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *data, size_t room, size_t size, size_t count, FILE *stream);

static bool fits(size_t room, size_t size, size_t count)
{
	size_t bytes;

	return !__builtin_mul_overflow(size, count, &bytes) && bytes <= room;
}

RN_EXPORT size_t __fread_chk(void *data, size_t room, size_t size, size_t count, FILE *stream)
{
	return fits(room, size, count) ? fread(data, size, count, stream)
				       : RN_REAL(__fread_chk)(data, room, size, count, stream);
}

RN_EXPORT size_t __fread_unlocked_chk(void *data, size_t room, size_t size, size_t count,
				      FILE *stream)
{
	return fits(room, size, count)
		       ? fread_unlocked(data, size, count, stream)
		       : RN_REAL(__fread_unlocked_chk)(data, room, size, count, stream);
}
