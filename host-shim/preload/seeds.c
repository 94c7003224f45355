/*
 * Seeds that repeat. Clocks repeat in virtual time, numbers of processes do not: a seed that is made of one, alone
 * or with a clock that was read, is replaced by one made of the run's seed. Any other seed is the program's own
 * and stays, and so does every seed of a program that has not asked for such a number.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/random.h"
#include "preload/virtual.h"

#define TIMES 8	    /* the last readings of clocks */
#define OFFSETS 256 /* a rank or a counter may be added to a number of a process */
#define VALUES_OF_TIME 7
#define SHIFT_MAX 16 /* what is shifted farther hardly counts in 32 bits */

static bool has_asked; /* for the number of a process or a thread */
static uint64_t times_ns[TIMES];
static unsigned times_read;

RN_EXPORT pid_t getpid(void)
{
	has_asked = true;
	return (pid_t)syscall(SYS_getpid);
}

RN_EXPORT pid_t getppid(void)
{
	has_asked = true;
	return (pid_t)syscall(SYS_getppid);
}

RN_EXPORT pid_t gettid(void)
{
	has_asked = true;
	return (pid_t)syscall(SYS_gettid);
}

void rn_seeds_saw_time(uint64_t ns)
{
	times_ns[times_read++ % TIMES] = ns;
}

/* --- what a seed may be made of --- */

/* Number @p of a process, @t of a clock: is it @value in the bits of @mask? */
static bool is_made_of(uint64_t value, uint64_t mask, uint64_t p, uint64_t t)
{
	const uint64_t plain[] = {p * t, p + t, t - p, p - t, p ^ t, p | t};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (((plain[i] ^ value) & mask) == 0)
			return true;
	for (unsigned shift = 4; shift <= SHIFT_MAX; shift += 4) {
		const uint64_t mixed[] = {(p << shift) ^ t, (p << shift) + t, (p << shift) | t,
					  (t << shift) ^ p, (t << shift) + p, (t << shift) | p};

		for (size_t i = 0; i < sizeof(mixed) / sizeof(mixed[0]); i++)
			if (((mixed[i] ^ value) & mask) == 0)
				return true;
	}
	return false;
}

static void values_of(uint64_t ns, uint64_t out[VALUES_OF_TIME])
{
	out[0] = ns;
	out[1] = ns / RN_NS_PER_S;
	out[2] = ns % RN_NS_PER_S;
	out[3] = ns % RN_NS_PER_S / 1000;
	out[4] = ns / 1000;
	out[5] = ns / 1000000;
	out[6] = out[1] ^ out[3];
}

static bool is_of_process(uint64_t value, uint64_t mask, uint64_t p)
{
	const unsigned count = times_read < TIMES ? times_read : TIMES;

	if (((value - p) & mask) < OFFSETS || is_made_of(value, mask, p, 0))
		return true;
	for (unsigned i = 0; i < count; i++) {
		uint64_t t[VALUES_OF_TIME];

		values_of(times_ns[i], t);
		for (unsigned j = 0; j < VALUES_OF_TIME; j++)
			if (is_made_of(value, mask, p, t[j]))
				return true;
	}
	return false;
}

/* A clock alone repeats. */
static bool is_of_clock(uint64_t value, uint64_t mask)
{
	const unsigned count = times_read < TIMES ? times_read : TIMES;

	for (unsigned i = 0; i < count; i++) {
		uint64_t t[VALUES_OF_TIME];

		values_of(times_ns[i], t);
		for (unsigned j = 0; j < VALUES_OF_TIME; j++)
			if (((t[j] ^ value) & mask) == 0)
				return true;
	}
	return false;
}

static bool is_replaced(uint64_t value, uint64_t mask)
{
	if (!rn_virtual_is_on() || !has_asked || !value || is_of_clock(value, mask))
		return false;
	return is_of_process(value, mask, (uint64_t)syscall(SYS_getpid)) ||
	       is_of_process(value, mask, (uint64_t)syscall(SYS_getppid)) ||
	       is_of_process(value, mask, (uint64_t)syscall(SYS_gettid));
}

static unsigned small_seed(unsigned value, unsigned call)
{
	return is_replaced(value, UINT32_MAX) ? (unsigned)rn_random_of(call) : value;
}

static long long_seed(long value, unsigned call)
{
	/* These generators use 32 bits of it. */
	return is_replaced((uint64_t)value, UINT32_MAX) ? (long)(uint32_t)rn_random_of(call)
							: value;
}

/* --- generators --- */

RN_EXPORT void srand48(long value)
{
	RN_REAL(srand48)(long_seed(value, 1));
}

RN_EXPORT int srand48_r(long value, struct drand48_data *data)
{
	return RN_REAL(srand48_r)(long_seed(value, 1), data);
}

RN_EXPORT void srand(unsigned value)
{
	RN_REAL(srand)(small_seed(value, 2));
}

RN_EXPORT void srandom(unsigned value)
{
	RN_REAL(srandom)(small_seed(value, 3));
}

RN_EXPORT int srandom_r(unsigned value, struct random_data *data)
{
	return RN_REAL(srandom_r)(small_seed(value, 3), data);
}

RN_EXPORT char *initstate(unsigned value, char *state, size_t bytes)
{
	return RN_REAL(initstate)(small_seed(value, 3), state, bytes);
}

RN_EXPORT int initstate_r(unsigned value, char *restrict state, size_t bytes,
			  struct random_data *restrict data)
{
	return RN_REAL(initstate_r)(small_seed(value, 3), state, bytes, data);
}

RN_EXPORT int rand_r(unsigned *seed)
{
	*seed = small_seed(*seed, 4);
	return RN_REAL(rand_r)(seed);
}

RN_EXPORT unsigned short *seed48(unsigned short seed[3])
{
	const uint64_t mask = UINT64_MAX >> 16;
	uint64_t value = (uint64_t)seed[2] << 32 | (uint64_t)seed[1] << 16 | seed[0];
	unsigned short own[3];

	if (is_replaced(value, mask))
		value = rn_random_of(5);
	for (unsigned i = 0; i < 3; i++)
		own[i] = (unsigned short)(value >> 16 * i);
	return RN_REAL(seed48)(own);
}
