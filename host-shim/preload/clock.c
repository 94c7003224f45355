/*
 * Clocks in virtual time. CLOCK_REALTIME and its kin begin at the configured epoch, the others at a fixed
 * distance from zero; clocks of processor time say how much virtual time has passed.
 */
#include <errno.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "preload/random.h"
#include "preload/virtual.h"

#define MONOTONIC_OFFSET_NS 1000000000000u /* a machine that has been up for 1000 s */

bool rn_virtual_has_clock(clockid_t clock)
{
	return clock >= CLOCK_REALTIME && clock <= CLOCK_TAI;
}

uint64_t rn_virtual_clock_ns(clockid_t clock, uint64_t ps)
{
	const uint64_t ns = ps / RN_PS_PER_NS;

	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_REALTIME_ALARM:
	case CLOCK_TAI:
		return rn_virtual_page()->epoch_ns + ns;
	case CLOCK_PROCESS_CPUTIME_ID:
	case CLOCK_THREAD_CPUTIME_ID:
		return ns;
	default:
		return MONOTONIC_OFFSET_NS + ns;
	}
}

static uint64_t read_clock_ns(clockid_t clock)
{
	uint64_t ns;

	rn_virtual_charge_ps(rn_virtual_page()->cost_ps[RN_TIME_CLOCK_READ]);
	ns = rn_virtual_clock_ns(clock, rn_virtual_now_ps());
	rn_seeds_saw_time(ns);
	return ns;
}

RN_EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t ns;

	if (!rn_virtual_is_on() || !rn_virtual_has_clock(clock))
		return RN_REAL(clock_gettime)(clock, time);
	ns = read_clock_ns(clock);
	time->tv_sec = (time_t)(ns / RN_NS_PER_S);
	time->tv_nsec = (long)(ns % RN_NS_PER_S);
	return 0;
}

RN_EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	uint64_t ns;

	if (!rn_virtual_is_on())
		return RN_REAL(gettimeofday)(time, zone);
	ns = read_clock_ns(CLOCK_REALTIME);
	time->tv_sec = (time_t)(ns / RN_NS_PER_S);
	time->tv_usec = (suseconds_t)(ns % RN_NS_PER_S / 1000);
	return 0;
}

RN_EXPORT time_t time(time_t *out)
{
	time_t seconds;

	if (!rn_virtual_is_on())
		return RN_REAL(time)(out);
	seconds = (time_t)(read_clock_ns(CLOCK_REALTIME) / RN_NS_PER_S);
	if (out)
		*out = seconds;
	return seconds;
}

RN_EXPORT int timespec_get(struct timespec *time, int base)
{
	if (!rn_virtual_is_on() || base != TIME_UTC)
		return RN_REAL(timespec_get)(time, base);
	return clock_gettime(CLOCK_REALTIME, time) ? 0 : base;
}

RN_EXPORT clock_t clock(void)
{
	if (!rn_virtual_is_on())
		return RN_REAL(clock)();
	return (clock_t)(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / (RN_NS_PER_S / CLOCKS_PER_SEC));
}

RN_EXPORT clock_t times(struct tms *buffer)
{
	uint64_t ticks;

	if (!rn_virtual_is_on())
		return RN_REAL(times)(buffer);
	ticks = read_clock_ns(CLOCK_MONOTONIC) / (RN_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	if (buffer)
		*buffer = (struct tms){.tms_utime = (clock_t)ticks};
	return (clock_t)ticks;
}
