/*
 * Futexes that programs use by syscall(): the waits of C++20's atomics, of Rust and of locks made by hand. Waiters of
 * one process are known here; one of another process sees that the word has changed.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/affinity.h"
#include "preload/own_signals.h"
#include "preload/raw_calls.h"
#include "preload/waits.h"

#define ARGUMENTS 6

struct sleeper {
	const _Atomic uint32_t *word;
	uint32_t value, bits;
	bool is_shared, is_woken;
	struct sleeper *next;
};

static struct sleeper *sleepers; /* oldest first */

static bool look_woken(void *arg)
{
	const struct sleeper *sleeper = arg;

	return sleeper->is_woken || (sleeper->is_shared && *sleeper->word != sleeper->value);
}

static uint64_t limit_ps(int operation, const struct timespec *time)
{
	if (!time || (operation & FUTEX_CMD_MASK) == FUTEX_WAIT)
		return rn_wait_after_ps(time);
	return rn_wait_deadline_ps(
		operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, time);
}

static long sleep_on(struct sleeper *sleeper, uint64_t until_ps)
{
	struct sleeper **link = &sleepers;
	bool is_over;

	rn_virtual_charge_call();
	if (*sleeper->word != sleeper->value) {
		errno = EAGAIN;
		return -1;
	}
	while (*link)
		link = &(*link)->next;
	*link = sleeper;
	is_over = rn_wait_once(look_woken, sleeper, until_ps, ETIMEDOUT);
	for (link = &sleepers; *link != sleeper; link = &(*link)->next)
		;
	*link = sleeper->next;
	return is_over ? 0 : -1;
}

static long wake(const _Atomic uint32_t *word, uint32_t most, uint32_t bits)
{
	long woken = 0;

	for (struct sleeper *one = sleepers; one && woken < (long)most; one = one->next) {
		if (one->word != word || one->is_woken || !(one->bits & bits))
			continue;
		one->is_woken = true;
		woken++;
	}
	rn_virtual_act();
	return woken;
}

/* This library's own: the thread's slot. */
static bool is_of_page(long address)
{
	const long page = (long)rn_virtual_page();

	return address >= page && address < page + (long)RN_TIME_PAGE_BYTES;
}

/* False: the system's. */
static bool virtual_futex(const long argument[ARGUMENTS], long *result)
{
	const int operation = (int)argument[1], command = operation & FUTEX_CMD_MASK;
	const bool has_bits = command == FUTEX_WAIT_BITSET || command == FUTEX_WAKE_BITSET;
	struct sleeper sleeper = {
		.word = (const _Atomic uint32_t *)argument[0],
		.value = (uint32_t)argument[2],
		.bits = has_bits ? (uint32_t)argument[5] : FUTEX_BITSET_MATCH_ANY,
		.is_shared = !(operation & FUTEX_PRIVATE_FLAG),
	};

	if (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) {
		*result = sleep_on(&sleeper,
				   limit_ps(operation, (const struct timespec *)argument[3]));
		return true;
	}
	if (command != FUTEX_WAKE && command != FUTEX_WAKE_BITSET)
		return false;
	*result = wake(sleeper.word, sleeper.value, sleeper.bits);
	return *result > 0;
}

/*
 * The seventh word lies on the stack, whether the caller has passed one or not; the C library's own reads it as well.
 */
__attribute__((no_sanitize("address"))) RN_EXPORT long syscall(long number, ...)
{
	long argument[ARGUMENTS], result;
	va_list list;

	va_start(list, number);
	for (unsigned i = 0; i < ARGUMENTS; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_futex && rn_virtual_is_on() && !is_of_page(argument[0]) &&
	    virtual_futex(argument, &result))
		return result;
	if (number == SYS_sched_getaffinity)
		return rn_affinity_get((pid_t)argument[0], (size_t)argument[1],
				       (void *)argument[2]);
	if (number == SYS_sched_setaffinity)
		return rn_affinity_set((pid_t)argument[0], (size_t)argument[1],
				       (const void *)argument[2]);
	if (rn_own_signals_call(number, argument, &result) ||
	    rn_answer_call(number, argument, &result))
		return result;
	return RN_REAL(syscall)(number, argument[0], argument[1], argument[2], argument[3],
				argument[4], argument[5]);
}

/* A child has none of its parent's threads. */
static void forget_sleepers(void)
{
	sleepers = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_sleepers);
}
