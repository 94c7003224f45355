/*
 * What the C library's objects for threads say about themselves. The fields read here are part of its binary
 * interface: static initialisers contain them.
 */
#ifndef RN_PRELOAD_OBJECTS_H
#define RN_PRELOAD_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RN_MUTEX_SHARED 128 /* bit of a mutex's kind: threads of several processes use it */
#define RN_MUTEX_TYPE 3

static inline bool rn_mutex_is_shared(const pthread_mutex_t *mutex)
{
	return mutex->__data.__kind & RN_MUTEX_SHARED;
}

/** The caller has it, and the mutex is of a kind that says so. */
static inline bool rn_mutex_is_own(const pthread_mutex_t *mutex)
{
	const int type = mutex->__data.__kind & RN_MUTEX_TYPE;

	return type != PTHREAD_MUTEX_TIMED_NP && type != PTHREAD_MUTEX_ADAPTIVE_NP &&
	       mutex->__data.__owner == (int)syscall(SYS_gettid);
}

static inline bool rn_rwlock_is_shared(const pthread_rwlock_t *lock)
{
	return lock->__data.__shared;
}

static inline bool rn_rwlock_is_own(const pthread_rwlock_t *lock)
{
	return lock->__data.__cur_writer == (int)syscall(SYS_gettid);
}

static inline bool rn_condition_is_shared(const pthread_cond_t *condition)
{
	return condition->__data.__wrefs & 1;
}

/** The clock of its attribute: pthread_cond_init() has left it here. */
static inline clockid_t rn_condition_clock(const pthread_cond_t *condition)
{
	return condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

#endif
