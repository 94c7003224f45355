/*
 * What the command's exit status says: one table for the code, --help and the tests.
 */
#ifndef RN_RNICSIM_EXIT_STATUS_H
#define RN_RNICSIM_EXIT_STATUS_H

/* X(name, value, when) */
#define RN_EXIT_STATUSES(X)                                                                        \
	X(RN_EXIT_MISSING, 1, "`rnicsim doctor`: this machine cannot do the main job")             \
	X(RN_EXIT_USAGE, 2,                                                                        \
	  "a mistake in options or configuration, or an output that could not be written whole")   \
	X(RN_EXIT_SIMULATOR, 70,                                                                   \
	  "the simulator or a program could not be started, or the simulator has died")            \
	X(RN_EXIT_DIVERGED, 71,                                                                    \
	  "co-verification failed: RTL and model differ, or an assertion of the RTL failed")

#define RN_EXIT_VALUE(name, value, when) name = value,
enum { RN_EXIT_STATUSES(RN_EXIT_VALUE) RN_EXIT_SIGNAL = 128 };
#undef RN_EXIT_VALUE

/** An argp help filter that adds the table behind the options. */
char *rn_exit_status_help(int key, const char *text, void *input);

#endif
