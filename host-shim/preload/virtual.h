/*
 * Virtual time in a program: the thread's slot in the process's time page, what is charged to it, and how it
 * waits. Without virtual time (free-run, another kind of process, a thread that is not known) everything here does
 * nothing and rn_virtual_is_on() is false.
 */
#ifndef RN_PRELOAD_VIRTUAL_H
#define RN_PRELOAD_VIRTUAL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "bar/time_page.h"

#define RN_EXPORT __attribute__((visibility("default")))

#define RN_PS_PER_NS 1000u
#define RN_PS_PER_US 1000000u
#define RN_PS_PER_S 1000000000000u
#define RN_NS_PER_S 1000000000u

/* For code that may touch general registers alone. */
#define RN_GENERAL_REGISTERS __attribute__((target("general-regs-only")))

/* The definition of @name behind this library. */
#define RN_REAL(name)                                                                              \
	(__extension__({                                                                           \
		static __typeof__(&(name)) real_;                                                  \
		if (!real_)                                                                        \
			*(void **)&real_ = dlsym(RTLD_NEXT, #name);                                \
		real_;                                                                             \
	}))

/** Whether this thread lives in virtual time. */
bool rn_virtual_is_on(void);

/** Whether it lives in virtual time and runs native code: it has the baton. */
bool rn_virtual_is_running(void);

/** The process's time page, NULL without one. */
RN_GENERAL_REGISTERS struct rn_time_page *rn_virtual_page(void);

/** This thread's slot, and that of thread @tid of this process (0: this one); -1: none. */
int rn_virtual_own_slot(void);
int rn_virtual_slot_of(int tid);

/** Between the two, calls of this thread go to the system as they are. They nest. */
void rn_virtual_enter_native(void);
void rn_virtual_leave_native(void);

/** This thread's virtual time. */
uint64_t rn_virtual_now_ps(void);

/** The time @ps from now, at most the end of simulated time; from there on, now. */
static inline uint64_t rn_virtual_after_ps(uint64_t ps)
{
	const uint64_t now_ps = rn_virtual_now_ps();

	if (now_ps >= RN_TIME_END_PS)
		return now_ps;
	return ps > RN_TIME_END_PS - now_ps ? RN_TIME_END_PS : now_ps + ps;
}

/** Let @ps pass on this thread's clock. */
void rn_virtual_charge_ps(uint64_t ps);
void rn_virtual_charge_call(void);

/** The same where nothing has to be waited for; false: nothing was charged. *@now_ps: the thread's clock afterwards. */
RN_GENERAL_REGISTERS bool rn_virtual_charge_quickly(uint64_t ps, uint64_t *now_ps);

/** Wait until simulated time has reached this thread's clock: others with an earlier clock go first. */
void rn_virtual_settle(void);

/** Something has been done that a look of another thread may show. */
void rn_virtual_act(void);

/** A signal has been sent: threads that wait for the NIC look too, and a process may have ended. */
void rn_virtual_act_by_signal(void);

enum rn_waited { RN_WAITED_OK, RN_WAITED_TIMEOUT, RN_WAITED_SIGNAL };

/**
 * Wait until @look says true, until virtual time @until_ps (RN_TIME_NO_LIMIT: none) or until a virtual timer's
 * handler has run. *@restart (may be NULL): that handler wants interrupted calls to go on.
 */
enum rn_waited rn_virtual_wait_for(bool (*look)(void *arg), void *arg, uint64_t until_ps,
				   bool *restart);

/** Sleep until @until_ps; TIMEOUT, or SIGNAL when a virtual timer's handler has run. */
enum rn_waited rn_virtual_sleep_until(uint64_t until_ps);

/** Simulated time stands still until process @pid lives in virtual time or has ended. */
void rn_virtual_wait_spawn(int pid);

/**
 * A proved spinner waits for a message in memory (or for another thread of its process). @comes_back: from its loop it comes
 * here by itself, nobody need ask it.
 */
void rn_virtual_wait_message(bool comes_back);

/** Before exec (false): the next program may not know the simulator's question. */
void rn_virtual_set_examinable(bool on);

/** Between the two no question interrupts this thread; one under way comes at the end. */
void rn_virtual_hold_questions(bool on);

/** A slot for a thread that this one is about to start; -1: none free. */
int rn_virtual_reserve_slot(void);
/** The new thread takes it and waits for its turn. */
void rn_virtual_take_slot(int slot);
/** This thread ends. */
void rn_virtual_drop_slot(void);

/** The program's runtime makes system calls and reads clocks without the C library (Go). */
bool rn_program_is_bare(void);

/** In the child after fork: connect afresh at the parent's time, then wait for a turn (the second). */
void rn_virtual_attach_child(uint64_t now_ps);
void rn_virtual_wait_turn(void);

/** What a clock with the epoch's offset, or one from zero, says at @ps. */
uint64_t rn_virtual_clock_ns(clockid_t clock, uint64_t ps);
bool rn_virtual_has_clock(clockid_t clock);

/* attach.c */
/** Ask for this process's page, to join at @now_ps: a descriptor, the caller's to close; -1: there is no virtual time. */
int rn_virtual_ask_for_page(uint64_t now_ps);

/* timers.c */
/** Earliest virtual time at which a timer of the process is due. */
RN_GENERAL_REGISTERS uint64_t rn_timers_next_ps(void);
/** Fire what is due at @now_ps. True when a handler ran; *@restart as above. */
void rn_timers_forget(void);
bool rn_timers_fire(uint64_t now_ps, bool *restart);

/* spin.c */
void rn_spin_start(void);

#endif
