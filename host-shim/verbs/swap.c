/*
 * The new backing is mapped elsewhere, the old range is write-protected, its contents are copied, and the new
 * mapping is moved over it in one step (mremap). A thread that writes meanwhile faults and waits in the
 * SIGSEGV handler until the window is over, then writes again. A system call that writes into the range sees EFAULT in
 * the window (some hundred microseconds); this is the one difference a program could notice.
 *
 * One window is open at a time: the caller holds the pinning lock.
 */
#include "verbs/swap.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs/maps.h"

#define CHUNK_PAGES 256u

struct window {
	_Atomic uint64_t lo, hi; /* lo == hi: closed */
	_Atomic uint64_t sequence;
	_Atomic int owner; /* thread that copies */
};

static struct window window;
static struct sigaction previous;

/* A fault is retried once: it may have happened in a window that has closed since. */
static __thread uint64_t retried_addr;
static __thread uint64_t retried_sequence;

/* A handler that calls the one before it may call this one again: told by the same siginfo, deeper in the stack. */
static __thread const siginfo_t *passed_info;
static __thread uintptr_t passed_frame;

static int thread_id(void)
{
	return (int)syscall(SYS_gettid);
}

static bool in_window(uint64_t addr)
{
	return addr >= atomic_load(&window.lo) && addr < atomic_load(&window.hi);
}

/* True when the faulting instruction should simply run again. */
static bool is_ours(const siginfo_t *info)
{
	const uint64_t addr = (uint64_t)(uintptr_t)info->si_addr;
	const uint64_t sequence = atomic_load(&window.sequence);

	if (info->si_code != SEGV_ACCERR && info->si_code != SEGV_MAPERR)
		return false;
	if (in_window(addr)) {
		if (atomic_load(&window.owner) == thread_id())
			mprotect((void *)(uintptr_t)(addr & ~(uint64_t)(RN_PAGE_BYTES - 1)),
				 RN_PAGE_BYTES, PROT_READ | PROT_WRITE);
		else
			while (in_window(addr))
				sched_yield();
		return true;
	}
	if (retried_addr == addr && retried_sequence == sequence + 1)
		return false;
	retried_addr = addr;
	retried_sequence = sequence + 1; /* never the initial 0 */
	return true;
}

static void use_default(void)
{
	const struct sigaction action = {.sa_handler = SIG_DFL};

	sigaction(SIGSEGV, &action, NULL);
}

static bool is_passed_back(const siginfo_t *info)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (info == passed_info && here < passed_frame)
		return true;
	passed_info = info;
	passed_frame = here;
	return false;
}

/* The handler that was there may not return (siglongjmp). */
static void pass_on(int signo, siginfo_t *info, void *context)
{
	if (is_passed_back(info))
		use_default(); /* the instruction faults again and the program ends as it would have */
	else if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(signo, info, context);
	else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
		previous.sa_handler(signo);
	else
		use_default(); /* the kernel does not let a real fault be ignored either */
}

static void on_sigsegv(int signo, siginfo_t *info, void *context)
{
	const int saved_errno = errno;

	if (!is_ours(info))
		pass_on(signo, info, context);
	errno = saved_errno;
}

void rn_swap_take_sigsegv(void)
{
	struct sigaction now, ours = {.sa_sigaction = on_sigsegv,
				      .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

	if (sigaction(SIGSEGV, NULL, &now) ||
	    ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigsegv))
		return;
	previous = now;
	sigaction(SIGSEGV, &ours, NULL);
}

/* Whole pages, with whatever lies in them; the address sanitizer would object to its own red zones. */
#ifdef __SANITIZE_ADDRESS__
__attribute__((no_sanitize("address"))) static void copy_pages(void *to, const void *from,
							       size_t bytes)
{
	volatile uint64_t *out = to;
	const uint64_t *in = from;

	for (size_t i = 0; i < bytes / sizeof(*in); i++)
		out[i] = in[i];
}
#else
static void copy_pages(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}
#endif

static void open_window(uint64_t lo, uint64_t hi)
{
	atomic_store(&window.owner, thread_id());
	atomic_fetch_add(&window.sequence, 1);
	atomic_store(&window.lo, lo);
	atomic_store(&window.hi, hi);
}

static void close_window(void)
{
	atomic_store(&window.hi, 0);
	atomic_store(&window.lo, 0);
}

/* Move @fresh over [@va, @va + @bytes) with the contents of what lies there. */
static int exchange(uint64_t va, size_t bytes, void *fresh)
{
	void *old = (void *)(uintptr_t)va;
	int error = 0;

	open_window(va, va + bytes);
	if (mprotect(old, bytes, PROT_READ)) {
		error = ENOMEM;
	} else {
		copy_pages(fresh, old, bytes);
		if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, old) == MAP_FAILED)
			error = ENOMEM;
	}
	if (error)
		mprotect(old, bytes, PROT_READ | PROT_WRITE);
	close_window();
	return error;
}

static int swap_chunk(uint64_t va, unsigned pages, int fd, uint64_t offset)
{
	const size_t bytes = (size_t)pages * RN_PAGE_BYTES;
	const int flags = fd >= 0 ? MAP_SHARED | MAP_POPULATE : MAP_PRIVATE | MAP_ANONYMOUS;
	void *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
	int error;

	if (fresh == MAP_FAILED)
		return ENOMEM;
	error = exchange(va, bytes, fresh);
	if (error)
		munmap(fresh, bytes);
	return error;
}

int rn_swap_out(uint64_t va, unsigned pages)
{
	int error = 0;

	for (unsigned done = 0; done < pages && !error; done += CHUNK_PAGES) {
		const unsigned n = pages - done < CHUNK_PAGES ? pages - done : CHUNK_PAGES;

		error = swap_chunk(va + (uint64_t)done * RN_PAGE_BYTES, n, -1, 0);
	}
	return error;
}

int rn_swap_in(uint64_t va, unsigned pages, int fd, uint64_t offset)
{
	for (unsigned done = 0; done < pages; done += CHUNK_PAGES) {
		const unsigned n = pages - done < CHUNK_PAGES ? pages - done : CHUNK_PAGES;
		const uint64_t at = (uint64_t)done * RN_PAGE_BYTES;
		const int error = swap_chunk(va + at, n, fd, offset + at);

		if (error) {
			rn_swap_out(va, done);
			return error;
		}
	}
	return 0;
}
