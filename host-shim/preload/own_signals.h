/*
 * Signals that this library needs and that a program may use as well. Our handlers stand in front; what is not
 * theirs goes to the program's action, as if it had been installed. The program is told its own actions and masks.
 */
#ifndef RN_PRELOAD_OWN_SIGNALS_H
#define RN_PRELOAD_OWN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/**
 * From now on signal @signo (SIGSEGV, SIGILL, SIGTRAP or SIGURG) comes to @handle first; false from there: it is the
 * program's. It is not blocked any more, whoever asks for it. False when the system refuses a handler: then nothing is taken.
 */
bool rn_own_signal_take(int signo, bool (*handle)(const siginfo_t *info, ucontext_t *context));

/** Take those that are taken out of @set: a mask that is to hold. */
void rn_own_signals_remove(sigset_t *set);

/** What the program wants of them in this thread's mask, for a thread that it starts: bits as in sigset_t's first word. */
unsigned rn_own_signals_wanted(void);
void rn_own_signals_inherit(unsigned wanted);

/** Around an exec, which may fail: the next program finds its inheritance (masks, ignored signals). */
void rn_own_signals_leave(void);
void rn_own_signals_return(void);

/** A system call made by number that concerns them: true with *@result and errno when it has been done here. */
bool rn_own_signals_call(long number, const long argument[], long *result);

/** The program has installed a handler for some signal. */
bool rn_signals_have_handlers(void);

#endif
