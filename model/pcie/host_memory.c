/*
 * Host memory by physical address. Exact: which bytes exist, and the order in which a program sees
 * the bytes of a write (ascending lines, the last byte last, with release). Left out: caches and
 * NUMA; their time is part of the root complex's latencies.
 */
#include "pcie/host_memory.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "base/mem.h"

#define LINE_BYTES 64

struct arena {
	uint8_t *base;	/* NULL: a process or unused */
	uint64_t bytes; /* 0: unused */
	pid_t pid;
};

struct rn_host_memory {
	int count; /* arenas below this may be in use */
	struct arena arenas[RN_ARENAS_MAX];
};

struct rn_host_memory *rn_host_memory_new(void)
{
	return rn_calloc(1, sizeof(struct rn_host_memory));
}

void rn_host_memory_free(struct rn_host_memory *memory)
{
	free(memory);
}

static int add(struct rn_host_memory *memory, struct arena arena)
{
	int idx = 0;

	while (idx < memory->count && memory->arenas[idx].bytes)
		idx++;
	if (idx == RN_ARENAS_MAX)
		return -1;
	if (idx == memory->count)
		memory->count++;
	memory->arenas[idx] = arena;
	return idx;
}

int rn_host_memory_add(struct rn_host_memory *memory, void *base, uint64_t bytes)
{
	RN_ASSERT(base && bytes && bytes <= UINT64_C(1) << RN_PA_OFFSET_BITS);
	return add(memory, (struct arena){.base = base, .bytes = bytes});
}

int rn_host_memory_add_process(struct rn_host_memory *memory, pid_t pid)
{
	return add(memory, (struct arena){.bytes = UINT64_C(1) << RN_PA_OFFSET_BITS, .pid = pid});
}

void rn_host_memory_remove(struct rn_host_memory *memory, int arena)
{
	RN_ASSERT(arena >= 0 && arena < memory->count);
	memory->arenas[arena] = (struct arena){0};
	while (memory->count && !memory->arenas[memory->count - 1].bytes)
		memory->count--;
}

/* The arena that holds all of the range, or NULL. */
static const struct arena *find(const struct rn_host_memory *memory, uint64_t pa, uint64_t len)
{
	uint64_t idx = pa >> RN_PA_OFFSET_BITS;
	uint64_t offset = pa & ((UINT64_C(1) << RN_PA_OFFSET_BITS) - 1);

	if (idx >= RN_ARENAS_MAX)
		return NULL;

	const struct arena *arena = &memory->arenas[idx];

	return offset < arena->bytes && len <= arena->bytes - offset ? arena : NULL;
}

static inline uint64_t offset_of(uint64_t pa)
{
	return pa & ((UINT64_C(1) << RN_PA_OFFSET_BITS) - 1);
}

void *rn_host_memory_at(struct rn_host_memory *memory, uint64_t pa, uint64_t len)
{
	const struct arena *arena = find(memory, pa, len);

	return arena && arena->base ? arena->base + offset_of(pa) : NULL;
}

static bool read_process(pid_t pid, uint64_t va, void *to, uint32_t len)
{
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)va, .iov_len = len};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

bool rn_host_memory_read(struct rn_host_memory *memory, uint64_t pa, void *to, uint32_t len)
{
	const struct arena *arena = find(memory, pa, len);

	if (arena && arena->base) {
		memcpy(to, arena->base + offset_of(pa), len);
		return true;
	}
	if (arena && read_process(arena->pid, offset_of(pa), to, len))
		return true;
	memset(to, 0, len);
	return false;
}

/*
 * Stores become visible in program order on x86, and with the fences in the order of the lines
 * elsewhere too; what the compiler must not do is merge or move the copies of two lines.
 */
static void write_mapped(uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint32_t first = (uint32_t)(-(uintptr_t)to & (LINE_BYTES - 1));

	if (first && first < len) {
		memcpy(to, from, first);
		to += first;
		from += first;
		len -= first;
	}
	while (len > LINE_BYTES) {
		atomic_thread_fence(memory_order_release);
		memcpy(to, from, LINE_BYTES);
		to += LINE_BYTES;
		from += LINE_BYTES;
		len -= LINE_BYTES;
	}
	atomic_thread_fence(memory_order_release);
	memcpy(to, from, len - 1);
	__atomic_store_n(to + len - 1, from[len - 1], __ATOMIC_RELEASE);
}

/* The kernel copies one piece after the other: all lines but the last, that line, its last byte. */
static bool write_process(pid_t pid, uint64_t va, const uint8_t *from, uint32_t len)
{
	uint64_t line = (va + len - 1) & ~(uint64_t)(LINE_BYTES - 1);
	uint32_t before = line > va ? (uint32_t)(line - va) : 0;
	const uint32_t cuts[] = {0, before, len - 1, len};
	struct iovec local[3];
	struct iovec remote[3];

	for (unsigned i = 0; i < 3; i++) {
		local[i].iov_base = (void *)(uintptr_t)(from + cuts[i]);
		remote[i].iov_base = (void *)(uintptr_t)(va + cuts[i]);
		local[i].iov_len = cuts[i + 1] - cuts[i];
		remote[i].iov_len = local[i].iov_len;
	}
	return process_vm_writev(pid, local, 3, remote, 3, 0) == (ssize_t)len;
}

bool rn_host_memory_write(struct rn_host_memory *memory, uint64_t pa, const void *from,
			  uint32_t len)
{
	const struct arena *arena = find(memory, pa, len);

	if (!arena || !len)
		return arena != NULL;
	if (!arena->base)
		return write_process(arena->pid, offset_of(pa), from, len);
	write_mapped(arena->base + offset_of(pa), from, len);
	return true;
}
