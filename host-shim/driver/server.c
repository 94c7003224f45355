/*
 * The server's loop: who is readable, whose ring has entries, when to sleep. See server.h.
 */
#include "driver/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/mem.h"
#include "driver/server_internal.h"

#define CLIENTS_MAX 1024
#define RING_BUDGET 64
#define SOCKET_INTERVAL_NS 20000

static const struct rn_counter_desc counter_rows[] = {
	RN_SERVER_COUNTERS(struct rn_server_counters, RN_COUNTER_ROW)};

/* Marks the listening socket and the drivers among epoll's pointers. */
static const char listening, driver_events;

#define TAG_MASK ((uintptr_t)3)
_Static_assert(RN_SERVER_TAGS <= TAG_MASK + 1, "tags");

static int watch_input(const struct rn_server *server, int fd, const void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(uintptr_t)what};

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

static int start_listening(struct rn_server *server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(server->path) >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	memcpy(address.sun_path, server->path, strlen(server->path));
	server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The mode of the socket's inode is that of the file bind() makes: never open to others. */
	if (server->listen_fd < 0 || fchmod(server->listen_fd, S_IRUSR | S_IWUSR) ||
	    bind(server->listen_fd, (const struct sockaddr *)&address, sizeof(address)))
		return errno;
	if (listen(server->listen_fd, 128)) {
		const int error = errno;

		unlink(server->path);
		return error;
	}
	return 0;
}

static int set_up(struct rn_server *server)
{
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (server->epoll_fd < 0 || server->spare_fd < 0)
		return errno;

	int error = start_listening(server);

	if (!error)
		error = watch_input(server, server->listen_fd, &listening);
	for (uint32_t host = 0; !error && host < server->env.hosts; host++)
		error = watch_input(server, rn_driver_epoll_fd(server->env.drivers[host]),
				    &driver_events);
	return error;
}

static void close_all(struct rn_server *server)
{
	const int fds[] = {server->listen_fd, server->epoll_fd, server->spare_fd};

	for (size_t n = 0; n < RN_ARRAY_LEN(fds); n++)
		if (fds[n] >= 0)
			close(fds[n]);
	free(server->path);
	free(server);
}

struct rn_server *rn_server_new(const struct rn_server_env *env, int *error)
{
	struct rn_server *server = rn_calloc(1, sizeof(*server));

	server->env = *env;
	server->path = rn_strdup(env->path);
	server->listen_fd = -1;
	server->epoll_fd = -1;
	server->spare_fd = -1;
	if (!server->env.clients_max)
		server->env.clients_max = CLIENTS_MAX;
	rn_list_init(&server->connections);
	rn_list_init(&server->dead);
	*error = set_up(server);
	if (*error) {
		close_all(server);
		return NULL;
	}
	if (env->stats)
		rn_stats_add_counters(env->stats, "server", counter_rows,
				      RN_ARRAY_LEN(counter_rows), &server->counters);
	return server;
}

void rn_server_disconnect_all(struct rn_server *server)
{
	while (!rn_list_is_empty(&server->connections))
		rn_connection_close(
			rn_list_entry(server->connections.next, struct rn_connection, link), false);
	rn_connections_reap(server);
}

void rn_server_free(struct rn_server *server)
{
	rn_server_disconnect_all(server);
	unlink(server->path);
	close_all(server);
}

/* Out of descriptors: without this the connection would stay readable for ever. */
static void refuse_one(struct rn_server *server)
{
	close(server->spare_fd);

	const int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		close(fd);
	server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	server->counters.refused++;
}

static void accept_one(struct rn_server *server)
{
	const int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			refuse_one(server);
		return;
	}
	if (server->count >= server->env.clients_max) {
		close(fd);
		server->counters.refused++;
		return;
	}
	rn_connection_new(server, fd);
}

static void handle(struct rn_server *server, const struct epoll_event *event)
{
	const uintptr_t what = (uintptr_t)event->data.u64;
	struct rn_connection *connection = (struct rn_connection *)(what & ~TAG_MASK);

	if (what == (uintptr_t)&listening) {
		accept_one(server);
		return;
	}
	if (what == (uintptr_t)&driver_events) {
		for (uint32_t host = 0; host < server->env.hosts; host++)
			rn_driver_poll(server->env.drivers[host]);
		return;
	}
	if (connection->state == RN_CONNECTION_DEAD)
		return;
	switch ((enum rn_server_tag)(what & TAG_MASK)) {
	case RN_SERVER_SOCKET:
		rn_connection_serve(connection);
		break;
	case RN_SERVER_DEATH:
		rn_connection_close(connection, false);
		break;
	case RN_SERVER_DOORBELL: /* the next round looks at the rings */
	case RN_SERVER_TAGS:
		break;
	}
}

