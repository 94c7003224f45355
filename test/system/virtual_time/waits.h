/*
 * Programs that wait in all ways there are. Each mode prints when things happened, in nanoseconds since it began;
 * in virtual time every figure repeats.
 */
#ifndef RN_TEST_VIRTUAL_TIME_WAITS_H
#define RN_TEST_VIRTUAL_TIME_WAITS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000
#define RN_TEST_COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct mode {
	const char *name;
	void (*run)(void);
};

static uint64_t began_ns;

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline void say(const char *what, long value)
{
	printf("%s %ld at %llu\n", what, value,
	       (unsigned long long)(clock_ns(CLOCK_MONOTONIC) - began_ns));
	fflush(stdout);
}

static inline void sleep_ms(unsigned ms)
{
	usleep(1000 * ms);
}

static inline struct timespec in_ms(clockid_t clock, unsigned ms)
{
	const uint64_t ns = clock_ns(clock) + (uint64_t)ms * MS;

	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/** Run @function in a thread, which has not begun when this returns. */
static inline pthread_t start(void *(*function)(void *arg), void *arg)
{
	pthread_t id;

	if (pthread_create(&id, NULL, function, arg))
		abort();
	return id;
}

static inline int run_mode(const struct mode *modes, size_t count, int argc, char **argv)
{
	for (size_t i = 0; i < count; i++) {
		if (argc == 1)
			puts(modes[i].name);
		if (argc != 2 || strcmp(argv[1], modes[i].name))
			continue;
		began_ns = clock_ns(CLOCK_MONOTONIC);
		modes[i].run();
		say(modes[i].name, 0);
		return 0;
	}
	return argc == 1 ? 0 : 2;
}

#endif
