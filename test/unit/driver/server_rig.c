/*
 * See server_rig.h.
 */
#include "server_rig.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct rig rig;
struct rn_server *server;
char server_path[64];

void server_rig_pump(void)
{
	rn_server_wake(server); /* look at the sockets now */
	rn_server_poll(server);
	rig_run(&rig);
}

int server_rig_plug_in(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, server_path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* The answer to what was sent; 0 when the server has hung up. */
ssize_t server_rig_get_answer(int fd, void *data, size_t bytes, int *fds)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct iovec part = {data, bytes};
	ssize_t got;

	for (;;) {
		struct msghdr message = {.msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = &control,
					 .msg_controllen = sizeof(control)};
		struct cmsghdr *header;

		server_rig_pump();
		got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (got < 0 && errno == EAGAIN)
			continue;
		header = CMSG_FIRSTHDR(&message);
		if (header && fds)
			memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
		return got;
	}
}

int server_rig_call(int fd, const void *request, size_t bytes)
{
	static struct rn_uapi_port answer; /* large enough */

	ck_assert_int_eq(send(fd, request, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
	return server_rig_get_answer(fd, &answer, sizeof(answer), NULL) > 0 ? answer.rsp.error : -1;
}

void server_rig_join(struct peer *peer, uint32_t version, uint32_t host)
{
	struct rn_uapi_attach request = {
		.req = {.op = RN_UAPI_ATTACH, .bytes = sizeof(request)},
		.version = version,
		.host = host,
	};
	int fds[3] = {-1, -1, -1};

	*peer = (struct peer){.fd = server_rig_plug_in()};
	ck_assert_int_eq(send(peer->fd, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
	ck_assert_int_gt(server_rig_get_answer(peer->fd, &peer->attach, sizeof(peer->attach), fds),
			 0);
	peer->channel_fd = fds[0];
	peer->arena_fd = fds[1];
	peer->wake_fd = fds[2];
	if (peer->attach.rsp.error)
		return;
	peer->channel = mmap(NULL, peer->attach.channel_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			     peer->channel_fd, 0);
	ck_assert_ptr_ne(peer->channel, MAP_FAILED);
}

void server_rig_quit(struct peer *peer)
{
	if (peer->channel)
		munmap(peer->channel, peer->attach.channel_bytes);
	close(peer->fd);
	close(peer->channel_fd);
	close(peer->arena_fd);
	close(peer->wake_fd);
}

void server_rig_wait_for_clients(uint32_t count)
{
	struct rn_driver_usage usage;

	do {
		server_rig_pump();
		rn_driver_get_usage(rig.driver, &usage);
	} while (usage.clients != count || rn_server_connections(server) != count);
}

bool server_rig_has_hung_up(int fd)
{
	char byte;

	return server_rig_get_answer(fd, &byte, 1, NULL) <= 0;
}

int server_rig_listen(struct rn_server **made)
{
	struct rn_driver *const drivers[] = {rig.driver};
	static struct rn_driver *kept[1];
	int error = 0;

	kept[0] = drivers[0];
	*made = rn_server_new(&(struct rn_server_env){.sim = rig.sim,
						      .path = server_path,
						      .drivers = kept,
						      .hosts = 1,
						      .free_run = true},
			      &error);
	return error;
}

void server_rig_set_up(void)
{
	rig_init(&rig);
	snprintf(server_path, sizeof(server_path), "/tmp/rn_server_test.%d", (int)getpid());
	ck_assert_int_eq(server_rig_listen(&server), 0);
}

void server_rig_tear_down(void)
{
	struct rn_driver_usage usage;
	static const struct rn_driver_usage none;

	rn_server_disconnect_all(server);
	rig_run(&rig);
	rn_driver_get_usage(rig.driver, &usage);
	ck_assert_mem_eq(&usage, &none, sizeof(usage));
	rn_server_free(server);
	ck_assert_int_eq(access(server_path, F_OK), -1);
	rig_fini(&rig);
}
