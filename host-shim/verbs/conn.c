/*
 * Connection, its calls, its doorbell writes, and what fork does to it.
 *
 * fork: the parent waits until its child has copied the pinned pages back into private memory, so that
 * neither sees the other's writes. The child's connection is dead from then on, its copy of the channel is cut
 * off, and opening the device afresh makes a new one.
 */
#include "verbs/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs/early.h"
#include "verbs/pin.h"
#include "verbs/virtual_time.h"
#include "verbs/wait.h"

#define MAX_FDS 4u

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rn_conn *process_conn;
static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;
static int fork_pipe[2] = {-1, -1};

bool rn_conn_in_run(void)
{
	const char *path = getenv(RN_ENV_SOCKET);

	return path && path[0];
}

void rn_conn_set_dead(struct rn_conn *conn)
{
	atomic_store_explicit(&conn->dead, true, memory_order_relaxed);
}

/* ---- calls ---- */

static int send_request(struct rn_conn *conn, const void *req, size_t bytes)
{
	ssize_t sent;

	rn_vt_settle();
	rn_vt_enter_native();
	do
		sent = send(conn->fd, req, bytes, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	rn_vt_leave_native();
	rn_vt_touch_sockets();
	return sent == (ssize_t)bytes ? 0 : EIO;
}

static void take_fds(struct msghdr *msg, int *fds, unsigned fd_count)
{
	unsigned taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		const size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < bytes / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (fds && taken < fd_count)
				fds[taken++] = fd;
			else
				close(fd);
		}
	}
}

