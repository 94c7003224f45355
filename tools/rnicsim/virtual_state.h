/*
 * State of a run in virtual time, shared by the files that keep it: virtual_roll.c (which processes there are),
 * virtual_order.c (whose turn it is), virtual_watch.c (who runs too long), virtual_time.c (the loop).
 */
#ifndef RN_RNICSIM_VIRTUAL_STATE_H
#define RN_RNICSIM_VIRTUAL_STATE_H

#include "virtual_place.h"
#include "virtual_process.h"
#include "virtual_time.h"
#include "virtual_tsc.h"

#define RN_EXPECTED_MAX 64
#define RN_TOPS_MAX 64

/* A process that has been started and has not joined yet: simulated time stands still until it has. */
struct rn_expected {
	pid_t pid, parent; /* parent: 0 when the supervisor has started it */
	int pidfd;
	struct rn_task_watch watch;
};

enum rn_start_phase {
	RN_AWAITING_START, /* simulated time stands still until the supervisor has started a program */
	RN_SETTLING,	   /* it passes until that program waits */
	RN_ALL_STARTED
};

struct rn_host_hook {
	struct rn_virtual *virtual;
	unsigned host;
};

/* The thread that has had the baton since the grant of this number. */
struct rn_holder {
	const struct rn_vprocess *process;
	unsigned n;
	uint64_t grants;
	uint64_t ask_ns, ask_after_ns;
	struct rn_task_watch watch;
};

struct rn_virtual {
	struct rn_virtual_env env;
	struct rn_sim *sim;
	struct rn_server *server;
	struct rn_vprocess **process; /* by host and ordinal */
	unsigned count, room;
	unsigned *ordinals; /* next, one a host */
	struct rn_host_hook *hook;
	struct rn_expected expected[RN_EXPECTED_MAX];
	unsigned expecting;
	int top_fd[RN_TOPS_MAX]; /* pidfds of the programs that the supervisor has started */
	bool top_awaited[RN_TOPS_MAX];
	unsigned tops;
	bool servers_ended; /* those that are not awaited were sent SIGTERM */
	bool is_over; /* all of them have ended: time stands still for what they have left behind */
	bool ended;   /* the world cannot go on */
	enum rn_start_phase phase;
	bool more;
	uint64_t settle_from_ps;
	uint64_t signalled_ps; /* a signal was sent; RN_TIME_NEVER: none */
	uint64_t acted_ns;     /* wall clock of the last look for what comes unannounced */
	unsigned outside;      /* threads */
	uint64_t opened_ns,
		opened_ps; /* wall clock and simulated time at which programs could join */
	uint64_t slept_ns; /* what holders of the baton have slept; a little is forgiven at each grant */
	bool is_impatient; /* that was too much: whoever sleeps is left outside soon */
	struct rn_holder holder;
	/* Who has the baton, when it is known for spinning. */
	const struct rn_vprocess *spinner;
	unsigned spinner_n;
	pid_t parent; /* supervisor of a run */
	struct rn_place place;
	uint64_t looked_ns; /* wall clock of the last look at what comes by system calls */
	struct rn_virtual_counts counts;
	struct rn_tsc_roll tsc;
};

static inline uint64_t rn_virtual_now_ps(const struct rn_virtual *v)
{
	return rn_sim_now_ps(v->sim);
}

static inline uint64_t rn_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t rn_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/**
 * A connection, and then what came through it: all at this simulated time, up to a bound. Who attaches there changes
 * which processes there are: never in the middle of a walk over them.
 */
void rn_virtual_serve_sockets(struct rn_virtual *v);

/* virtual_roll.c */
struct rn_vprocess *rn_virtual_find(const struct rn_virtual *v, pid_t pid);
/** Time stands still until @pid has joined, has ended, or is seen to be a program that will not join. */
void rn_virtual_expect(struct rn_virtual *v, pid_t pid);
/** The same for a child that @parent says it has started; others' processes are not waited for. */
void rn_virtual_expect_child(struct rn_virtual *v, struct rn_vprocess *parent, pid_t pid);
void rn_virtual_look_at_expected(struct rn_virtual *v);
/** A program that the supervisor has started; when the last of them has ended, the run is over. */
void rn_virtual_add_top(struct rn_virtual *v, pid_t pid, bool awaited);
/** Also ends those that are not awaited once the awaited have ended, at this simulated time. */
void rn_virtual_look_at_tops(struct rn_virtual *v);
/** A process asks for its page: the answer to RN_UAPI_ATTACH_TIME, a descriptor or -errno. */
int rn_virtual_attach(void *arg, pid_t pid, const struct rn_uapi_attach_time *request);
void rn_virtual_bury_dead(struct rn_virtual *v);
void rn_virtual_drop_all(struct rn_virtual *v);

/* virtual_order.c */
struct rn_virtual_turn {
	struct rn_vprocess *process; /* NULL: nobody waits for a time */
	unsigned n;
	uint64_t at_ps;
};
/** Something has happened that a look may show, at @at_ps: who waits to look goes on then at the latest. */
void rn_virtual_act(struct rn_virtual *v, uint64_t at_ps);
/** Take over what threads that have given the baton back wait for. */
void rn_virtual_collect(struct rn_virtual *v);
/** Who goes on next: lowest (time, host, process, thread). */
struct rn_virtual_turn rn_virtual_next_turn(const struct rn_virtual *v);
/** Up to when thread @turn, which gets the baton now, sees in memory what it sees now: nothing comes into it from elsewhere. */
uint64_t rn_virtual_quiet_ps(const struct rn_virtual *v, const struct rn_virtual_turn *turn);
/** All wait for something that simulated time alone will not bring soon: the next program may start. */
bool rn_virtual_is_settled(const struct rn_virtual *v);

/* virtual_watch.c */
/** Whoever has the baton: ask it whether it spins, and leave it outside when it blocks or computes for too long. */
void rn_virtual_watch(struct rn_virtual *v);
/** Ask thread @n, which is known for it, whether it spins on memory. */
void rn_virtual_ask(const struct rn_vprocess *process, unsigned n);
/** Up to where simulated time may pass while threads are outside; RN_TIME_NEVER when none is. */
uint64_t rn_virtual_paced_ps(struct rn_virtual *v);

#endif
