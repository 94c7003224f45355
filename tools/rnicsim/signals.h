/*
 * Signals that end a run. They are taken from a descriptor, so that whatever the launcher waits for, it hears them.
 */
#ifndef RN_RNICSIM_SIGNALS_H
#define RN_RNICSIM_SIGNALS_H

/**
 * Block SIGINT, SIGTERM, SIGQUIT and, unless it is ignored (nohup), SIGHUP, and ignore SIGPIPE and SIGXFSZ: writing then fails with
 * EPIPE and EFBIG. Returns a descriptor that is readable when one has come; -1 with a message.
 */
int rn_signals_open(void);

/** The number of a signal that has come; 0: none. */
int rn_signals_take(int fd);

/** For a child of the launcher: nothing is blocked, and what the launcher ignores has its default action. After vfork, too. */
void rn_signals_reset(void);

#endif
