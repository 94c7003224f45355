/*
 * Reader and judge of /proc/self/maps. Since Linux 6.11 the file answers questions about one address (PROCMAP_QUERY), so
 * that judging a range costs the same however many mappings there are; on older kernels it is read from its beginning.
 *
 * Stacks are recognised as follows: the main thread's by its name, the calling thread's by the pthread library, other
 * threads' as memory directly above a small inaccessible guard. The surroundings of the stack pointer are never swapped,
 * whatever they are (a coroutine's stack may lie on the heap): writing to the stack is how a signal is taken.
 */
#include "verbs/maps.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "verbs/raw.h"

#define MAX_GUARD_BYTES (64u << 10)
#define THREAD_STACK_BYTES (8ull << 20)
#define NEAR_STACK_BYTES (32u << 10)

bool rn_maps_identify(int fd, struct rn_maps_arena *arena)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	arena->dev = st.st_dev;
	arena->inode = st.st_ino;
	return true;
}

static const char *parse_hex(const char *at, uint64_t *value)
{
	*value = 0;
	for (;; at++) {
		unsigned digit;

		if (*at >= '0' && *at <= '9')
			digit = (unsigned)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			digit = (unsigned)(*at - 'a') + 10;
		else
			return at;
		*value = *value << 4 | digit;
	}
}

static const char *parse_dec(const char *at, uint64_t *value)
{
	*value = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		*value = *value * 10 + (unsigned)(*at - '0');
	return at;
}

/* start-end rwxp offset major:minor inode   path */
static void parse_line(const char *at, struct rn_vma *vma)
{
	uint64_t major_no, minor_no;
	size_t len;

	at = parse_hex(at, &vma->start);
	at = parse_hex(at + 1, &vma->end);
	vma->readable = at[1] == 'r';
	vma->writable = at[2] == 'w';
	vma->executable = at[3] == 'x';
	vma->shared = at[4] == 's';
	at = parse_hex(at + 6, &vma->offset);
	at = parse_hex(at + 1, &major_no);
	at = parse_hex(at + 1, &minor_no);
	vma->dev = makedev((unsigned)major_no, (unsigned)minor_no);
	at = parse_dec(at + 1, &vma->inode);
	while (*at == ' ')
		at++;
	len = strnlen(at, sizeof(vma->name) - 1);
	memcpy(vma->name, at, len);
	vma->name[len] = 0;
}

