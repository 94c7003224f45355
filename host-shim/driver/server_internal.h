/*
 * One connection of the server, shared by its two files.
 */
#ifndef RN_DRIVER_SERVER_INTERNAL_H
#define RN_DRIVER_SERVER_INTERNAL_H

#include "bar/channel.h"
#include "driver/list.h"
#include "driver/server.h"

#define RN_SERVER_COUNTERS(T, X)                                                                   \
	X(T, connections, "events", "connections accepted")                                        \
	X(T, refused, "events", "connections refused: too many, or no descriptor free")            \
	X(T, violations, "events", "clients disconnected for breaking the protocol")               \
	X(T, entries, "writes", "doorbell writes taken from channels")                             \
	X(T, entries_held, "events", "times a doorbell write had to wait for the host's queue")

#define RN_SERVER_COUNTER_FIELD(T, field, unit, help) RN_COUNTER_FIELD(field, unit, help)

struct rn_server_counters {
	RN_SERVER_COUNTERS(, RN_SERVER_COUNTER_FIELD)
};

/*
 * What a connection may ask for, by what it is. Whatever else it sends ends it.
 *
 *   request        NEW                             TIMED   ATTACHED
 *   ATTACH         ATTACHED, or an error and NEW   -       the driver refuses it
 *   ATTACH_TIME    TIMED, or an error and NEW      -       the driver refuses it
 *   others         -                               -       BUSY until the driver has answered
 *
 * BUSY is not listened to. DEAD is closed and freed at the end of the poll.
 */
enum rn_connection_state {
	RN_CONNECTION_NEW,
	RN_CONNECTION_TIMED,
	RN_CONNECTION_ATTACHED,
	RN_CONNECTION_BUSY,
	RN_CONNECTION_DEAD
};

struct rn_connection {
	struct rn_list link;
	struct rn_server *server;
	enum rn_connection_state state;
	struct rn_driver_client *client; /* of ATTACHED and BUSY */
	int fd;
	int pidfd; /* -1: the kernel does not know the process */
	int wake_fd;
	int channel_fd;
	pid_t pid;
	struct rn_channel *channel;
	uint64_t head; /* entries taken */
	bool has_entry;
	struct rn_channel_entry entry; /* taken, not posted yet */
};

/* What an epoll event is about: low bits of its pointer. */
enum rn_server_tag { RN_SERVER_SOCKET, RN_SERVER_DEATH, RN_SERVER_DOORBELL, RN_SERVER_TAGS };

struct rn_server {
	struct rn_server_env env;
	char *path;
	int listen_fd, epoll_fd;
	int spare_fd; /* given up to refuse a connection when descriptors run out */
	struct rn_list connections, dead;
	uint32_t count;
	uint64_t attached;
	uint64_t polled_ns;
	bool asleep;
	struct rn_server_counters counters;
	_Alignas(8) uint8_t buffer[RN_UAPI_MAX_BYTES];
};

/** A connection for the accepted socket @fd, which passes on. */
void rn_connection_new(struct rn_server *server, int fd);

/** Close and detach; the memory stays until rn_connections_reap(). @violation counts. */
void rn_connection_close(struct rn_connection *connection, bool violation);
void rn_connections_reap(struct rn_server *server);

/** Its socket is readable or gone. */
void rn_connection_serve(struct rn_connection *connection);

/** Time of the next doorbell write in its ring; RN_TIME_NEVER: none. */
uint64_t rn_connection_next_write_ps(struct rn_connection *connection);

/** Post up to @budget doorbell writes; returns how many. */
uint32_t rn_connection_ring(struct rn_connection *connection, uint32_t budget);

#endif
