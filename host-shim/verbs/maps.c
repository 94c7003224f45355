/*
 * Reader and judge of /proc/self/maps.
 *
 * Stacks are recognised as follows: the main thread's by its name, the calling thread's by the pthread library, other
 * threads' as memory directly above a small inaccessible guard. The surroundings of the stack pointer are never swapped,
 * whatever they are (a coroutine's stack may lie on the heap): writing to the stack is how a signal is taken.
 */
#include "verbs/maps.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

bool rn_maps_walk(uint64_t from, bool (*visit)(void *user, const struct rn_vma *vma), void *user)
{
	char buf[8192];
	size_t have = 0;
	bool more = true;
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
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
	close(fd);
	return true;
}

struct classify {
	uint64_t va, end;
	const struct rn_maps_arena *arena;
	uint8_t *kind;
	uint64_t *offset;
	struct rn_vma below;	       /* the mapping before */
	uint64_t text_dev, text_inode; /* file of the last executable mapping */
	uint64_t stack_lo, stack_hi;   /* of the calling thread */
	uint64_t near_lo, near_hi;
};

static bool is_thread_stack(const struct classify *c, const struct rn_vma *vma)
{
	const struct rn_vma *below = &c->below;

	return below->end == vma->start && !below->readable && !below->writable &&
	       !below->executable && !below->inode && below->end - below->start <= MAX_GUARD_BYTES;
}

/* Private memory of a kind that may be swapped: anonymous, heap, or the data of a loaded object. */
static bool is_swappable(const struct classify *c, const struct rn_vma *vma)
{
	if (vma->shared || vma->executable)
		return false;
	if (vma->inode == 0)
		return vma->name[0] == 0 || !strcmp(vma->name, "[heap]") ||
		       !strncmp(vma->name, "[anon:", 6);
	return vma->dev == c->text_dev && vma->inode == c->text_inode;
}

static enum rn_mem_kind vma_kind(const struct classify *c, const struct rn_vma *vma)
{
	if (!vma->readable)
		return RN_MEM_NO_ACCESS;
	if (vma->shared && vma->dev == c->arena->dev && vma->inode == c->arena->inode)
		return RN_MEM_ARENA;
	if (!vma->writable)
		return RN_MEM_READ_ONLY;
	return is_swappable(c, vma) ? RN_MEM_PRIVATE : RN_MEM_OTHER;
}

static bool is_inside(uint64_t page, uint64_t lo, uint64_t hi)
{
	return page + RN_PAGE_BYTES > lo && page < hi;
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
		if (c->offset && kind == RN_MEM_ARENA)
			c->offset[index] = vma->offset + (page - vma->start);
	}
}

static bool classify_vma(void *user, const struct rn_vma *vma)
{
	struct classify *c = user;

	if (vma->start >= c->end)
		return false;
	if (vma->end > c->va)
		classify_pages(c, vma, vma_kind(c, vma));
	if (vma->executable) {
		c->text_dev = vma->dev;
		c->text_inode = vma->inode;
	}
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
		      uint64_t *offset)
{
	const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	struct classify c = {.va = va,
			     .end = va + (uint64_t)pages * RN_PAGE_BYTES,
			     .arena = arena,
			     .kind = kind,
			     .offset = offset,
			     .near_lo = here - NEAR_STACK_BYTES,
			     .near_hi = here + NEAR_STACK_BYTES};

	memset(kind, RN_MEM_UNMAPPED, pages);
	own_stack(&c.stack_lo, &c.stack_hi);
	return rn_maps_walk(0, classify_vma, &c);
}

static bool count_vma(void *user, const struct rn_vma *vma)
{
	size_t *count = user;

	(void)vma;
	++*count;
	return true;
}

size_t rn_maps_count(void)
{
	size_t count = 0;

	return rn_maps_walk(0, count_vma, &count) ? count : 0;
}
