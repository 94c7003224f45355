/*
 * Virtual time between one process and the simulator: a shared page with one slot a thread. A slot is the
 * baton: while it says RUNNING its thread runs native code and simulated time stands still; the thread gives it
 * back by writing what it waits for and then WAITING, the simulator hands it out again by writing the thread's new
 * virtual time and then RUNNING. Of all threads of a run one has it at a time.
 *
 * The simulator copies what a process writes and checks it: a wrong page can delay a run, nothing else.
 */
#ifndef RN_BAR_TIME_PAGE_H
#define RN_BAR_TIME_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RN_TIME_MAGIC 0x454d4954u
#define RN_TIME_SLOTS 128
#define RN_TIME_NO_LIMIT UINT64_MAX
/* Nobody sleeps longer than to here: what the NIC then still does, its timers included, fits into the 13 days behind it. */
#define RN_TIME_END_PS (UINT64_MAX - (UINT64_C(1) << 60))

/* Where the output of a run's programs leaves it: "device:node device:node", hexadecimal. */
#define RN_ENV_OUTPUT "RNICSIM_OUTPUT"

/* One program's way of catching reads of the counter, instead of the time page's: "auto", "trap", "rewrite". */
#define RN_ENV_TSC "RNICSIM_TSC"

enum rn_time_state {
	RN_TIME_FREE,	 /* no thread */
	RN_TIME_RUNNING, /* native code runs; the simulator keeps off */
	RN_TIME_WAITING, /* the simulator's */
	RN_TIME_OUTSIDE, /* set by the simulator: blocked or busy where nothing tells when it ends; time is paced */
};

/* What ends a wait before its time is over. */
enum rn_time_on {
	RN_TIME_ON_CHANGE =
		1, /* a DMA write that completes something in this process's host memory */
	RN_TIME_ON_LOOK =
		2, /* another thread has done something that a look at a descriptor, a lock or a child may show */
	RN_TIME_ON_ANSWER = 4, /* the driver's answer to this process */
	RN_TIME_ON_SPAWN =
		8, /* process @pid has attached or ended: simulated time stands still till then */
	RN_TIME_ON_MESSAGE =
		16, /* a DMA write that completes a message in memory (not a completion) */
};

/* What the host profile charges for; all in picoseconds. */
enum rn_time_cost {
	RN_TIME_POST_SEND,
	RN_TIME_POST_SEND_NEXT,
	RN_TIME_POST_RECV,
	RN_TIME_POST_RECV_NEXT,
	RN_TIME_POLL_HIT,
	RN_TIME_POLL_MISS,
	RN_TIME_DOORBELL,
	RN_TIME_BLUEFLAME,
	RN_TIME_CQ_EVENT,
	RN_TIME_CLOCK_READ,
	RN_TIME_SYSTEM_CALL,
	RN_TIME_MEMORY_POLL,
	RN_TIME_COSTS
};

/* How reads of the processor's counter are to be caught. */
enum rn_tsc_mode {
	RN_TSC_MODE_AUTO, /* by rewriting them, and by the trap where it works */
	RN_TSC_MODE_TRAP, /* by the trap alone */
	RN_TSC_MODE_REWRITE,
};

/* What is in force in a process: tried, not asked for. */
enum rn_tsc_force {
	RN_TSC_TRAP_WORKS = 1, /* a read has been seen to trap */
	RN_TSC_TRAP = 2,
	RN_TSC_REWRITE = 4,
	RN_TSC_FIXED_ADDRESSES = 8, /* its stack stands where it does without randomisation */
};

/* What rewriting alone does not see. */
enum rn_tsc_unseen {
	RN_TSC_GENERATED = 1, /* executable memory that can be written: its code may change */
	RN_TSC_UNDECODED =
		2, /* bytes that may be a read, where it is not known whether an instruction begins */
	RN_TSC_REFUSED = 4,  /* the system did not let code be changed, or there was no memory */
	RN_TSC_UNHOOKED = 8, /* the loader does not tell what it maps */
};

/* Written by the process. */
struct rn_time_tsc {
	_Atomic uint32_t force;		  /* enum rn_tsc_force bits */
	_Atomic uint32_t unseen;	  /* enum rn_tsc_unseen bits */
	_Atomic uint32_t jumps, illegals; /* reads rewritten: by a jump, by ud2 */
	_Atomic uint64_t traps;		  /* taken */
};

struct rn_time_slot {
	_Alignas(64) _Atomic uint32_t state; /* enum rn_time_state; a futex */
	_Atomic uint32_t asleep;	     /* 1: its thread sleeps on the futex */
	uint32_t on;			     /* enum rn_time_on bits */
	int32_t pid;			     /* of ON_SPAWN */
	int32_t tid;
	uint32_t spins;		  /* 1: this thread has been proved to spin on memory before */
	_Atomic uint32_t watched; /* 1: the simulator sleeps on the futex */
	uint32_t reserved;
	uint64_t now_ps;   /* the thread's virtual time; the simulator's to write before RUNNING */
	uint64_t until_ps; /* the wait ends then at the latest */
	uint64_t grid_ps;  /* a wait for a change ends at now + n * grid; 0: at once */
	/*
	 * Set by the simulator with the baton: while the thread's clock is below, the NIC writes nothing into its
	 * host's memory and no other thread of its host has a turn. To look at memory it need not wait.
	 */
	uint64_t quiet_ps;
};

_Static_assert(sizeof(struct rn_time_slot) == 64, "a slot is a cache line");

struct rn_time_page {
	uint32_t magic;
	uint32_t slots;
	uint32_t host;
	uint32_t ordinal; /* of the process on its host */
	uint64_t seed;
	uint64_t epoch_ns; /* CLOCK_REALTIME at simulated time 0 */
	uint64_t tsc_hz;
	uint64_t horizon_ps; /* longest wait of a poll */
	uint64_t cost_ps[RN_TIME_COSTS];
	_Atomic uint32_t acted; /* set by the process: something another thread's look may show */
	_Atomic uint32_t
		sockets; /* set by the process: its connection to the driver has something */
	_Atomic uint32_t signalled;  /* set by the process with @acted: it has sent a signal */
	_Atomic uint32_t dead;	     /* set by the simulator: it ends, do not wait for it */
	_Atomic uint32_t examinable; /* set by the process: SIGURG asks a thread whether it spins */
	_Atomic uint32_t used;	     /* slots 0 .. used-1 may be in use */
	int32_t simulator_pid;
	_Atomic int32_t processor; /* set by the simulator: the run keeps to it; -1: to none */
	uint32_t tsc_mode;	   /* enum rn_tsc_mode */
	struct rn_time_tsc tsc;
	_Alignas(64) struct rn_time_slot slot[RN_TIME_SLOTS];
};

#define RN_TIME_PAGE_BYTES ((sizeof(struct rn_time_page) + 4095u) & ~(size_t)4095u)

#endif
