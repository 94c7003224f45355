#include "preload/tsc/counter.h"

#include <errno.h>
#include <linux/prctl.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "preload/tsc/raw.h"
#include "preload/tsc/sites.h"
#include "preload/tsc/tsc.h"
#include "preload/virtual.h"

#define VDSO_BYTES 0x4000u

static bool is_trapped; /* the trap works, and is on but for exec */
static volatile bool has_trapped;
static uintptr_t vdso;

/* --- the answer --- */

/* now * hz / 1e12, both parts of now by themselves: no product is cut off. */
RN_GENERAL_REGISTERS static uint64_t ticks(uint64_t now_ps, uint64_t hz)
{
	uint64_t low = now_ps % RN_PS_PER_S, high;

	__asm__("mulq %2" : "+a"(low), "=d"(high) : "r"(hz) : "cc");
	__asm__("divq %2" : "+a"(low), "+d"(high) : "r"((uint64_t)RN_PS_PER_S) : "cc");
	return now_ps / RN_PS_PER_S * hz + low;
}

RN_GENERAL_REGISTERS struct rn_tsc_answer rn_tsc_read_quickly(void)
{
	const struct rn_time_page *page = rn_virtual_page();
	uint64_t now_ps;

	if (!page || !rn_virtual_charge_quickly(page->cost_ps[RN_TIME_CLOCK_READ], &now_ps))
		return (struct rn_tsc_answer){0, 0};
	return (struct rn_tsc_answer){ticks(now_ps, page->tsc_hz), 1};
}

static uint64_t true_counter(void)
{
	const bool traps = is_trapped;
	uint64_t value;

	rn_tsc_trap(false);
	value = __builtin_ia32_rdtsc();
	if (traps)
		rn_tsc_trap(true);
	return value;
}

uint64_t rn_tsc_read(void)
{
	const struct rn_time_page *page = rn_virtual_page();
	const int saved_errno = errno;
	uint64_t value;

	if (rn_virtual_is_on()) {
		rn_virtual_charge_ps(page->cost_ps[RN_TIME_CLOCK_READ]);
		value = ticks(rn_virtual_now_ps(), page->tsc_hz);
	} else {
		value = true_counter();
	}
	errno = saved_errno;
	return value;
}

void rn_tsc_answer(ucontext_t *context, unsigned bytes, bool is_true)
{
	greg_t *regs = context->uc_mcontext.gregs;
	const uint64_t value = is_true ? true_counter() : rn_tsc_read();

	regs[REG_RAX] = (greg_t)(value & 0xffffffffu);
	regs[REG_RDX] = (greg_t)(value >> 32);
	if (bytes == 3)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += bytes;
}

/* --- the trap --- */

void rn_tsc_trap(bool on)
{
	if (is_trapped)
		rn_raw_call(SYS_prctl, PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0, 0);
}

void rn_tsc_probe(void);
__asm__(".pushsection .text\n"
	".hidden rn_tsc_probe\n"
	".type rn_tsc_probe,@function\n"
	"rn_tsc_probe:\n"
	"	rdtsc\n"
	"	ret\n"
	".size rn_tsc_probe,.-rn_tsc_probe\n"
	".popsection\n");

bool rn_tsc_trap_works(void)
{
	vdso = getauxval(AT_SYSINFO_EHDR);
	if (rn_raw_call(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0, 0))
		return false;
	rn_tsc_probe();
	rn_raw_call(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0, 0);
	return has_trapped;
}

void rn_tsc_use_trap(void)
{
	is_trapped = true;
	rn_tsc_trap(true);
}

/* Bytes of the rdtsc or rdtscp at @ip; 0: it is another instruction. */
static unsigned trapped_bytes(const uint8_t *ip)
{
	if (ip[0] != 0x0f)
		return 0;
	if (ip[1] == 0x31)
		return 2;
	return ip[1] == 0x01 && ip[2] == 0xf9 ? 3 : 0;
}

bool rn_tsc_on_fault(const siginfo_t *info, ucontext_t *context)
{
	const uintptr_t ip = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	unsigned bytes;

	if (info->si_code != SI_KERNEL)
		return false;
	bytes = trapped_bytes((const uint8_t *)ip);
	if (ip == (uintptr_t)rn_tsc_probe) {
		has_trapped = true;
		context->uc_mcontext.gregs[REG_RIP] += bytes;
		return true;
	}
	if (!bytes)
		return false;
	rn_tsc_count_trap();
	rn_tsc_answer(context, bytes, ip >= vdso && ip < vdso + VDSO_BYTES);
	return true;
}

bool rn_tsc_on_illegal(const siginfo_t *info, ucontext_t *context)
{
	const uintptr_t ip = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	const unsigned bytes = info->si_code > 0 ? rn_tsc_sites_bytes(ip) : 0;

	if (bytes)
		rn_tsc_answer(context, bytes, false);
	return bytes;
}
