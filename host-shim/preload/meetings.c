/*
 * Semaphores and barriers in virtual time. Semaphores count in themselves. A barrier of the C library does not
 * say who is in it: one that is made in virtual time is ours, in the same memory, so that processes may share it.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>

#include "preload/waits.h"

/* --- semaphores --- */

static bool look_semaphore(void *arg)
{
	return RN_REAL(sem_trywait)(arg) == 0;
}

static int wait_semaphore(sem_t *semaphore, uint64_t until_ps)
{
	return rn_wait_call(look_semaphore, semaphore, until_ps, ETIMEDOUT) ? 0 : -1;
}

static bool is_time(const struct timespec *time)
{
	return time->tv_nsec >= 0 && time->tv_nsec < (long)RN_NS_PER_S;
}

/* When the run ends during the wait, nothing has been taken. */
static int after_wait(sem_t *semaphore, int result)
{
	return result == 0 && !rn_virtual_is_on() ? RN_REAL(sem_wait)(semaphore) : result;
}

RN_EXPORT int sem_wait(sem_t *semaphore)
{
	if (!rn_virtual_is_on())
		return RN_REAL(sem_wait)(semaphore);
	return after_wait(semaphore, wait_semaphore(semaphore, RN_TIME_NO_LIMIT));
}

RN_EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
			    const struct timespec *restrict time)
{
	if (!rn_virtual_is_on() || !is_time(time) || !rn_virtual_has_clock(clock))
		return RN_REAL(sem_clockwait)(semaphore, clock, time);
	return after_wait(semaphore, wait_semaphore(semaphore, rn_wait_deadline_ps(clock, time)));
}

RN_EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time)
{
	if (!rn_virtual_is_on())
		return RN_REAL(sem_timedwait)(semaphore, time);
	return sem_clockwait(semaphore, CLOCK_REALTIME, time);
}

RN_EXPORT int sem_trywait(sem_t *semaphore)
{
	const int result = RN_REAL(sem_trywait)(semaphore);

	if (result && errno == EAGAIN && rn_virtual_is_on()) {
		rn_wait_missed(semaphore);
		errno = EAGAIN;
	}
	return result;
}

RN_EXPORT int sem_post(sem_t *semaphore)
{
	const int result = RN_REAL(sem_post)(semaphore);

	if (rn_virtual_is_on())
		rn_virtual_act();
	return result;
}

/* --- barriers --- */

#define BARRIER_MAGIC 0x62656d69u

struct barrier {
	unsigned threads, arrived;
	unsigned rounds; /* that are over */
	unsigned inside; /* threads that have waited and not left */
	unsigned magic;
};

_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "it lies in its memory");

struct arrival {
	const struct barrier *barrier;
	unsigned round;
};

static bool is_ours(const pthread_barrier_t *barrier)
{
	return ((const struct barrier *)(const void *)barrier)->magic == BARRIER_MAGIC;
}

RN_EXPORT int pthread_barrier_init(pthread_barrier_t *restrict barrier,
				   const pthread_barrierattr_t *restrict attribute, unsigned count)
{
	const struct barrier own = {.threads = count, .magic = BARRIER_MAGIC};
	const int error = RN_REAL(pthread_barrier_init)(barrier, attribute, count);

	if (error)
		return error;
	if (rn_virtual_is_on())
		memcpy(barrier, &own, sizeof(own));
	else if (is_ours(barrier))
		memset((char *)barrier + offsetof(struct barrier, magic), 0, sizeof(own.magic));
	return 0;
}

/* Who returns first may destroy it at once. */
static bool look_left(void *arg)
{
	const struct barrier *barrier = arg;

	return !barrier->inside;
}

RN_EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	if (!is_ours(barrier))
		return RN_REAL(pthread_barrier_destroy)(barrier);
	rn_wait_stubbornly(look_left, barrier, RN_TIME_NO_LIMIT, NULL);
	memset(barrier, 0, sizeof(*barrier));
	return 0;
}

static bool look_round(void *arg)
{
	const struct arrival *arrival = arg;

	return arrival->barrier->rounds != arrival->round;
}

RN_EXPORT int pthread_barrier_wait(pthread_barrier_t *memory)
{
	struct barrier *barrier = (struct barrier *)(void *)memory;
	struct arrival arrival = {barrier, barrier->rounds};

	if (!is_ours(memory))
		return RN_REAL(pthread_barrier_wait)(memory);
	if (++barrier->arrived == barrier->threads) {
		barrier->arrived = 0;
		barrier->rounds++;
		rn_virtual_act();
		return PTHREAD_BARRIER_SERIAL_THREAD;
	}
	barrier->inside++;
	rn_wait_stubbornly(look_round, &arrival, RN_TIME_NO_LIMIT, NULL);
	if (!--barrier->inside)
		rn_virtual_act();
	return 0;
}
