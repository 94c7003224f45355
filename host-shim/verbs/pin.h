/*
 * Pinning of user memory: the pages of a range become shared mappings of physical frames (the process's
 * arena), in place, so that the NIC's DMA and the program meet in the same memory. Pages that cannot be
 * swapped (stacks, memory shared already, hugetlb, files, read-only) stay, and the NIC reaches them through the process.
 */
#ifndef RN_VERBS_PIN_H
#define RN_VERBS_PIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rn_conn;
struct rn_pin;

enum rn_pin_flag {
	RN_PIN_WRITE = 1, /* the NIC may write: read-only memory is refused */
	RN_PIN_OWN =
		2, /* fresh anonymous memory of the library's own: needs no look at the address map */
};

/** Pinning state of a connection; NULL when memory is short. Borrows @conn. */
struct rn_pin *rn_pin_new(struct rn_conn *conn);

/** Give back all pages still swapped (copying them to private memory) and free the state. */
void rn_pin_free(struct rn_pin *pin);

/**
 * Pin the page hull of [@addr, @addr + @bytes). 0; EFAULT when part of it is not mapped (or not writable with
 * RN_PIN_WRITE); ENOMEM when frames or the process's map count run out, everything then being as before; or the
 * driver's error.
 */
int rn_pin_range(struct rn_pin *pin, const void *addr, size_t bytes, unsigned flags);

/** Undo one rn_pin_range() of the same range: pages nobody else pins become private memory again, contents kept. */
void rn_unpin_range(struct rn_pin *pin, const void *addr, size_t bytes);

/** The same for RN_PIN_OWN memory about to be unmapped: contents are not kept. */
void rn_unpin_discard(struct rn_pin *pin, const void *addr, size_t bytes);

/** Locks around fork, and what the child does: copy everything back into private memory. */
void rn_pin_fork_prepare(struct rn_pin *pin);
void rn_pin_fork_parent(struct rn_pin *pin);
void rn_pin_fork_child(struct rn_pin *pin);

#endif
