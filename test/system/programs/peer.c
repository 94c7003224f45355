#include "peer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const struct peer_options peer_defaults = {
	.port = 18600,
	.mtu_bytes = 1024,
	.wait_s = 30,
	.queue_wrs = 64,
	.sges = 4,
	.inline_bytes = 64,
	.rnr_timer = 12,
	.rnr_retry = 7,
	.retry_cnt = 7,
	.ack_timeout = 14,
	.rd_atomic = 4,
	.psn = 0,
	.qp_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};

static const char *role = "peer";

void peer_fail(const char *file, int line, const char *condition, const char *format, ...)
{
	int error = errno;
	const char *slash = strrchr(file, '/');
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: %s:%d: %s: ", role, slash ? slash + 1 : file, line, condition);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (errno: %s)\n", strerror(error));
	exit(1);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int listen_and_accept(const struct peer_options *options)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6,
				       .sin6_port = htons((uint16_t)options->port)};
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;
	struct pollfd readable = {.fd = listener, .events = POLLIN};

	CHECK(listener >= 0, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0, "port %u",
	      options->port);
	CHECK(listen(listener, 1) == 0, "listen");
	CHECK(poll(&readable, 1, (int)options->wait_s * 1000) == 1, "no client came");
	int fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0, "accept");
	close(listener);
	return fd;
}

/* The server may not listen yet: tries again until the time is up. */
static int connect_to(const struct peer_options *options)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	uint64_t deadline_ms = now_ms() + options->wait_s * 1000u;
	char port[16];
	int fd = -1;

	snprintf(port, sizeof(port), "%u", options->port);
	CHECK(getaddrinfo(options->server, port, &hints, &list) == 0, "%s", options->server);
	while (fd < 0) {
		for (struct addrinfo *at = list; at && fd < 0; at = at->ai_next) {
			fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
				close(fd);
				fd = -1;
			}
		}
		CHECK(fd >= 0 || now_ms() < deadline_ms, "no server at %s port %s", options->server,
		      port);
		if (fd < 0)
			poll(NULL, 0, 20);
	}
	freeaddrinfo(list);
	return fd;
}

static void open_device(struct peer *peer)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	CHECK(list && count > 0, "no RDMA device");
	peer->context = ibv_open_device(list[0]);
	CHECK(peer->context, "open %s", ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	peer->pd = ibv_alloc_pd(peer->context);
	CHECK(peer->pd, "alloc_pd");
}

void peer_open(struct peer *peer, const struct peer_options *options)
{
	struct timeval limit = {.tv_sec = options->wait_s};
	int on = 1;

	memset(peer, 0, sizeof(*peer));
	peer->options = *options;
	peer->is_server = !options->server;
	role = peer->is_server ? "server" : "client";
	open_device(peer);
	peer->socket = peer->is_server ? listen_and_accept(options) : connect_to(options);
	setsockopt(peer->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(peer->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void peer_close(struct peer *peer)
{
	CHECK(ibv_dealloc_pd(peer->pd) == 0, "dealloc_pd");
	CHECK(ibv_close_device(peer->context) == 0, "close_device");
	close(peer->socket);
}

void peer_create_qp(struct peer *peer)
{
	const struct peer_options *options = &peer->options;
	int depth = (int)options->queue_wrs;

	if (options->events) {
		peer->channel = ibv_create_comp_channel(peer->context);
		CHECK(peer->channel, "create_comp_channel");
	}
	peer->send_cq = ibv_create_cq(peer->context, depth, peer, peer->channel, 0);
	peer->recv_cq = ibv_create_cq(peer->context, depth, peer, peer->channel, 0);
	CHECK(peer->send_cq && peer->recv_cq, "create_cq");

	struct ibv_qp_init_attr init = {
		.send_cq = peer->send_cq,
		.recv_cq = peer->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = options->queue_wrs,
			.max_recv_wr = options->queue_wrs,
			.max_send_sge = options->sges,
			.max_recv_sge = options->sges,
			.max_inline_data = options->inline_bytes},
	};
	peer->qp = ibv_create_qp(peer->pd, &init);
	CHECK(peer->qp, "create_qp");
	CHECK(init.cap.max_inline_data >= options->inline_bytes, "inline %u",
	      init.cap.max_inline_data);

	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = (unsigned)options->qp_access};
	CHECK(ibv_modify_qp(peer->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		      0,
	      "to INIT");
}

void peer_destroy_qp(struct peer *peer)
{
	CHECK(ibv_destroy_qp(peer->qp) == 0, "destroy_qp");
	CHECK(ibv_destroy_cq(peer->send_cq) == 0, "destroy_cq");
	CHECK(ibv_destroy_cq(peer->recv_cq) == 0, "destroy_cq");
	if (peer->channel)
		CHECK(ibv_destroy_comp_channel(peer->channel) == 0, "destroy_comp_channel");
	peer->channel = NULL;
}

void peer_exchange(struct peer *peer, const void *buffer, uint32_t rkey)
{
	struct peer_address mine = {.qpn = peer->qp->qp_num,
				    .psn = peer->options.psn,
				    .rkey = rkey,
				    .mtu_bytes = peer->options.mtu_bytes,
				    .va = (uintptr_t)buffer};

	CHECK(ibv_query_gid(peer->context, 1, (int)peer->options.gid_idx, &mine.gid) == 0,
	      "query_gid");
	peer_write(peer, &mine, sizeof(mine));
	peer_read(peer, &peer->remote, sizeof(peer->remote));
}

static enum ibv_mtu mtu_code(unsigned bytes)
{
	switch (bytes) {
	case 256:
		return IBV_MTU_256;
	case 512:
		return IBV_MTU_512;
	case 1024:
		return IBV_MTU_1024;
	case 2048:
		return IBV_MTU_2048;
	case 4096:
		return IBV_MTU_4096;
	default:
		peer_fail(__FILE__, __LINE__, "mtu", "%u is no path MTU", bytes);
	}
}

void peer_to_rtr(struct peer *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(peer->options.mtu_bytes),
		.dest_qp_num = peer->remote.qpn,
		.rq_psn = peer->remote.psn,
		.max_dest_rd_atomic = (uint8_t)peer->options.rd_atomic,
		.min_rnr_timer = (uint8_t)peer->options.rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->remote.gid,
				    .sgid_index = (uint8_t)peer->options.gid_idx,
				    .hop_limit = 64}},
	};

	CHECK(ibv_modify_qp(peer->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0,
	      "to RTR");
}

