/*
 * Holding by userfaultfd's write protection (Linux 5.7 for private memory, 5.19 for the arena's). Nobody reads the
 * descriptor: a faulting thread sleeps in the kernel until it is woken at the end of the hold. Only the unrestricted kind will do,
 * which stops system calls as well; with UFFD_USER_MODE_ONLY these would fail with EFAULT. It takes privilege, or
 * vm.unprivileged_userfaultfd, or the right to open /dev/userfaultfd.
 */
#include "verbs/hold.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "verbs/maps.h"
#include "verbs/raw.h"
#include "verbs/virtual_time.h"

/* Newer than some headers. */
#define FEATURE_WP_SHMEM (1ull << 12)
#define FEATURE_WP_UNPOPULATED (1ull << 13)
#define DEVICE_NEW _IO(0xaa, 0)
#define POPULATE_READ 22

#define NEEDED_FEATURES (UFFD_FEATURE_PAGEFAULT_FLAG_WP | FEATURE_WP_SHMEM)
#define PAGEMAP_WRITE_PROTECTED (1ull << 57)
#define SIGNALS_BYTES 8

/* A thread that has been joined is still there for some microseconds. */
#define PATIENCE_LOOKS 100
#define PATIENCE_NS 200000

static _Atomic int kernel_fd = -1;
static _Atomic bool kernel_cannot;

/* --- who else is there --- */

/* Threads of the process, this one included; 0 without /proc. */
static unsigned count_threads(void)
{
	char text[512];
	long got;
	const int fd = (int)rn_raw_call(SYS_openat, AT_FDCWD, (long)"/proc/self/stat",
					O_RDONLY | O_CLOEXEC, 0, 0, 0);
	unsigned field = 2, threads = 0;
	const char *at = text;

	if (fd < 0)
		return 0;
	got = rn_raw_call(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0, 0);
	rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	text[got > 0 ? got : 0] = '\0';
	/* The name, field 2, may hold anything: the last parenthesis ends it. */
	for (const char *c = text; *c; c++)
		if (*c == ')')
			at = c + 1;
	for (; *at && field < 20; at++)
		field += *at == ' ';
	for (; *at >= '0' && *at <= '9'; at++)
		threads = threads * 10 + (unsigned)(*at - '0');
	return threads;
}

static bool is_alone(void)
{
	return count_threads() == 1 + rn_vt_held_threads();
}

/* In virtual time the way must not depend on how fast a thread goes that has ended already. */
static bool is_alone_soon(void)
{
	static _Atomic bool has_given_up;
	const struct timespec pause = {.tv_nsec = PATIENCE_NS};

	if (!rn_vt_is_on() || atomic_load(&has_given_up))
		return false;
	for (unsigned i = 0; i < PATIENCE_LOOKS; i++) {
		rn_raw_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
		if (is_alone())
			return true;
	}
	atomic_store(&has_given_up, true);
	return false;
}

/* --- userfaultfd --- */

static long control(int fd, unsigned long request, void *argument)
{
	return rn_raw_call(SYS_ioctl, fd, (long)request, (long)argument, 0, 0, 0);
}

static int open_plain(void)
{
	long fd = rn_raw_call(SYS_userfaultfd, O_CLOEXEC, 0, 0, 0, 0, 0);
	long device;

	if (fd >= 0)
		return (int)fd;
	device = rn_raw_call(SYS_openat, AT_FDCWD, (long)"/dev/userfaultfd", O_RDWR | O_CLOEXEC, 0,
			     0, 0);
	if (device < 0)
		return -1;
	fd = rn_raw_call(SYS_ioctl, device, DEVICE_NEW, O_CLOEXEC, 0, 0, 0);
	rn_raw_call(SYS_close, device, 0, 0, 0, 0, 0);
	return (int)fd;
}

/* With @features in use; what the kernel offers comes back in *@offered. */
static int open_with(uint64_t features, uint64_t *offered)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	const int fd = open_plain();

	if (fd < 0)
		return -1;
	if (control(fd, UFFDIO_API, &api)) {
		rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
		return -1;
	}
	*offered = api.features;
	return fd;
}

static int open_kernel(void)
{
	uint64_t offered;
	const int fd = open_with(0, &offered);

	if (fd < 0)
		return -1;
	rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	if ((offered & NEEDED_FEATURES) != NEEDED_FEATURES)
		return -1;
	return open_with(NEEDED_FEATURES | (offered & FEATURE_WP_UNPOPULATED), &offered);
}

static bool protect(int fd, uint64_t va, size_t bytes, bool on)
{
	struct uffdio_writeprotect range = {.range = {va, bytes},
					    .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0};

	return control(fd, UFFDIO_WRITEPROTECT, &range) == 0;
}

static bool watch(int fd, uint64_t va, size_t bytes)
{
	struct uffdio_register area = {.range = {va, bytes}, .mode = UFFDIO_REGISTER_MODE_WP};

	return control(fd, UFFDIO_REGISTER, &area) == 0 &&
	       (area.ioctls & 1ull << _UFFDIO_WRITEPROTECT);
}

