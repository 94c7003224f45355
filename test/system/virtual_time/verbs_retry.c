/*
 * A requester whose peer has destroyed its queue pair: it gives up after all its acknowledge timeouts, some seconds
 * later. Prints how long that took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "peer.h"

enum { TIMEOUT_CODE = 18, RETRIES = 3 }; /* 4.096 us << 18 = 1.07 s */

static uint64_t now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static void take(int letter, const char *argument)
{
	(void)letter;
	(void)argument;
}

static void give_up(struct peer *peer, struct ibv_mr *mr)
{
	struct ibv_sge part = {.addr = (uintptr_t)mr->addr, .length = 64, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &part,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = peer->remote.va,
					     .rkey = peer->remote.rkey}};
	struct ibv_send_wr *bad;
	const uint64_t from_us = now_us();
	struct ibv_wc wc;

	CHECK(ibv_post_send(peer->qp, &wr, &bad) == 0, "post_send");
	peer_wait(peer, peer->send_cq, &wc);
	printf("%s after %llu us\n", ibv_wc_status_str(wc.status),
	       (unsigned long long)(now_us() - from_us));
}

int main(int argc, char **argv)
{
	struct peer_options options = peer_defaults;
	struct peer peer;
	struct ibv_mr *mr;
	char *buffer;

	options.ack_timeout = TIMEOUT_CODE;
	options.retry_cnt = RETRIES;
	options.wait_s = 100;
	peer_parse(&options, argc, argv, "", take, "Usage: verbs_retry [-e] [-p PORT] [SERVER]\n");
	peer_open(&peer, &options);
	buffer = calloc(1, 4096);
	CHECK(buffer, "memory");
	mr = ibv_reg_mr(peer.pd, buffer, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr, "reg_mr");
	peer_create_qp(&peer);
	peer_connect(&peer, buffer, mr->rkey);
	if (peer.is_server)
		peer_destroy_qp(&peer);
	peer_barrier(&peer);
	if (!peer.is_server)
		give_up(&peer, mr);
	peer_barrier(&peer);
	if (!peer.is_server)
		peer_destroy_qp(&peer);
	CHECK(ibv_dereg_mr(mr) == 0, "dereg_mr");
	free(buffer);
	peer_close(&peer);
	return 0;
}
