/*
 * One table of the signals that belong to this library and to the program at once. What the program has installed
 * stands beside each; masks are in signal_masks.c.
 */
#include "preload/own_signals.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/tsc/raw.h"
#include "preload/own_table.h"
#include "preload/virtual.h"

struct rn_own_signal rn_own[RN_OWN_SIGNALS] = {
	{.signo = SIGSEGV}, {.signo = SIGILL}, {.signo = SIGTRAP}, {.signo = SIGURG}};

static bool have_handlers;
static unsigned stripped[_NSIG]; /* of the masks that the program gave for its other signals */

struct rn_own_signal *rn_own_find(int signo)
{
	for (unsigned i = 0; i < RN_OWN_SIGNALS; i++)
		if (rn_own[i].signo == signo && rn_own[i].handle)
			return &rn_own[i];
	return NULL;
}

unsigned rn_own_bits(const sigset_t *set)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < RN_OWN_SIGNALS; i++)
		if (rn_own[i].handle && sigismember(set, rn_own[i].signo) == 1)
			bits |= 1u << i;
	return bits;
}

void rn_own_add(sigset_t *set, unsigned bits)
{
	for (unsigned i = 0; i < RN_OWN_SIGNALS; i++)
		if (bits & 1u << i)
			sigaddset(set, rn_own[i].signo);
}

void rn_own_signals_remove(sigset_t *set)
{
	for (unsigned i = 0; i < RN_OWN_SIGNALS; i++)
		if (rn_own[i].handle)
			sigdelset(set, rn_own[i].signo);
}

/* --- what is not ours --- */

static bool is_sent(const siginfo_t *info)
{
	return info->si_code <= 0;
}

static bool is_default_ignored(int signo)
{
	return signo == SIGURG;
}

/* The instruction faults again, and this time it counts; a signal that was sent has to be sent again. */
static void die(int signo, const siginfo_t *info)
{
	const struct sigaction fatal = {.sa_handler = SIG_DFL};

	RN_REAL(sigaction)(signo, &fatal, NULL);
	if (is_sent(info) || signo == SIGTRAP)
		rn_raw_call(SYS_tgkill, getpid(), rn_raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0), signo,
			    0, 0, 0);
}

/* The program has it blocked: so it shall be, and pending. */
static void keep_pending(const struct rn_own_signal *own, const siginfo_t *info,
			 ucontext_t *context)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, own->signo);
	rn_raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, 0, _NSIG / 8, 0, 0);
	sigaddset(&context->uc_sigmask, own->signo);
	rn_own_held(1u << (own - rn_own));
	rn_raw_call(SYS_rt_tgsigqueueinfo, getpid(), rn_raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
		    own->signo, (long)info, 0, 0);
}

static bool must_wait(const struct rn_own_signal *own, const siginfo_t *info)
{
	return is_sent(info) && (own->signo == SIGURG || own->signo == SIGTRAP) &&
	       (rn_own_signals_wanted() & 1u << (own - rn_own));
}

static void pass_on(struct rn_own_signal *own, siginfo_t *info, ucontext_t *context)
{
	const struct sigaction program = own->program;
	const bool is_plain = !(program.sa_flags & SA_SIGINFO);

	if (must_wait(own, info)) {
		keep_pending(own, info, context);
	} else if (is_plain && program.sa_handler == SIG_IGN) {
		if (!is_sent(info))
			die(own->signo, info);
	} else if (is_plain && program.sa_handler == SIG_DFL) {
		if (!is_default_ignored(own->signo))
			die(own->signo, info);
	} else {
		if (program.sa_flags & (int)SA_RESETHAND)
			own->program = (struct sigaction){.sa_handler = SIG_DFL};
		if (is_plain)
			program.sa_handler(own->signo);
		else
			program.sa_sigaction(own->signo, info, context);
	}
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	const int saved_errno = errno;
	struct rn_own_signal *own = rn_own_find(signo);

	if (!own->handle(info, context))
		pass_on(own, info, context);
	errno = saved_errno;
}

/* --- installing --- */

