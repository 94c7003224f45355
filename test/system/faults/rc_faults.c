/* What a program sees when its peer, or the simulator, dies in mid-transfer.
 *
 * The dying side kills itself with SIGKILL at a time of its choice; the surviving side checks what its own queues say.
 * With "orphan" the simulator is killed from outside and each call must return an error, in each of several threads that
 * wait in different ways. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

enum { MESSAGE_BYTES = 65536, DEPTH = 8, RECEIVES = 16, QUIET_MS = 400 };

static const char usage[] = "Usage: rc_faults [options] -M MODE [SERVER]\n"
			    "  -M responder_dies | requester_dies | orphan   both sides the same\n"
			    "  -o OP      write, send or read (write)\n"
			    "  -k MS      the dying side lives so long after the start (50)\n"
			    "  -r N       retry_cnt (3)      -a CODE  timeout code (14)\n";

static struct settings {
	const char *mode;
	enum ibv_wr_opcode opcode;
	unsigned live_ms;
} settings = {.mode = "", .opcode = IBV_WR_RDMA_WRITE, .live_ms = 50};

static struct peer_options options;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct area {
	uint8_t *buffer;
	struct ibv_mr *mr;
};

static int post(struct peer *peer, const struct area *area, uint64_t id)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)area->buffer, .length = MESSAGE_BYTES, .lkey = area->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = settings.opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = peer->remote.va, .rkey = peer->remote.rkey},
		};

	return ibv_post_send(peer->qp, &wr, &bad);
}

static int post_receive(struct peer *peer, const struct area *area)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)area->buffer, .length = MESSAGE_BYTES, .lkey = area->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(peer->qp, &wr, &bad);
}

/* Receive until the peer is gone, or this side's time has come. */
static void serve_until(struct peer *peer, const struct area *area, double until_s)
{
	struct pollfd hang_up = {.fd = peer->socket, .events = POLLIN};
	struct ibv_wc wc;

	while (now_s() < until_s && poll(&hang_up, 1, 0) == 0)
		while (ibv_poll_cq(peer->recv_cq, 1, &wc) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS, "receive: %s",
			      ibv_wc_status_str(wc.status));
			CHECK(post_receive(peer, area) == 0, "post_recv");
		}
}

/* Keep the queue full until something fails or the time is over. */
static void stream(struct peer *peer, const struct area *area, double until_s, struct ibv_wc *wc)
{
	uint64_t posted = 0, done = 0;

	while (now_s() < until_s) {
		while (posted - done < DEPTH)
			CHECK(post(peer, area, posted++) == 0, "post_send");
		peer_wait(peer, peer->send_cq, wc);
		CHECK(wc->wr_id == done, "completion of %llu, not %llu",
		      (unsigned long long)wc->wr_id, (unsigned long long)done);
		if (wc->status != IBV_WC_SUCCESS)
			break;
		done++;
	}
}

__attribute__((noreturn)) static void die(void)
{
	fflush(stdout);
	kill(getpid(), SIGKILL);
	abort();
}

/* --- the responder dies --- */

/* What is behind the failed request is flushed, in order, and nothing else comes. */
static void expect_flushed(struct peer *peer, uint64_t failed)
{
	struct ibv_wc wc;

	for (unsigned n = 1; n < DEPTH; n++) {
		peer_wait(peer, peer->send_cq, &wc);
		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == failed + n, "wr_id %llu: %s",
		      (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
	}
	peer_expect_empty(peer->send_cq);
	CHECK(peer_qp_state(peer) == IBV_QPS_ERR, "state %d", (int)peer_qp_state(peer));
}

static void survive_responder(struct peer *peer, const struct area *area)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	stream(peer, area, now_s() + peer->options.wait_s, &wc);
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR, "%s", ibv_wc_status_str(wc.status));
	expect_flushed(peer, wc.wr_id);
	printf("rc_faults: error %d\n", (int)wc.status);
}

/* --- the requester dies --- */

/* As on hardware: nothing at all happens at the other end of an RC connection. */
static void survive_requester(struct peer *peer, const struct area *area)
{
	struct pollfd event = {.fd = peer->context->async_fd, .events = POLLIN};
	double from_s = now_s();
	struct ibv_wc wc;
	char byte;

	serve_until(peer, area, from_s + peer->options.wait_s);
	CHECK(recv(peer->socket, &byte, 1, 0) <= 0, "the client lives");
	poll(NULL, 0, 50); /* what was on its way */
	while (ibv_poll_cq(peer->recv_cq, 1, &wc) == 1)
		CHECK(wc.status == IBV_WC_SUCCESS, "receive: %s", ibv_wc_status_str(wc.status));
	poll(NULL, 0, QUIET_MS);
	peer_expect_empty(peer->recv_cq);
	peer_expect_empty(peer->send_cq);
	CHECK(poll(&event, 1, 0) == 0, "an asynchronous event");
	CHECK(peer_qp_state(peer) == IBV_QPS_RTS, "state %d", (int)peer_qp_state(peer));
	printf("rc_faults: nothing happened\n");
}

/* --- the simulator dies --- */

static struct peer *orphan;
static struct area *orphan_area;

