#include "preload/waits.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct wait {
	bool (*look)(void *arg);
	void *arg;
	bool is_holding, is_signalled;
	sigset_t mask; /* the program's */
	struct wait *outer;
};

static __thread struct wait *current; /* holds signals back */

/* --- signals --- */

/* Signals of the thread itself, of job control and of this library. */
static const int never_held[] = {SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,  SIGTRAP, SIGSYS,  SIGABRT,
				 SIGURG,  SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGKILL, SIGSTOP};
/* They may come from outside of the run: who has no handler for them dies at once. */
static const int from_outside[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

static bool has_handler(int signo)
{
	struct sigaction action;

	return !sigaction(signo, NULL, &action) &&
	       (action.sa_flags & SA_SIGINFO ||
		(action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN));
}

void rn_wait_held_signals(sigset_t *set)
{
	sigfillset(set);
	for (size_t i = 0; i < sizeof(never_held) / sizeof(never_held[0]); i++)
		sigdelset(set, never_held[i]);
	for (size_t i = 0; i < sizeof(from_outside) / sizeof(from_outside[0]); i++)
		if (!has_handler(from_outside[i]))
			sigdelset(set, from_outside[i]);
}

static void hold(struct wait *wait)
{
	sigset_t set;

	rn_wait_held_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &wait->mask);
	wait->is_holding = true;
	wait->outer = current;
	current = wait;
}

/* What was held back is delivered here. */
static void release(void *arg)
{
	struct wait *wait = arg;
	const int saved_errno = errno;

	if (!wait->is_holding)
		return;
	wait->is_holding = false;
	current = wait->outer;
	pthread_sigmask(SIG_SETMASK, &wait->mask, NULL);
	errno = saved_errno;
}

static bool is_ignored(int signo, const struct sigaction *action)
{
	if (action->sa_flags & SA_SIGINFO)
		return false;
	if (action->sa_handler == SIG_IGN)
		return true;
	return action->sa_handler == SIG_DFL &&
	       (signo == SIGCHLD || signo == SIGWINCH || signo == SIGURG || signo == SIGCONT);
}

static bool have_effect(const sigset_t *pending, const sigset_t *mask, bool *restart)
{
	bool found = false;

	*restart = true;
	for (int signo = 1; signo < _NSIG; signo++) {
		struct sigaction action;

		if (sigismember(pending, signo) != 1 || sigismember(mask, signo) == 1 ||
		    sigaction(signo, NULL, &action) || is_ignored(signo, &action))
			continue;
		found = true;
		*restart = *restart && (action.sa_flags & SA_RESTART);
	}
	return found;
}

bool rn_wait_has_effect(const sigset_t *pending, const sigset_t *mask)
{
	bool restart;

	return have_effect(pending, mask, &restart);
}

static bool has_signal(const struct wait *wait, bool *restart)
{
	sigset_t pending;

	return !sigpending(&pending) && !sigisemptyset(&pending) &&
	       have_effect(&pending, &wait->mask, restart);
}

bool rn_wait_has_blocked(int signo)
{
	sigset_t mask;

	if (current)
		return sigismember(&current->mask, signo) == 1;
	return !pthread_sigmask(SIG_BLOCK, NULL, &mask) && sigismember(&mask, signo) == 1;
}

/* --- waiting --- */

static bool look(void *arg)
{
	struct wait *wait = arg;
	bool restart;

	if (wait->look(wait->arg))
		return true;
	pthread_testcancel();
	if (!wait->is_holding) {
		hold(wait);
		return false;
	}
	wait->is_signalled = has_signal(wait, &restart);
	return wait->is_signalled;
}

enum rn_waited rn_wait(bool (*look_at)(void *arg), void *arg, uint64_t until_ps, bool *restart)
{
	struct wait wait = {.look = look_at, .arg = arg};
	bool wanted = false;
	enum rn_waited waited;

	pthread_cleanup_push(release, &wait);
	waited = rn_virtual_wait_for(look, &wait, until_ps, &wanted);
	if (waited == RN_WAITED_OK && wait.is_signalled) {
		waited = RN_WAITED_SIGNAL;
		has_signal(&wait, &wanted);
	}
	pthread_cleanup_pop(1);
	if (restart)
		*restart = wanted;
	return waited;
}

