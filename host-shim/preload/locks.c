/*
 * Mutexes, read-write locks and spin locks in virtual time: of all threads of a run one runs native code, so a
 * lock that another thread holds is waited for here. The object itself says whether it can be had, so that it
 * may be shared between processes.
 */
#include "preload/locks.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "preload/objects.h"
#include "preload/waits.h"

#define TAKEN_BEFORE_YIELD 1024
#define TAKEN_BEFORE_WAIT 65536

/* A thread that waits for a lock. */
struct taker {
	int (*take)(void *object);
	void *object;
	int error;
	struct taker *next;
};

static struct taker *takers;
static bool is_threaded; /* there has been a second thread */

void rn_locks_set_threaded(void)
{
	is_threaded = true;
}

bool rn_locks_are_threaded(void)
{
	return is_threaded;
}

static bool look_try(void *arg)
{
	struct taker *taker = arg;

	taker->error = taker->take(taker->object);
	return taker->error != EBUSY;
}

static bool is_wanted(const void *object)
{
	for (const struct taker *taker = takers; taker; taker = taker->next)
		if (taker->object == object)
			return true;
	return false;
}

/* A thread that does nothing but take free locks waits for what another one is to do under them. */
static void count_taken(const void *object)
{
	static __thread unsigned taken;
	static __thread uint64_t last_ps;

	if (rn_virtual_now_ps() != last_ps)
		taken = 0;
	if (++taken >= TAKEN_BEFORE_WAIT) {
		rn_wait_missed(object);
		taken -= TAKEN_BEFORE_YIELD;
	} else if (taken % TAKEN_BEFORE_YIELD == 0) {
		rn_virtual_charge_call();
		rn_virtual_settle();
	}
	last_ps = rn_virtual_now_ps();
}

/* Who has just given a lock back lets those have it who have waited longer. */
static void be_fair(const void *object)
{
	if (takers && is_wanted(object)) {
		rn_virtual_charge_call();
		rn_virtual_sleep_until(rn_virtual_now_ps() + RN_PS_PER_NS);
	}
	count_taken(object);
}

int rn_lock_take(int (*take)(void *object), void *object, uint64_t until_ps)
{
	struct taker taker = {.take = take, .object = object}, **link;
	bool timed_out = false;

	be_fair(object);
	if (look_try(&taker))
		return taker.error;
	taker.next = takers;
	takers = &taker;
	if (!rn_wait_stubbornly(look_try, &taker, until_ps, &timed_out))
		taker.error = EBUSY;
	for (link = &takers; *link != &taker; link = &(*link)->next)
		;
	*link = taker.next;
	return timed_out ? ETIMEDOUT : taker.error;
}

void rn_lock_given(const void *object, bool is_shared)
{
	if (is_shared || rn_wait_is_missing() || (takers && is_wanted(object)))
		rn_virtual_act();
}

/* --- mutexes --- */

static int try_mutex(void *arg)
{
	return RN_REAL(pthread_mutex_trylock)(arg);
}

static bool waits_for_mutex(const pthread_mutex_t *mutex)
{
	return (is_threaded || rn_mutex_is_shared(mutex)) && rn_virtual_is_on() &&
	       !rn_mutex_is_own(mutex);
}

RN_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int error = EBUSY;

	if (waits_for_mutex(mutex))
		error = rn_lock_take(try_mutex, mutex, RN_TIME_NO_LIMIT);
	return error == EBUSY ? RN_REAL(pthread_mutex_lock)(mutex) : error;
}

RN_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	const int error = RN_REAL(pthread_mutex_trylock)(mutex);

	if (error == EBUSY && waits_for_mutex(mutex))
		rn_wait_missed(mutex);
	return error;
}

RN_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				      const struct timespec *time)
{
	int error = EBUSY;

	if (waits_for_mutex(mutex) && rn_virtual_has_clock(clock))
		error = rn_lock_take(try_mutex, mutex, rn_wait_deadline_ps(clock, time));
	return error == EBUSY ? RN_REAL(pthread_mutex_clocklock)(mutex, clock, time) : error;
}

RN_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
				      const struct timespec *restrict time)
{
	return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, time);
}

RN_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	const bool is_shared = rn_mutex_is_shared(mutex);
	const int error = RN_REAL(pthread_mutex_unlock)(mutex);

	rn_lock_given(mutex, is_shared);
	return error;
}

