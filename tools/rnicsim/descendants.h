/*
 * Processes below the launcher: the programs of a run and all that they have started, whatever process group or session
 * they have made themselves a part of.
 */
#ifndef RN_RNICSIM_DESCENDANTS_H
#define RN_RNICSIM_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/** From now on the descendants of this process whose parents end become its own children. */
void rn_descendants_adopt(void);

/**
 * Send @signo to all descendants of this process but @except and what is below it. Returns how many there were; -1: /proc does
 * not tell.
 */
int rn_descendants_signal(int signo, pid_t except);

/** SIGKILL them all, those that are being started included, and wait until they are gone; false: some are not. */
bool rn_descendants_end(pid_t except);

/** Collect adopted processes that have ended. @is_kept(arg, pid): a child of its own, for others to collect. */
void rn_descendants_reap(bool (*is_kept)(void *arg, pid_t pid), void *arg);

/** SIGKILL this user's processes that have @variable=@value in their first environment. */
void rn_descendants_kill_marked(const char *variable, const char *value);

#endif
