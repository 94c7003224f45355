/*
 * The processor's time stamp counter in virtual time: rdtsc and rdtscp trap and are answered at the configured
 * frequency. Traps inside the vDSO get the true counter. Other handlers of SIGSEGV go on working: they are kept here
 * and called for what is no trap of ours.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/virtual.h"

#define VDSO_BYTES 0x4000u

static bool is_active;
static bool have_handlers;
static uintptr_t vdso;
static struct sigaction others; /* the program's own for SIGSEGV */

void rn_tsc_trap(bool on)
{
	const int saved_errno = errno;

	if (is_active)
		prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
	errno = saved_errno;
}

static uint64_t virtual_counter(void)
{
	const struct rn_time_page *page = rn_virtual_page();
	uint64_t now_ps;

	rn_virtual_charge_ps(page->cost_ps[RN_TIME_CLOCK_READ]);
	now_ps = rn_virtual_now_ps();
	return now_ps / RN_PS_PER_S * page->tsc_hz +
	       (uint64_t)((__extension__(unsigned __int128)(now_ps % RN_PS_PER_S)) * page->tsc_hz /
			  RN_PS_PER_S);
}

static uint64_t true_counter(void)
{
	uint64_t value;

	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	value = __builtin_ia32_rdtsc();
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	return value;
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

static void answer(ucontext_t *context, unsigned bytes)
{
	greg_t *regs = context->uc_mcontext.gregs;
	const uintptr_t ip = (uintptr_t)regs[REG_RIP];
	const bool in_vdso = ip >= vdso && ip < vdso + VDSO_BYTES;
	const uint64_t value = in_vdso || !rn_virtual_is_on() ? true_counter() : virtual_counter();

	regs[REG_RAX] = (greg_t)(value & 0xffffffffu);
	regs[REG_RDX] = (greg_t)(value >> 32);
	if (bytes == 3)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += bytes;
}

/* The instruction faults again, and this time it counts; a signal that was sent has to be sent again. */
static void die(const siginfo_t *info)
{
	const struct sigaction fatal = {.sa_handler = SIG_DFL};

	RN_REAL(sigaction)(SIGSEGV, &fatal, NULL);
	if (info->si_code <= 0)
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSEGV);
}

static void pass_on(int signo, siginfo_t *info, void *context)
{
	if (others.sa_flags & SA_SIGINFO)
		others.sa_sigaction(signo, info, context);
	else if (others.sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	else if (others.sa_handler == SIG_DFL || others.sa_handler == SIG_IGN)
		die(info);
	else
		others.sa_handler(signo);
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
	const int saved_errno = errno;
	const ucontext_t *where = context;
	unsigned bytes = 0;

	if (info->si_code == SI_KERNEL)
		bytes = trapped_bytes(
			(const uint8_t *)(uintptr_t)where->uc_mcontext.gregs[REG_RIP]);
	if (bytes)
		answer(context, bytes);
	else
		pass_on(signo, info, context);
	errno = saved_errno;
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER |
					       (others.sa_flags & SA_ONSTACK)};

	action.sa_mask = others.sa_mask;
	sigdelset(&action.sa_mask, SIGSEGV);
	RN_REAL(sigaction)(SIGSEGV, &action, NULL);
}

void rn_tsc_start(void)
{
	vdso = getauxval(AT_SYSINFO_EHDR);
	RN_REAL(sigaction)(SIGSEGV, NULL, &others);
	is_active = true;
	install();
	rn_tsc_trap(true);
}

bool rn_signals_have_handlers(void)
{
	return have_handlers;
}

static void note_handler(__sighandler_t handler)
{
	have_handlers = have_handlers || (handler != SIG_DFL && handler != SIG_IGN);
}

RN_EXPORT int sigaction(int signo, const struct sigaction *restrict action,
			struct sigaction *restrict old)
{
	struct sigaction unmasked;

	if (!is_active)
		return RN_REAL(sigaction)(signo, action, old);
	if (signo == SIGSEGV) {
		if (old)
			*old = others;
		if (action) {
			others = *action;
			install();
		}
		return 0;
	}
	/* The counter may be read in any handler. */
	if (action) {
		note_handler(action->sa_flags & SA_SIGINFO ? SIG_ERR : action->sa_handler);
		unmasked = *action;
		sigdelset(&unmasked.sa_mask, SIGSEGV);
	}
	return RN_REAL(sigaction)(signo, action ? &unmasked : NULL, old);
}

RN_EXPORT __sighandler_t signal(int signo, __sighandler_t handler)
{
	const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct sigaction old;

	note_handler(handler);
	if (signo != SIGSEGV || !is_active)
		return RN_REAL(signal)(signo, handler);
	sigaction(signo, &action, &old);
	return old.sa_handler;
}

/* A blocked SIGSEGV would be the program's end at the next trap; blocked questions would keep it from being proved a spinner. */
static const sigset_t *without_own(int how, const sigset_t *set, sigset_t *copy)
{
	if (!is_active || !set || how == SIG_UNBLOCK)
		return set;
	*copy = *set;
	sigdelset(copy, SIGSEGV);
	sigdelset(copy, SIGURG);
	sigdelset(copy, SIGTRAP);
	return copy;
}

RN_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t copy;

	return RN_REAL(sigprocmask)(how, without_own(how, set, &copy), old);
}

RN_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t copy;

	return RN_REAL(pthread_sigmask)(how, without_own(how, set, &copy), old);
}
