/*
 * Life of threads in virtual time: a slot for each, waiting for their end, cancelling them.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/affinity.h"
#include "preload/locks.h"
#include "preload/own_signals.h"
#include "preload/waits.h"

#define OTHERS_TRIES 500
#define OTHERS_US 100

struct record {
	void *(*run)(void *arg);
	void *arg;
	int slot;
	unsigned wanted; /* of its starter's mask */
	pthread_t id;
	bool is_done, is_detached;
	struct record *next;
};

static struct record *records;
static __thread struct record *own; /* NULL in a process's first thread */
static unsigned alive = 1;	    /* threads that have a slot */

/* --- life of a thread --- */

static void forget(const struct record *record)
{
	for (struct record **link = &records; *link; link = &(*link)->next)
		if (*link == record) {
			*link = record->next;
			break;
		}
	free((void *)(uintptr_t)record);
}

static bool is_ending(const char *tid)
{
	char path[64], state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	if (file)
		fclose(file);
	return state == 'Z' || state == 'X';
}

/* Threads that have given their slots back may not have ended yet. */
static bool are_others_gone(void)
{
	const long self = syscall(SYS_gettid);
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	bool gone = true;

	while (tasks && gone && (entry = readdir(tasks)))
		gone = entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == self ||
		       is_ending(entry->d_name);
	if (tasks)
		closedir(tasks);
	return gone;
}

/* The C library ends the process in its last thread: let that be one that is seen till then. */
static void await_others(void)
{
	rn_virtual_enter_native();
	for (unsigned tries = 0; tries < OTHERS_TRIES && !are_others_gone(); tries++)
		RN_REAL(usleep)(OTHERS_US);
	rn_virtual_leave_native();
}

/* The last one keeps its slot: the process ends, and what it does till then is seen. */
static void leave(void)
{
	if (alive == 1) {
		if (rn_virtual_is_on())
			await_others();
		return;
	}
	alive--;
	rn_virtual_drop_slot();
}

static void finish(void *arg)
{
	struct record *record = arg;

	record->is_done = true;
	own = NULL;
	if (record->is_detached)
		forget(record);
	leave();
}

static void *start(void *arg)
{
	struct record *record = arg;
	void *result;

	rn_own_signals_inherit(record->wanted);
	rn_virtual_take_slot(record->slot);
	rn_affinity_return();
	own = record;
	record->id = pthread_self();
	pthread_cleanup_push(finish, record);
	result = record->run(record->arg);
	pthread_cleanup_pop(1);
	return result;
}

static bool starts_detached(const pthread_attr_t *attr)
{
	int state = PTHREAD_CREATE_JOINABLE;

	return attr && !pthread_attr_getdetachstate(attr, &state) &&
	       state == PTHREAD_CREATE_DETACHED;
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
	rn_affinity_start(slot, attr);
	rn_locks_set_threaded();
	*record = (struct record){.run = run,
				  .arg = arg,
				  .slot = slot,
				  .wanted = rn_own_signals_wanted(),
				  .is_detached = starts_detached(attr),
				  .next = records};
	error = RN_REAL(pthread_create)(id, attr, start, record);
	if (error) {
		atomic_store(&rn_virtual_page()->slot[slot].state, RN_TIME_FREE);
		free(record);
		return error;
	}
	record->id = *id;
	records = record;
	alive++;
	return 0;
}

RN_EXPORT void pthread_exit(void *result)
{
	void (*real)(void *) __attribute__((noreturn)) = RN_REAL(pthread_exit);

	if (rn_virtual_is_on() && !own)
		leave();
	real(result);
}

/* --- its end --- */

static struct record *of(pthread_t id)
{
	struct record *record = records;

	while (record && !pthread_equal(record->id, id))
		record = record->next;
	return record;
}

int rn_threads_slot(pthread_t id)
{
	const struct record *record;

	if (pthread_equal(id, pthread_self()))
		return rn_virtual_own_slot();
	record = of(id);
	/* Who has been started by nobody is the first. */
	return record ? record->slot : 0;
}

