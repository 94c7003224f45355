/*
 * What the system gives out as random, in virtual time: numbers made of the run's seed, the host and the process's
 * ordinal. So do the names of temporary files.
 */
#include "preload/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/descriptors.h"
#include "preload/virtual.h"

#define MEMORY_MAJOR 1
#define RANDOM_MINOR 8
#define URANDOM_MINOR 9
#define FIRST_CALL 0x100 /* smaller ones are seeds */
#define AUXILIARY_BYTES 16

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint64_t rn_random_of(uint64_t of_call)
{
	const struct rn_time_page *page = rn_virtual_page();

	return mix(mix(mix(page->seed) ^ page->host) ^ (uint64_t)page->ordinal << 32 ^ of_call);
}

void rn_random_fill(void *buffer, size_t bytes)
{
	static _Atomic uint64_t calls;
	uint8_t *out = buffer;

	for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
		const uint64_t word = rn_random_of(FIRST_CALL + calls++);

		memcpy(out + done, &word,
		       bytes - done < sizeof(word) ? bytes - done : sizeof(word));
	}
}

bool rn_random_is_source(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) == 0 && S_ISCHR(stat.st_mode) &&
	       major(stat.st_rdev) == MEMORY_MAJOR &&
	       (minor(stat.st_rdev) == RANDOM_MINOR || minor(stat.st_rdev) == URANDOM_MINOR);
}

/* The sixteen bytes that the kernel has given the process; the loader has used them already. */
void rn_random_start(void)
{
	void *bytes = (void *)getauxval(AT_RANDOM);

	if (bytes)
		for (unsigned i = 0; i < AUXILIARY_BYTES / sizeof(uint64_t); i++) {
			const uint64_t word = rn_random_of(8 + i);

			memcpy((char *)bytes + i * sizeof(word), &word, sizeof(word));
		}
}

RN_EXPORT ssize_t getrandom(void *buffer, size_t bytes, unsigned flags)
{
	if (!rn_virtual_is_on())
		return RN_REAL(getrandom)(buffer, bytes, flags);
	rn_random_fill(buffer, bytes);
	return (ssize_t)bytes;
}

RN_EXPORT int getentropy(void *buffer, size_t bytes)
{
	if (!rn_virtual_is_on() || bytes > 256)
		return RN_REAL(getentropy)(buffer, bytes);
	rn_random_fill(buffer, bytes);
	return 0;
}

/* Since version 2.36 of the C library. */
uint32_t arc4random(void);
void arc4random_buf(void *buffer, size_t bytes);
uint32_t arc4random_uniform(uint32_t bound);

RN_EXPORT void arc4random_buf(void *buffer, size_t bytes)
{
	if (!rn_virtual_is_on() && RN_REAL(arc4random_buf))
		RN_REAL(arc4random_buf)(buffer, bytes);
	else if (rn_virtual_is_on())
		rn_random_fill(buffer, bytes);
}

RN_EXPORT uint32_t arc4random(void)
{
	uint32_t value = 0;

	arc4random_buf(&value, sizeof(value));
	return value;
}

RN_EXPORT uint32_t arc4random_uniform(uint32_t bound)
{
	const uint32_t unfair = bound > 1 ? (uint32_t)(-bound) % bound : 0;
	uint32_t value = 0;

	if (bound < 2)
		return 0;
	/* The first numbers are one too many of some remainders. */
	do
		value = arc4random();
	while (value < unfair);
	return value % bound;
}

/* --- names of temporary files --- */

#define MARKS "XXXXXX"
#define NAME_TRIES 10000

static bool fill_name(char *name, size_t suffix)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	const size_t bytes = strlen(name);
	char *marks = name + bytes - suffix - strlen(MARKS);
	uint64_t value;

	rn_random_fill(&value, sizeof(value));
	for (unsigned i = 0; i < strlen(MARKS); i++) {
		marks[i] = letters[value % strlen(letters)];
		value /= strlen(letters);
	}
	return true;
}

static bool has_marks(const char *name, int suffix)
{
	const size_t bytes = strlen(name);

	return suffix >= 0 && bytes >= (size_t)suffix + strlen(MARKS) &&
	       !memcmp(name + bytes - (size_t)suffix - strlen(MARKS), MARKS, strlen(MARKS));
}

static int open_file(const char *name, int flags)
{
	return open(name, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
}

static int make_folder(const char *name, int flags)
{
	(void)flags;
	return mkdir(name, 0700);
}

static int make(int (*create)(const char *name, int flags), char *name, int suffix, int flags)
{
	int result = -1;

	if (!has_marks(name, suffix)) {
		errno = EINVAL;
		return -1;
	}
	for (unsigned i = 0; i < NAME_TRIES && result < 0; i++) {
		fill_name(name, (size_t)suffix);
		result = create(name, flags);
		if (result < 0 && errno != EEXIST)
			break;
	}
	return result;
}

RN_EXPORT int mkostemps(char *name, int suffix, int flags)
{
	return rn_virtual_is_on() ? make(open_file, name, suffix, flags)
				  : RN_REAL(mkostemps)(name, suffix, flags);
}

RN_EXPORT int mkostemps64(char *name, int suffix, int flags)
{
	return mkostemps(name, suffix, flags);
}

RN_EXPORT int mkostemp(char *name, int flags)
{
	return mkostemps(name, 0, flags);
}

RN_EXPORT int mkostemp64(char *name, int flags)
{
	return mkostemps(name, 0, flags);
}

RN_EXPORT int mkstemps(char *name, int suffix)
{
	return mkostemps(name, suffix, 0);
}

RN_EXPORT int mkstemps64(char *name, int suffix)
{
	return mkostemps(name, suffix, 0);
}

RN_EXPORT int mkstemp(char *name)
{
	return mkostemps(name, 0, 0);
}

RN_EXPORT int mkstemp64(char *name)
{
	return mkostemps(name, 0, 0);
}

RN_EXPORT char *mkdtemp(char *name)
{
	if (!rn_virtual_is_on())
		return RN_REAL(mkdtemp)(name);
	return make(make_folder, name, 0, 0) < 0 ? NULL : name;
}
