/*
 * A hostile client of the simulator: it speaks the driver's socket and the doorbell ring by itself, without the
 * library, and lies wherever it can. What it does follows from a seed. It cannot tell whether it harmed
 * anybody; it only fails when the simulator neither answers nor hangs up.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bar/channel.h"
#include "base/rng.h"
#include "driver/uapi.h"

#define LONGEST_ANSWER_MS 30000
#define PAGE 4096u

/* One connection. Descriptors are -1 and pointers NULL where there is nothing. */
struct raw {
	struct rn_rng *rng;
	int fd, channel_fd, arena_fd, wake_fd;
	struct rn_channel *channel;
	uint64_t arena_bytes;
	uint32_t host, hosts, uar_pages;
	bool gone; /* the simulator has hung up */
};

/* --- chance --- */
uint32_t below(struct rn_rng *rng, uint32_t bound);
bool one_in(struct rn_rng *rng, uint32_t n);
/** A number that is likely to hurt: 0, 1, powers of two and their neighbours, all ones, or anything. */
uint32_t nasty(struct rn_rng *rng);
uint64_t nasty64(struct rn_rng *rng);
/** A number close to @own: those that the driver gives out one after the other are others' there. */
uint32_t nearby(struct rn_rng *rng, uint32_t own);
/** Spoil some 32-bit words of the record behind its first @skip bytes. */
void mutate(struct rn_rng *rng, void *record, size_t bytes, size_t skip);

/* --- hostile.c: what all workers have come to, for the last line of output --- */
enum tally { TALLY_ACTS, TALLY_PAGES, TALLY_TURNS, TALLY_REFUSED, TALLY_HUNG_UP, TALLIES };
void tally(enum tally what);

/* --- raw.c: the connection --- */
/** False when there is no room for another connection. */
bool raw_connect(struct raw *raw, struct rn_rng *rng, uint32_t host);
/** Connect, attach and map the channel. */
bool raw_attach(struct raw *raw, struct rn_rng *rng, uint32_t host);
void raw_close(struct raw *raw);
/** Send what may be no request; false when the simulator hung up. */
bool raw_send(struct raw *raw, const void *data, size_t bytes);
/** Wait for one answer; its bytes, 0 when the simulator hung up. Ends the program when neither comes. */
ssize_t raw_receive(struct raw *raw, void *data, size_t bytes, int fds[3]);
/** One request: the answer's errno, or -1 when the simulator hung up. @answer may be NULL. */
int raw_call(struct raw *raw, void *request, size_t bytes, void *answer, size_t answer_bytes);
/** A call that has only a handle and answers with one, 0 when it failed. */
uint32_t raw_call_handle(struct raw *raw, uint32_t op, uint32_t handle);
/** Post a write as the library does; a full ring drops it. */
void raw_ring(struct raw *raw, uint32_t page, uint32_t offset, const void *data, uint32_t len);
/** Pin @pages at @va and map their frames there as the library does; false when refused. */
bool raw_pin(struct raw *raw, void *va, uint32_t pages);

/* --- acts: each opens connections of its own and closes them --- */
typedef void act(struct rn_rng *rng, uint32_t host);
act act_half_messages, act_wrong_attach, act_garbage_requests, act_unread_answers, act_descriptors,
	act_many_connections; /* socket_acts.c */
act act_shared_memory, act_scribbled_channel, act_doorbells, act_rewritten_entries,
	act_ring_flood;						       /* ring_acts.c */
act act_objects, act_foreign_handles, act_absurd_sizes, act_pin_flood; /* object_acts.c */
act act_work_requests, act_rewritten_work;			       /* work_acts.c */
act act_time_noise, act_time_states, act_time_spawns, act_time_again, act_time_orders,
	act_time_flood, act_time_inherited, act_time_leaves, act_time_clocks; /* time_acts.c */
/** This process has nothing to do with virtual time: the baton that its program was started with goes back. */
void give_up_time(struct rn_rng *rng, uint32_t host);

#endif
