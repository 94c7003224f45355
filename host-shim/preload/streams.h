/*
 * Streams (FILE) in virtual time. The C library reads and writes behind them by calls of its own, which nobody can
 * interpose: so what would make it read or write a pipe waits here first.
 */
#ifndef RN_PRELOAD_STREAMS_H
#define RN_PRELOAD_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Bits of a stream's flags; the C library's macros read and write them in programs. */
#define RN_STREAM_UNBUFFERED 0x0002
#define RN_STREAM_EOF 0x0010
#define RN_STREAM_ERROR 0x0020
#define RN_STREAM_IN_BACKUP 0x0100
#define RN_STREAM_LINE_BUFFERED 0x0200

/** The stream's lock, which another thread may hold while it waits. */
void rn_stream_lock(FILE *stream);
void rn_stream_unlock(FILE *stream);

/** Whether the next byte has to be waited for in virtual time; bytes that the buffer has need no wait. */
bool rn_stream_must_wait(FILE *stream);

/** Write out what the buffer has, waiting in virtual time; nothing where that cannot block. False: an error. */
bool rn_stream_drain(FILE *stream);

/** For popen: to be drained when the program ends. */
void rn_stream_drain_all(void);

#endif
