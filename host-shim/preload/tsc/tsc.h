/*
 * The processor's time stamp counter in virtual time: how a process sees to it that no instruction reads the true one.
 */
#ifndef RN_PRELOAD_TSC_TSC_H
#define RN_PRELOAD_TSC_TSC_H

#include <stdbool.h>
#include <stddef.h>

/** Start, in a process that lives in virtual time, as the time page says (enum rn_tsc_mode). */
void rn_tsc_start(void);

/** In a child after fork, with a page of its own: say there what is in force. */
void rn_tsc_report(void);

/** Where it works, the trap of the counter on or off: an exec'ed program's loader must not meet it. */
void rn_tsc_trap(bool on);

/** From now on the trap is used; it works. */
void rn_tsc_use_trap(void);

/** A trap has been taken. */
void rn_tsc_count_trap(void);

/**
 * The program has mapped [@at, @at + @bytes) with @prot (PROT_ bits), has changed its protection, or has unmapped it: code in
 * it is rewritten before it can run. @is_anonymous: of no file, and nobody else
 * writes there.
 */
void rn_tsc_mapped(void *at, size_t bytes, int prot, bool is_anonymous);
void rn_tsc_protected(void *at, size_t bytes, int prot);
void rn_tsc_unmapped(void *at, size_t bytes);

#endif
