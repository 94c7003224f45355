/*
 * Threads of a program in virtual time: of all threads of a run one runs native code, so a lock that another
 * thread holds is waited for in the shim, and so are conditions, semaphores and the end of threads.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "preload/virtual.h"

/* Several versions of these are in the C library; programs of today use this one. */
#define CONDITION_VERSION "GLIBC_2.3.2"
#define RN_REAL_CONDITION(name)                                                                    \
	(__extension__({                                                                           \
		static __typeof__(&(name)) real_;                                                  \
		if (!real_)                                                                        \
			*(void **)&real_ = dlvsym(RTLD_NEXT, #name, CONDITION_VERSION);            \
		real_;                                                                             \
	}))

struct record {
	void *(*run)(void *arg);
	void *arg;
	int slot;
	pthread_t id;
	bool done;
	struct record *next;
};

static struct record *records;
static _Atomic unsigned lock_waiters;
static bool is_threaded; /* there has been a second thread */

/* --- life of a thread --- */

static void finish(void *arg)
{
	struct record *record = arg;

	record->done = true;
	rn_virtual_drop_slot();
}

static void *start(void *arg)
{
	struct record *record = arg;
	void *result;

	rn_virtual_take_slot(record->slot);
	pthread_cleanup_push(finish, record);
	result = record->run(record->arg);
	pthread_cleanup_pop(1);
	return result;
}

RN_EXPORT int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attr,
			     void *(*run)(void *), void *restrict arg)
{
	struct record *record;
	int slot, error;

	if (!rn_virtual_is_on())
		return RN_REAL(pthread_create)(id, attr, run, arg);
	record = calloc(1, sizeof(*record));
	slot = record ? rn_virtual_reserve_slot() : -1;
	if (slot < 0) {
		free(record);
		return EAGAIN;
	}
	is_threaded = true;
	*record = (struct record){.run = run, .arg = arg, .slot = slot, .next = records};
	error = RN_REAL(pthread_create)(id, attr, start, record);
	if (error) {
		atomic_store(&rn_virtual_page()->slot[slot].state, RN_TIME_FREE);
		free(record);
		return error;
	}
	record->id = *id;
	records = record;
	return 0;
}

static bool look_done(void *arg)
{
	const struct record *record = arg;

	return record->done;
}

/* Wait until the thread has given its slot back; what is left of it takes no time. */
static enum rn_waited wait_done(pthread_t id, uint64_t until_ps)
{
	struct record **link = &records;
	enum rn_waited waited = RN_WAITED_SIGNAL;

	while (*link && !((*link)->id == id))
		link = &(*link)->next;
	if (!*link)
		return RN_WAITED_OK;
	while (waited == RN_WAITED_SIGNAL && rn_virtual_is_on())
		waited = rn_virtual_wait_for(look_done, *link, until_ps, NULL);
	if ((*link)->done) {
		struct record *record = *link;

		*link = record->next;
		free(record);
	}
	return waited;
}

RN_EXPORT int pthread_join(pthread_t id, void **result)
{
	if (rn_virtual_is_on())
		wait_done(id, RN_TIME_NO_LIMIT);
	return RN_REAL(pthread_join)(id, result);
}

/* --- mutexes --- */

static bool look_mutex(void *arg)
{
	return RN_REAL(pthread_mutex_trylock)(arg) != EBUSY;
}

RN_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int error;

	if (!is_threaded || !rn_virtual_is_on())
		return RN_REAL(pthread_mutex_lock)(mutex);
	error = RN_REAL(pthread_mutex_trylock)(mutex);
	if (error != EBUSY)
		return error;
	lock_waiters++;
	while (rn_virtual_is_on() &&
	       rn_virtual_wait_for(look_mutex, mutex, RN_TIME_NO_LIMIT, NULL) != RN_WAITED_OK)
		;
	lock_waiters--;
	return rn_virtual_is_on() ? 0 : RN_REAL(pthread_mutex_lock)(mutex);
}

RN_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	const int error = RN_REAL(pthread_mutex_unlock)(mutex);

	if (lock_waiters)
		rn_virtual_act();
	return error;
}

/* --- conditions --- */

struct waiter {
	const pthread_cond_t *condition;
	bool signalled;
	struct waiter *next;
};

static struct waiter *waiters; /* oldest first */

static bool look_signalled(void *arg)
{
	const struct waiter *waiter = arg;

	return waiter->signalled;
}

