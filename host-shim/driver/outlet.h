/*
 * The driver's end of a pipe of events to a program: a socket pair of records. Sending never blocks;
 * what nobody has read can be taken back when its object goes away, as the kernel does it.
 */
#ifndef RN_DRIVER_OUTLET_H
#define RN_DRIVER_OUTLET_H

#include <stdbool.h>
#include <stdint.h>

#define RN_OUTLET_RECORD_MAX 16

struct rn_outlet {
	int epoll_fd; /* where a full pipe is watched */
	int fd;	      /* this end; -1 closed */
	int user_fd;  /* the program's end */
	bool watched;
	void (*flush)(struct rn_outlet *outlet); /* there is room again */
};

/** 0 or an errno. */
int rn_outlet_open(struct rn_outlet *outlet, int epoll_fd, void (*flush)(struct rn_outlet *outlet));
void rn_outlet_close(struct rn_outlet *outlet);

/** Send one record of at most RN_OUTLET_RECORD_MAX bytes; false when there is no room now. */
bool rn_outlet_send(struct rn_outlet *outlet, const void *record, uint32_t bytes);

/** Call @outlet's flush when there is room again, or no longer. */
void rn_outlet_watch(struct rn_outlet *outlet, bool on);

/** Remove the unread records for which @matches; returns how many. */
uint32_t rn_outlet_take_back(struct rn_outlet *outlet,
			     bool (*matches)(const void *record, uint32_t bytes, const void *arg),
			     const void *arg);

#endif
