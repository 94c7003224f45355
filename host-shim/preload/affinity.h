/*
 * Where threads believe that they may run, while the simulator keeps them to one processor.
 */
#ifndef RN_PRELOAD_AFFINITY_H
#define RN_PRELOAD_AFFINITY_H

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/types.h>

/** At the process's start, before the simulator knows of it: where it may run. */
void rn_affinity_note(void);

/** Slot @to begins with what slot @from believes. */
void rn_affinity_inherit(int from, int to);

/** A thread is about to be started in @slot: @attr (may be NULL) may say where it is to run. */
void rn_affinity_start(int slot, const pthread_attr_t *attr);

/** Between the two, the calling thread runs where it believes: what it starts there is nobody's of the run. errno stays. */
void rn_affinity_release(void);
void rn_affinity_return(void);

/** The system calls as programs see them; their results and errno. */
long rn_affinity_get(pid_t tid, size_t bytes, void *set);
long rn_affinity_set(pid_t tid, size_t bytes, const void *set);

/** threads.c: the slot of a thread of this process, -1 when it is not known. */
int rn_threads_slot(pthread_t id);

#endif
