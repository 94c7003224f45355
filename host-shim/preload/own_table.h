/*
 * The table of own_signals.c, for the files that share it.
 */
#ifndef RN_PRELOAD_OWN_TABLE_H
#define RN_PRELOAD_OWN_TABLE_H

#include "preload/own_signals.h"

#define RN_OWN_SIGNALS 4

struct rn_own_signal {
	int signo;
	bool (*handle)(const siginfo_t *info, ucontext_t *context); /* NULL: not taken */
	struct sigaction program; /* what the program has installed */
};

extern struct rn_own_signal rn_own[RN_OWN_SIGNALS];

/** The entry of @signo; NULL: it is not taken. */
struct rn_own_signal *rn_own_find(int signo);

/** Sets of them are bits by place in the table. */
unsigned rn_own_bits(const sigset_t *set);
void rn_own_add(sigset_t *set, unsigned bits);

/** They are not blocked in this thread, though the program may think so. */
void rn_own_unblock(unsigned bits);

/** They are blocked in this thread until the program does not want it any more: one of them waits. */
void rn_own_held(unsigned bits);

/** Block what the program believes to be blocked, and take that back. */
void rn_own_block_really(bool on);

#endif
