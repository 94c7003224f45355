/*
 * Random numbers that repeat: in virtual time a seed that looks like a process number or a time is replaced by
 * one made of the run's seed, the host and the process's ordinal; a small constant is the program's own and stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "preload/virtual.h"

#define CONSTANT_BELOW 65536

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t seed(uint64_t of_call)
{
	const struct rn_time_page *page = rn_virtual_page();

	return mix(mix(mix(page->seed) ^ page->host) ^ (uint64_t)page->ordinal << 32 ^ of_call);
}

static bool replaces(long value)
{
	return rn_virtual_is_on() &&
	       (value < 0 || value >= CONSTANT_BELOW || value == (long)getpid());
}

RN_EXPORT void srand48(long value)
{
	RN_REAL(srand48)(replaces(value) ? (long)(uint32_t)seed(1) : value);
}

RN_EXPORT void srand(unsigned value)
{
	RN_REAL(srand)(replaces((long)value) ? (unsigned)seed(2) : value);
}

RN_EXPORT void srandom(unsigned value)
{
	RN_REAL(srandom)(replaces((long)value) ? (unsigned)seed(3) : value);
}

RN_EXPORT ssize_t getrandom(void *buffer, size_t bytes, unsigned flags)
{
	static uint64_t calls;
	uint8_t *out = buffer;

	if (!rn_virtual_is_on())
		return RN_REAL(getrandom)(buffer, bytes, flags);
	for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
		const uint64_t word = seed(0x100 + calls++);

		memcpy(out + done, &word,
		       bytes - done < sizeof(word) ? bytes - done : sizeof(word));
	}
	return (ssize_t)bytes;
}

RN_EXPORT int getentropy(void *buffer, size_t bytes)
{
	if (!rn_virtual_is_on() || bytes > 256)
		return RN_REAL(getentropy)(buffer, bytes);
	return getrandom(buffer, bytes, 0) < 0 ? -1 : 0;
}
