/*
 * Memory that a program wants to write and to execute at once, where nothing but rewriting catches reads of the counter:
 * each page is one of the two at a time, and changes with the first access of the other kind. What begins to be
 * executed is decoded from there.
 */
#ifndef RN_PRELOAD_TSC_GENERATED_H
#define RN_PRELOAD_TSC_GENERATED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/** From now on keep watch over private memory [@start, @end). False: no room in the table; nothing has been done. */
bool rn_tsc_generated_add(uintptr_t start, uintptr_t end);

/** It is gone, or is protected otherwise. */
void rn_tsc_generated_drop(uintptr_t start, uintptr_t end);

/** Whether @at is watched; *@part_end: up to where, at most @end, that is the same. */
bool rn_tsc_generated_part(uintptr_t at, uintptr_t end, uintptr_t *part_end);

/** Put back what was rewritten by ud2 in [@start, @end), which can be written. */
void rn_tsc_generated_restore(uintptr_t start, uintptr_t end);

/** The same for those parts of it that are watched here. */
void rn_tsc_generated_restore_in(uintptr_t start, uintptr_t end);

/** SIGSEGV: true when it was an access that the page is ready for now. */
bool rn_tsc_generated_fault(const siginfo_t *info, const ucontext_t *context);

#endif
