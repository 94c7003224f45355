/*
 * The loopback network of a run: 127.a.b.0, held as long as the run lives, so that no two runs on one machine
 * share it. Host n's programs have 127.a.b.(n+1) there (see docs/addresses.md).
 */
#ifndef RN_RNICSIM_NETWORK_H
#define RN_RNICSIM_NETWORK_H

/** Take a network for @hosts hosts and put it in the environment of programs to come. -1 with a message, else a descriptor to hold. */
int rn_network_take(unsigned hosts);

/** Leave the taken network's name in @dir, for programs that `exec` starts. 0 or -1 with a message. */
int rn_network_save(const char *dir);

/** Put the network saved in @dir in the environment. 0 or -1 with a message. */
int rn_network_load(const char *dir);

/** Hosts of the network in the environment; 0 when there is none. */
unsigned rn_network_hosts(void);

#endif