/* Returns the bytes received, or -1 when the simulator is gone. */
static ssize_t receive(struct rn_conn *conn, struct msghdr *msg)
{
	unsigned tries = 0;

	for (;;) {
		ssize_t got;

		rn_vt_enter_native();
		got = recvmsg(conn->fd, msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		rn_vt_leave_native();

		if (got > 0)
			return got;
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return -1;
		if (rn_shim_wait(conn, RN_WAIT_ANSWER, &tries))
			return -1;
	}
}

static int receive_answer(struct rn_conn *conn, void *rsp, size_t rsp_bytes, int *fds,
			  unsigned fd_count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = rsp, .iov_len = rsp_bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	const ssize_t got = receive(conn, &msg);

	if (got < (ssize_t)sizeof(struct rn_uapi_rsp))
		return EIO;
	take_fds(&msg, fds, fd_count);
	if ((size_t)got < rsp_bytes)
		memset((char *)rsp + got, 0, rsp_bytes - (size_t)got);
	return 0;
}

int rn_conn_call_fds(struct rn_conn *conn, void *req, size_t req_bytes, void *rsp, size_t rsp_bytes,
		     int *fds, unsigned fd_count)
{
	struct rn_uapi_req *head = req;
	struct rn_uapi_rsp *answer = rsp;
	const int saved_errno = errno;
	int error;

	for (unsigned i = 0; fds && i < fd_count; i++)
		fds[i] = -1;
	memset(rsp, 0, rsp_bytes);
	head->bytes = (uint32_t)req_bytes;
	pthread_mutex_lock(&conn->call_lock);
	error = rn_conn_is_dead(conn) ? EIO : send_request(conn, req, req_bytes);
	if (!error)
		error = receive_answer(conn, rsp, rsp_bytes, fds, fd_count);
	if (error)
		rn_conn_set_dead(conn);
	else
		error = answer->error;
	pthread_mutex_unlock(&conn->call_lock);
	errno = error ? error : saved_errno;
	return error;
}

int rn_conn_call(struct rn_conn *conn, void *req, size_t req_bytes, void *rsp, size_t rsp_bytes)
{
	return rn_conn_call_fds(conn, req, req_bytes, rsp, rsp_bytes, NULL, 0);
}

int rn_conn_query_port(struct rn_conn *conn)
{
	struct rn_uapi_req req = {.op = RN_UAPI_QUERY_PORT, .handle = 1};
	struct rn_uapi_port port;
	const int error = rn_conn_call(conn, &req, sizeof(req), &port, sizeof(port));

	if (!error)
		conn->port = port;
	return error;
}

/* ---- doorbell writes ---- */

static int post_one(struct rn_conn *conn, uint32_t page, const struct rn_mmio *write)
{
	unsigned tries = 0;

	while (!rn_channel_post(conn->channel, rn_vt_now_ps(), page, write->offset, write->data,
				write->len)) {
		rn_channel_kick(conn->channel, conn->wake_fd);
		if (rn_shim_wait(conn, RN_WAIT_ROOM, &tries))
			return EIO;
	}
	return 0;
}

static int post_locked(struct rn_conn *conn, uint32_t page, const struct rn_mmio *writes,
		       unsigned count)
{
	int error = rn_conn_is_dead(conn) ? EIO : 0;

	for (unsigned i = 0; i < count && !error; i++)
		error = post_one(conn, page, &writes[i]);
	if (!error)
		rn_channel_kick(conn->channel, conn->wake_fd);
	return error;
}

int rn_conn_mmio(struct rn_conn *conn, uint32_t page, const struct rn_mmio *writes, unsigned count)
{
	int error;

	rn_vt_charge(RN_TIME_DOORBELL, count);
	pthread_mutex_lock(&conn->bar_lock);
	error = post_locked(conn, page, writes, count);
	pthread_mutex_unlock(&conn->bar_lock);
	return error;
}

int rn_conn_blueflame(struct rn_conn *conn, uint32_t page, const uint8_t *image, uint32_t bytes)
{
	struct rn_mmio writes[RN_UAR_BLUEFLAME_BYTES / RN_WQEBB_BYTES];
	const unsigned count = bytes / RN_WQEBB_BYTES;
	int error;

	rn_vt_charge(RN_TIME_BLUEFLAME, count);
	pthread_mutex_lock(&conn->bar_lock);
	for (unsigned i = 0; i < count; i++)
		writes[i] = (struct rn_mmio){
			.offset = RN_UAR_BLUEFLAME + conn->bf_next * RN_UAR_BLUEFLAME_BYTES +
				  i * RN_WQEBB_BYTES,
			.len = RN_WQEBB_BYTES,
			.data = image + i * RN_WQEBB_BYTES,
		};
	conn->bf_next = (conn->bf_next + 1) % RN_UAR_BLUEFLAME_COUNT;
	error = post_locked(conn, page, writes, count);
	pthread_mutex_unlock(&conn->bar_lock);
	return error;
}

/* ---- connecting ---- */

static int map_channel(struct rn_conn *conn, int channel_fd, uint64_t bytes)
{
	if (bytes < sizeof(struct rn_channel))
		return EPROTO;
	conn->channel =
		mmap(NULL, RN_CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, channel_fd, 0);
	if (conn->channel == MAP_FAILED) {
		conn->channel = NULL;
		return ENOMEM;
	}
	return conn->channel->magic == RN_CHANNEL_MAGIC ? 0 : EPROTO;
}

static int attach(struct rn_conn *conn)
{
	const char *host = getenv(RN_ENV_HOST);
	struct rn_uapi_attach req = {.req.op = RN_UAPI_ATTACH,
				     .version = RN_UAPI_VERSION,
				     .host = host ? (uint32_t)strtoul(host, NULL, 10) : 0,
				     .pid = (uint32_t)getpid()};
	struct rn_uapi_attach_rsp rsp;
	int fds[3];
	int error = rn_conn_call_fds(conn, &req, sizeof(req), &rsp, sizeof(rsp), fds, 3);

	conn->arena_fd = fds[1];
	conn->wake_fd = fds[2];
	if (!error)
		error = fds[2] < 0 ? EPROTO : map_channel(conn, fds[0], rsp.channel_bytes);
	if (fds[0] >= 0)
		close(fds[0]);
	conn->arena_bytes = rsp.arena_bytes;
	conn->uar_pages = rsp.uar_pages;
	conn->free_run = rsp.free_run;
	return error;
}

static int set_up(struct rn_conn *conn)
{
	struct rn_uapi_req req = {.op = RN_UAPI_QUERY_DEVICE};
	int error = attach(conn);

	if (!error)
		error = rn_conn_call(conn, &req, sizeof(req), &conn->device, sizeof(conn->device));
	if (!error)
		error = rn_conn_query_port(conn);
	if (error)
		return error;
	conn->device.name[sizeof(conn->device.name) - 1] = 0;
	conn->device.fw_ver[sizeof(conn->device.fw_ver) - 1] = 0;
	conn->device.board_id[sizeof(conn->device.board_id) - 1] = 0;
	conn->pin = rn_pin_new(conn);
	return conn->pin ? 0 : ENOMEM;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void tear_down(struct rn_conn *conn)
{
	rn_pin_free(conn->pin);
	rn_vt_settle();
	rn_vt_touch_sockets();
	close_fd(&conn->fd);
	close_fd(&conn->wake_fd);
	close_fd(&conn->arena_fd);
	close_fd(&conn->async_fd);
	if (conn->channel)
		munmap(conn->channel, RN_CHANNEL_BYTES);
	rn_registry_fini(&conn->registry);
	free(conn);
}

static void before_fork(void)
{
	struct rn_conn *conn;

	pthread_mutex_lock(&process_lock);
	conn = process_conn;
	if (!conn)
		return;
	pthread_mutex_lock(&conn->rings.lock);
	rn_pin_fork_prepare(conn->pin);
	pthread_mutex_lock(&conn->call_lock);
	pthread_mutex_lock(&conn->bar_lock);
	pthread_mutex_lock(&conn->registry.lock);
	if (pipe2(fork_pipe, O_CLOEXEC))
		fork_pipe[0] = fork_pipe[1] = -1;
}

static void after_fork_parent(void)
{
	struct rn_conn *conn = process_conn;
	char byte;

	if (conn) {
		close_fd(&fork_pipe[1]);
		/* Until the child's last copy, or its death. */
		while (fork_pipe[0] >= 0 && read(fork_pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
		close_fd(&fork_pipe[0]);
		pthread_mutex_unlock(&conn->registry.lock);
		pthread_mutex_unlock(&conn->bar_lock);
		pthread_mutex_unlock(&conn->call_lock);
		rn_pin_fork_parent(conn->pin);
		pthread_mutex_unlock(&conn->rings.lock);
	}
	pthread_mutex_unlock(&process_lock);
}

static void after_fork_child(void)
{
	struct rn_conn *conn = process_conn;

	pthread_mutex_init(&process_lock, NULL);
	process_conn = NULL;
	if (!conn)
		return;
	rn_conn_set_dead(conn);
	rn_pin_fork_child(conn->pin);
	mmap(conn->channel, RN_CHANNEL_BYTES, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	close_fd(&conn->fd);
	close_fd(&conn->wake_fd);
	close_fd(&conn->arena_fd);
	pthread_mutex_init(&conn->call_lock, NULL);
	pthread_mutex_init(&conn->bar_lock, NULL);
	pthread_mutex_init(&conn->registry.lock, NULL);
	pthread_mutex_init(&conn->rings.lock, NULL);
	close_fd(&fork_pipe[0]);
	close_fd(&fork_pipe[1]); /* lets the parent go on */
}

static void register_atfork(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static struct rn_conn *conn_new(void)
{
	struct rn_conn *conn = calloc(1, sizeof(*conn));
	int error;

	if (!conn)
		return NULL;
	conn->wake_fd = conn->arena_fd = conn->async_fd = -1;
	rn_vt_settle();
	conn->fd = rn_early_take();
	if (conn->fd < 0)
		conn->fd = rn_early_connect();
	if (conn->fd < 0) {
		free(conn);
		return NULL;
	}
	pthread_mutex_init(&conn->call_lock, NULL);
	pthread_mutex_init(&conn->bar_lock, NULL);
	rn_registry_init(&conn->registry);
	rn_rings_init(&conn->rings);
	error = set_up(conn);
	if (error) {
		tear_down(conn);
		errno = error;
		return NULL;
	}
	return conn;
}

struct rn_conn *rn_conn_get(void)
{
	struct rn_conn *conn;

	pthread_once(&atfork_once, register_atfork);
	pthread_mutex_lock(&process_lock);
	/* A dead one stays with its old objects; a fresh start gets a fresh connection. */
	if (process_conn && rn_conn_is_dead(process_conn))
		process_conn = NULL;
	if (!process_conn)
		process_conn = conn_new();
	conn = process_conn;
	if (conn)
		conn->refs++;
	pthread_mutex_unlock(&process_lock);
	return conn;
}

void rn_conn_ref(struct rn_conn *conn)
{
	pthread_mutex_lock(&process_lock);
	conn->refs++;
	pthread_mutex_unlock(&process_lock);
}

void rn_conn_put(struct rn_conn *conn)
{
	bool last;

	pthread_mutex_lock(&process_lock);
	last = --conn->refs == 0;
	if (last && process_conn == conn)
		process_conn = NULL;
	pthread_mutex_unlock(&process_lock);
	if (last)
		tear_down(conn);
}
