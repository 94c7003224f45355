/*
 * Removing a folder with all that lies in it.
 */
#ifndef RN_RNICSIM_REMOVE_TREE_H
#define RN_RNICSIM_REMOVE_TREE_H

/** Remove @dir/@name and all below it, links themselves and not what they point to. What is not there, or is kept, is passed over. */
void rn_remove_tree(const char *dir, const char *name);

#endif
