/*
 * Conditions in virtual time. Of a private one the waiters are known here, and a signal goes to the oldest. One that
 * processes share counts signals in itself, and each signal wakes all who wait: they look and wait again.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "preload/objects.h"
#include "preload/waits.h"

/* Several versions of these are in the C library; programs of today use this one. */
#define CONDITION_VERSION "GLIBC_2.3.2"
#define RN_REAL_CONDITION(name)                                                                    \
	(__extension__({                                                                           \
		static __typeof__(&(name)) real_;                                                  \
		if (!real_)                                                                        \
			*(void **)&real_ = find_next(#name);                                       \
		real_;                                                                             \
	}))

/* The next definition is another interposer's (a sanitizer's, without versions), or the C library's of today. */
static void *find_next(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name), *current = dlvsym(RTLD_NEXT, name, CONDITION_VERSION);
	Dl_info of_next, of_current;

	if (next && current && dladdr(next, &of_next) && dladdr(current, &of_current) &&
	    of_next.dli_fbase != of_current.dli_fbase)
		return next;
	return current ? current : next;
}

#define SIGNAL_STEP 2 /* the lowest bit of the word is the C library's */

struct waiter {
	pthread_cond_t *condition;
	pthread_mutex_t *mutex;
	bool is_shared, is_signalled;
	unsigned long long count;
	struct waiter *next;
};

static struct waiter *waiters; /* oldest first */

static unsigned long long *signal_count(pthread_cond_t *condition)
{
	return &condition->__data.__wseq.__value64;
}

static bool look_signalled(void *arg)
{
	const struct waiter *waiter = arg;

	return waiter->is_shared ? *signal_count(waiter->condition) != waiter->count
				 : waiter->is_signalled;
}

static void add(struct waiter *waiter)
{
	struct waiter **link = &waiters;

	while (*link)
		link = &(*link)->next;
	*link = waiter;
}

/* Also when the thread is cancelled: it has the mutex then. */
static void leave(void *arg)
{
	const struct waiter *waiter = arg;

	for (struct waiter **link = &waiters; *link; link = &(*link)->next)
		if (*link == waiter) {
			*link = waiter->next;
			break;
		}
	pthread_mutex_lock(waiter->mutex);
}

static int wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ps)
{
	struct waiter waiter = {.condition = condition,
				.mutex = mutex,
				.is_shared = rn_condition_is_shared(condition)};
	enum rn_waited waited;
	int error;

	waiter.count = *signal_count(condition);
	error = pthread_mutex_unlock(mutex);
	if (error)
		return error;
	add(&waiter);
	pthread_cleanup_push(leave, &waiter);
	do
		waited = rn_wait(look_signalled, &waiter, until_ps, NULL);
	while (waited == RN_WAITED_SIGNAL && rn_virtual_is_on());
	pthread_cleanup_pop(1);
	return waited == RN_WAITED_TIMEOUT ? ETIMEDOUT : 0;
}

static bool is_time(const struct timespec *time)
{
	return time->tv_nsec >= 0 && time->tv_nsec < (long)RN_NS_PER_S;
}

RN_EXPORT int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex)
{
	if (!rn_virtual_is_on())
		return RN_REAL_CONDITION(pthread_cond_wait)(condition, mutex);
	return wait_condition(condition, mutex, RN_TIME_NO_LIMIT);
}

RN_EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition,
				     pthread_mutex_t *restrict mutex,
				     const struct timespec *restrict time)
{
	if (!rn_virtual_is_on() || !is_time(time))
		return RN_REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, time);
	return wait_condition(condition, mutex,
			      rn_wait_deadline_ps(rn_condition_clock(condition), time));
}

RN_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition,
				     pthread_mutex_t *restrict mutex, clockid_t clock,
				     const struct timespec *restrict time)
{
	if (!rn_virtual_is_on() || !is_time(time) ||
	    (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return RN_REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
	return wait_condition(condition, mutex, rn_wait_deadline_ps(clock, time));
}

static void wake_private(const pthread_cond_t *condition, bool all)
{
	for (struct waiter *waiter = waiters; waiter; waiter = waiter->next) {
		if (waiter->condition != condition || waiter->is_signalled)
			continue;
		waiter->is_signalled = true;
		rn_virtual_act();
		if (!all)
			return;
	}
}

static void wake(pthread_cond_t *condition, bool all)
{
	if (!rn_virtual_is_on())
		return;
	if (rn_condition_is_shared(condition)) {
		*signal_count(condition) += SIGNAL_STEP;
		rn_virtual_act();
	} else {
		wake_private(condition, all);
	}
}

RN_EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
	wake(condition, false);
	return RN_REAL_CONDITION(pthread_cond_signal)(condition);
}

RN_EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	wake(condition, true);
	return RN_REAL_CONDITION(pthread_cond_broadcast)(condition);
}

/* A child has none of its parent's threads. */
static void forget_waiters(void)
{
	waiters = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_waiters);
}
