/*
 * Waiting on behalf of a call of the program: what every interposed call that may block has in common.
 */
#ifndef RN_PRELOAD_WAITS_H
#define RN_PRELOAD_WAITS_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "preload/virtual.h"

/* A probe without timeout that the simulator's question (SIGURG) has interrupted is made again. */
#define RN_PROBE(call)                                                                             \
	(__extension__({                                                                           \
		long result_;                                                                      \
		do                                                                                 \
			result_ = (long)(call);                                                    \
		while (result_ < 0 && errno == EINTR);                                             \
		result_;                                                                           \
	}))

/**
 * rn_virtual_wait_for() as a cancellation point (pthread_cancel). While it waits, signals that programs send one another
 * are held back: their handlers run when the thread has the baton, then it returns SIGNAL. *@restart (may be
 * NULL): all handlers want interrupted calls to go on.
 */
enum rn_waited rn_wait(bool (*look)(void *arg), void *arg, uint64_t until_ps, bool *restart);

/** The same, but no signal ends it and none can cancel it: for locks. False: virtual time is over, nothing is known. */
bool rn_wait_stubbornly(bool (*look)(void *arg), void *arg, uint64_t until_ps, bool *timed_out);

/** For calls that return -1: true when to go on; else errno says why (@timeout_errno when the time was over). */
bool rn_wait_call(bool (*look)(void *arg), void *arg, uint64_t until_ps, int timeout_errno);

/** As rn_wait_call(), but a handler interrupts whatever it was installed with (poll and its kin). */
bool rn_wait_once(bool (*look)(void *arg), void *arg, uint64_t until_ps, int timeout_errno);

/** Whether the program, not this library, has blocked @signo in this thread. */
bool rn_wait_has_blocked(int signo);

/** Those that a wait holds back. */
void rn_wait_held_signals(sigset_t *set);

/** Whether there are signals in @pending that are not in @mask and do something. */
bool rn_wait_has_effect(const sigset_t *pending, const sigset_t *mask);

/** When @clock says @time, in picoseconds of virtual time; and @time from now (NULL: never). */
uint64_t rn_wait_deadline_ps(clockid_t clock, const struct timespec *time);
uint64_t rn_wait_after_ps(const struct timespec *time);

/**
 * A try at @object has failed. The first costs a system call; the next, when nothing was done since, waits until another
 * thread has done something, from 1 us to the horizon of polls: a program that loops on tries must not keep the others from going on.
 */
void rn_wait_missed(const void *object);
/** Whether a thread of this process waits so. */
bool rn_wait_is_missing(void);

#endif
