/*
 * What the verbs library asks of virtual time. The preload library answers; where it is not loaded, and in
 * free-run, nothing happens.
 */
#ifndef RN_VERBS_VIRTUAL_TIME_H
#define RN_VERBS_VIRTUAL_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "bar/time_page.h"

extern bool rn_time_is_on(void) __attribute__((weak));
extern uint64_t rn_time_now_ps(void) __attribute__((weak));
extern void rn_time_charge(enum rn_time_cost cost, unsigned count) __attribute__((weak));
extern void rn_time_settle(void) __attribute__((weak));
extern void rn_time_settle_memory(void) __attribute__((weak));
extern void rn_time_wait_change(void) __attribute__((weak));
extern void rn_time_wait_answer(void) __attribute__((weak));
extern void rn_time_touch_sockets(void) __attribute__((weak));
extern void rn_time_native(bool enter) __attribute__((weak));
extern unsigned rn_time_held_threads(void) __attribute__((weak));

/** Whether this thread lives in virtual time. */
static inline bool rn_vt_is_on(void)
{
	return rn_time_is_on && rn_time_is_on();
}

/** How many other threads of this process cannot run before this one waits for something; 0 in free-run. */
static inline unsigned rn_vt_held_threads(void)
{
	return rn_time_held_threads ? rn_time_held_threads() : 0;
}

/** Its clock; 0 in free-run. */
static inline uint64_t rn_vt_now_ps(void)
{
	return rn_time_now_ps ? rn_time_now_ps() : 0;
}

/** Let a call's cost pass, @count times. */
static inline void rn_vt_charge(enum rn_time_cost cost, unsigned count)
{
	if (rn_time_charge && count)
		rn_time_charge(cost, count);
}

/** Let simulated time come up to this thread's clock. */
static inline void rn_vt_settle(void)
{
	if (rn_time_settle)
		rn_time_settle();
}

/** The same as far as memory shows it: where the NIC is known to write nothing till then, nobody waits. */
static inline void rn_vt_settle_memory(void)
{
	if (rn_time_settle_memory)
		rn_time_settle_memory();
}

/** The connection's socket has something for the driver: it must be seen at this simulated time. */
static inline void rn_vt_touch_sockets(void)
{
	if (rn_time_touch_sockets)
		rn_time_touch_sockets();
}

/** Between the two, system calls of this thread are no waits in virtual time. */
static inline void rn_vt_enter_native(void)
{
	if (rn_time_native)
		rn_time_native(true);
}

static inline void rn_vt_leave_native(void)
{
	if (rn_time_native)
		rn_time_native(false);
}

#endif
