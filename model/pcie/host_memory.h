/*
 * Host memory behind the root complex: physical address space made of arenas. One arena a
 * process (a sealed memfd, mapped here), one of the driver's own (ICM, EQs, mailboxes), and
 * fallback windows that reach a process's memory through process_vm_readv/writev.
 *
 * Physical address: bits 62:48 arena number, bits 47:0 offset in the arena. Arena 0 is the
 * driver's; an offset in a fallback arena is the virtual address in that process.
 */
#ifndef RN_PCIE_HOST_MEMORY_H
#define RN_PCIE_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RN_PA_OFFSET_BITS 48
#define RN_ARENAS_MAX 8192

struct rn_host_memory;

struct rn_host_memory *rn_host_memory_new(void);
void rn_host_memory_free(struct rn_host_memory *memory);

/**
 * Add a mapped arena: @base .. @base + @bytes stays readable and writable until it is removed.
 * Returns its number, or -1 when there are RN_ARENAS_MAX already. Numbers are reused.
 */
int rn_host_memory_add(struct rn_host_memory *memory, void *base, uint64_t bytes);

/** Add a fallback arena onto the address space of process @pid (a pidfd check is the caller's). */
int rn_host_memory_add_process(struct rn_host_memory *memory, pid_t pid);

/** Forget an arena; later accesses to it abort. The caller unmaps it. */
void rn_host_memory_remove(struct rn_host_memory *memory, int arena);

static inline uint64_t rn_pa(int arena, uint64_t offset)
{
	return (uint64_t)arena << RN_PA_OFFSET_BITS | offset;
}

/** Read @len bytes; false (and @to zeroed) when any of them is not there: a completer abort. */
bool rn_host_memory_read(struct rn_host_memory *memory, uint64_t pa, void *to, uint32_t len);

/**
 * Write @len bytes in ascending 64-byte lines, the line that holds the last byte stored last with
 * release, its last byte at the very end. False when any of them is not there (earlier bytes may
 * have been written).
 */
bool rn_host_memory_write(struct rn_host_memory *memory, uint64_t pa, const void *from,
			  uint32_t len);

/**
 * Direct pointer to @len bytes of a mapped arena, or NULL (fallback or out of range). For the
 * driver and tests.
 */
void *rn_host_memory_at(struct rn_host_memory *memory, uint64_t pa, uint64_t len);

#endif
