/*
 * The new backing is mapped elsewhere, the old range is held (verbs/hold.h: nobody writes), its contents are copied, and the
 * new mapping is moved over it in one step (mremap). Who reads meanwhile reads on; who wants to write sleeps until
 * the new mapping is there, if anybody else runs at all.
 *
 * One exchange at a time: the caller holds the pinning lock.
 */
#include "verbs/swap.h"

#include <errno.h>
#include <sys/mman.h>

#include "verbs/hold.h"
#include "verbs/maps.h"
#include "verbs/raw.h"

#define CHUNK_PAGES 256u

/* Whole pages, with whatever lies in them: no function that a sanitizer checks against its red zones. */
static void copy_pages(void *to, const void *from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* Move @fresh over [@va, @va + @bytes) with the contents of what lies there. */
static int exchange(uint64_t va, size_t bytes, void *fresh, bool own)
{
	void *old = (void *)(uintptr_t)va;
	struct rn_hold hold;
	int error;

	if (!own && !rn_hold_begin(&hold, va, bytes))
		return EBUSY;
	copy_pages(fresh, old, bytes);
	error = rn_raw_move(fresh, bytes, old);
	if (!own)
		rn_hold_end(&hold, !error);
	return error ? ENOMEM : 0;
}

static int swap_chunk(uint64_t va, unsigned pages, int fd, uint64_t offset, bool own)
{
	const size_t bytes = (size_t)pages * RN_PAGE_BYTES;
	const int flags = fd >= 0 ? MAP_SHARED | MAP_POPULATE : MAP_PRIVATE | MAP_ANONYMOUS;
	void *fresh = rn_raw_mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
	int error;

	if (!fresh)
		return ENOMEM;
	error = exchange(va, bytes, fresh, own);
	if (error)
		rn_raw_munmap(fresh, bytes);
	return error;
}

bool rn_swap_is_possible(void)
{
	return rn_hold_way() != RN_HOLD_IMPOSSIBLE;
}

int rn_swap_out(uint64_t va, unsigned pages)
{
	int error = 0;

	for (unsigned done = 0; done < pages && !error; done += CHUNK_PAGES) {
		const unsigned n = pages - done < CHUNK_PAGES ? pages - done : CHUNK_PAGES;

		error = swap_chunk(va + (uint64_t)done * RN_PAGE_BYTES, n, -1, 0, false);
	}
	return error;
}

int rn_swap_in(uint64_t va, unsigned pages, int fd, uint64_t offset, bool own)
{
	for (unsigned done = 0; done < pages; done += CHUNK_PAGES) {
		const unsigned n = pages - done < CHUNK_PAGES ? pages - done : CHUNK_PAGES;
		const uint64_t at = (uint64_t)done * RN_PAGE_BYTES;
		const int error = swap_chunk(va + at, n, fd, offset + at, own);

		if (error) {
			rn_swap_out(va, done);
			return error;
		}
	}
	return 0;
}
