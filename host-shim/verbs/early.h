/*
 * Connecting to the simulator, and doing it before the program may give up its privileges. A device file can be opened by
 * whom its owner lets; the simulator's socket only by the user of the run.
 */
#ifndef RN_VERBS_EARLY_H
#define RN_VERBS_EARLY_H

/** Connect to the socket that the environment names: a descriptor, or -1 and errno. */
int rn_early_connect(void);

/** The descriptor that was connected when this process started, if it still is there: once. Else -1. */
int rn_early_take(void);

#endif