static void walk_by_reading(int fd, uint64_t from,
			    bool (*visit)(void *user, const struct rn_vma *vma), void *user)
{
	char buf[8192];
	size_t have = 0;
	bool more = true;

	while (more) {
		const ssize_t got = read(fd, buf + have, sizeof(buf) - 1 - have);
		char *line = buf, *end;

		if (got <= 0)
			break;
		have += (size_t)got;
		buf[have] = 0;
		while (more && (end = memchr(line, '\n', have - (size_t)(line - buf)))) {
			struct rn_vma vma;

			*end = 0;
			parse_line(line, &vma);
			line = end + 1;
			if (vma.end > from)
				more = visit(user, &vma);
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			have = 0; /* a line longer than any path can be */
	}
}

bool rn_maps_walk(uint64_t from, bool (*visit)(void *user, const struct rn_vma *vma), void *user)
{
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	walk_by_reading(fd, from, visit, user);
	close(fd);
	return true;
}

/* ---- one mapping by address ---- */

/* struct procmap_query of Linux 6.11 (include/uapi/linux/fs.h); Debian 12's headers are older. */
struct query {
	uint64_t bytes, flags, addr;
	uint64_t start, end, vma_flags, page_bytes, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_bytes, build_id_bytes;
	uint64_t name, build_id;
};

_Static_assert(sizeof(struct query) == 104, "as the kernel has it");

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_READABLE 1u
#define QUERY_WRITABLE 2u
#define QUERY_EXECUTABLE 4u
#define QUERY_SHARED 8u
#define QUERY_OR_NEXT 0x10u

enum { UNKNOWN, THERE, NOT_THERE };

static _Atomic int query_state = UNKNOWN;

/* 0 or a negative errno: ENOENT when there is no such mapping. */
static int ask(int fd, uint64_t addr, uint64_t flags, struct rn_vma *vma)
{
	struct query q = {.bytes = sizeof(q),
			  .flags = flags,
			  .addr = addr,
			  .name = (uint64_t)(uintptr_t)vma->name,
			  .name_bytes = sizeof(vma->name)};
	int error;

	vma->name[0] = 0;
	error = (int)rn_raw_call(SYS_ioctl, fd, (long)QUERY, (long)&q, 0, 0, 0);
	if (error == -ENAMETOOLONG) {
		/* Only files have names as long as that, and they are told by their inode. */
		q.name = q.name_bytes = 0;
		error = (int)rn_raw_call(SYS_ioctl, fd, (long)QUERY, (long)&q, 0, 0, 0);
	}
	if (error)
		return error;
	vma->start = q.start;
	vma->end = q.end;
	vma->offset = q.offset;
	vma->inode = q.inode;
	vma->dev = makedev(q.dev_major, q.dev_minor);
	vma->readable = q.vma_flags & QUERY_READABLE;
	vma->writable = q.vma_flags & QUERY_WRITABLE;
	vma->executable = q.vma_flags & QUERY_EXECUTABLE;
	vma->shared = q.vma_flags & QUERY_SHARED;
	return 0;
}

/* A kernel that knows the question knows the mapping of a variable of ours. */
static bool can_ask(int fd)
{
	int state = atomic_load_explicit(&query_state, memory_order_relaxed);
	const uint64_t here = (uint64_t)(uintptr_t)&query_state;
	struct rn_vma vma;

	if (state == UNKNOWN) {
		state = !ask(fd, here, 0, &vma) && vma.start <= here && here < vma.end &&
					vma.readable && vma.writable
				? THERE
				: NOT_THERE;
		atomic_store_explicit(&query_state, state, memory_order_relaxed);
	}
	return state == THERE;
}

void rn_maps_allow_query(bool allowed)
{
	atomic_store(&query_state, allowed ? UNKNOWN : NOT_THERE);
}

/* As rn_maps_walk(), but the mapping before @from is visited, too: it tells stacks. */
static void walk_by_query(int fd, uint64_t from,
			  bool (*visit)(void *user, const struct rn_vma *vma), void *user)
{
	struct rn_vma vma, below;
	bool more = ask(fd, from, QUERY_OR_NEXT, &vma) == 0;

	if (more && vma.start && ask(fd, vma.start - 1, 0, &below) == 0)
		visit(user, &below);
	while (more && visit(user, &vma))
		more = ask(fd, vma.end, QUERY_OR_NEXT, &vma) == 0;
}

bool rn_maps_is_quick(void)
{
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	const bool quick = fd >= 0 && can_ask(fd);

	if (fd >= 0)
		close(fd);
	return quick;
}

/* ---- judging ---- */

struct classify {
	uint64_t va, end;
	const struct rn_maps_arena *arena;
	uint8_t *kind;
	uint64_t *offset;
	uint8_t *protection;
	struct rn_vma below;	     /* the mapping before */
	uint64_t stack_lo, stack_hi; /* of the calling thread */
	uint64_t near_lo, near_hi;
};

static bool is_thread_stack(const struct classify *c, const struct rn_vma *vma)
{
	const struct rn_vma *below = &c->below;

	return below->end == vma->start && !below->readable && !below->writable &&
	       !below->executable && !below->inode && below->end - below->start <= MAX_GUARD_BYTES;
}

static bool is_of_loaded_object(const struct rn_vma *vma)
{
	Dl_info info;

	return dladdr((const void *)(uintptr_t)vma->start, &info) != 0;
}

/* Private memory of a kind that may be swapped: anonymous, heap, or the data of a loaded object. */
static bool is_swappable(const struct rn_vma *vma)
{
	if (vma->shared || vma->executable)
		return false;
	if (vma->inode == 0)
		return vma->name[0] == 0 || !strcmp(vma->name, "[heap]") ||
		       !strncmp(vma->name, "[anon:", 6);
	return is_of_loaded_object(vma);
}

static enum rn_mem_kind vma_kind(const struct classify *c, const struct rn_vma *vma)
{
	/* Whatever the program has made of its protection since it was pinned. */
	if (vma->shared && vma->dev == c->arena->dev && vma->inode == c->arena->inode)
		return RN_MEM_ARENA;
	if (!vma->readable)
		return RN_MEM_NO_ACCESS;
	if (!vma->writable)
		return RN_MEM_READ_ONLY;
	return is_swappable(vma) ? RN_MEM_PRIVATE : RN_MEM_OTHER;
}

static bool is_inside(uint64_t page, uint64_t lo, uint64_t hi)
{
	return page + RN_PAGE_BYTES > lo && page < hi;
}

static uint8_t protection_of(const struct rn_vma *vma)
{
	return (uint8_t)((vma->readable ? PROT_READ : 0) | (vma->writable ? PROT_WRITE : 0) |
			 (vma->executable ? PROT_EXEC : 0));
}

static void classify_pages(struct classify *c, const struct rn_vma *vma, enum rn_mem_kind kind)
{
	const uint64_t lo = vma->start > c->va ? vma->start : c->va;
	const uint64_t hi = vma->end < c->end ? vma->end : c->end;
	const uint64_t stack_end =
		is_thread_stack(c, vma) ? vma->start + THREAD_STACK_BYTES : vma->start;

	for (uint64_t page = lo; page < hi; page += RN_PAGE_BYTES) {
		const size_t index = (page - c->va) / RN_PAGE_BYTES;
		const bool stack = page < stack_end || is_inside(page, c->stack_lo, c->stack_hi) ||
				   is_inside(page, c->near_lo, c->near_hi);

		c->kind[index] = kind == RN_MEM_PRIVATE && stack ? RN_MEM_OTHER : kind;
		if (c->protection)
			c->protection[index] = protection_of(vma);
		if (c->offset && kind == RN_MEM_ARENA)
			c->offset[index] = vma->offset + (page - vma->start);
	}
}

static _Atomic uint64_t looked_at;

uint64_t rn_maps_looked_at(void)
{
	return atomic_load(&looked_at);
}

static bool classify_vma(void *user, const struct rn_vma *vma)
{
	struct classify *c = user;

	atomic_fetch_add_explicit(&looked_at, 1, memory_order_relaxed);
	if (vma->start >= c->end)
		return false;
	if (vma->end > c->va)
		classify_pages(c, vma, vma_kind(c, vma));
	c->below = *vma;
	return true;
}

/* Bounds of the calling thread's stack; the main thread's has a name of its own. */
static void own_stack(uint64_t *lo, uint64_t *hi)
{
	pthread_attr_t attr;
	void *base;
	size_t bytes;

	*lo = *hi = 0;
	if (gettid() == getpid() || pthread_getattr_np(pthread_self(), &attr))
		return;
	if (pthread_attr_getstack(&attr, &base, &bytes) == 0) {
		*lo = (uint64_t)(uintptr_t)base;
		*hi = *lo + bytes;
	}
	pthread_attr_destroy(&attr);
}

bool rn_maps_classify(uint64_t va, unsigned pages, const struct rn_maps_arena *arena, uint8_t *kind,
		      uint64_t *offset, uint8_t *protection)
{
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	struct classify c = {.va = va,
			     .end = va + (uint64_t)pages * RN_PAGE_BYTES,
			     .arena = arena,
			     .kind = kind,
			     .offset = offset,
			     .protection = protection,
			     .near_lo = here - NEAR_STACK_BYTES,
			     .near_hi = here + NEAR_STACK_BYTES};

	if (fd < 0)
		return false;
	memset(kind, RN_MEM_UNMAPPED, pages);
	own_stack(&c.stack_lo, &c.stack_hi);
	if (can_ask(fd))
		walk_by_query(fd, va, classify_vma, &c);
	else
		walk_by_reading(fd, 0, classify_vma, &c);
	close(fd);
	return true;
}

static bool count_vma(void *user, const struct rn_vma *vma)
{
	size_t *count = user;

	(void)vma;
	atomic_fetch_add_explicit(&looked_at, 1, memory_order_relaxed);
	++*count;
	return true;
}

size_t rn_maps_count(void)
{
	size_t count = 0;

	return rn_maps_walk(0, count_vma, &count) ? count : 0;
}
