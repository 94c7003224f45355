/*
 * The sub-commands. Each parses its own arguments (argv[0] is "rnicsim NAME") and returns the process's exit
 * status.
 */
#ifndef RN_RNICSIM_COMMANDS_H
#define RN_RNICSIM_COMMANDS_H

#define RN_EXIT_USAGE 2	     /* wrong options, configuration or files */
#define RN_EXIT_SIMULATOR 70 /* the simulator could not start or has died */
#define RN_EXIT_DIVERGED                                                                           \
	71 /* co-verification failed: RTL and model differ, or an assertion of the RTL */
#define RN_EXIT_INTERRUPTED 130

int rn_run_command(int argc, char **argv);
int rn_serve_command(int argc, char **argv);
int rn_exec_command(int argc, char **argv);
int rn_config_command(int argc, char **argv);

#endif
