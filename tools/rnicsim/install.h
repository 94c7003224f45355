/*
 * Where the pieces of this installation lie, found from the executable's own place: a build tree or an
 * install prefix.
 */
#ifndef RN_RNICSIM_INSTALL_H
#define RN_RNICSIM_INSTALL_H

/** Folder of the shipped configurations, or NULL when it cannot be found. Static storage. */
const char *rn_install_config_dir(void);

/** Folder of libibverbs.so.1 for programs. NULL when it cannot be found. Static storage. */
const char *rn_install_library_dir(void);

#endif