/* --- read-write locks --- */

static int try_read(void *arg)
{
	return RN_REAL(pthread_rwlock_tryrdlock)(arg);
}

static int try_write(void *arg)
{
	return RN_REAL(pthread_rwlock_trywrlock)(arg);
}

static bool waits_for_rwlock(const pthread_rwlock_t *lock)
{
	return (is_threaded || rn_rwlock_is_shared(lock)) && rn_virtual_is_on() &&
	       !rn_rwlock_is_own(lock);
}

RN_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	int error = EBUSY;

	if (waits_for_rwlock(lock))
		error = rn_lock_take(try_read, lock, RN_TIME_NO_LIMIT);
	return error == EBUSY ? RN_REAL(pthread_rwlock_rdlock)(lock) : error;
}

RN_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	int error = EBUSY;

	if (waits_for_rwlock(lock))
		error = rn_lock_take(try_write, lock, RN_TIME_NO_LIMIT);
	return error == EBUSY ? RN_REAL(pthread_rwlock_wrlock)(lock) : error;
}

RN_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t clock,
					 const struct timespec *restrict time)
{
	int error = EBUSY;

	if (waits_for_rwlock(lock) && rn_virtual_has_clock(clock))
		error = rn_lock_take(try_read, lock, rn_wait_deadline_ps(clock, time));
	return error == EBUSY ? RN_REAL(pthread_rwlock_clockrdlock)(lock, clock, time) : error;
}

RN_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t clock,
					 const struct timespec *restrict time)
{
	int error = EBUSY;

	if (waits_for_rwlock(lock) && rn_virtual_has_clock(clock))
		error = rn_lock_take(try_write, lock, rn_wait_deadline_ps(clock, time));
	return error == EBUSY ? RN_REAL(pthread_rwlock_clockwrlock)(lock, clock, time) : error;
}

RN_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock,
					 const struct timespec *restrict time)
{
	return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, time);
}

RN_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock,
					 const struct timespec *restrict time)
{
	return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, time);
}

static int after_try(const pthread_rwlock_t *lock, int error)
{
	if (error == EBUSY && waits_for_rwlock(lock))
		rn_wait_missed(lock);
	return error;
}

RN_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	return after_try(lock, RN_REAL(pthread_rwlock_tryrdlock)(lock));
}

RN_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
	return after_try(lock, RN_REAL(pthread_rwlock_trywrlock)(lock));
}

RN_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	const bool is_shared = rn_rwlock_is_shared(lock);
	const int error = RN_REAL(pthread_rwlock_unlock)(lock);

	rn_lock_given(lock, is_shared);
	return error;
}

/* --- spin locks: they do not say whether they are shared --- */

static bool has_shared_spins; /* this process, or one that it was forked from, has made one */

static int try_spin(void *arg)
{
	return RN_REAL(pthread_spin_trylock)(arg);
}

RN_EXPORT int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	has_shared_spins = has_shared_spins || shared == PTHREAD_PROCESS_SHARED;
	return RN_REAL(pthread_spin_init)(lock, shared);
}

RN_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
	void *object = (void *)(uintptr_t)lock;
	int error = EBUSY;

	if (!is_threaded)
		error = RN_REAL(pthread_spin_trylock)(lock);
	/* A holder in a program that has not made the lock says nothing: look again by oneself. */
	while (rn_virtual_is_on() && (error == EBUSY || error == ETIMEDOUT))
		error = rn_lock_take(try_spin, object,
				     rn_virtual_now_ps() + rn_virtual_page()->horizon_ps);
	return error == EBUSY || error == ETIMEDOUT ? RN_REAL(pthread_spin_lock)(lock) : error;
}

RN_EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	const int error = RN_REAL(pthread_spin_trylock)(lock);

	if (error == EBUSY && rn_virtual_is_on())
		rn_wait_missed((const void *)(uintptr_t)lock);
	return error;
}

RN_EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	const int error = RN_REAL(pthread_spin_unlock)(lock);

	rn_lock_given((const void *)(uintptr_t)lock, has_shared_spins);
	return error;
}

/* A child has none of its parent's threads. */
static void forget_takers(void)
{
	takers = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_takers);
}