static void *wait_for_cq_event(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	/* The queue is armed and nobody sends: this waits until the simulator is gone. */
	while (ibv_get_cq_event(orphan->channel, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
	printf("rc_faults: get_cq_event fails\n");
	return NULL;
}

static void *wait_for_async_event(void *arg)
{
	struct ibv_async_event event;

	(void)arg;
	while (ibv_get_async_event(orphan->context, &event) == 0)
		ibv_ack_async_event(&event);
	printf("rc_faults: get_async_event fails\n");
	return NULL;
}

static void *keep_posting(void *arg)
{
	struct ibv_wc wc;
	int got = 0, error = 0;

	(void)arg;
	while (got >= 0 && !error) {
		error = post(orphan, orphan_area, 0);
		if (error == ENOMEM) /* full */
			error = 0;
		got = ibv_poll_cq(orphan->send_cq, 1, &wc);
	}
	CHECK(error == 0 || error == EIO, "post_send: %d", error);
	while ((got = ibv_poll_cq(orphan->send_cq, 1, &wc)) >= 0)
		;
	printf("rc_faults: poll_cq fails\n");
	return NULL;
}

static void *keep_registering(void *arg)
{
	static char memory[8192];
	struct ibv_mr *mr;

	(void)arg;
	while ((mr = ibv_reg_mr(orphan->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE)))
		ibv_dereg_mr(mr);
	printf("rc_faults: reg_mr fails\n");
	return NULL;
}

static void check_every_call(struct peer *peer, const struct area *area)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_port_attr port;
	struct ibv_qp_init_attr init;

	CHECK(post(peer, area, 0) == EIO, "post_send");
	CHECK(post_receive(peer, area) == EIO, "post_recv");
	CHECK(ibv_req_notify_cq(peer->recv_cq, 0) != 0, "req_notify_cq");
	CHECK(ibv_modify_qp(peer->qp, &attr, IBV_QP_STATE) != 0, "modify_qp");
	CHECK(ibv_query_qp(peer->qp, &attr, IBV_QP_STATE, &init) != 0, "query_qp");
	CHECK(ibv_query_port(peer->context, 1, &port) != 0, "query_port");
	CHECK(!ibv_alloc_pd(peer->context), "alloc_pd");
	CHECK(!ibv_create_cq(peer->context, 16, NULL, NULL, 0), "create_cq");
	CHECK(!ibv_create_comp_channel(peer->context), "create_comp_channel");
	printf("rc_faults: calls fail\n");
}

static void be_orphaned(struct peer *peer, struct area *area)
{
	void *(*const waits[])(void *) = {wait_for_cq_event, wait_for_async_event, keep_posting,
					  keep_registering};
	pthread_t thread[4];

	signal(SIGTERM, SIG_IGN); /* to see it, although `rnicsim run` ends its programs */
	orphan = peer;
	orphan_area = area;
	CHECK(ibv_req_notify_cq(peer->recv_cq, 0) == 0, "req_notify_cq");
	for (unsigned n = 0; n < 4; n++)
		CHECK(pthread_create(&thread[n], NULL, waits[n], NULL) == 0, "thread");
	printf("rc_faults: ready\n");
	fflush(stdout);
	for (unsigned n = 0; n < 4; n++)
		pthread_join(thread[n], NULL);
	check_every_call(peer, area);
}

/* --- */

static void take(int letter, const char *argument)
{
	const unsigned value = (unsigned)strtoul(argument, NULL, 0);

	switch (letter) {
	case 'M':
		settings.mode = argument;
		break;
	case 'o':
		settings.opcode = !strcmp(argument, "send")   ? IBV_WR_SEND
				  : !strcmp(argument, "read") ? IBV_WR_RDMA_READ
							      : IBV_WR_RDMA_WRITE;
		break;
	case 'k':
		settings.live_ms = value;
		break;
	case 'r':
		options.retry_cnt = value;
		break;
	case 'a':
		options.ack_timeout = value;
		break;
	}
}

static void play(struct peer *peer, struct area *area)
{
	const bool server = peer->is_server;
	const double until_s = now_s() + settings.live_ms / 1e3;
	struct ibv_wc wc;

	if (!strcmp(settings.mode, "orphan")) {
		be_orphaned(peer, area);
	} else if (!strcmp(settings.mode, "responder_dies")) {
		if (!server) {
			survive_responder(peer, area);
			return;
		}
		serve_until(peer, area, until_s);
		die();
	} else if (!strcmp(settings.mode, "requester_dies")) {
		if (server) {
			survive_requester(peer, area);
			return;
		}
		stream(peer, area, until_s, &wc);
		die();
	} else {
		CHECK(0, "no mode %s", settings.mode);
	}
}

/* The survivor's objects can all be destroyed, and new ones work. */
static void leave(struct peer *peer, struct area *area)
{
	peer_destroy_qp(peer);
	peer_create_qp(peer);
	peer_destroy_qp(peer);
	CHECK(ibv_dereg_mr(area->mr) == 0, "dereg_mr");
	CHECK(ibv_dealloc_pd(peer->pd) == 0, "dealloc_pd");
	CHECK(ibv_close_device(peer->context) == 0, "close_device");
	printf("rc_faults: left in order\n");
}

int main(int argc, char **argv)
{
	struct peer peer;
	struct area area;

	options = peer_defaults;
	options.retry_cnt = 3;
	peer_parse(&options, argc, argv, "M:o:k:r:a:", take, usage);
	options.events = !strcmp(settings.mode, "orphan");
	peer_open(&peer, &options);
	area.buffer = aligned_alloc(4096, MESSAGE_BYTES);
	CHECK(area.buffer, "memory");
	area.mr = ibv_reg_mr(peer.pd, area.buffer, MESSAGE_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	CHECK(area.mr, "reg_mr");
	peer_create_qp(&peer);
	for (unsigned n = 0; n < RECEIVES; n++)
		CHECK(post_receive(&peer, &area) == 0, "post_recv");
	peer_connect(&peer, area.buffer, area.mr->rkey);
	play(&peer, &area);
	if (strcmp(settings.mode, "orphan"))
		leave(&peer, &area);
	return 0;
}
