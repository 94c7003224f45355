/*
 * The thread's side of the baton: charging, waiting, and how a process joins virtual time.
 */
#include "preload/virtual.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/affinity.h"
#include "preload/own_signals.h"
#include "preload/random.h"
#include "preload/tsc/raw.h"
#include "preload/tsc/tsc.h"
#include "preload/waits.h"

#define QUANTUM_PS 1000000000u /* a thread's clock runs ahead of the others by at most 1 ms */

static struct rn_time_page *page;
static __thread struct rn_time_slot *own;
static __thread unsigned native;
static __thread uint64_t quantum_ps; /* clock at which the others get a turn */

/* Constructors of other libraries may come before this one's: the first call of any kind joins. */
static bool has_joined;
static void join(void);

bool rn_virtual_is_on(void)
{
	if (__builtin_expect(!has_joined, 0))
		join();
	return own && !native && !atomic_load_explicit(&page->dead, memory_order_relaxed);
}

bool rn_virtual_is_running(void)
{
	return rn_virtual_is_on() &&
	       atomic_load_explicit(&own->state, memory_order_relaxed) == RN_TIME_RUNNING;
}

struct rn_time_page *rn_virtual_page(void)
{
	return page;
}

int rn_virtual_own_slot(void)
{
	return own ? (int)(own - page->slot) : -1;
}

int rn_virtual_slot_of(int tid)
{
	uint32_t used = page ? atomic_load(&page->used) : 0;

	if (!tid)
		return rn_virtual_own_slot();
	for (uint32_t n = 0; n < used && n < RN_TIME_SLOTS; n++)
		if (page->slot[n].tid == tid && atomic_load(&page->slot[n].state) != RN_TIME_FREE)
			return (int)n;
	return -1;
}

void rn_virtual_enter_native(void)
{
	native++;
}

void rn_virtual_leave_native(void)
{
	native--;
}

/* --- waiting --- */

static bool is_waiting(void)
{
	return atomic_load_explicit(&own->state, memory_order_acquire) == RN_TIME_WAITING &&
	       !atomic_load_explicit(&page->dead, memory_order_relaxed);
}

/* A simulator that was killed cannot say that it ends. */
static void look_for_simulator(void)
{
	if (syscall(SYS_kill, page->simulator_pid, 0) < 0 && errno == ESRCH)
		atomic_store(&page->dead, 1);
}

static void sleep_on_slot(void)
{
	const struct timespec limit = {.tv_sec = 1};

	atomic_store(&own->asleep, 1);
	while (is_waiting())
		if (syscall(SYS_futex, &own->state, FUTEX_WAIT, RN_TIME_WAITING, &limit, NULL, 0) <
			    0 &&
		    errno == ETIMEDOUT)
			look_for_simulator();
	atomic_store(&own->asleep, 0);
	if (atomic_load_explicit(&page->dead, memory_order_relaxed))
		rn_affinity_release();
}

/* A run keeps to one processor: whoever spun would keep from it what it waits for. */
static void wait_for_baton(void)
{
	const int saved_errno = errno;

	if (is_waiting())
		sleep_on_slot();
	quantum_ps = own->now_ps + QUANTUM_PS;
	errno = saved_errno;
}

