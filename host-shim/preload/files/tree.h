/*
 * The place where a host's virtual files lie.
 */
#ifndef RN_PRELOAD_FILES_TREE_H
#define RN_PRELOAD_FILES_TREE_H

/** The folder's path without links, made if nobody has yet; NULL when that fails. Not to be called while it is under way. */
const char *rn_tree_root(void);

#endif
