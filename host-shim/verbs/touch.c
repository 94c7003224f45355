/*
 * By madvise(MADV_POPULATE_*), Linux 5.14, after it was seen to work; else by having the kernel read a byte of each page, which
 * finds what is behind the end of a file as well.
 */
#include "verbs/touch.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/bits.h"
#include "verbs/maps.h"
#include "verbs/raw.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define BATCH_PAGES 64u

enum { UNKNOWN, THERE, NOT_THERE };

static _Atomic int populate_state = UNKNOWN;

static bool can_populate(void)
{
	int state = atomic_load_explicit(&populate_state, memory_order_relaxed);

	if (state == UNKNOWN) {
		const uintptr_t page = (uintptr_t)&populate_state & ~(uintptr_t)(RN_PAGE_BYTES - 1);
		const int error = rn_raw_madvise((void *)page, RN_PAGE_BYTES, MADV_POPULATE_WRITE);

		state = error ? NOT_THERE : THERE;
		atomic_store_explicit(&populate_state, state, memory_order_relaxed);
	}
	return state == THERE;
}

void rn_touch_allow_populate(bool allowed)
{
	atomic_store(&populate_state, allowed ? UNKNOWN : NOT_THERE);
}

/* struct iovec, for which <sys/uio.h> would bring in functions that others interpose. */
struct span {
	uint64_t va;
	uint64_t bytes;
};

static bool can_read(uint64_t va, unsigned pages)
{
	struct span from[BATCH_PAGES];
	uint8_t bytes[BATCH_PAGES];
	const struct span to = {(uint64_t)(uintptr_t)bytes, pages};

	for (unsigned n = 0; n < pages; n++)
		from[n] = (struct span){va + (uint64_t)n * RN_PAGE_BYTES, 1};
	return rn_raw_call(SYS_process_vm_readv, getpid(), (long)&to, 1, (long)from, pages, 0) ==
	       (long)pages;
}

int rn_touch_pages(uint64_t va, unsigned pages, bool write)
{
	const int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (can_populate()) {
		const int error = rn_raw_madvise((void *)(uintptr_t)va,
						 (size_t)pages * RN_PAGE_BYTES, advice);

		return error ? EFAULT : 0;
	}
	for (unsigned done = 0; done < pages; done += BATCH_PAGES) {
		const unsigned n = (unsigned)rn_min_u64(pages - done, BATCH_PAGES);

		if (!can_read(va + (uint64_t)done * RN_PAGE_BYTES, n))
			return EFAULT;
	}
	return 0;
}