static bool look_done(void *arg)
{
	const struct record *record = arg;

	return record->is_done;
}

/* Wait until the thread has given its slot back; what is left of it takes no time. False: the time is over. */
static bool wait_done(pthread_t id, uint64_t until_ps)
{
	struct record *record = of(id);
	enum rn_waited waited = RN_WAITED_SIGNAL;

	if (!record || record == own)
		return true;
	while (waited == RN_WAITED_SIGNAL && rn_virtual_is_on())
		waited = rn_wait(look_done, record, until_ps, NULL);
	if (record->is_done)
		forget(record);
	return waited != RN_WAITED_TIMEOUT;
}

RN_EXPORT int pthread_join(pthread_t id, void **result)
{
	if (rn_virtual_is_on())
		wait_done(id, RN_TIME_NO_LIMIT);
	return RN_REAL(pthread_join)(id, result);
}

RN_EXPORT int pthread_clockjoin_np(pthread_t id, void **result, clockid_t clock,
				   const struct timespec *time)
{
	if (rn_virtual_is_on() && time && rn_virtual_has_clock(clock)) {
		if (!wait_done(id, rn_wait_deadline_ps(clock, time)))
			return ETIMEDOUT;
		return RN_REAL(pthread_join)(id, result);
	}
	return RN_REAL(pthread_clockjoin_np)(id, result, clock, time);
}

RN_EXPORT int pthread_timedjoin_np(pthread_t id, void **result, const struct timespec *time)
{
	return time ? pthread_clockjoin_np(id, result, CLOCK_REALTIME, time)
		    : pthread_join(id, result);
}

RN_EXPORT int pthread_tryjoin_np(pthread_t id, void **result)
{
	const struct record *record = of(id);

	if (!rn_virtual_is_on() || !record || record == own)
		return RN_REAL(pthread_tryjoin_np)(id, result);
	if (record->is_done)
		return pthread_join(id, result);
	rn_wait_missed(record);
	return EBUSY;
}

RN_EXPORT int pthread_detach(pthread_t id)
{
	struct record *record = of(id);
	const int error = RN_REAL(pthread_detach)(id);

	if (!record || error)
		return error;
	record->is_detached = true;
	if (record->is_done)
		forget(record);
	return 0;
}

/* A thread that waits looks whether it is to end. */
RN_EXPORT int pthread_cancel(pthread_t id)
{
	const int error = RN_REAL(pthread_cancel)(id);

	rn_virtual_act();
	return error;
}

/* --- once --- */

/* Who runs an initialisation may wait in it: others then wait here. */
struct running {
	pthread_once_t *control;
	struct running *next;
};

static struct running *running;

static bool look_over(void *arg)
{
	for (const struct running *one = running; one; one = one->next)
		if (one->control == arg)
			return false;
	return true;
}

static void stop_running(void *arg)
{
	for (struct running **link = &running; *link; link = &(*link)->next)
		if (*link == arg) {
			*link = (*link)->next;
			break;
		}
	rn_virtual_act();
}

#define ONCE_DONE 2 /* bit of a control */

RN_EXPORT int pthread_once(pthread_once_t *control, void (*run)(void))
{
	struct running one = {control, running};
	int result;

	if (*control & ONCE_DONE || !rn_virtual_is_on() || !rn_locks_are_threaded())
		return RN_REAL(pthread_once)(control, run);
	if (!look_over(control)) {
		rn_wait_stubbornly(look_over, control, RN_TIME_NO_LIMIT, NULL);
		return pthread_once(control, run);
	}
	running = &one;
	pthread_cleanup_push(stop_running, &one);
	result = RN_REAL(pthread_once)(control, run);
	pthread_cleanup_pop(1);
	return result;
}

/* --- a child has one thread --- */

static void forget_others(void)
{
	alive = 1;
	running = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_others);
}
