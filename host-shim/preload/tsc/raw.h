/*
 * System calls without the C library: for what runs inside the loader, in signal handlers and in the midst of a
 * function of the program, where no register but the general ones may change.
 */
#ifndef RN_PRELOAD_TSC_RAW_H
#define RN_PRELOAD_TSC_RAW_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/** Call @number; the result is the kernel's: -errno when it fails. errno stays. */
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

/** Memory of @bytes zeros, of which only what is touched costs; NULL: there is none. Give back with rn_raw_free(). */
static inline void *rn_raw_alloc(size_t bytes)
{
	const long at = rn_raw_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at < 0 ? NULL : (void *)at;
}

static inline void rn_raw_free(void *memory, size_t bytes)
{
	if (memory)
		rn_raw_call(SYS_munmap, (long)memory, (long)bytes, 0, 0, 0, 0);
}

#endif