bool rn_wait_stubbornly(bool (*look_at)(void *arg), void *arg, uint64_t until_ps, bool *timed_out)
{
	int state;
	enum rn_waited waited = RN_WAITED_SIGNAL;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (waited == RN_WAITED_SIGNAL && rn_virtual_is_on())
		waited = rn_wait(look_at, arg, until_ps, NULL);
	pthread_setcancelstate(state, NULL);
	if (timed_out)
		*timed_out = waited == RN_WAITED_TIMEOUT;
	return waited != RN_WAITED_SIGNAL;
}

static bool wait_call(bool (*look_at)(void *arg), void *arg, uint64_t until_ps, int timeout_errno,
		      bool may_restart)
{
	for (;;) {
		bool restart = false;

		switch (rn_wait(look_at, arg, until_ps, &restart)) {
		case RN_WAITED_OK:
			return true;
		case RN_WAITED_TIMEOUT:
			errno = timeout_errno;
			return false;
		case RN_WAITED_SIGNAL:
			/* The run ends: let the system's own call decide. */
			if (!rn_virtual_is_on())
				return true;
			if (restart && may_restart)
				break;
			errno = EINTR;
			return false;
		}
	}
}

bool rn_wait_call(bool (*look_at)(void *arg), void *arg, uint64_t until_ps, int timeout_errno)
{
	return wait_call(look_at, arg, until_ps, timeout_errno, true);
}

bool rn_wait_once(bool (*look_at)(void *arg), void *arg, uint64_t until_ps, int timeout_errno)
{
	return wait_call(look_at, arg, until_ps, timeout_errno, false);
}

/* --- deadlines --- */

#define LONGEST_NS (RN_TIME_NO_LIMIT / RN_PS_PER_NS / 4)

static uint64_t ps_of(const struct timespec *time)
{
	if (time->tv_sec < 0)
		return 0;
	if ((uint64_t)time->tv_sec >= LONGEST_NS / RN_NS_PER_S)
		return RN_TIME_NO_LIMIT;
	return ((uint64_t)time->tv_sec * RN_NS_PER_S + (uint64_t)time->tv_nsec) * RN_PS_PER_NS;
}

uint64_t rn_wait_deadline_ps(clockid_t clock, const struct timespec *time)
{
	const uint64_t base_ns = rn_virtual_clock_ns(clock, 0);
	uint64_t ns;

	if (time->tv_sec < 0)
		return 0;
	if ((uint64_t)time->tv_sec > UINT64_MAX / RN_NS_PER_S - 1)
		return RN_TIME_NO_LIMIT;
	ns = (uint64_t)time->tv_sec * RN_NS_PER_S + (uint64_t)time->tv_nsec;
	if (ns <= base_ns)
		return 0;
	return ns - base_ns > LONGEST_NS ? RN_TIME_NO_LIMIT : (ns - base_ns) * RN_PS_PER_NS;
}

uint64_t rn_wait_after_ps(const struct timespec *time)
{
	const uint64_t ps = time ? ps_of(time) : RN_TIME_NO_LIMIT;

	return ps == RN_TIME_NO_LIMIT ? ps : rn_virtual_after_ps(ps);
}

/* --- tries --- */

static bool look_second_time(void *arg)
{
	bool *has_looked = arg, result = *has_looked;

	*has_looked = true;
	return result;
}

static unsigned missing; /* threads that wait after a failed try */

bool rn_wait_is_missing(void)
{
	return missing;
}

void rn_wait_missed(const void *object)
{
	static __thread const void *last;
	static __thread uint64_t last_ps, wait_ps;
	const uint64_t horizon_ps = rn_virtual_page()->horizon_ps;
	bool has_looked = false;

	if (last == object && last_ps == rn_virtual_now_ps()) {
		missing++;
		rn_virtual_wait_for(look_second_time, &has_looked, last_ps + wait_ps, NULL);
		missing--;
		wait_ps = 2 * wait_ps < horizon_ps ? 2 * wait_ps : horizon_ps;
	} else {
		rn_virtual_charge_call();
		rn_virtual_settle();
		wait_ps = RN_PS_PER_US;
	}
	last = object;
	last_ps = rn_virtual_now_ps();
}