static void unwatch(int fd, uint64_t va, size_t bytes)
{
	struct uffdio_range range = {va, bytes};

	control(fd, UFFDIO_UNREGISTER, &range);
}

/* The kernel's own table says that the page is protected. */
static bool is_protected(uint64_t va)
{
	uint64_t entry = 0;
	const int fd = (int)rn_raw_call(SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap",
					O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return false;
	rn_raw_call(SYS_pread64, fd, (long)&entry, sizeof(entry),
		    (long)(va / RN_PAGE_BYTES * sizeof(entry)), 0, 0);
	rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return entry & PAGEMAP_WRITE_PROTECTED;
}

/* Tried on a page of each kind: private, and shared as the arena's are. */
static bool works_on(int fd, int flags)
{
	char *page = rn_raw_mmap(NULL, RN_PAGE_BYTES, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS,
				 -1, 0);
	const uint64_t va = (uint64_t)(uintptr_t)page;
	bool works;

	if (!page)
		return false;
	*(volatile char *)page = 1;
	works = watch(fd, va, RN_PAGE_BYTES) && protect(fd, va, RN_PAGE_BYTES, true) &&
		is_protected(va) && protect(fd, va, RN_PAGE_BYTES, false) && !is_protected(va);
	rn_raw_munmap(page, RN_PAGE_BYTES);
	return works;
}

static bool kernel_holds(void)
{
	int fd;

	if (atomic_load(&kernel_fd) >= 0 || atomic_load(&kernel_cannot))
		return !atomic_load(&kernel_cannot);
	fd = open_kernel();
	if (fd >= 0 && works_on(fd, MAP_PRIVATE) && works_on(fd, MAP_SHARED)) {
		atomic_store(&kernel_fd, fd);
		return true;
	}
	if (fd >= 0)
		rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
	atomic_store(&kernel_cannot, true);
	return false;
}

/* The descriptor means the memory of the process that opened it. */
static void forget_kernel(void)
{
	const int fd = atomic_exchange(&kernel_fd, -1);

	if (fd >= 0)
		rn_raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_kernel);
}

/* What has no page yet cannot be protected by every kernel: give it one, of zeroes. */
static void populate(uint64_t va, size_t bytes)
{
	if (rn_raw_madvise((void *)(uintptr_t)va, bytes, POPULATE_READ) == 0)
		return;
	for (size_t at = 0; at < bytes; at += RN_PAGE_BYTES)
		(void)*(volatile const char *)(uintptr_t)(va + at);
}

static bool hold_by_kernel(uint64_t va, size_t bytes)
{
	int fd;

	if (!kernel_holds())
		return false;
	fd = atomic_load(&kernel_fd);
	populate(va, bytes);
	if (!watch(fd, va, bytes)) {
		/* A program that closes what it does not know has closed ours; the number may be another's now. */
		atomic_store(&kernel_fd, -1);
		if (!kernel_holds() || !watch(fd = atomic_load(&kernel_fd), va, bytes))
			return false;
	}
	if (protect(fd, va, bytes, true))
		return true;
	unwatch(fd, va, bytes);
	return false;
}

static void release_by_kernel(uint64_t va, size_t bytes, bool replaced)
{
	struct uffdio_range range = {va, bytes};
	const int fd = atomic_load(&kernel_fd);

	if (!replaced) {
		protect(fd, va, bytes, false);
		unwatch(fd, va, bytes);
	}
	control(fd, UFFDIO_WAKE, &range);
}

/* --- the hold --- */

enum rn_hold_way rn_hold_way(void)
{
	if (is_alone())
		return RN_HOLD_NOBODY;
	if (kernel_holds())
		return RN_HOLD_KERNEL;
	return is_alone_soon() ? RN_HOLD_NOBODY : RN_HOLD_IMPOSSIBLE;
}

static void block_signals(uint64_t *old)
{
	const uint64_t all = UINT64_MAX;

	rn_raw_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&all, (long)old, SIGNALS_BYTES,
		    0, 0);
}

static void restore_signals(const uint64_t *old)
{
	rn_raw_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)old, 0, SIGNALS_BYTES, 0, 0);
}

bool rn_hold_begin(struct rn_hold *hold, uint64_t va, size_t bytes)
{
	hold->va = va;
	hold->bytes = bytes;
	hold->way = rn_hold_way();
	if (hold->way == RN_HOLD_IMPOSSIBLE)
		return false;
	block_signals(&hold->signals);
	if (hold->way == RN_HOLD_NOBODY || hold_by_kernel(va, bytes))
		return true;
	restore_signals(&hold->signals);
	return false;
}

void rn_hold_end(struct rn_hold *hold, bool replaced)
{
	if (hold->way == RN_HOLD_KERNEL)
		release_by_kernel(hold->va, hold->bytes, replaced);
	restore_signals(&hold->signals);
}
