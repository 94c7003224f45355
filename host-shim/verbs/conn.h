/*
 * The process's connection to the simulator: control socket, fake BAR, frame arena. One per process,
 * shared by all its contexts; a child after fork starts without one.
 */
#ifndef RN_VERBS_CONN_H
#define RN_VERBS_CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bar/channel.h"
#include "driver/uapi.h"
#include "hw/gen/rnic_hw.h"
#include "verbs/registry.h"
#include "verbs/ring.h"

struct rn_pin;

struct rn_conn {
	int fd;
	int arena_fd;
	int wake_fd;
	int async_fd;
	struct rn_channel *channel;
	uint64_t arena_bytes;
	uint32_t uar_pages;
	bool free_run;
	_Atomic bool dead; /* the simulator is gone, or this is a child after fork */
	unsigned refs;	   /* under the process's lock */

	pthread_mutex_t call_lock; /* one request and its answer at a time */
	pthread_mutex_t bar_lock;  /* producers of the channel */
	unsigned bf_next;	   /* BlueFlame buffer of the next WQE */

	struct rn_uapi_device device;
	struct rn_uapi_port port;
	struct rn_pin *pin;
	struct rn_registry registry;
	struct rn_rings rings;
};

/** One posted write to a doorbell page. */
struct rn_mmio {
	uint32_t offset;
	uint32_t len;
	const void *data;
};

/** True when the environment names a simulator. */
bool rn_conn_in_run(void);

/** The process's connection, made on first use, with one reference. NULL and errno. */
struct rn_conn *rn_conn_get(void);

/** Take one more reference. */
void rn_conn_ref(struct rn_conn *conn);

/** Drop a reference; the last one disconnects. */
void rn_conn_put(struct rn_conn *conn);

/**
 * Send @req (its bytes field is filled in here) and wait for the answer.
 * @rsp: struct rn_uapi_rsp and what follows; at most @rsp_bytes are kept, the rest reads as zero
 * @fds: room for @fd_count descriptors of the answer, -1 where none came; may be NULL
 * Returns 0, the driver's errno, EIO when the simulator is gone, ENODEV in a child after fork; what it returns stands in
 * errno too, and success leaves errno alone.
 */
int rn_conn_call(struct rn_conn *conn, void *req, size_t req_bytes, void *rsp, size_t rsp_bytes);
int rn_conn_call_fds(struct rn_conn *conn, void *req, size_t req_bytes, void *rsp, size_t rsp_bytes,
		     int *fds, unsigned fd_count);

/** Read the port's attributes afresh into conn->port. */
int rn_conn_query_port(struct rn_conn *conn);

/** Post writes to one doorbell page, in order and not interleaved with others. 0 or EIO. */
int rn_conn_mmio(struct rn_conn *conn, uint32_t page, const struct rn_mmio *writes, unsigned count);

/** Post a WQE image (a multiple of 64 bytes) to the next BlueFlame buffer. 0 or EIO. */
int rn_conn_blueflame(struct rn_conn *conn, uint32_t page, const uint8_t *image, uint32_t bytes);

/** The simulator has gone: from now on everything fails with EIO. */
void rn_conn_set_dead(struct rn_conn *conn);

static inline bool rn_conn_is_dead(const struct rn_conn *conn)
{
	return atomic_load_explicit(&conn->dead, memory_order_relaxed);
}

#endif