static void remove_waiter(const struct waiter *waiter)
{
	for (struct waiter **link = &waiters; *link; link = &(*link)->next)
		if (*link == waiter) {
			*link = waiter->next;
			return;
		}
}

static int wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ps)
{
	struct waiter waiter = {.condition = condition}, **link = &waiters;
	enum rn_waited waited;

	while (*link)
		link = &(*link)->next;
	*link = &waiter;
	pthread_mutex_unlock(mutex);
	do
		waited = rn_virtual_wait_for(look_signalled, &waiter, until_ps, NULL);
	while (waited == RN_WAITED_SIGNAL && rn_virtual_is_on());
	remove_waiter(&waiter);
	pthread_mutex_lock(mutex);
	return waited == RN_WAITED_TIMEOUT ? ETIMEDOUT : 0;
}

RN_EXPORT int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex)
{
	if (!rn_virtual_is_on())
		return RN_REAL_CONDITION(pthread_cond_wait)(condition, mutex);
	return wait_condition(condition, mutex, RN_TIME_NO_LIMIT);
}

/* A time far below the epoch's is one of CLOCK_MONOTONIC: the condition does not say which it uses. */
static uint64_t ps_of_deadline(const struct timespec *time)
{
	const uint64_t ns = (uint64_t)time->tv_sec * RN_NS_PER_S + (uint64_t)time->tv_nsec;
	const uint64_t epoch_ns = rn_virtual_clock_ns(CLOCK_REALTIME, 0);
	const uint64_t base_ns =
		ns >= epoch_ns / 2 ? epoch_ns : rn_virtual_clock_ns(CLOCK_MONOTONIC, 0);

	if (ns <= base_ns)
		return 0;
	return ns - base_ns > RN_TIME_NO_LIMIT / RN_PS_PER_NS / 2 ? RN_TIME_NO_LIMIT
								  : (ns - base_ns) * RN_PS_PER_NS;
}

RN_EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition,
				     pthread_mutex_t *restrict mutex,
				     const struct timespec *restrict time)
{
	if (!rn_virtual_is_on())
		return RN_REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, time);
	return wait_condition(condition, mutex, ps_of_deadline(time));
}

RN_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition,
				     pthread_mutex_t *restrict mutex, clockid_t clock,
				     const struct timespec *restrict time)
{
	if (!rn_virtual_is_on())
		return RN_REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
	return wait_condition(condition, mutex, ps_of_deadline(time));
}

static void signal_waiters(const pthread_cond_t *condition, bool all)
{
	for (struct waiter *waiter = waiters; waiter; waiter = waiter->next) {
		if (waiter->condition != condition || waiter->signalled)
			continue;
		waiter->signalled = true;
		rn_virtual_act();
		if (!all)
			return;
	}
}

RN_EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
	signal_waiters(condition, false);
	return RN_REAL_CONDITION(pthread_cond_signal)(condition);
}

RN_EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	signal_waiters(condition, true);
	return RN_REAL_CONDITION(pthread_cond_broadcast)(condition);
}

/* --- semaphores --- */

static bool look_semaphore(void *arg)
{
	return RN_REAL(sem_trywait)(arg) == 0;
}

static int wait_semaphore(sem_t *semaphore, uint64_t until_ps)
{
	bool restart = false;

	for (;;) {
		switch (rn_virtual_wait_for(look_semaphore, semaphore, until_ps, &restart)) {
		case RN_WAITED_OK:
			return 0;
		case RN_WAITED_TIMEOUT:
			errno = ETIMEDOUT;
			return -1;
		case RN_WAITED_SIGNAL:
			if (restart && rn_virtual_is_on())
				break;
			errno = EINTR;
			return -1;
		}
	}
}

RN_EXPORT int sem_wait(sem_t *semaphore)
{
	return rn_virtual_is_on() ? wait_semaphore(semaphore, RN_TIME_NO_LIMIT)
				  : RN_REAL(sem_wait)(semaphore);
}

RN_EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time)
{
	return rn_virtual_is_on() ? wait_semaphore(semaphore, ps_of_deadline(time))
				  : RN_REAL(sem_timedwait)(semaphore, time);
}

RN_EXPORT int sem_post(sem_t *semaphore)
{
	const int result = RN_REAL(sem_post)(semaphore);

	if (rn_virtual_is_on())
		rn_virtual_act();
	return result;
}
