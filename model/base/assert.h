/*
 * Assertions about the simulator itself. They are always compiled in. Nothing
 * that a program, packet, capture or configuration does may reach one.
 */
#ifndef RN_BASE_ASSERT_H
#define RN_BASE_ASSERT_H

#include <stdint.h>

/* Where the simulator is; only ever read on the way to abort(). */
struct rn_assert_place {
	const char *name;
	uint64_t cycle;
};

extern struct rn_assert_place rn_assert_place;

/**
 * Remember which block runs, for the message of a failed assertion.
 * @name: instance name, borrowed until the next call; NULL for "no block"
 * @cycle: cycle of the block's clock domain
 */
static inline void rn_assert_context(const char *name, uint64_t cycle)
{
	rn_assert_place.name = name;
	rn_assert_place.cycle = cycle;
}

/** Print block, cycle, condition and place to stderr and abort(). */
_Noreturn void rn_assert_fail(const char *cond, const char *file, int line) __attribute__((cold));

#define RN_ASSERT(cond)                                                                            \
	(__builtin_expect(!!(cond), 1) ? (void)0 : rn_assert_fail(#cond, __FILE__, __LINE__))

#endif
