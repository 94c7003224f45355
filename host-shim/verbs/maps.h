/*
 * What the process's memory is made of, from /proc/self/maps. Allocates nothing and calls nothing that a
 * child after fork may not call.
 */
#ifndef RN_VERBS_MAPS_H
#define RN_VERBS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RN_PAGE_BYTES 4096u

/* Kinds of memory, one a page. */
enum rn_mem_kind {
	RN_MEM_UNMAPPED,
	RN_MEM_NO_ACCESS, /* PROT_NONE, or not readable */
	RN_MEM_READ_ONLY,
	RN_MEM_OTHER,	/* readable and writable, but not to be swapped */
	RN_MEM_PRIVATE, /* private memory that can be swapped */
	RN_MEM_ARENA,	/* a mapping of the arena, whatever its protection */
};

struct rn_vma {
	uint64_t start, end;
	uint64_t offset;
	uint64_t dev, inode;
	bool readable, writable, executable, shared;
	char name[32]; /* beginning of the path */
};

/** Which file is the arena (from fstat). */
struct rn_maps_arena {
	uint64_t dev, inode;
};

/** Fill @arena from an open descriptor. */
bool rn_maps_identify(int fd, struct rn_maps_arena *arena);

/** Call @visit for every mapping that ends above @from, in ascending order, until it returns false. False: no /proc. */
bool rn_maps_walk(uint64_t from, bool (*visit)(void *user, const struct rn_vma *vma), void *user);

/**
 * Classify @pages pages from @va on into @kind. For arena pages @offset (if not NULL) gets the page's offset
 * in the arena; @protection (if not NULL) gets each page's PROT_* bits. False: no /proc.
 */
bool rn_maps_classify(uint64_t va, unsigned pages, const struct rn_maps_arena *arena, uint8_t *kind,
		      uint64_t *offset, uint8_t *protection);

/** Whether rn_maps_classify() costs the same however many mappings the process has (Linux 6.11). */
bool rn_maps_is_quick(void);

/** For tests: mappings that were looked at so far. */
uint64_t rn_maps_looked_at(void);

/** For tests: false makes this kernel an older one. */
void rn_maps_allow_query(bool allowed);

/** Number of mappings of the process; 0 without /proc. */
size_t rn_maps_count(void);

#endif
