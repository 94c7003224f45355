/*
 * The fake PCIe BAR: shared memory between one process and the simulator. A ring of posted MMIO
 * writes (many threads of the process produce under a lock of their own; the simulator consumes), a flag that says
 * whether the simulator sleeps (then the producer writes the wake eventfd), and a heartbeat.
 *
 * The simulator trusts nothing in it: an entry is copied once, then checked, then used; indexes are
 * checked against its own copies.
 */
#ifndef RN_BAR_CHANNEL_H
#define RN_BAR_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RN_CHANNEL_MAGIC 0x4c4e4843u
#define RN_CHANNEL_ENTRIES 1024

struct rn_channel_entry {
	uint32_t page;	 /* doorbell page, relative to the process's own */
	uint32_t offset; /* in the page */
	uint32_t len;	 /* 4 .. 64; not crossing a 64-byte line */
	uint32_t reserved;
	uint64_t at_ps; /* virtual time of the writing thread; 0 in free-run: as soon as seen */
	uint8_t data[64];
	uint8_t pad[40];
};

_Static_assert(sizeof(struct rn_channel_entry) == 128, "channel entry size");

struct rn_channel {
	uint32_t magic;
	uint32_t entries;
	_Alignas(64) _Atomic uint64_t tail;   /* entries produced; written by the process */
	_Alignas(64) _Atomic uint64_t head;   /* entries consumed; written by the simulator */
	_Alignas(64) _Atomic uint32_t asleep; /* 1: the simulator sleeps or is about to */
	_Atomic uint32_t dead;		      /* 1: the simulator has ended this connection */
	_Atomic uint64_t now_ps;	      /* simulated time, published now and then */
	_Alignas(64) struct rn_channel_entry entry[RN_CHANNEL_ENTRIES];
};

/** Bytes of the shared memory, page aligned. */
#define RN_CHANNEL_BYTES ((sizeof(struct rn_channel) + 4095u) & ~(size_t)4095u)

/**
 * Producer: copy one write in. False when the ring is full. The caller holds the process's lock and, after the last of
 * a batch, calls rn_channel_kick().
 */
bool rn_channel_post(struct rn_channel *channel, uint64_t at_ps, uint32_t page, uint32_t offset,
		     const void *data, uint32_t len);

/** Producer: wake the simulator through @wake_fd if it sleeps. */
void rn_channel_kick(struct rn_channel *channel, int wake_fd);

enum rn_channel_take { RN_CHANNEL_EMPTY, RN_CHANNEL_TAKEN, RN_CHANNEL_CORRUPT };

/**
 * Consumer: copy the next entry out. @head is the simulator's own count of consumed entries. CORRUPT: the indexes
 * make no sense; disconnect the client.
 */
enum rn_channel_take rn_channel_take(struct rn_channel *channel, uint64_t *head,
				     struct rn_channel_entry *entry);

#endif
