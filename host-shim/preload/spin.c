/*
 * Threads that spin on memory without a call. When a thread has run for long, the simulator sends it SIGURG; the
 * handler single-steps it. Two identical periods of the register state, with no store and no instruction but those
 * known here, prove that only memory can end the loop: the thread then waits for a message. A loop that has been
 * proved before needs one period; most get a breakpoint and come by themselves (spin_plant.c). What cannot be proved
 * goes on as if nothing had been.
 */
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "preload/own_signals.h"
#include "preload/spin_plant.h"
#include "preload/virtual.h"

#define TRAP_FLAG 0x100
#define RESUME_FLAG 0x10000
#define STEPS_MAX 160
#define ANCHORS_MAX 4
#define LOOPS_MAX 16
#define REGISTERS (REG_RIP + 1) /* r8 .. rsp, rip: the order of the kernel's structure */

static __thread struct {
	bool is_stepping;
	greg_t at[REGISTERS], flags;
	unsigned steps, periods, needed, anchors;
} proof;

static uintptr_t proved[LOOPS_MAX]; /* addresses at which proofs began */
static unsigned proved_count;

/* --- instructions that do not store --- */

struct code {
	const uint8_t *at;
	uint8_t opcode, modrm;
};

static bool is_register(const struct code *code)
{
	return code->modrm >> 6 == 3;
}

static unsigned extension(const struct code *code)
{
	return code->modrm >> 3 & 7;
}

static bool is_long_harmless(const struct code *code)
{
	const uint8_t op = code->opcode;

	if ((op & 0xf0) == 0x80 || (op & 0xf0) == 0x40) /* jcc, cmov */
		return true;
	if ((op & 0xf0) == 0x90) /* setcc */
		return is_register(code);
	switch (op) {
	case 0x1e: /* endbr, nop */
	case 0x1f:
	case 0xb6: /* movzx, movsx */
	case 0xb7:
	case 0xbe:
	case 0xbf:
	case 0xa3: /* bt */
		return true;
	case 0xba:
		return extension(code) == 4;
	case 0xae: /* lfence */
		return code->modrm == 0xe8;
	default:
		return false;
	}
}

static bool is_alu_harmless(const struct code *code)
{
	const uint8_t op = code->opcode;

	if ((op & 7) >= 6)
		return false;
	/* cmp writes nothing; the others' destination is a register in half of the forms. */
	return op >> 3 == 7 || (op & 7) >= 2 || is_register(code);
}

static bool is_short_harmless(const struct code *code)
{
	const uint8_t op = code->opcode;

	if (op < 0x40)
		return is_alu_harmless(code);
	if ((op & 0xf0) == 0x70 || (op & 0xf8) == 0xb8) /* jcc, mov immediate */
		return true;
	switch (op) {
	case 0x63: /* movsxd */
	case 0x84: /* test */
	case 0x85:
	case 0x8a: /* load */
	case 0x8b:
	case 0x8d: /* lea */
	case 0x90: /* nop, pause */
	case 0x98: /* cdqe */
	case 0x99:
	case 0xa8:
	case 0xa9:
	case 0xe9: /* jmp */
	case 0xeb:
		return true;
	case 0x80:
	case 0x81:
	case 0x83:
		return extension(code) == 7 || is_register(code);
	case 0xf6:
	case 0xf7:
		return extension(code) == 0 || (is_register(code) && extension(code) < 4);
	case 0x88:
	case 0x89:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return is_register(code);
	default:
		return false;
	}
}

static bool is_harmless(uintptr_t ip)
{
	struct code code = {.at = (const uint8_t *)ip};

	while (*code.at == 0x66 || *code.at == 0xf2 || *code.at == 0xf3)
		code.at++;
	if ((*code.at & 0xf0) == 0x40) /* REX */
		code.at++;
	code.opcode = *code.at++;
	if (code.opcode != 0x0f) {
		code.modrm = *code.at;
		return is_short_harmless(&code);
	}
	code.opcode = code.at[0];
	code.modrm = code.at[1];
	return is_long_harmless(&code);
}

/* --- the proof --- */

static greg_t flags_of(const greg_t *regs)
{
	return regs[REG_EFL] & ~(greg_t)(TRAP_FLAG | RESUME_FLAG);
}

static void set_anchor(const greg_t *regs)
{
	memcpy(proof.at, regs, sizeof(proof.at));
	proof.flags = flags_of(regs);
	proof.periods = 0;
	proof.anchors++;
}

static bool is_at_anchor(const greg_t *regs)
{
	return !memcmp(proof.at, regs, sizeof(proof.at)) && proof.flags == flags_of(regs);
}

static bool is_proved(uintptr_t ip)
{
	for (unsigned i = 0; i < proved_count; i++)
		if (proved[i] == ip)
			return true;
	return false;
}

static void remember(uintptr_t ip)
{
	if (!is_proved(ip) && proved_count < LOOPS_MAX)
		proved[proved_count++] = ip;
}

static void start_stepping(greg_t *regs)
{
	proof.is_stepping = true;
	regs[REG_EFL] |= TRAP_FLAG;
}

static void stop_stepping(greg_t *regs)
{
	proof.is_stepping = false;
	regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static bool is_question(const siginfo_t *info)
{
	return info->si_code == SI_TKILL && info->si_pid == rn_virtual_page()->simulator_pid;
}

static bool on_examine(const siginfo_t *info, ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;

	if (!is_question(info))
		return false;
	/* A question while the answer is being found would begin all over. */
	if (regs[REG_EFL] & TRAP_FLAG)
		return true;
	/* Steps cannot be caught where it was: the system would end the program. */
	if (sigismember(&context->uc_sigmask, SIGTRAP) == 1)
		return true;
	if (!rn_virtual_is_running() || !is_harmless((uintptr_t)regs[REG_RIP]))
		return true;
	memset(&proof, 0, sizeof(proof));
	proof.needed = is_proved((uintptr_t)regs[REG_RIP]) ? 1 : 2;
	set_anchor(regs);
	start_stepping(regs);
	return true;
}

static void step(greg_t *regs)
{
	if (!rn_virtual_is_running() || ++proof.steps > STEPS_MAX ||
	    !is_harmless((uintptr_t)regs[REG_RIP])) {
		stop_stepping(regs);
		return;
	}
	if (regs[REG_RIP] != proof.at[REG_RIP])
		return;
	if (!is_at_anchor(regs)) {
		set_anchor(regs);
		if (proof.anchors > ANCHORS_MAX)
			stop_stepping(regs);
		return;
	}
	if (++proof.periods < proof.needed)
		return;
	stop_stepping(regs);
	remember((uintptr_t)regs[REG_RIP]);
	rn_virtual_wait_message(rn_spin_plant((uintptr_t)regs[REG_RIP]));
}

static bool on_step(const siginfo_t *info, ucontext_t *context)
{
	if (rn_spin_is_planted(info, context)) {
		rn_spin_meet(context);
		return true;
	}
	if (!proof.is_stepping || info->si_code != TRAP_TRACE)
		return false;
	step(context->uc_mcontext.gregs);
	return true;
}

void rn_spin_start(void)
{
	/* Steps that are not caught would end the program: where they cannot be, questions are ignored. */
	if (rn_own_signal_take(SIGTRAP, on_step))
		rn_own_signal_take(SIGURG, on_examine);
}
