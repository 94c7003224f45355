/*
 * Keeping everybody else from writing into a range of pages for a moment, so that it can be exchanged under a
 * running program and no write is lost. No signal takes part: programs own and block those.
 */
#ifndef RN_VERBS_HOLD_H
#define RN_VERBS_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Why nobody else writes, tried in this order.
 * NOBODY: this thread is the only one of its process, or virtual time holds all others.
 * KERNEL: userfaultfd write-protects pages; a thread that writes, in a system call too, sleeps in the kernel until the end.
 * IMPOSSIBLE: other threads run and the kernel does not offer that to this user.
 */
enum rn_hold_way { RN_HOLD_NOBODY, RN_HOLD_KERNEL, RN_HOLD_IMPOSSIBLE };

/** What can be had now. Other threads may come and go while this one waits for something. */
enum rn_hold_way rn_hold_way(void);

/** A range that is held. */
struct rn_hold {
	uint64_t va;
	size_t bytes;
	enum rn_hold_way way;
	uint64_t signals; /* the caller's mask; handlers of this thread write, too */
};

/**
 * Hold the pages of [@va, @va + @bytes) (page aligned, mapped readable and writable). Until rn_hold_end() the caller
 * writes nothing but its stack and memory it has just mapped, calls the kernel only by verbs/raw.h, and waits for nobody. False: IMPOSSIBLE, or
 * the kernel refused; nothing is held then.
 */
bool rn_hold_begin(struct rn_hold *hold, uint64_t va, size_t bytes);

/** Let go. @replaced: the range is another mapping now. Those who slept write into what is there. */
void rn_hold_end(struct rn_hold *hold, bool replaced);

#endif
