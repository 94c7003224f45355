/*
 * One period of a loop that spins, carried out on a copy of the registers: what a processor would do, as long as it
 * neither stores nor calls.
 */
#ifndef RN_PRELOAD_SPIN_LOOP_H
#define RN_PRELOAD_SPIN_LOOP_H

#include <stdint.h>
#include <ucontext.h>

#define RN_LOOP_REGISTERS (REG_RIP + 1) /* r8 .. rsp, rip: the order of the kernel's structure */

enum rn_loop_end {
	RN_LOOP_SAME, /* back where it began, all registers and flags as they were: only memory ends it */
	RN_LOOP_CHANGED, /* back, but something counts */
	RN_LOOP_LEFT,	 /* at an instruction that is not carried out here */
};

/**
 * Go on from @regs, which become those of where it ended. @read gives the code: up to @bytes at @ip, as the program wrote
 * it; the number copied. Loads are real ones.
 */
enum rn_loop_end rn_loop_run(greg_t *regs,
			     unsigned (*read)(uintptr_t ip, uint8_t *code, unsigned bytes));

#endif
