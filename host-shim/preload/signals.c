/*
 * Signals in virtual time: waiting for one, and telling those who wait that one has been sent.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/own_signals.h"
#include "preload/waits.h"

/* --- waiting for a handler --- */

static bool look_pending(void *arg)
{
	const sigset_t *mask = arg;
	sigset_t pending;

	return !sigpending(&pending) && rn_wait_has_effect(&pending, mask);
}

/* Until a signal that @mask lets through is pending; the mask holds for its delivery. */
static int suspend(const sigset_t *mask)
{
	sigset_t wanted = *mask, held, old;
	enum rn_waited waited;

	rn_own_signals_remove(&wanted);
	/* The simulator's question is no signal of the program's. */
	sigaddset(&wanted, SIGURG);
	rn_virtual_charge_call();
	rn_wait_held_signals(&held);
	pthread_sigmask(SIG_BLOCK, &held, &old);
	do
		waited = rn_wait(look_pending, &wanted, RN_TIME_NO_LIMIT, NULL);
	while (waited == RN_WAITED_SIGNAL && rn_virtual_is_on());
	RN_REAL(sigsuspend)(&wanted);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = EINTR;
	return -1;
}

RN_EXPORT int sigsuspend(const sigset_t *mask)
{
	return rn_virtual_is_on() ? suspend(mask) : RN_REAL(sigsuspend)(mask);
}

RN_EXPORT int pause(void)
{
	sigset_t mask;

	if (!rn_virtual_is_on())
		return RN_REAL(pause)();
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	return suspend(&mask);
}

/* --- waiting for a blocked one --- */

struct signal_look {
	const sigset_t *set;
	siginfo_t info;
	int signo;
};

static bool look_signal(void *arg)
{
	static const struct timespec zero;
	struct signal_look *look = arg;

	look->signo = (int)RN_PROBE(
		syscall(SYS_rt_sigtimedwait, look->set, &look->info, &zero, _NSIG / 8));
	return look->signo > 0 || errno != EAGAIN;
}

static int wait_signal(const sigset_t *set, siginfo_t *info, uint64_t until_ps)
{
	struct signal_look look = {.set = set};

	rn_virtual_charge_call();
	if (!rn_wait_once(look_signal, &look, until_ps, EAGAIN))
		return -1;
	if (info && look.signo > 0)
		*info = look.info;
	return look.signo;
}

RN_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			   const struct timespec *restrict timeout)
{
	if (!rn_virtual_is_on())
		return RN_REAL(sigtimedwait)(set, info, timeout);
	return wait_signal(set, info, rn_wait_after_ps(timeout));
}

RN_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	if (!rn_virtual_is_on())
		return RN_REAL(sigwaitinfo)(set, info);
	return wait_signal(set, info, RN_TIME_NO_LIMIT);
}

RN_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signo)
{
	int got;

	if (!rn_virtual_is_on())
		return RN_REAL(sigwait)(set, signo);
	do
		got = wait_signal(set, NULL, RN_TIME_NO_LIMIT);
	while (got < 0 && errno == EINTR && rn_virtual_is_on());
	if (got < 0)
		return errno;
	*signo = got;
	return 0;
}
