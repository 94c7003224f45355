/*
 * The folder of a run: its socket, its network's name, a link to its libraries. Private to the user. Who has made it, and the
 * simulator, hold a lock in it: a folder whose lock nobody holds is what a killed run has left, and is removed by the next.
 */
#ifndef RN_RNICSIM_RUN_DIR_H
#define RN_RNICSIM_RUN_DIR_H

#include <stdbool.h>

#define RN_RUN_DIR_SOCKET "socket"
#define RN_RUN_DIR_NETWORK "net"
#define RN_RUN_DIR_LIBRARIES "lib"

struct rn_run_dir {
	char *path;
	int lock_fd;
};

/**
 * Make a fresh folder, after removing those that killed runs have left. @name NULL: a unique one, for `run`; else the folder
 * that `exec --name` will look for; it is an error when a live run holds it. False with a message on stderr when it cannot be
 * made. Ends with rn_run_dir_remove().
 */
bool rn_run_dir_make(struct rn_run_dir *dir, const char *name);

/** Remove the folder and what lies in it, and let the lock go. */
void rn_run_dir_remove(struct rn_run_dir *dir);

/** Whether @name is a plain name that serve can have; false with a message. */
bool rn_run_dir_is_name(const char *name);

/** The folder of a running `serve --name NAME`; the caller free()s it. */
char *rn_run_dir_find(const char *name);

#endif
