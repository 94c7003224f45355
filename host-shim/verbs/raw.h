/*
 * System calls about memory, straight to the kernel. Programs and their libraries interpose mmap, mremap and their kin (memory
 * hooks of communication libraries, sanitizers, allocators); what this library does to a page must reach the
 * kernel as it is, is no event for their caches of registrations, and must not write errno: that may lie in the very
 * page under exchange.
 */
#ifndef RN_VERBS_RAW_H
#define RN_VERBS_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/** System call @number: its result, or a negative errno. */
static inline long rn_raw_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/** mmap(2); NULL when it fails. */
static inline void *rn_raw_mmap(void *at, size_t bytes, int protection, int flags, int fd,
				uint64_t offset)
{
	const long result =
		rn_raw_call(SYS_mmap, (long)at, (long)bytes, protection, flags, fd, (long)offset);

	return result < 0 && result > -4096 ? NULL : (void *)result;
}

/** munmap(2): 0 or a negative errno. */
static inline int rn_raw_munmap(void *at, size_t bytes)
{
	return (int)rn_raw_call(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
}

/** Move @bytes at @from over what lies at @to (mremap(2), fixed): 0 or a negative errno. */
static inline int rn_raw_move(void *from, size_t bytes, void *to)
{
	const long result = rn_raw_call(SYS_mremap, (long)from, (long)bytes, (long)bytes,
					MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0);

	return result == (long)to ? 0 : (int)result;
}

/** mprotect(2): 0 or a negative errno. */
static inline int rn_raw_mprotect(void *at, size_t bytes, int protection)
{
	return (int)rn_raw_call(SYS_mprotect, (long)at, (long)bytes, protection, 0, 0, 0);
}

/** madvise(2): 0 or a negative errno. */
static inline int rn_raw_madvise(void *at, size_t bytes, int advice)
{
	return (int)rn_raw_call(SYS_madvise, (long)at, (long)bytes, advice, 0, 0, 0);
}

#endif
