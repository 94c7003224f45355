/*
 * System calls that programs make by syscall() and that have another answer in a run. Each row is one.
 */
#include "preload/raw_calls.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>

#include "preload/virtual.h"

static long call_uname(const long argument[])
{
	return uname((struct utsname *)argument[0]);
}

static long call_clock_gettime(const long argument[])
{
	return clock_gettime((clockid_t)argument[0], (struct timespec *)argument[1]);
}

static long call_gettimeofday(const long argument[])
{
	return gettimeofday((struct timeval *)argument[0], (void *)argument[1]);
}

static long call_time(const long argument[])
{
	return time((time_t *)argument[0]);
}

static const struct {
	long number;
	long (*call)(const long argument[]);
} table[] = {
	{SYS_uname, call_uname},
	{SYS_clock_gettime, call_clock_gettime},
	{SYS_gettimeofday, call_gettimeofday},
	{SYS_time, call_time},
};

bool rn_answer_call(long number, const long argument[], long *result)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].number == number) {
			*result = table[i].call(argument);
			return true;
		}
	return false;
}