static int install(const struct rn_own_signal *own)
{
	struct sigaction action = {.sa_sigaction = on_signal,
				   .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER |
					       (own->program.sa_flags & SA_ONSTACK)};

	action.sa_mask = own->program.sa_mask;
	rn_own_signals_remove(&action.sa_mask);
	if (own->signo == SIGTRAP)
		/* A question during the wait at the end of a proof is an old one. */
		sigaddset(&action.sa_mask, SIGURG);
	return RN_REAL(sigaction)(own->signo, &action, NULL);
}

bool rn_own_signal_take(int signo, bool (*handle)(const siginfo_t *info, ucontext_t *context))
{
	for (unsigned i = 0; i < RN_OWN_SIGNALS; i++) {
		if (rn_own[i].signo != signo)
			continue;
		RN_REAL(sigaction)(signo, NULL, &rn_own[i].program);
		rn_own[i].handle = handle;
		if (install(&rn_own[i]) != 0) {
			rn_own[i].handle = NULL;
			return false;
		}
		rn_own_unblock(1u << i);
		return true;
	}
	return false;
}

bool rn_signals_have_handlers(void)
{
	return have_handlers;
}

static bool is_handler(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) ||
	       (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static int set_own(struct rn_own_signal *own, const struct sigaction *action, struct sigaction *old)
{
	const struct sigaction before = own->program;

	if (action) {
		own->program = *action;
		install(own);
	}
	if (old)
		*old = before;
	return 0;
}

/* The counter may be read, and a thread may spin, in any handler. */
static int set_other(int signo, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction open;
	const unsigned before = signo > 0 && signo < _NSIG ? stripped[signo] : 0;
	int result;

	if (action) {
		open = *action;
		rn_own_signals_remove(&open.sa_mask);
	}
	result = RN_REAL(sigaction)(signo, action ? &open : NULL, old);
	if (result)
		return result;
	if (action) {
		stripped[signo] = rn_own_bits(&action->sa_mask);
		have_handlers = have_handlers || is_handler(action);
	}
	if (old)
		rn_own_add(&old->sa_mask, before);
	return 0;
}

RN_EXPORT int sigaction(int signo, const struct sigaction *restrict action,
			struct sigaction *restrict old)
{
	struct rn_own_signal *own = rn_own_find(signo);

	return own ? set_own(own, action, old) : set_other(signo, action, old);
}

static __sighandler_t install_plainly(int signo, __sighandler_t handler, int flags)
{
	const struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	struct sigaction old;

	return sigaction(signo, &action, &old) ? SIG_ERR : old.sa_handler;
}

RN_EXPORT __sighandler_t signal(int signo, __sighandler_t handler)
{
	have_handlers = have_handlers || (handler != SIG_DFL && handler != SIG_IGN);
	/* The C library remembers what siginterrupt() said of the others. */
	return rn_own_find(signo) ? install_plainly(signo, handler, SA_RESTART)
				  : RN_REAL(signal)(signo, handler);
}

/* What signal() is in a program that wants System V or the bare standard. */
__sighandler_t __sysv_signal(int signo, __sighandler_t handler);

RN_EXPORT __sighandler_t __sysv_signal(int signo, __sighandler_t handler)
{
	return install_plainly(signo, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

RN_EXPORT __sighandler_t sysv_signal(int signo, __sighandler_t handler)
{
	return __sysv_signal(signo, handler);
}

RN_EXPORT __sighandler_t ssignal(int signo, __sighandler_t handler)
{
	return signal(signo, handler);
}

__sighandler_t bsd_signal(int signo, __sighandler_t handler);

RN_EXPORT __sighandler_t bsd_signal(int signo, __sighandler_t handler)
{
	return signal(signo, handler);
}

/* --- exec --- */

static void set_ignored(void (*ignored)(int signo))
{
	for (unsigned i = 0; i < RN_OWN_SIGNALS; i++) {
		const struct sigaction action = {.sa_handler = ignored};

		if (!rn_own[i].handle || (rn_own[i].program.sa_flags & SA_SIGINFO) ||
		    rn_own[i].program.sa_handler != SIG_IGN)
			continue;
		if (ignored)
			RN_REAL(sigaction)(rn_own[i].signo, &action, NULL);
		else
			install(&rn_own[i]);
	}
}

void rn_own_signals_leave(void)
{
	set_ignored(SIG_IGN);
	rn_own_block_really(true);
}

void rn_own_signals_return(void)
{
	rn_own_block_really(false);
	set_ignored(NULL);
}
