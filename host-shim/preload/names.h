/*
 * What the hosts of a run are called.
 */
#ifndef RN_PRELOAD_NAMES_H
#define RN_PRELOAD_NAMES_H

#define RN_NAME_CHARS 16

struct utsname;

/** "host<n>". */
void rn_names_print(unsigned host, char name[RN_NAME_CHARS]);

/** Put the own host's name into what uname(2) has filled; outside a run nothing changes. Returns 0. */
int rn_names_fill(struct utsname *names);

#endif