static bool poll_sockets(struct rn_server *server)
{
	struct epoll_event event[64];
	const int count = epoll_wait(server->epoll_fd, event, RN_ARRAY_LEN(event), 0);

	for (int n = 0; n < count; n++)
		handle(server, &event[n]);
	rn_connections_reap(server);
	return count > 0;
}

static bool sockets_are_due(struct rn_server *server)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);

	const uint64_t now_ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;

	if (now_ns - server->polled_ns < SOCKET_INTERVAL_NS)
		return false;
	server->polled_ns = now_ns;
	return true;
}

static bool poll_rings(struct rn_server *server)
{
	const uint64_t now_ps = rn_sim_now_ps(server->env.sim);
	struct rn_list *node, *next;
	bool any = false;

	for (node = server->connections.next; node != &server->connections; node = next) {
		struct rn_connection *connection = rn_list_entry(node, struct rn_connection, link);

		next = node->next;
		if (!connection->channel)
			continue;
		atomic_store_explicit(&connection->channel->now_ps, now_ps, memory_order_relaxed);
		any |= rn_connection_ring(connection, RING_BUDGET) > 0;
	}
	return any;
}

/* Who was served first comes last: a full write queue is shared by all. */
static void rotate(struct rn_server *server)
{
	struct rn_list *first = server->connections.next;

	rn_list_remove(first);
	rn_list_add(&server->connections, first);
}

bool rn_server_poll(struct rn_server *server)
{
	bool any = poll_rings(server);

	if (server->count > 1)
		rotate(server);
	if (sockets_are_due(server))
		any |= poll_sockets(server);
	else
		rn_connections_reap(server);
	return any;
}

bool rn_server_poll_sockets(struct rn_server *server)
{
	return poll_sockets(server);
}

bool rn_server_poll_rings(struct rn_server *server)
{
	return poll_rings(server);
}

uint64_t rn_server_next_write_ps(struct rn_server *server)
{
	uint64_t next_ps = RN_TIME_NEVER;
	struct rn_list *node, *next;

	for (node = server->connections.next; node != &server->connections; node = next) {
		struct rn_connection *connection = rn_list_entry(node, struct rn_connection, link);

		next = node->next;
		if (connection->channel && rn_connection_next_write_ps(connection) < next_ps)
			next_ps = connection->entry.at_ps;
	}
	return next_ps;
}

int rn_server_epoll_fd(const struct rn_server *server)
{
	return server->epoll_fd;
}

static bool has_entries(const struct rn_connection *connection)
{
	return connection->has_entry ||
	       atomic_load_explicit(&connection->channel->tail, memory_order_acquire) !=
		       connection->head;
}

static void set_asleep(struct rn_server *server, uint32_t asleep)
{
	struct rn_list *node;

	server->asleep = asleep;
	for (node = server->connections.next; node != &server->connections; node = node->next) {
		struct rn_connection *connection = rn_list_entry(node, struct rn_connection, link);

		if (connection->channel)
			atomic_store(&connection->channel->asleep, asleep);
	}
}

bool rn_server_prepare_sleep(struct rn_server *server)
{
	struct rn_list *node;

	set_asleep(server, 1);
	/* Either a producer sees `asleep`, or this sees its entry. */
	atomic_thread_fence(memory_order_seq_cst);
	for (node = server->connections.next; node != &server->connections; node = node->next) {
		struct rn_connection *connection = rn_list_entry(node, struct rn_connection, link);

		if (connection->channel && has_entries(connection))
			return false;
	}
	return true;
}

void rn_server_wake(struct rn_server *server)
{
	set_asleep(server, 0);
	server->polled_ns = 0;
}

uint32_t rn_server_connections(const struct rn_server *server)
{
	return server->count;
}

uint64_t rn_server_attached(const struct rn_server *server)
{
	return server->attached;
}
