/*
 * Standard output and standard error of the launcher. Whoever reads them may stop reading (a pager, Ctrl-S): a thread of
 * each one's own writes, and the launcher goes on listening to signals, programs and clocks.
 */
#ifndef RN_RNICSIM_OUTLET_H
#define RN_RNICSIM_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

struct rn_outlet;

/** An outlet to descriptor @fd, which stays the caller's. NULL with a message when there can be no thread. */
struct rn_outlet *rn_outlet_new(int fd);

/** Give up what has not been written, and free. NULL is ignored. */
void rn_outlet_free(struct rn_outlet *outlet);

/** Take a copy of @text; any amount, but see rn_outlet_has_room(). After an error it is dropped. */
void rn_outlet_put(struct rn_outlet *outlet, const void *text, size_t bytes);

/** printf into it; a message of the launcher. */
void rn_outlet_say(struct rn_outlet *outlet, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Whether it is time to read more from those who print. */
bool rn_outlet_has_room(struct rn_outlet *outlet);

/** Whether all has been written, or cannot be. */
bool rn_outlet_is_drained(struct rn_outlet *outlet);

/** Errno with which writing has failed; 0: it has not. */
int rn_outlet_error(struct rn_outlet *outlet);

/** Readable when any of the three above may have changed; the reading is rn_outlet_look()'s. */
int rn_outlet_fd(const struct rn_outlet *outlet);
void rn_outlet_look(struct rn_outlet *outlet);

#endif
