/*
 * Sleeps in virtual time.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "preload/waits.h"

static uint64_t ps_of(const struct timespec *time)
{
	const uint64_t seconds = (uint64_t)time->tv_sec;

	if (seconds > RN_TIME_NO_LIMIT / RN_PS_PER_S / 2)
		return RN_TIME_NO_LIMIT / 2;
	return seconds * RN_PS_PER_S + (uint64_t)time->tv_nsec * RN_PS_PER_NS;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* Any handler interrupts it, SA_RESTART or not. */
static int sleep_until(uint64_t until_ps, struct timespec *rest)
{
	uint64_t left_ps;

	rn_virtual_charge_call();
	if (rn_wait(never, NULL, until_ps, NULL) == RN_WAITED_TIMEOUT)
		return 0;
	left_ps = until_ps > rn_virtual_now_ps() ? until_ps - rn_virtual_now_ps() : 0;
	if (rest) {
		rest->tv_sec = (time_t)(left_ps / RN_PS_PER_S);
		rest->tv_nsec = (long)(left_ps % RN_PS_PER_S / RN_PS_PER_NS);
	}
	return EINTR;
}

static int as_errno(int error)
{
	if (error)
		errno = error;
	return error ? -1 : 0;
}

static bool is_time(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)RN_NS_PER_S;
}

RN_EXPORT int nanosleep(const struct timespec *time, struct timespec *rest)
{
	if (!rn_virtual_is_on() || !is_time(time))
		return RN_REAL(nanosleep)(time, rest);
	return as_errno(sleep_until(rn_virtual_after_ps(ps_of(time)), rest));
}

RN_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			      struct timespec *rest)
{
	uint64_t at_ns, base_ns;

	if (!rn_virtual_is_on() || !is_time(time) || !rn_virtual_has_clock(clock))
		return RN_REAL(clock_nanosleep)(clock, flags, time, rest);
	if (!(flags & TIMER_ABSTIME))
		return sleep_until(rn_virtual_after_ps(ps_of(time)), rest);
	base_ns = rn_virtual_clock_ns(clock, 0);
	at_ns = (uint64_t)time->tv_sec * RN_NS_PER_S + (uint64_t)time->tv_nsec;
	return sleep_until(at_ns > base_ns ? (at_ns - base_ns) * RN_PS_PER_NS : 0, NULL);
}

RN_EXPORT int usleep(useconds_t us)
{
	if (!rn_virtual_is_on())
		return RN_REAL(usleep)(us);
	return as_errno(sleep_until(rn_virtual_after_ps((uint64_t)us * RN_PS_PER_US), NULL));
}

RN_EXPORT unsigned sleep(unsigned seconds)
{
	struct timespec rest = {0};

	if (!rn_virtual_is_on())
		return RN_REAL(sleep)(seconds);
	if (!sleep_until(rn_virtual_after_ps((uint64_t)seconds * RN_PS_PER_S), &rest))
		return 0;
	return (unsigned)rest.tv_sec + (rest.tv_nsec > 0);
}

RN_EXPORT int sched_yield(void)
{
	if (!rn_virtual_is_on())
		return RN_REAL(sched_yield)();
	rn_virtual_charge_call();
	rn_virtual_settle();
	return 0;
}
