/*
 * The environment of a program on a simulated host: made once for each host, in the launcher.
 */
#ifndef RN_RNICSIM_ENVIRONMENT_H
#define RN_RNICSIM_ENVIRONMENT_H

/**
 * This process's environment with RNICSIM_SOCKET, RNICSIM_HOST, RNICSIM_OUTPUT, LD_LIBRARY_PATH and LD_PRELOAD for a program of
 * @host that joins the simulator in run folder @dir. @out, @err: descriptors of its output. NULL with a message when the
 * libraries are not found.
 */
char **rn_environment_new(const char *dir, unsigned host, int out, int err);
void rn_environment_free(char **environment);

#endif
