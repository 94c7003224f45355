/*
 * One client of the server: its socket, its channel, its end. Whatever it sends, nothing here waits
 * for it: one request is read at a time, and an answer that does not fit into its socket ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "driver/server_internal.h"

#define PROCESS_SHARE 8 /* of the connections that one process may have */

static bool watch(struct rn_connection *connection, int op, int fd, uint32_t events,
		  enum rn_server_tag tag)
{
	struct epoll_event event = {.events = events,
				    .data.u64 = (uint64_t)(uintptr_t)connection | tag};

	return !epoll_ctl(connection->server->epoll_fd, op, fd, &event);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* One process does not take all the room. */
static bool has_too_many(const struct rn_server *server, pid_t pid)
{
	const uint32_t limit = server->env.clients_max / PROCESS_SHARE;
	const struct rn_list *node = server->connections.next;
	uint32_t count = 0;

	for (; node != &server->connections; node = node->next)
		count += rn_list_entry(node, struct rn_connection, link)->pid == pid;
	return count > (limit ? limit : 1);
}

void rn_connection_new(struct rn_server *server, int fd)
{
	struct rn_connection *connection = rn_calloc(1, sizeof(*connection));
	struct ucred peer = {0};
	socklen_t length = sizeof(peer);

	connection->server = server;
	connection->fd = fd;
	connection->pidfd = -1;
	connection->wake_fd = -1;
	connection->channel_fd = -1;
	rn_list_init(&connection->link);
	rn_list_add(&server->connections, &connection->link);
	server->count++;
	server->counters.connections++;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	    !watch(connection, EPOLL_CTL_ADD, fd, EPOLLIN, RN_SERVER_SOCKET)) {
		rn_connection_close(connection, false);
		return;
	}
	connection->pid = peer.pid;
	if (has_too_many(server, peer.pid)) {
		server->counters.refused++;
		rn_connection_close(connection, false);
		return;
	}
	/* The socket can outlive the process in a forked child; its memory does not. */
	connection->pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (connection->pidfd >= 0 &&
	    !watch(connection, EPOLL_CTL_ADD, connection->pidfd, EPOLLIN, RN_SERVER_DEATH))
		close_fd(&connection->pidfd);
}

void rn_connection_close(struct rn_connection *connection, bool violation)
{
	struct rn_server *server = connection->server;

	if (connection->state == RN_CONNECTION_DEAD)
		return;
	connection->state = RN_CONNECTION_DEAD;
	server->counters.violations += violation;
	server->count--;
	if (server->env.answered)
		server->env.answered(server->env.time_arg, connection->pid);
	rn_list_remove(&connection->link);
	rn_list_add(&server->dead, &connection->link);
	if (connection->channel) {
		atomic_store_explicit(&connection->channel->dead, 1, memory_order_release);
		munmap(connection->channel, RN_CHANNEL_BYTES);
		connection->channel = NULL;
	}
	/* The client holds the eventfd too: closing it here alone would leave it among epoll's. */
	if (connection->wake_fd >= 0)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, connection->wake_fd, NULL);
	/* Shut down first: a child of the client may hold the other end. */
	shutdown(connection->fd, SHUT_RDWR);
	close_fd(&connection->fd);
	close_fd(&connection->pidfd);
	close_fd(&connection->wake_fd);
	close_fd(&connection->channel_fd);
	if (connection->client)
		rn_driver_detach(connection->client, NULL, NULL);
	connection->client = NULL;
}

void rn_connections_reap(struct rn_server *server)
{
	while (!rn_list_is_empty(&server->dead)) {
		struct rn_connection *connection =
			rn_list_entry(server->dead.next, struct rn_connection, link);

		rn_list_remove(&connection->link);
		free(connection);
	}
}

/* --- answers --- */

static bool send_answer(struct rn_connection *connection, const void *data, uint32_t bytes,
			const int *fds, uint32_t fd_count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct iovec part = {(void *)(uintptr_t)data, bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd_count) {
		memset(&control, 0, sizeof(control));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));

		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
	}
	return sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* The driver's answer: listen to the socket again. */
