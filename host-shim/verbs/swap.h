/*
 * Exchange of memory under a running program: a range of pages gets another backing in place, with its
 * contents, while other threads may read and write it.
 */
#ifndef RN_VERBS_SWAP_H
#define RN_VERBS_SWAP_H

#include <stdint.h>

/**
 * Back [@va, @va + @pages) by @fd from @offset on (shared), keeping the contents. The range must be private,
 * readable and writable. 0 or ENOMEM, the range then being backed as before.
 */
int rn_swap_in(uint64_t va, unsigned pages, int fd, uint64_t offset);

/** Back the range by private anonymous memory, keeping the contents. 0 or ENOMEM, pages then being mixed. */
int rn_swap_out(uint64_t va, unsigned pages);

/**
 * Take SIGSEGV, unless it is taken already: a thread that writes into a range under exchange waits, every
 * other fault goes on to the handler that was there.
 */
void rn_swap_take_sigsegv(void);

#endif
