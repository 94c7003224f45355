#include "outlet.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

#define ROOM_BYTES (1u << 18)
#define PIECE_BYTES 65536u

struct rn_outlet {
	int fd, event_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled;
	/* Under the lock: */
	char *text;
	size_t begin, end, room;
	bool is_writing;
	int error;
};

static void tell(const struct rn_outlet *outlet)
{
	const uint64_t one = 1;

	/* The counter is far from full. */
	if (write(outlet->event_fd, &one, sizeof(one)) != sizeof(one))
		return;
}

/* All of it, or an errno. The descriptor may be somebody's who does not wait. */
static int write_all(int fd, const char *text, size_t bytes)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};

	while (bytes) {
		const ssize_t n = write(fd, text, bytes);

		if (n >= 0) {
			text += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) {
			poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

/* Writes and waits are the points at which the thread is cancelled; the lock is not held there, or is by the wait itself. */
static void unlock(void *arg)
{
	struct rn_outlet *outlet = arg;

	pthread_mutex_unlock(&outlet->lock);
}

static size_t take_piece(struct rn_outlet *outlet, char *piece)
{
	size_t bytes;

	pthread_mutex_lock(&outlet->lock);
	pthread_cleanup_push(unlock, outlet);
	while (outlet->begin == outlet->end)
		pthread_cond_wait(&outlet->filled, &outlet->lock);
	bytes = outlet->end - outlet->begin;
	bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
	memcpy(piece, outlet->text + outlet->begin, bytes);
	outlet->begin += bytes;
	outlet->is_writing = true;
	pthread_cleanup_pop(1);
	return bytes;
}

static void note(struct rn_outlet *outlet, int error)
{
	pthread_mutex_lock(&outlet->lock);
	outlet->is_writing = false;
	outlet->error = outlet->error ? outlet->error : error;
	if (outlet->error)
		outlet->begin = outlet->end;
	pthread_mutex_unlock(&outlet->lock);
}

static void *write_on(void *arg)
{
	struct rn_outlet *outlet = arg;
	char piece[PIECE_BYTES];

	for (;;) {
		const size_t bytes = take_piece(outlet, piece);

		note(outlet, write_all(outlet->fd, piece, bytes));
		tell(outlet);
	}
	return NULL;
}

/* Signals are the launcher's. */
static int start_thread(struct rn_outlet *outlet)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	error = pthread_create(&outlet->thread, NULL, write_on, outlet);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

struct rn_outlet *rn_outlet_new(int fd)
{
	struct rn_outlet *outlet = rn_calloc(1, sizeof(*outlet));
	int error;

	outlet->fd = fd;
	outlet->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&outlet->lock, NULL);
	pthread_cond_init(&outlet->filled, NULL);
	error = outlet->event_fd < 0 ? errno : start_thread(outlet);
	if (!error)
		return outlet;
	fprintf(stderr, "rnicsim: cannot pass on what programs print: %s\n", strerror(error));
	if (outlet->event_fd >= 0)
		close(outlet->event_fd);
	free(outlet);
	return NULL;
}

void rn_outlet_free(struct rn_outlet *outlet)
{
	if (!outlet)
		return;
	pthread_cancel(outlet->thread);
	pthread_join(outlet->thread, NULL);
	pthread_cond_destroy(&outlet->filled);
	pthread_mutex_destroy(&outlet->lock);
	close(outlet->event_fd);
	free(outlet->text);
	free(outlet);
}

/* With the lock. */
static void make_room(struct rn_outlet *outlet, size_t bytes)
{
	if (outlet->begin) {
		memmove(outlet->text, outlet->text + outlet->begin, outlet->end - outlet->begin);
		outlet->end -= outlet->begin;
		outlet->begin = 0;
	}
	if (outlet->room - outlet->end >= bytes)
		return;
	outlet->room = 2 * (outlet->end + bytes);
	outlet->text = rn_reallocarray(outlet->text, outlet->room, 1);
}

void rn_outlet_put(struct rn_outlet *outlet, const void *text, size_t bytes)
{
	if (!bytes)
		return;
	pthread_mutex_lock(&outlet->lock);
	if (!outlet->error) {
		if (outlet->room - outlet->end < bytes)
			make_room(outlet, bytes);
		memcpy(outlet->text + outlet->end, text, bytes);
		outlet->end += bytes;
		pthread_cond_signal(&outlet->filled);
	}
	pthread_mutex_unlock(&outlet->lock);
}

void rn_outlet_say(struct rn_outlet *outlet, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int bytes;

	va_start(args, format);
	bytes = vasprintf(&text, format, args);
	va_end(args);
	if (bytes < 0)
		return;
	rn_outlet_put(outlet, text, (size_t)bytes);
	free(text);
}

bool rn_outlet_has_room(struct rn_outlet *outlet)
{
	bool has;

	pthread_mutex_lock(&outlet->lock);
	has = outlet->end - outlet->begin < ROOM_BYTES;
	pthread_mutex_unlock(&outlet->lock);
	return has;
}

bool rn_outlet_is_drained(struct rn_outlet *outlet)
{
	bool is;

	pthread_mutex_lock(&outlet->lock);
	is = outlet->begin == outlet->end && !outlet->is_writing;
	pthread_mutex_unlock(&outlet->lock);
	return is;
}

int rn_outlet_error(struct rn_outlet *outlet)
{
	int error;

	pthread_mutex_lock(&outlet->lock);
	error = outlet->error;
	pthread_mutex_unlock(&outlet->lock);
	return error;
}

int rn_outlet_fd(const struct rn_outlet *outlet)
{
	return outlet->event_fd;
}

void rn_outlet_look(struct rn_outlet *outlet)
{
	uint64_t count;

	if (read(outlet->event_fd, &count, sizeof(count)) != sizeof(count))
		return; /* nothing new */
}
