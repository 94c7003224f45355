/*
 * The driver's door to other processes: a unix socket for control requests, a shared-memory channel for
 * doorbell writes. Non-blocking throughout; a client that breaks the protocol is disconnected and
 * everything it had is freed, the others notice nothing.
 */
#ifndef RN_DRIVER_SERVER_H
#define RN_DRIVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "driver/uapi.h"

struct rn_server;

struct rn_server_env {
	struct rn_sim *sim;
	struct rn_stats *stats; /* may be NULL; counters appear as "server" */
	const char *path;	/* of the socket, made with mode 0600 and removed at the end */
	struct rn_driver *const *drivers; /* one a host, started */
	uint32_t hosts;
	bool free_run;
	/*
	 * Virtual time; NULL without. attach_time: process @pid wants its time page; returns a descriptor that stays the
	 * callee's, or a negative errno. answered: an answer has gone to @pid.
	 */
	int (*attach_time)(void *arg, pid_t pid, const struct rn_uapi_attach_time *request);
	void (*answered)(void *arg, pid_t pid);
	void *time_arg;
	uint32_t clients_max; /* connections at once; 0: 1024 */
};

/** Listen. NULL with *@error an errno. @env's pointers are borrowed, the drivers outlive the server. */
struct rn_server *rn_server_new(const struct rn_server_env *env, int *error);

/** Disconnect everybody (their objects go with the drivers) and remove the socket. */
void rn_server_free(struct rn_server *server);

/**
 * Serve what is there: doorbell writes in every call (a bounded number a client, posted at the present simulated time),
 * sockets at most every 20 us of wall time. True when something was done: call again before sleeping.
 */
bool rn_server_poll(struct rn_server *server);

/** The parts of rn_server_poll() that virtual time calls at times of its own: sockets, and doorbell writes that are due. */
bool rn_server_poll_sockets(struct rn_server *server);
bool rn_server_poll_rings(struct rn_server *server);

/** Virtual time of the earliest doorbell write that has not been posted; RN_TIME_NEVER: none. */
uint64_t rn_server_next_write_ps(struct rn_server *server);

/** Readable when a sleeping server has something to do. */
int rn_server_epoll_fd(const struct rn_server *server);

/**
 * Before sleeping on the epoll descriptor: from now on clients ring. False when something came meanwhile: do not sleep,
 * poll. No wake-up is lost. After either, rn_server_wake() comes first.
 */
bool rn_server_prepare_sleep(struct rn_server *server);
void rn_server_wake(struct rn_server *server);

/** Connections open now; and attached since the start. */
uint32_t rn_server_connections(const struct rn_server *server);
uint64_t rn_server_attached(const struct rn_server *server);

/** Disconnect everybody; their objects go in simulated time (rn_driver_get_usage tells when). */
void rn_server_disconnect_all(struct rn_server *server);

#endif