static void set_state(struct rn_time_slot *slot, uint32_t state)
{
	atomic_store(&slot->state, state);
	if (atomic_load(&slot->watched))
		syscall(SYS_futex, &slot->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A handler must not run while others do: signals come when the thread has the baton again. */
static void give_baton(uint32_t on, uint64_t until_ps, uint64_t grid_ps)
{
	const bool holds = rn_signals_have_handlers();
	sigset_t held, mask;

	if (holds) {
		rn_wait_held_signals(&held);
		pthread_sigmask(SIG_BLOCK, &held, &mask);
	}
	own->on = on;
	own->until_ps = until_ps;
	own->grid_ps = grid_ps;
	set_state(own, RN_TIME_WAITING);
	wait_for_baton();
	if (holds)
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* Give the baton away; true when a virtual timer's handler has run. */
static bool wait_once(uint32_t on, uint64_t until_ps, uint64_t grid_ps, bool *restart)
{
	const uint64_t timer_ps = rn_timers_next_ps();

	give_baton(on, timer_ps < until_ps ? timer_ps : until_ps, grid_ps);
	return own->now_ps >= rn_timers_next_ps() && rn_timers_fire(own->now_ps, restart);
}

void rn_virtual_settle(void)
{
	bool restart;

	if (rn_virtual_is_on())
		wait_once(0, own->now_ps, 0, &restart);
}

enum rn_waited rn_virtual_wait_for(bool (*look)(void *arg), void *arg, uint64_t until_ps,
				   bool *restart)
{
	bool ignored;

	while (!look(arg)) {
		if (own->now_ps >= until_ps)
			return RN_WAITED_TIMEOUT;
		if (wait_once(RN_TIME_ON_LOOK, until_ps, 0, restart ? restart : &ignored))
			return RN_WAITED_SIGNAL;
		if (!rn_virtual_is_on())
			return RN_WAITED_SIGNAL;
	}
	return RN_WAITED_OK;
}

enum rn_waited rn_virtual_sleep_until(uint64_t until_ps)
{
	bool restart;

	do {
		if (wait_once(0, until_ps, 0, &restart))
			return RN_WAITED_SIGNAL;
	} while (rn_virtual_is_on() && own->now_ps < until_ps);
	return RN_WAITED_TIMEOUT;
}

void rn_virtual_wait_spawn(int pid)
{
	if (!rn_virtual_is_on())
		return;
	own->pid = pid;
	give_baton(RN_TIME_ON_SPAWN, own->now_ps, 0);
}

void rn_virtual_wait_message(bool comes_back)
{
	bool restart;

	own->spins = !comes_back;
	wait_once(RN_TIME_ON_MESSAGE, RN_TIME_NO_LIMIT, 0, &restart);
	rn_virtual_charge_ps(page->cost_ps[RN_TIME_MEMORY_POLL]);
}

void rn_virtual_set_examinable(bool on)
{
	if (page)
		atomic_store(&page->examinable, on);
}

void rn_virtual_hold_questions(bool on)
{
	sigset_t set;

	if (!page)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	rn_raw_call(SYS_rt_sigprocmask, on ? SIG_BLOCK : SIG_UNBLOCK, (long)&set, 0, _NSIG / 8, 0,
		    0);
}

void rn_virtual_wait_turn(void)
{
	if (own)
		wait_for_baton();
}

/* --- charging --- */

/* The simulator has left this thread to itself: join again, at the time that it is now. */
static void rejoin(void)
{
	if (atomic_load_explicit(&own->state, memory_order_relaxed) == RN_TIME_OUTSIDE)
		give_baton(0, own->now_ps, 0);
}

uint64_t rn_virtual_now_ps(void)
{
	rejoin();
	return own->now_ps;
}

void rn_virtual_charge_ps(uint64_t ps)
{
	bool restart;

	if (!rn_virtual_is_on())
		return;
	rejoin();
	own->now_ps += ps;
	if (own->now_ps >= quantum_ps)
		rn_virtual_settle();
	if (own->now_ps >= rn_timers_next_ps())
		rn_timers_fire(own->now_ps, &restart);
}

bool rn_virtual_charge_quickly(uint64_t ps, uint64_t *now_ps)
{
	uint64_t after_ps;

	if (!own || native || atomic_load_explicit(&page->dead, memory_order_relaxed) ||
	    atomic_load_explicit(&own->state, memory_order_relaxed) != RN_TIME_RUNNING)
		return false;
	after_ps = own->now_ps + ps;
	if (after_ps >= quantum_ps || after_ps >= rn_timers_next_ps())
		return false;
	own->now_ps = after_ps;
	*now_ps = after_ps;
	return true;
}

void rn_virtual_charge_call(void)
{
	if (rn_virtual_is_on())
		rn_virtual_charge_ps(page->cost_ps[RN_TIME_SYSTEM_CALL]);
}

void rn_virtual_act(void)
{
	if (page)
		atomic_store_explicit(&page->acted, 1, memory_order_relaxed);
}

void rn_virtual_act_by_signal(void)
{
	if (page)
		atomic_store(&page->signalled, 1);
	rn_virtual_act();
}

/* --- for the verbs library --- */

RN_EXPORT bool rn_time_is_on(void);
RN_EXPORT uint64_t rn_time_now_ps(void);
RN_EXPORT void rn_time_charge(enum rn_time_cost cost, unsigned count);
RN_EXPORT void rn_time_settle(void);
RN_EXPORT void rn_time_settle_memory(void);
RN_EXPORT void rn_time_wait_change(void);
RN_EXPORT void rn_time_wait_answer(void);
RN_EXPORT void rn_time_touch_sockets(void);
RN_EXPORT void rn_time_native(bool enter);

bool rn_time_is_on(void)
{
	return rn_virtual_is_on();
}

uint64_t rn_time_now_ps(void)
{
	return rn_virtual_is_on() ? rn_virtual_now_ps() : 0;
}

void rn_time_charge(enum rn_time_cost cost, unsigned count)
{
	if (rn_virtual_is_on())
		rn_virtual_charge_ps(page->cost_ps[cost] * count);
}

void rn_time_settle(void)
{
	rn_virtual_settle();
}

/*
 * Before a look at memory that the NIC writes. Nothing comes before quiet_ps but what this thread has set off itself: what it
 * has rung takes longer, what it has done for threads of its host they get to see first.
 */
static bool is_quiet(void)
{
	return own->now_ps < own->quiet_ps &&
	       !atomic_load_explicit(&page->acted, memory_order_relaxed) &&
	       !atomic_load_explicit(&page->sockets, memory_order_relaxed);
}

void rn_time_settle_memory(void)
{
	if (!rn_virtual_is_on())
		return;
	rejoin();
	if (!is_quiet())
		rn_virtual_settle();
}

void rn_time_wait_change(void)
{
	bool restart;

	if (rn_virtual_is_on())
		wait_once(RN_TIME_ON_CHANGE, own->now_ps + page->horizon_ps,
			  page->cost_ps[RN_TIME_POLL_MISS], &restart);
}

void rn_time_wait_answer(void)
{
	if (rn_virtual_is_on())
		give_baton(RN_TIME_ON_ANSWER, RN_TIME_NO_LIMIT, 0);
}

void rn_time_touch_sockets(void)
{
	if (page)
		atomic_store_explicit(&page->sockets, 1, memory_order_relaxed);
}

void rn_time_native(bool enter)
{
	if (enter)
		rn_virtual_enter_native();
	else
		rn_virtual_leave_native();
}

/* --- joining --- */

static void map_page(int page_fd)
{
	void *memory =
		mmap(NULL, RN_TIME_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);

	if (memory == MAP_FAILED || ((struct rn_time_page *)memory)->magic != RN_TIME_MAGIC)
		return;
	page = memory;
	own = &page->slot[0];
}

static void attach(uint64_t now_ps)
{
	const int page_fd = rn_virtual_ask_for_page(now_ps);

	if (page_fd < 0)
		return;
	map_page(page_fd);
	syscall(SYS_close, page_fd);
}

void rn_virtual_attach_child(uint64_t now_ps)
{
	rn_affinity_release();
	if (own)
		rn_affinity_inherit(rn_virtual_own_slot(), 0);
	if (page)
		munmap(page, RN_TIME_PAGE_BYTES);
	page = NULL;
	own = NULL;
	rn_timers_forget();
	attach(now_ps);
	rn_tsc_report();
	rn_virtual_set_examinable(true);
}

static void join(void)
{
	const int saved_errno = errno;

	/* Before the C library has its environment there is none of the run's either. */
	if (has_joined || !environ)
		return;
	has_joined = true;
	rn_affinity_note();
	attach(0);
	if (own) {
		wait_for_baton();
		rn_tsc_start();
		rn_spin_start();
		rn_random_start();
		rn_virtual_set_examinable(true);
	}
	errno = saved_errno;
}

/* What sanitizers export: set up once, whoever calls first. Their handlers of signals need it. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __lsan_init(void) __attribute__((weak));

static void set_up_sanitizers(void)
{
	if (__asan_init)
		__asan_init();
	if (__tsan_init)
		__tsan_init();
	if (__lsan_init)
		__lsan_init();
	if (__msan_init)
		__msan_init();
}

/* This library's constructors come first of all, before the C library's own has stored what it is given. */
__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
	(void)argc;
	(void)argv;
	if (!environ)
		environ = environment;
	set_up_sanitizers();
	join();
}

/* --- threads --- */

int rn_virtual_reserve_slot(void)
{
	for (uint32_t n = 0; n < RN_TIME_SLOTS; n++) {
		struct rn_time_slot *slot = &page->slot[n];

		if (atomic_load(&slot->state) != RN_TIME_FREE)
			continue;
		slot->on = 0;
		slot->tid = 0;
		own->quiet_ps = 0;
		rn_affinity_inherit(rn_virtual_own_slot(), (int)n);
		slot->now_ps = slot->until_ps = own->now_ps;
		slot->grid_ps = 0;
		if (atomic_load(&page->used) <= n)
			atomic_store(&page->used, n + 1);
		atomic_store(&slot->state, RN_TIME_WAITING);
		return (int)n;
	}
	return -1;
}

void rn_virtual_take_slot(int slot)
{
	own = &page->slot[slot];
	own->tid = (int32_t)syscall(SYS_gettid);
	wait_for_baton();
}

void rn_virtual_drop_slot(void)
{
	struct rn_time_slot *slot = own;

	if (!slot)
		return;
	own = NULL;
	rn_virtual_act();
	set_state(slot, RN_TIME_FREE);
}
