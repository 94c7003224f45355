/*
 * The one processor of a run in virtual time. Of its threads and the simulator one runs at a time, so two processors
 * would do nothing but wake each other up: a hand-over between two is an interrupt to a processor that sleeps, on one it
 * is a switch of contexts. Who is left outside of virtual time gets its own processors back.
 */
#ifndef RN_RNICSIM_VIRTUAL_PLACE_H
#define RN_RNICSIM_VIRTUAL_PLACE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rn_vprocess;

struct rn_place {
	int processor;	   /* -1: wherever the system puts each thread */
	cpu_set_t allowed; /* the simulator's own at its start */
	/* At the last look at how crowded it is: wall clock, for how long the simulator had waited for it, clock ticks. */
	uint64_t looked_ns, delay_ns, idle[CPU_SETSIZE];
	uint64_t dice;
};

/** Keep this process to the processor on which it runs. Where the system refuses, or has but one, there is no place. */
void rn_place_choose(struct rn_place *place);

/** This process may use all its processors again. */
void rn_place_leave(struct rn_place *place);

/** @process has joined: note where it may run, and keep all its threads to the place. */
void rn_place_take(const struct rn_place *place, struct rn_vprocess *process);

/** It has ended being part of the run: all its threads may run where it might when it joined. */
void rn_place_release(const struct rn_place *place, const struct rn_vprocess *process);

/** The same for thread @tid of @process alone; nothing when that is no thread of it. */
void rn_place_take_thread(const struct rn_place *place, const struct rn_vprocess *process,
			  pid_t tid);
void rn_place_release_thread(const struct rn_place *place, const struct rn_vprocess *process,
			     pid_t tid);

/**
 * Several runs side by side may have chosen the same processor: look, at most five times a second of wall time,
 * whether another is better. True when the place has changed: take all processes again.
 */
bool rn_place_look(struct rn_place *place);

#endif
