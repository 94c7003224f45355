/*
 * The threads of C11 in virtual time. The C library's are its POSIX ones with other names and errors; so here.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <threads.h>

#include "preload/waits.h"

static int of_error(int error)
{
	switch (error) {
	case 0:
		return thrd_success;
	case ENOMEM:
		return thrd_nomem;
	case ETIMEDOUT:
		return thrd_timedout;
	case EBUSY:
		return thrd_busy;
	default:
		return thrd_error;
	}
}

/* --- threads --- */

struct begun {
	thrd_start_t run;
	void *arg;
};

static void *begin(void *arg)
{
	const struct begun begun = *(struct begun *)arg;

	free(arg);
	return (void *)(intptr_t)begun.run(begun.arg);
}

RN_EXPORT int thrd_create(thrd_t *id, thrd_start_t run, void *arg)
{
	struct begun *begun;
	int error;

	if (!rn_virtual_is_on())
		return RN_REAL(thrd_create)(id, run, arg);
	begun = malloc(sizeof(*begun));
	if (!begun)
		return thrd_nomem;
	*begun = (struct begun){run, arg};
	error = pthread_create(id, NULL, begin, begun);
	if (error)
		free(begun);
	return error == EAGAIN ? thrd_nomem : of_error(error);
}

RN_EXPORT int thrd_join(thrd_t id, int *result)
{
	void *value;
	const int error = pthread_join(id, &value);

	if (!error && result)
		*result = (int)(intptr_t)value;
	return of_error(error);
}

RN_EXPORT int thrd_detach(thrd_t id)
{
	return of_error(pthread_detach(id));
}

RN_EXPORT void thrd_exit(int result)
{
	pthread_exit((void *)(intptr_t)result);
}

RN_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *rest)
{
	const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, rest);

	return !error ? 0 : error == EINTR ? -1 : -2;
}

RN_EXPORT void thrd_yield(void)
{
	sched_yield();
}

RN_EXPORT void call_once(once_flag *flag, void (*run)(void))
{
	pthread_once((pthread_once_t *)(void *)flag, run);
}

/* --- mutexes and conditions --- */

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "one is the other");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "one is the other");

static pthread_mutex_t *of_mutex(mtx_t *mutex)
{
	return (pthread_mutex_t *)(void *)mutex;
}

static pthread_cond_t *of_condition(cnd_t *condition)
{
	return (pthread_cond_t *)(void *)condition;
}

RN_EXPORT int mtx_lock(mtx_t *mutex)
{
	return of_error(pthread_mutex_lock(of_mutex(mutex)));
}

RN_EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict time)
{
	return of_error(pthread_mutex_timedlock(of_mutex(mutex), time));
}

RN_EXPORT int mtx_trylock(mtx_t *mutex)
{
	return of_error(pthread_mutex_trylock(of_mutex(mutex)));
}

RN_EXPORT int mtx_unlock(mtx_t *mutex)
{
	return of_error(pthread_mutex_unlock(of_mutex(mutex)));
}

RN_EXPORT int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
	return of_error(pthread_cond_wait(of_condition(condition), of_mutex(mutex)));
}

RN_EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
			    const struct timespec *restrict time)
{
	return of_error(pthread_cond_timedwait(of_condition(condition), of_mutex(mutex), time));
}

RN_EXPORT int cnd_signal(cnd_t *condition)
{
	return of_error(pthread_cond_signal(of_condition(condition)));
}

RN_EXPORT int cnd_broadcast(cnd_t *condition)
{
	return of_error(pthread_cond_broadcast(of_condition(condition)));
}
