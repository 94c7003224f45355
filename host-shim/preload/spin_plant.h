/*
 * Breakpoints in loops that have been proved to spin: a thread that comes there is seen at once, instead of
 * spinning until somebody asks.
 */
#ifndef RN_PRELOAD_SPIN_PLANT_H
#define RN_PRELOAD_SPIN_PLANT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/**
 * A loop has been proved at @ip: put a breakpoint there. False: there is none, and there will be none: the loop does what is not
 * known here, the memory is not a file's own code, or the program's code is to stay as it is (--tsc trap).
 */
bool rn_spin_plant(uintptr_t ip);

/** Whether SIGTRAP with @info in @context is from such a breakpoint. */
bool rn_spin_is_planted(const siginfo_t *info, const ucontext_t *context);

/** Then: wait as often as the loop is proved to spin, and leave @context behind it, or where native code is to go on. */
void rn_spin_meet(ucontext_t *context);

#endif
