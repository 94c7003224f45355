/*
 * When has a host's command come so far that the next host's may start? Seen from outside, through /proc.
 */
#ifndef RN_RNICSIM_SETTLE_H
#define RN_RNICSIM_SETTLE_H

#include <stdbool.h>
#include <sys/types.h>

enum rn_settle {
	RN_SETTLE_BUSY,	     /* some process of the group runs */
	RN_SETTLE_SLEEPING,  /* all of them sleep */
	RN_SETTLE_LISTENING, /* one of them listens on a TCP socket: peers can connect */
	RN_SETTLE_GONE,	     /* no process is left */
};

/** State of the processes of process group @group. */
enum rn_settle rn_settle_look(pid_t group);

#endif
