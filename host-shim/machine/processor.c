/*
 * What the processor does for an unprivileged program. In this process: handlers and the counter's setting are put back.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "machine/internal.h"

#define TRAP_FLAG 0x100
#define STEPS 8 /* instructions below */

static sigjmp_buf trapped;
static volatile sig_atomic_t steps;

static void on_trap(int signo)
{
	(void)signo;
	siglongjmp(trapped, 1);
}

static bool rdtsc_traps(void)
{
	volatile uint64_t counter;

	if (sigsetjmp(trapped, 1))
		return true;
	counter = __builtin_ia32_rdtsc();
	(void)counter;
	return false;
}

void rn_probe_counter_trap(struct rn_machine_finding *finding)
{
	const struct sigaction action = {.sa_handler = on_trap, .sa_flags = SA_NODEFER};
	struct sigaction old;
	int before = PR_TSC_ENABLE;

	prctl(PR_GET_TSC, &before);
	sigaction(SIGSEGV, &action, &old);
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
		rn_machine_refuse(finding, "prctl(PR_SET_TSC)", errno);
	else if (rdtsc_traps())
		finding->works = true;
	else
		rn_machine_refuse(finding, "the kernel says that rdtsc traps, and it does not", 0);
	prctl(PR_SET_TSC, before);
	sigaction(SIGSEGV, &old, NULL);
}

static void on_step(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	if (++steps >= STEPS)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* A step without the handler would be the end of this process. */
static bool is_installed(void)
{
	struct sigaction now = {.sa_handler = SIG_DFL};

	errno = 0;
	return sigaction(SIGTRAP, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
	       now.sa_sigaction == on_step;
}

/* A step is a SIGTRAP behind each instruction once the flag is set. */
void rn_probe_single_step(struct rn_machine_finding *finding)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct sigaction old;
	sigset_t mask, old_mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTRAP);
	sigprocmask(SIG_UNBLOCK, &mask, &old_mask);
	if (sigaction(SIGTRAP, &action, &old) != 0 || !is_installed()) {
		rn_machine_refuse(finding, "a handler of SIGTRAP", errno);
		sigprocmask(SIG_SETMASK, &old_mask, NULL);
		return;
	}
	steps = 0;
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t" /* the red zone */
			 "pushfq\n\t"
			 "orl $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\t"
			 "pushfq\n\t"
			 "andl $0xfffffeff, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 :
			 : "memory", "cc");
	sigaction(SIGTRAP, &old, NULL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
	finding->works = steps == STEPS;
	if (!finding->works)
		rn_machine_detail(finding, "%d of %d steps were seen", (int)steps, STEPS);
}

void rn_probe_processors(struct rn_machine_finding *finding)
{
	cpu_set_t set;
	int count;

	if (sched_getaffinity(0, sizeof(set), &set) != 0) {
		rn_machine_refuse(finding, "sched_getaffinity", errno);
		return;
	}
	count = CPU_COUNT(&set);
	finding->works = count >= 2;
	rn_machine_detail(finding, "%d to be used", count);
}
