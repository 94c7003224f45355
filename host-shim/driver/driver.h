/*
 * The privileged driver of one NIC: owns PDs, memory keys, CQs, QPs, frames and doorbell pages of
 * all processes of its host, and talks to the NIC by MMIO, command queue and event queues alone.
 * It lives in the simulator process; requests take simulated time. A client is a process (through
 * driver/server.h) or the scripted host, in process; neither is trusted.
 */
#ifndef RN_DRIVER_DRIVER_H
#define RN_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/uapi.h"
#include "pcie/root_complex.h"
#include "sim/sim.h"
#include "sim/stamp.h"
#include "sim/stats.h"

struct rn_driver;
struct rn_driver_client;

struct rn_driver_env {
	struct rn_sim *sim;
	struct rn_root_complex *root_complex;
	struct rn_stats *stats;	  /* may be NULL */
	struct rn_stamps *stamps; /* may be NULL */
	const char *name;	  /* "host0.driver"; copied */
	uint64_t seed;
	uint32_t host;
	uint32_t hosts; /* of the fabric */
	struct rn_uapi_device
		device; /* driver/address.h has defaults; limits are cut to what the NIC can do */
	struct rn_uapi_port port;
	/* MAC of a unicast GID: 0 or an errno. NULL: rn_address_resolve(). */
	int (*resolve)(void *arg, const uint8_t gid[16], uint8_t mac[6]);
	void *resolve_arg;
	/* A process's completion channel or async descriptor has got a record; may be NULL. */
	void (*event)(void *arg, pid_t pid);
	void *event_arg;
	uint64_t arena_bytes;	   /* of a process; multiple of 64 MiB; 0: 64 GiB */
	uint64_t max_pinned_pages; /* of all processes; 0: 2^22 */
	uint32_t uar_pages;	   /* doorbell pages of a process; 0: 1 */
};

/** The NIC is not touched before rn_driver_start(). Everything in @env is borrowed and outlives the driver, but for the name. */
struct rn_driver *rn_driver_new(const struct rn_driver_env *env);

/** Free the driver and whatever clients still have, without talking to the NIC: the simulation is over. */
void rn_driver_free(struct rn_driver *driver);

/**
 * Bring the NIC up: identity registers, ICM tables, command queue, INIT_HCA, event queues. @done gets 0, ENODEV
 * (not this NIC or another interface version) or EIO (a command failed), later in simulated time.
 */
void rn_driver_start(struct rn_driver *driver, void (*done)(void *arg, int error), void *arg);

/** True once rn_driver_start() has succeeded. */
bool rn_driver_is_ready(const struct rn_driver *driver);

/** Device and port attributes as clients see them. */
const struct rn_uapi_device *rn_driver_device(const struct rn_driver *driver);
const struct rn_uapi_port *rn_driver_port(const struct rn_driver *driver);

/** Deliver events that a full pipe held up; cheap. Call it when rn_driver_epoll_fd() is readable, or now and then. */
void rn_driver_poll(struct rn_driver *driver);
int rn_driver_epoll_fd(const struct rn_driver *driver);

/**
 * An answer: @rsp of @bytes and @fd_count descriptors, all valid during the call only (duplicate what is kept).
 * It may come from inside rn_driver_request(), or later in simulated time.
 */
typedef void rn_driver_answer(void *arg, const struct rn_uapi_rsp *rsp, uint32_t bytes,
			      const int *fds, uint32_t fd_count);

/**
 * A new client for process @pid: an arena and doorbell pages of its own. NULL with *@error ENODEV (not ready),
 * ENOMEM or another errno.
 */
struct rn_driver_client *rn_driver_attach(struct rn_driver *driver, pid_t pid,
					  rn_driver_answer *answer, void *arg, int *error);

/**
 * Free everything the client had: QPs, CQs and keys by commands, then PDs, channels, frames, doorbell pages. No answer
 * comes any more; @done (may be NULL) is called at the end, and the client is gone. Also while a request is under way.
 */
void rn_driver_detach(struct rn_driver_client *client, void (*done)(void *arg), void *arg);

/**
 * Hand in one request of @bytes; it is copied. False when the one before has not been answered. Anything may stand in
 * it: what makes no sense is answered with EINVAL. RN_UAPI_ATTACH is the server's business (EINVAL here).
 */
bool rn_driver_request(struct rn_driver_client *client, const void *request, uint32_t bytes);

/** A request is with the driver and not answered yet. */
bool rn_driver_is_busy(const struct rn_driver_client *client);

struct rn_driver_client_info {
	int arena_fd;	/* memfd of the frames; the driver's, do not close */
	uint8_t *arena; /* its mapping in this process */
	uint64_t arena_bytes;
	uint32_t uar_first; /* first doorbell page in the BAR */
	uint32_t uar_pages;
};

void rn_driver_client_get_info(const struct rn_driver_client *client,
			       struct rn_driver_client_info *info);

enum rn_driver_mmio {
	RN_DRIVER_MMIO_OK,
	RN_DRIVER_MMIO_FULL,	 /* the host's write queue is full: try again later */
	RN_DRIVER_MMIO_VIOLATION /* outside the client's pages, or no legal write: end the client */
};

/**
 * A posted write by the client's software at @at_ps (not before now) to @offset in its doorbell page @page. @len is
 * 4 .. 64 in whole words and must not cross a 64-byte line.
 */
enum rn_driver_mmio rn_driver_mmio(struct rn_driver_client *client, uint64_t at_ps, uint32_t page,
				   uint32_t offset, const void *data, uint32_t len);

/* Live objects of all clients: what a leak check compares. */
struct rn_driver_usage {
	uint32_t clients, pds, ahs, mrs, cqs, qps, channels, uar_groups, mpts;
	uint64_t mtts, frames, pinned_pages;
};

void rn_driver_get_usage(const struct rn_driver *driver, struct rn_driver_usage *usage);

/** The process whose memory arena number @arena is (its frames, or its fallback window); 0: nobody's. */
pid_t rn_driver_arena_pid(const struct rn_driver *driver, int arena);

#define RN_DRIVER_PROGRAM_BYTES 32 /* of a program's name, with its end */

/** The first program that connected a queue pair without GRH, which real RoCE refuses (allow_no_grh); "" for none. */
const char *rn_driver_program_without_grh(const struct rn_driver *driver);

/** The host's memory, by physical address. */
struct rn_host_memory *rn_driver_memory(const struct rn_driver *driver);

/* Physical addresses of the ICM tables: for tests that look or write behind the NIC. */
struct rn_driver_icm {
	uint64_t qpc_pa, cqc_pa, mpt_pa, mtt_pa;
};

void rn_driver_get_icm(const struct rn_driver *driver, struct rn_driver_icm *icm);

/** Index of the first MTT entry of key @key, and their number; false when there is no such key. For tests. */
bool rn_driver_find_mtt(const struct rn_driver *driver, uint32_t key, uint64_t *first,
			uint32_t *count);

/** Physical address of pinned memory at @va of the client; false when it is not pinned. For tests. */
bool rn_driver_find_pa(const struct rn_driver_client *client, uint64_t va, uint64_t *pa);

#endif
