/*
 * The folder in which a run's socket lies: private to the user, one a run.
 */
#ifndef RN_RNICSIM_RUN_DIR_H
#define RN_RNICSIM_RUN_DIR_H

#include <stdbool.h>

/**
 * Make a fresh folder. @name NULL: a unique one, for `run`; else the folder that `exec --name` will look for; it
 * is an error when a live run holds it. NULL with a message on stderr when it cannot be made. The caller removes it with
 * rn_run_dir_remove() and free()s the string.
 */
char *rn_run_dir_make(const char *name);

/** Whether @name is a plain name that serve can have; false with a message. */
bool rn_run_dir_is_name(const char *name);

/** The folder of a running `serve --name NAME`; the caller free()s it. */
char *rn_run_dir_find(const char *name);

/** Remove the folder and what lies in it. */
void rn_run_dir_remove(const char *dir);

#endif
