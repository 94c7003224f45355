/*
 * The sub-commands. Each parses its own arguments (argv[0] is "rnicsim NAME") and returns the process's exit
 * status.
 */
#ifndef RN_RNICSIM_COMMANDS_H
#define RN_RNICSIM_COMMANDS_H

int rn_run_command(int argc, char **argv);
int rn_serve_command(int argc, char **argv);
int rn_exec_command(int argc, char **argv);
int rn_config_command(int argc, char **argv);
int rn_doctor_command(int argc, char **argv);

#endif