void peer_to_rts(struct peer *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = peer->options.psn,
		.timeout = (uint8_t)peer->options.ack_timeout,
		.retry_cnt = (uint8_t)peer->options.retry_cnt,
		.rnr_retry = (uint8_t)peer->options.rnr_retry,
		.max_rd_atomic = (uint8_t)peer->options.rd_atomic,
	};

	CHECK(ibv_modify_qp(peer->qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	      "to RTS");
}

void peer_connect(struct peer *peer, const void *buffer, uint32_t rkey)
{
	peer_exchange(peer, buffer, rkey);
	CHECK(peer->remote.mtu_bytes == peer->options.mtu_bytes, "the other side has MTU %u",
	      peer->remote.mtu_bytes);
	peer_to_rtr(peer);
	peer_to_rts(peer);
	peer_barrier(peer);
}

enum ibv_qp_state peer_qp_state(struct peer *peer)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	CHECK(ibv_query_qp(peer->qp, &attr, IBV_QP_STATE, &init) == 0, "query_qp");
	return attr.qp_state;
}

void peer_write(struct peer *peer, const void *data, size_t bytes)
{
	CHECK(send(peer->socket, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes,
	      "the other side left");
}

void peer_read(struct peer *peer, void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = recv(peer->socket, (char *)data + done, bytes - done, 0);

		CHECK(got > 0, "the other side left, or said nothing for %u s",
		      peer->options.wait_s);
		done += (size_t)got;
	}
}

void peer_barrier(struct peer *peer)
{
	char mark = 'b';

	peer_write(peer, &mark, 1);
	peer_read(peer, &mark, 1);
	CHECK(mark == 'b', "got 0x%x", (unsigned char)mark);
}

/* One event arrives in time; it is acknowledged. */
static void wait_event(struct peer *peer, uint64_t deadline_ms)
{
	struct pollfd readable = {.fd = peer->channel->fd, .events = POLLIN};
	struct ibv_cq *cq = NULL;
	void *context = NULL;
	uint64_t now = now_ms();

	CHECK(now < deadline_ms && poll(&readable, 1, (int)(deadline_ms - now)) == 1,
	      "no completion event");
	CHECK(ibv_get_cq_event(peer->channel, &cq, &context) == 0, "get_cq_event");
	CHECK((cq == peer->send_cq || cq == peer->recv_cq) && context == peer, "whose event?");
	ibv_ack_cq_events(cq, 1);
}

void peer_wait(struct peer *peer, struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t deadline_ms = now_ms() + peer->options.wait_s * 1000u;
	int got = ibv_poll_cq(cq, 1, wc);

	while (got == 0 && peer->options.events) {
		/* Arming first: a completion between the poll and the arming would raise no event. */
		CHECK(ibv_req_notify_cq(cq, 0) == 0, "req_notify_cq");
		got = ibv_poll_cq(cq, 1, wc);
		if (got == 0) {
			wait_event(peer, deadline_ms);
			got = ibv_poll_cq(cq, 1, wc);
		}
	}
	while (got == 0) {
		CHECK(now_ms() < deadline_ms, "no completion within %u s", peer->options.wait_s);
		got = ibv_poll_cq(cq, 1, wc);
	}
	CHECK(got == 1, "poll_cq says %d", got);
}

void peer_expect_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int got = ibv_poll_cq(cq, 1, &wc);

	CHECK(got == 0, "unexpected completion: %d, wr_id %llu, status %d", got,
	      got > 0 ? (unsigned long long)wc.wr_id : 0ull, got > 0 ? (int)wc.status : 0);
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	CHECK(*text && !*end && value <= UINT32_MAX, "%s is no number", text);
	return (unsigned)value;
}

void peer_parse(struct peer_options *options, int argc, char **argv, const char *letters,
		void (*take)(int letter, const char *argument), const char *usage)
{
	char all[64];
	int letter;

	snprintf(all, sizeof(all), "p:g:m:et:P:h%s", letters);
	while ((letter = getopt(argc, argv, all)) != -1) {
		switch (letter) {
		case 'p':
			options->port = number(optarg);
			break;
		case 'g':
			options->gid_idx = number(optarg);
			break;
		case 'm':
			options->mtu_bytes = number(optarg);
			break;
		case 't':
			options->wait_s = number(optarg);
			break;
		case 'P':
			options->psn = number(optarg) & 0xffffff;
			break;
		case 'e':
			options->events = true;
			break;
		case 'h':
			printf("%s", usage);
			exit(0);
		case '?':
			fprintf(stderr, "%s", usage);
			exit(2);
		default:
			take(letter, optarg);
		}
	}
	if (optind < argc)
		options->server = argv[optind];
}
