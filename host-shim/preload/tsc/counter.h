/*
 * What rdtsc and rdtscp answer in virtual time, and the processor's trap of them. Three ways lead here: a jump from a
 * rewritten instruction, ud2 in place of one, and the trap, which a machine may accept and not have.
 */
#ifndef RN_PRELOAD_TSC_COUNTER_H
#define RN_PRELOAD_TSC_COUNTER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/** Virtual, where the thread lives in virtual time; else the processor's. Waits, and may use any register. */
uint64_t rn_tsc_read(void);

/* In two registers. */
struct rn_tsc_answer {
	uint64_t value;
	uint64_t is_known; /* 0: only rn_tsc_read() can tell */
};

/** The same where it takes no wait: touches general registers alone. */
struct rn_tsc_answer rn_tsc_read_quickly(void);

/** Where trampolines lead: the counter in eax and edx, everything else as it was. Not for C. */
void rn_tsc_entry(void);
/** Before the first trampoline runs: how much room the processor's state needs. */
void rn_tsc_entry_init(void);

/** Answer the instruction of @bytes at which @context stands. @is_true: with the processor's own counter. */
void rn_tsc_answer(ucontext_t *context, unsigned bytes, bool is_true);

/** Whether reading the counter traps once the system has accepted that it shall: tried. The trap is off afterwards. */
bool rn_tsc_trap_works(void);

/** SIGSEGV: true when it was a trap, which has been answered. */
bool rn_tsc_on_fault(const siginfo_t *info, ucontext_t *context);
/** SIGILL: true when it was a rewritten instruction. */
bool rn_tsc_on_illegal(const siginfo_t *info, ucontext_t *context);

#endif
