/*
 * Processors in virtual time. The simulator keeps the threads of a run to one processor, since one of them runs at a time;
 * programs see and set what they would without: here is kept where each thread believes that it may run. It is
 * in force while another program is started, and when virtual time is over. What /proc says is not touched.
 */
#include "preload/affinity.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/virtual.h"

static cpu_set_t believed[RN_TIME_SLOTS]; /* by slot */

static bool is_kept(void)
{
	const struct rn_time_page *page = rn_virtual_page();

	return page && atomic_load(&page->processor) >= 0;
}

static void set_own(const cpu_set_t *set)
{
	const int saved_errno = errno;

	RN_REAL(syscall)(SYS_sched_setaffinity, 0, sizeof(*set), set);
	errno = saved_errno;
}

void rn_affinity_note(void)
{
	RN_REAL(syscall)(SYS_sched_getaffinity, 0, sizeof(believed[0]), &believed[0]);
}

void rn_affinity_inherit(int from, int to)
{
	if (from != to)
		believed[to] = believed[from];
}

void rn_affinity_release(void)
{
	if (is_kept() && rn_virtual_own_slot() >= 0)
		set_own(&believed[rn_virtual_own_slot()]);
}

void rn_affinity_return(void)
{
	cpu_set_t set;

	if (!is_kept())
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)atomic_load(&rn_virtual_page()->processor), &set);
	set_own(&set);
}

void rn_affinity_start(int slot, const pthread_attr_t *attr)
{
	cpu_set_t set;

	if (attr && !pthread_attr_getaffinity_np(attr, sizeof(set), &set) &&
	    CPU_COUNT(&set) < CPU_SETSIZE)
		believed[slot] = set;
}

/* --- what programs ask for --- */

long rn_affinity_get(pid_t tid, size_t bytes, void *set)
{
	const int slot = is_kept() ? rn_virtual_slot_of(tid) : -1;
	const long got = RN_REAL(syscall)(SYS_sched_getaffinity, tid, bytes, set);

	if (got > 0 && slot >= 0)
		memcpy(set, &believed[slot],
		       (size_t)got < sizeof(believed[slot]) ? (size_t)got : sizeof(believed[slot]));
	return got;
}

/* The system says what of it is legal. */
long rn_affinity_set(pid_t tid, size_t bytes, const void *set)
{
	const int slot = is_kept() ? rn_virtual_slot_of(tid) : -1;
	const long result = RN_REAL(syscall)(SYS_sched_setaffinity, tid, bytes, set);
	cpu_set_t kept;

	if (result || slot < 0)
		return result;
	RN_REAL(syscall)(SYS_sched_getaffinity, tid, sizeof(believed[slot]), &believed[slot]);
	CPU_ZERO(&kept);
	CPU_SET((unsigned)atomic_load(&rn_virtual_page()->processor), &kept);
	RN_REAL(syscall)(SYS_sched_setaffinity, tid, sizeof(kept), &kept);
	return 0;
}

RN_EXPORT int sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t *set)
{
	const long got = rn_affinity_get(tid, bytes, set);

	if (got < 0)
		return -1;
	memset((char *)set + got, 0, bytes - (size_t)got);
	return 0;
}

RN_EXPORT int sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *set)
{
	return (int)rn_affinity_set(tid, bytes, set);
}

/* The slot's thread; 0: none that is known. */
static pid_t tid_of(pthread_t id)
{
	const int slot = is_kept() ? rn_threads_slot(id) : -1;

	return slot < 0 ? 0 : rn_virtual_page()->slot[slot].tid;
}

RN_EXPORT int pthread_getaffinity_np(pthread_t id, size_t bytes, cpu_set_t *set)
{
	const pid_t tid = tid_of(id);
	const int saved_errno = errno;
	int error;

	if (!tid)
		return RN_REAL(pthread_getaffinity_np)(id, bytes, set);
	error = sched_getaffinity(tid, bytes, set) ? errno : 0;
	errno = saved_errno;
	return error;
}

RN_EXPORT int pthread_setaffinity_np(pthread_t id, size_t bytes, const cpu_set_t *set)
{
	const pid_t tid = tid_of(id);
	const int saved_errno = errno;
	int error;

	if (!tid)
		return RN_REAL(pthread_setaffinity_np)(id, bytes, set);
	error = sched_setaffinity(tid, bytes, set) ? errno : 0;
	errno = saved_errno;
	return error;
}
