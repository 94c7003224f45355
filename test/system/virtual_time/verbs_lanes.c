/*
 * Several RC connections at once, each of a thread or a process of its own with its own device context: ping-pong of
 * SENDs, of another size on each lane. It prints how long the round trips took; in virtual time every figure repeats.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

#define LANES_MAX 8
#define LANE_BYTES(number) (64u << (3 * (number)))

static const char usage[] =
	"Usage: verbs_lanes [-T THREADS | -C CHILDREN] [-n N] [-e] [-p PORT] [SERVER]\n"
	"Lane i uses TCP port PORT + i. With -C the parent has lane 0.\n";

static struct peer_options options;
static unsigned threads = 1, children, rounds = 20;

struct lane {
	struct peer peer;
	unsigned number;
	uint32_t bytes;
	uint8_t *buffer; /* sent from the first half, received into the second */
	struct ibv_mr *mr;
	uint64_t least_ns, most_ns, sum_ns;
};

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void open_lane(struct lane *lane, unsigned number)
{
	struct peer_options own = options;

	memset(lane, 0, sizeof(*lane));
	lane->number = number;
	lane->bytes = LANE_BYTES(number);
	lane->least_ns = UINT64_MAX;
	own.port += number;
	peer_open(&lane->peer, &own);
	lane->buffer = calloc(2, lane->bytes);
	CHECK(lane->buffer, "memory");
	lane->mr = ibv_reg_mr(lane->peer.pd, lane->buffer, 2 * (size_t)lane->bytes,
			      IBV_ACCESS_LOCAL_WRITE);
	CHECK(lane->mr, "reg_mr");
	peer_create_qp(&lane->peer);
}

static void close_lane(struct lane *lane)
{
	peer_barrier(&lane->peer);
	peer_destroy_qp(&lane->peer);
	CHECK(ibv_dereg_mr(lane->mr) == 0, "dereg_mr");
	free(lane->buffer);
	peer_close(&lane->peer);
}

static void post_receive(struct lane *lane)
{
	struct ibv_sge part = {.addr = (uintptr_t)lane->buffer + lane->bytes,
			       .length = lane->bytes,
			       .lkey = lane->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &part, .num_sge = 1}, *bad;

	CHECK(ibv_post_recv(lane->peer.qp, &wr, &bad) == 0, "post_recv");
}

static void send_one(struct lane *lane, unsigned round)
{
	struct ibv_sge part = {
		.addr = (uintptr_t)lane->buffer, .length = lane->bytes, .lkey = lane->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &part,
				 .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memset(lane->buffer, (int)(round + lane->number + 1), lane->bytes);
	CHECK(ibv_post_send(lane->peer.qp, &wr, &bad) == 0, "post_send");
	peer_wait(&lane->peer, lane->peer.send_cq, &wc);
	CHECK(wc.status == IBV_WC_SUCCESS, "send: %s", ibv_wc_status_str(wc.status));
}

static void take_one(struct lane *lane, unsigned round)
{
	const uint8_t *last = lane->buffer + 2 * (size_t)lane->bytes - 1;
	struct ibv_wc wc;

	peer_wait(&lane->peer, lane->peer.recv_cq, &wc);
	CHECK(wc.status == IBV_WC_SUCCESS, "receive: %s", ibv_wc_status_str(wc.status));
	CHECK(*last == (uint8_t)(round + lane->number + 1), "round %u: last byte is %u", round,
	      *last);
	post_receive(lane);
}

static void ping_pong(struct lane *lane)
{
	for (unsigned round = 0; round < rounds; round++) {
		const uint64_t from_ns = now_ns();
		uint64_t took_ns;

		if (!lane->peer.is_server)
			send_one(lane, round);
		take_one(lane, round);
		if (lane->peer.is_server)
			send_one(lane, round);
		took_ns = now_ns() - from_ns;
		lane->least_ns = took_ns < lane->least_ns ? took_ns : lane->least_ns;
		lane->most_ns = took_ns > lane->most_ns ? took_ns : lane->most_ns;
		lane->sum_ns += took_ns;
	}
}

static void *run_lane(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;
	struct lane lane;

	open_lane(&lane, number);
	post_receive(&lane);
	peer_connect(&lane.peer, lane.buffer, lane.mr->rkey);
	ping_pong(&lane);
	printf("lane %u: QP 0x%06x, %u round trips of %u bytes: %" PRIu64 " to %" PRIu64
	       " ns, together %" PRIu64 ", over at %" PRIu64 "\n",
	       number, lane.peer.qp->qp_num, rounds, lane.bytes, lane.least_ns, lane.most_ns,
	       lane.sum_ns, now_ns());
	fflush(stdout);
	close_lane(&lane);
	return NULL;
}

static void run_threads(void)
{
	pthread_t thread[LANES_MAX];

	for (uintptr_t i = 1; i < threads; i++)
		CHECK(pthread_create(&thread[i], NULL, run_lane, (void *)i) == 0, "thread");
	run_lane(NULL);
	for (unsigned i = 1; i < threads; i++)
		CHECK(pthread_join(thread[i], NULL) == 0, "join");
}

static void run_children(void)
{
	pid_t child[LANES_MAX];

	for (uintptr_t i = 1; i <= children; i++) {
		child[i] = fork();
		CHECK(child[i] >= 0, "fork");
		if (child[i])
			continue;
		run_lane((void *)i);
		exit(0);
	}
	run_lane(NULL);
	for (unsigned i = 1; i <= children; i++) {
		int status = -1;

		CHECK(waitpid(child[i], &status, 0) == child[i] && status == 0,
		      "child %u: status 0x%x", i, (unsigned)status);
	}
}

static void take(int letter, const char *argument)
{
	const unsigned value = (unsigned)strtoul(argument, NULL, 0);

	CHECK(letter == 'n' || value < LANES_MAX, "%u lanes", value);
	if (letter == 'T')
		threads = value;
	else if (letter == 'C')
		children = value;
	else
		rounds = value;
}

int main(int argc, char **argv)
{
	options = peer_defaults;
	peer_parse(&options, argc, argv, "T:C:n:", take, usage);
	if (children)
		run_children();
	else
		run_threads();
	printf("all lanes over at %" PRIu64 "\n", now_ns());
	return 0;
}