static void answer(void *arg, const struct rn_uapi_rsp *rsp, uint32_t bytes, const int *fds,
		   uint32_t fd_count)
{
	struct rn_connection *connection = arg;
	const bool was_busy = connection->state == RN_CONNECTION_BUSY;

	if (connection->state == RN_CONNECTION_DEAD)
		return;
	if (was_busy)
		connection->state = RN_CONNECTION_ATTACHED;
	if (connection->server->env.answered)
		connection->server->env.answered(connection->server->env.time_arg, connection->pid);
	if (!send_answer(connection, rsp, bytes, fds, fd_count) ||
	    (was_busy &&
	     !watch(connection, EPOLL_CTL_MOD, connection->fd, EPOLLIN, RN_SERVER_SOCKET)))
		rn_connection_close(connection, false);
}

static void answer_error(struct rn_connection *connection, int error)
{
	const struct rn_uapi_rsp rsp = {.error = error, .bytes = sizeof(rsp)};

	answer(connection, &rsp, sizeof(rsp), NULL, 0);
}

/* --- attach --- */

static int make_channel(struct rn_connection *connection)
{
	const int fd = memfd_create("rnicsim-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return errno;
	connection->channel_fd = fd;
	if (ftruncate(fd, RN_CHANNEL_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return errno;

	void *memory = mmap(NULL, RN_CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return errno;
	connection->channel = memory;
	connection->channel->magic = RN_CHANNEL_MAGIC;
	connection->channel->entries = RN_CHANNEL_ENTRIES;
	connection->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* Edges, so that it need not be read: the client could make that block. */
	if (connection->wake_fd < 0 || !watch(connection, EPOLL_CTL_ADD, connection->wake_fd,
					      EPOLLIN | EPOLLET, RN_SERVER_DOORBELL))
		return errno;
	return 0;
}

static void attach(struct rn_connection *connection, const struct rn_uapi_attach *request)
{
	struct rn_server *server = connection->server;
	struct rn_driver_client_info info;
	int error = 0;

	if (request->version != RN_UAPI_VERSION || request->host >= server->env.hosts) {
		answer_error(connection,
			     request->version != RN_UAPI_VERSION ? EPROTONOSUPPORT : ENODEV);
		return;
	}
	connection->client = rn_driver_attach(server->env.drivers[request->host], connection->pid,
					      answer, connection, &error);
	if (connection->client)
		error = make_channel(connection);
	if (error) {
		answer_error(connection, error);
		rn_connection_close(connection, false);
		return;
	}
	server->attached++;
	connection->state = RN_CONNECTION_ATTACHED;
	rn_driver_client_get_info(connection->client, &info);

	const int fds[3] = {connection->channel_fd, info.arena_fd, connection->wake_fd};
	const struct rn_uapi_attach_rsp response = {
		.rsp = {.bytes = sizeof(response)},
		.arena_bytes = info.arena_bytes,
		.channel_bytes = RN_CHANNEL_BYTES,
		.uar_pages = info.uar_pages,
		.hosts = server->env.hosts,
		.free_run = server->env.free_run,
	};

	if (server->asleep)
		atomic_store(&connection->channel->asleep, 1);
	answer(connection, &response.rsp, sizeof(response), fds, 3);
	if (connection->state != RN_CONNECTION_DEAD)
		close_fd(&connection->channel_fd);
}

static void attach_time(struct rn_connection *connection, const struct rn_uapi_attach_time *request)
{
	const struct rn_server_env *env = &connection->server->env;
	const struct rn_uapi_rsp rsp = {.bytes = sizeof(rsp)};
	int fd = -ENOTSUP;

	if (env->attach_time && request->version == RN_UAPI_VERSION && request->host < env->hosts)
		fd = env->attach_time(env->time_arg, connection->pid, request);
	if (fd < 0) {
		answer_error(connection, -fd);
		return;
	}
	connection->state = RN_CONNECTION_TIMED;
	answer(connection, &rsp, sizeof(rsp), &fd, 1);
}

/* --- requests --- */

static void forward(struct rn_connection *connection, uint32_t bytes)
{
	if (!rn_driver_request(connection->client, connection->server->buffer, bytes)) {
		rn_connection_close(connection, true);
		return;
	}
	/* Answered on the spot, or later: until then the socket stays unread. */
	if (connection->state == RN_CONNECTION_DEAD || !rn_driver_is_busy(connection->client))
		return;
	connection->state = RN_CONNECTION_BUSY;
	if (!watch(connection, EPOLL_CTL_MOD, connection->fd, 0, RN_SERVER_SOCKET))
		rn_connection_close(connection, false);
}

/* The first request of a connection; false when it is none that may be. */
static bool begin(struct rn_connection *connection, uint32_t bytes)
{
	const void *buffer = connection->server->buffer;
	struct rn_uapi_attach_time time;
	struct rn_uapi_attach request;
	struct rn_uapi_req req;

	memcpy(&req, buffer, sizeof(req));
	if (req.bytes != bytes)
		return false;
	if (req.op == RN_UAPI_ATTACH && bytes >= sizeof(request)) {
		memcpy(&request, buffer, sizeof(request));
		attach(connection, &request);
		return true;
	}
	if (req.op == RN_UAPI_ATTACH_TIME && bytes == sizeof(time)) {
		memcpy(&time, buffer, sizeof(time));
		attach_time(connection, &time);
		return true;
	}
	return false;
}

static void take_request(struct rn_connection *connection, uint32_t bytes)
{
	bool is_legal = bytes >= sizeof(struct rn_uapi_req);

	switch (connection->state) {
	case RN_CONNECTION_NEW:
		is_legal = is_legal && begin(connection, bytes);
		break;
	case RN_CONNECTION_ATTACHED:
		if (is_legal)
			forward(connection, bytes);
		break;
	case RN_CONNECTION_TIMED:
	case RN_CONNECTION_BUSY:
	case RN_CONNECTION_DEAD:
		is_legal = false;
		break;
	}
	if (!is_legal)
		rn_connection_close(connection, true);
}

void rn_connection_serve(struct rn_connection *connection)
{
	struct rn_server *server = connection->server;
	struct iovec part = {server->buffer, sizeof(server->buffer)};
	/* No room for control data: descriptors that a client sends are dropped by the kernel. */
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (connection->state == RN_CONNECTION_BUSY) {
		/* Not listened to, so this is a hang-up. */
		rn_connection_close(connection, false);
		return;
	}

	const ssize_t bytes = recvmsg(connection->fd, &message, MSG_DONTWAIT);

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0)
		rn_connection_close(connection, false);
	else if (message.msg_flags & MSG_TRUNC)
		rn_connection_close(connection, true);
	else
		take_request(connection, (uint32_t)bytes);
}

/* --- doorbells --- */

static bool next_entry(struct rn_connection *connection)
{
	if (connection->has_entry)
		return true;

	const enum rn_channel_take take =
		rn_channel_take(connection->channel, &connection->head, &connection->entry);

	if (take == RN_CHANNEL_CORRUPT)
		rn_connection_close(connection, true);
	connection->has_entry = take == RN_CHANNEL_TAKEN;
	connection->server->counters.entries += connection->has_entry;
	return connection->has_entry;
}

uint64_t rn_connection_next_write_ps(struct rn_connection *connection)
{
	return next_entry(connection) ? connection->entry.at_ps : RN_TIME_NEVER;
}

uint32_t rn_connection_ring(struct rn_connection *connection, uint32_t budget)
{
	struct rn_server *server = connection->server;
	const uint64_t now_ps = rn_sim_now_ps(server->env.sim);
	uint32_t done = 0;

	while (done < budget && next_entry(connection)) {
		const struct rn_channel_entry *entry = &connection->entry;

		if (entry->at_ps > now_ps && !server->env.free_run)
			return done;
		switch (rn_driver_mmio(connection->client, now_ps, entry->page, entry->offset,
				       entry->data, entry->len)) {
		case RN_DRIVER_MMIO_OK:
			connection->has_entry = false;
			done++;
			break;
		case RN_DRIVER_MMIO_FULL:
			server->counters.entries_held++;
			return done;
		case RN_DRIVER_MMIO_VIOLATION:
			rn_connection_close(connection, true);
			return done;
		}
	}
	return done;
}
