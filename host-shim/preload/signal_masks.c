/*
 * Masks of signals: those that this library needs stay open in every thread, whatever the program asks for; it is told
 * what it has asked for.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/own_table.h"
#include "preload/tsc/raw.h"
#include "preload/virtual.h"

static __thread unsigned wanted; /* what the program believes to be blocked */
static __thread unsigned held;	 /* what is */

unsigned rn_own_signals_wanted(void)
{
	return wanted;
}

void rn_own_signals_inherit(unsigned bits)
{
	wanted = bits;
}

static void block(int how, unsigned bits, sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	rn_own_add(&set, bits);
	rn_raw_call(SYS_rt_sigprocmask, how, (long)&set, (long)old, _NSIG / 8, 0, 0);
}

void rn_own_unblock(unsigned bits)
{
	sigset_t old;

	block(SIG_UNBLOCK, bits, &old);
	wanted |= bits & rn_own_bits(&old);
}

void rn_own_held(unsigned bits)
{
	held |= bits;
}

void rn_own_block_really(bool on)
{
	block(on ? SIG_BLOCK : SIG_UNBLOCK, wanted & ~held, NULL);
}

/* What is to be given to the system for @set; what the program wants changes. */
static const sigset_t *open_set(int how, const sigset_t *set, sigset_t *open)
{
	const unsigned bits = rn_own_bits(set);

	*open = *set;
	if (how == SIG_UNBLOCK) {
		wanted &= ~bits;
	} else {
		wanted = how == SIG_BLOCK ? wanted | bits : bits;
		rn_own_signals_remove(open);
		rn_own_add(open, held & wanted);
	}
	held &= wanted;
	return open;
}

typedef int mask_call(int how, const sigset_t *set, sigset_t *old);

static int change_mask(mask_call *call, int how, const sigset_t *set, sigset_t *old)
{
	const unsigned before = wanted, held_before = held;
	sigset_t open;
	int result;

	result = call(how, set ? open_set(how, set, &open) : NULL, old);
	if (result) {
		wanted = before;
		held = held_before;
	} else if (old) {
		rn_own_add(old, before);
	}
	return result;
}

static int real_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return RN_REAL(sigprocmask)(how, set, old);
}

static int real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return RN_REAL(pthread_sigmask)(how, set, old);
}

RN_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	return change_mask(real_sigprocmask, how, set, old);
}

RN_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	return change_mask(real_pthread_sigmask, how, set, old);
}

/* --- the older ones --- */

static int change_one(int how, int signo)
{
	sigset_t set;

	sigemptyset(&set);
	return sigaddset(&set, signo) ? -1 : sigprocmask(how, &set, NULL);
}

RN_EXPORT int sighold(int signo)
{
	return change_one(SIG_BLOCK, signo);
}

RN_EXPORT int sigrelse(int signo)
{
	return change_one(SIG_UNBLOCK, signo);
}

/* Signals 1 .. 32 as bits. */
static int change_word(int how, int mask)
{
	sigset_t set, old;
	int word = 0;

	sigemptyset(&set);
	for (int signo = 1; signo <= 32; signo++)
		if ((unsigned)mask >> (signo - 1) & 1)
			sigaddset(&set, signo);
	if (sigprocmask(how, &set, &old))
		return -1;
	for (int signo = 1; signo <= 32; signo++)
		if (sigismember(&old, signo) == 1)
			word |= (int)(1u << (signo - 1));
	return word;
}

int sigblock(int mask);
int sigsetmask(int mask);

RN_EXPORT int sigblock(int mask)
{
	return change_word(SIG_BLOCK, mask);
}

RN_EXPORT int sigsetmask(int mask)
{
	return change_word(SIG_SETMASK, mask);
}

/* --- by number --- */

/* As the kernel has it. */
struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static int raw_mask(int how, const sigset_t *set, sigset_t *old)
{
	return (int)rn_raw_call(SYS_rt_sigprocmask, how, (long)set, (long)old, _NSIG / 8, 0, 0);
}

static long call_mask(const long argument[])
{
	sigset_t set, old;
	int result;

	sigemptyset(&set);
	if (argument[1])
		memcpy(&set, (const void *)argument[1], _NSIG / 8);
	result = change_mask(raw_mask, (int)argument[0], argument[1] ? &set : NULL,
			     argument[2] ? &old : NULL);
	if (!result && argument[2])
		memcpy((void *)argument[2], &old, _NSIG / 8);
	return result;
}

static long call_action(const long argument[])
{
	const struct kernel_action *given = (const struct kernel_action *)argument[1];
	struct kernel_action *told = (struct kernel_action *)argument[2];
	struct sigaction action = {0}, old = {0};

	if (given) {
		action.sa_sigaction = (__typeof__(action.sa_sigaction))(uintptr_t)given->handler;
		action.sa_flags = (int)given->flags;
		memcpy(&action.sa_mask, &given->mask, sizeof(given->mask));
	}
	if (sigaction((int)argument[0], given ? &action : NULL, &old))
		return -errno;
	if (told) {
		*told = (struct kernel_action){.handler = (void *)(uintptr_t)old.sa_sigaction,
					       .flags = (unsigned)old.sa_flags};
		memcpy(&told->mask, &old.sa_mask, sizeof(told->mask));
	}
	return 0;
}

bool rn_own_signals_call(long number, const long argument[], long *result)
{
	const bool is_mask = number == SYS_rt_sigprocmask && argument[3] == _NSIG / 8;
	const bool is_action = number == SYS_rt_sigaction && argument[3] == _NSIG / 8 &&
			       rn_own_find((int)argument[0]);

	if (!is_mask && !is_action)
		return false;
	*result = is_mask ? call_mask(argument) : call_action(argument);
	if (*result >= 0)
		return true;
	errno = (int)-*result;
	*result = -1;
	return true;
}
