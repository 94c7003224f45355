/*
 * Exchange of memory under a running program: a range of pages gets another backing in place, with its
 * contents, while other threads may read and write it. No write is lost: where nobody can be kept from
 * writing meanwhile, nothing is exchanged.
 */
#ifndef RN_VERBS_SWAP_H
#define RN_VERBS_SWAP_H

#include <stdbool.h>
#include <stdint.h>

/** Whether pages can be exchanged now (verbs/hold.h). A later exchange may still find that it cannot: EBUSY. */
bool rn_swap_is_possible(void);

/**
 * Back [@va, @va + @pages) by @fd from @offset on (shared), keeping the contents. The range must be private,
 * readable and writable. @own: fresh memory that only the caller knows, which need not be held.
 * 0; ENOMEM; EBUSY when other threads cannot be kept from writing; the range then being backed as before.
 */
int rn_swap_in(uint64_t va, unsigned pages, int fd, uint64_t offset, bool own);

/** Back the range by private anonymous memory, keeping the contents. 0, ENOMEM or EBUSY, pages then being mixed. */
int rn_swap_out(uint64_t va, unsigned pages);

#endif
