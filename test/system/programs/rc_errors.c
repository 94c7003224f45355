/* Provokes each RC error that a program can cause and checks the completions at both ends: the status of the
 * work request that failed, flushes of those behind it in order, the states of both queue pairs, memory that was
 * not to be written, and that the queue pairs work again after a reset.
 *
 * The client posts three work requests in one list; one of them is faulty. The server has three receives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

enum { AREA_BYTES = 32768, SMALL_BYTES = 16, WRS = 3, GUARD = 0xee };

static const char usage[] =
	"Usage: rc_errors [options] [SERVER]\n"
	"Without SERVER it is the server. Both sides need the same options.\n"
	"  -p PORT   TCP port for set-up (18600)      -g INDEX  GID index (0)\n"
	"  -m BYTES  path MTU (1024)                  -t S      longest wait (30)\n"
	"  -e        completion events, no polling    -P PSN    first PSN (0)\n"
	"  -c CASE   only this case                   -L        list the cases\n";

/* What is wrong with a key. Every region lies in the same buffer; STALE was deregistered, VARIANT is off by one bit. */
enum key { GOOD, UNKNOWN, BEYOND, OTHER_PD, NO_RIGHTS, STALE, VARIANT };

/* What the server does: connects, or stays in INIT; posts receives, or none. */
enum server { READY, NO_RECEIVES, NOT_CONNECTED };

struct error_case {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	unsigned faulty; /* which of the three work requests */
	enum key local, remote, receive;
	uint32_t receive_bytes;
	enum server server;
	int server_access; /* of the queue pair, beside local */
	enum ibv_wc_status client_status;
	/* of the server's first receive; IBV_WC_GENERAL_ERR: none completes, the QP stays in RTS */
	enum ibv_wc_status server_status;
	bool server_may_receive; /* requests behind the faulty one may have arrived already */
};

#define ALL (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define NONE IBV_WC_GENERAL_ERR
#define REMOTE(name_, opcode_, bytes_, remote_)                                                    \
	{                                                                                          \
		.name = name_, .opcode = opcode_, .bytes = bytes_, .remote = remote_,              \
		.receive_bytes = 64, .server_access = ALL, .client_status = IBV_WC_REM_ACCESS_ERR, \
		.server_status = IBV_WC_WR_FLUSH_ERR                                               \
	}
#define RECEIVE(name_, bytes_, receive_, receive_bytes_, client_, server_)                         \
	{                                                                                          \
		.name = name_, .opcode = IBV_WR_SEND, .bytes = bytes_, .receive = receive_,        \
		.receive_bytes = receive_bytes_, .server_access = ALL, .client_status = client_,   \
		.server_status = server_                                                           \
	}
#define LOCAL(name_, opcode_, faulty_, local_, may_)                                               \
	{                                                                                          \
		.name = name_, .opcode = opcode_, .bytes = 64, .faulty = faulty_, .local = local_, \
		.receive_bytes = 64, .server_access = ALL, .client_status = IBV_WC_LOC_PROT_ERR,   \
		.server_status = NONE, .server_may_receive = may_                                  \
	}

static const struct error_case cases[] = {
	REMOTE("write_unknown_rkey", IBV_WR_RDMA_WRITE, 64, UNKNOWN),
	REMOTE("write_long_unknown_rkey", IBV_WR_RDMA_WRITE, 8192, UNKNOWN),
	/* Its only packet consumes the receive, which fails with it; a longer one's first packet does not. */
	{
		.name = "write_imm_unknown_rkey",
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.bytes = 64,
		.remote = UNKNOWN,
		.receive_bytes = 64,
		.server_access = ALL,
		.client_status = IBV_WC_REM_ACCESS_ERR,
		.server_status = IBV_WC_LOC_ACCESS_ERR,
	},
	REMOTE("write_imm_long_unknown_rkey", IBV_WR_RDMA_WRITE_WITH_IMM, 8192, UNKNOWN),
	REMOTE("write_beyond", IBV_WR_RDMA_WRITE, 64, BEYOND),
	REMOTE("write_no_rights", IBV_WR_RDMA_WRITE, 64, NO_RIGHTS),
	REMOTE("write_other_pd", IBV_WR_RDMA_WRITE, 64, OTHER_PD),
	REMOTE("write_stale_rkey", IBV_WR_RDMA_WRITE, 64, STALE),
	REMOTE("write_other_variant", IBV_WR_RDMA_WRITE, 64, VARIANT),
	REMOTE("read_stale_rkey", IBV_WR_RDMA_READ, 64, STALE),
	REMOTE("read_unknown_rkey", IBV_WR_RDMA_READ, 64, UNKNOWN),
	REMOTE("read_beyond", IBV_WR_RDMA_READ, 64, BEYOND),
	REMOTE("read_no_rights", IBV_WR_RDMA_READ, 64, NO_RIGHTS),
	REMOTE("read_other_pd", IBV_WR_RDMA_READ, 64, OTHER_PD),
	RECEIVE("send_too_long", 128, GOOD, 64, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR),
	RECEIVE("send_too_long_packets", 8192, GOOD, 5000, IBV_WC_REM_INV_REQ_ERR,
		IBV_WC_LOC_LEN_ERR),
	RECEIVE("receive_unknown_lkey", 64, UNKNOWN, 64, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR),
	RECEIVE("receive_beyond", 64, BEYOND, 64, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR),
	RECEIVE("receive_other_pd", 64, OTHER_PD, 64, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR),
	RECEIVE("receive_no_rights", 64, NO_RIGHTS, 64, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR),
	RECEIVE("receive_stale_lkey", 64, STALE, 64, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR),
	LOCAL("send_stale_lkey", IBV_WR_SEND, 0, STALE, false),
	LOCAL("send_unknown_lkey", IBV_WR_SEND, 0, UNKNOWN, false),
	LOCAL("send_beyond", IBV_WR_SEND, 0, BEYOND, false),
	LOCAL("send_other_pd", IBV_WR_SEND, 0, OTHER_PD, false),
	LOCAL("write_unknown_lkey", IBV_WR_RDMA_WRITE, 0, UNKNOWN, false),
	LOCAL("second_unknown_lkey", IBV_WR_RDMA_WRITE, 1, UNKNOWN, false),
	LOCAL("read_into_no_rights", IBV_WR_RDMA_READ, 0, NO_RIGHTS, true),
	{.name = "write_qp_forbids",
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = 64,
	 .receive_bytes = 64,
	 .server_access = IBV_ACCESS_REMOTE_READ,
	 .client_status = IBV_WC_REM_INV_REQ_ERR,
	 .server_status = IBV_WC_WR_FLUSH_ERR},
	{.name = "read_qp_forbids",
	 .opcode = IBV_WR_RDMA_READ,
	 .bytes = 64,
	 .receive_bytes = 64,
	 .server_access = IBV_ACCESS_REMOTE_WRITE,
	 .client_status = IBV_WC_REM_INV_REQ_ERR,
	 .server_status = IBV_WC_WR_FLUSH_ERR},
	{.name = "rnr_retries_used_up",
	 .opcode = IBV_WR_SEND,
	 .bytes = 64,
	 .server = NO_RECEIVES,
	 .server_access = ALL,
	 .client_status = IBV_WC_RNR_RETRY_EXC_ERR,
	 .server_status = NONE},
	{.name = "retries_used_up",
	 .opcode = IBV_WR_SEND,
	 .bytes = 64,
	 .server = NOT_CONNECTED,
	 .server_access = ALL,
	 .client_status = IBV_WC_RETRY_EXC_ERR,
	 .server_status = NONE},
	/* IBA: a zero-length request does not look at the key */
	{.name = "zero_write_unknown_rkey",
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bytes = 0,
	 .remote = UNKNOWN,
	 .receive_bytes = 64,
	 .server_access = ALL,
	 .client_status = IBV_WC_SUCCESS,
	 .server_status = IBV_WC_SUCCESS},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* The regions of a side: one buffer registered thrice, with what is wrong with each. */
struct regions {
	uint8_t *buffer;
	struct ibv_pd *other_pd;
	struct ibv_mr *good, *other, *bare;
	uint32_t stale_lkey, stale_rkey;
};

static void register_regions(struct peer *peer, struct regions *regions)
{
	int rights = IBV_ACCESS_LOCAL_WRITE | ALL;
	struct ibv_mr *gone;

	regions->buffer = aligned_alloc(4096, AREA_BYTES);
	CHECK(regions->buffer, "memory");
	regions->other_pd = ibv_alloc_pd(peer->context);
	CHECK(regions->other_pd, "alloc_pd");
	regions->good = ibv_reg_mr(peer->pd, regions->buffer, AREA_BYTES / 2, rights);
	regions->other = ibv_reg_mr(regions->other_pd, regions->buffer, AREA_BYTES, rights);
	regions->bare = ibv_reg_mr(peer->pd, regions->buffer, AREA_BYTES, 0);
	gone = ibv_reg_mr(peer->pd, regions->buffer, AREA_BYTES, rights);
	CHECK(regions->good && regions->other && regions->bare && gone, "reg_mr");
	regions->stale_lkey = gone->lkey;
	regions->stale_rkey = gone->rkey;
	CHECK(ibv_dereg_mr(gone) == 0, "dereg_mr");
}

static void release_regions(struct regions *regions)
{
	CHECK(ibv_dereg_mr(regions->good) == 0, "dereg_mr");
	CHECK(ibv_dereg_mr(regions->other) == 0, "dereg_mr");
	CHECK(ibv_dereg_mr(regions->bare) == 0, "dereg_mr");
	CHECK(ibv_dealloc_pd(regions->other_pd) == 0, "dealloc_pd");
	free(regions->buffer);
}

struct region_keys {
	uint32_t good, other, bare, stale;
};

static struct region_keys keys_of(const struct regions *regions)
{
	return (struct region_keys){regions->good->rkey, regions->other->rkey, regions->bare->rkey,
				    regions->stale_rkey};
}

static uint32_t pick_key(struct region_keys keys, enum key kind)
{
	switch (kind) {
	case UNKNOWN:
		return keys.good ^ 0x00555500;
	case OTHER_PD:
		return keys.other;
	case NO_RIGHTS:
		return keys.bare;
	case STALE:
		return keys.stale;
	case VARIANT:
		return keys.good ^ 1;
	default:
		return keys.good;
	}
}

/* The good region's end is the buffer's middle: beyond it is memory that others may use. */
static uint64_t pick_address(uint64_t buffer, enum key kind)
{
	return kind == BEYOND ? buffer + AREA_BYTES / 2 - 32 : buffer;
}

static struct region_keys local_keys(const struct regions *regions)
{
	return (struct region_keys){regions->good->lkey, regions->other->lkey, regions->bare->lkey,
				    regions->stale_lkey};
}

static void post_receives(struct peer *peer, const struct regions *regions,
			  const struct error_case *error)
{
	for (unsigned i = 0; i < WRS; i++) {
		enum key kind = i ? GOOD : error->receive;
		struct ibv_sge sge = {
			.addr = pick_address((uintptr_t)regions->buffer, kind),
			.length = i ? 64 : error->receive_bytes,
			.lkey = pick_key(local_keys(regions), kind),
		};
		struct ibv_recv_wr *bad, wr = {.wr_id = 101 + i, .sg_list = &sge, .num_sge = 1};

		CHECK(ibv_post_recv(peer->qp, &wr, &bad) == 0, "post_recv");
	}
}

/* Three work requests in one list: the faulty one, the others small SENDs. */
static void post_requests(struct peer *peer, const struct regions *regions,
			  struct region_keys remote, const struct error_case *error)
{
	struct ibv_sge sges[WRS];
	struct ibv_send_wr *bad, wrs[WRS];

	for (unsigned i = 0; i < WRS; i++) {
		bool faulty = i == error->faulty;
		enum key kind = faulty ? error->local : GOOD;

		sges[i] = (struct ibv_sge){.addr = pick_address((uintptr_t)regions->buffer, kind),
					   .length = faulty ? error->bytes : SMALL_BYTES,
					   .lkey = pick_key(local_keys(regions), kind)};
		wrs[i] = (struct ibv_send_wr){
			.wr_id = 1 + i,
			.next = i + 1 < WRS ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
			.opcode = faulty ? error->opcode : IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = pick_address(peer->remote.va, error->remote),
				    .rkey = pick_key(remote, error->remote)}};
		if (i < error->faulty) /* what goes before it must not need a receive */
			wrs[i].opcode = IBV_WR_RDMA_READ;
	}
	CHECK(ibv_post_send(peer->qp, wrs, &bad) == 0, "post_send");
}

static void expect(struct peer *peer, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	peer_wait(peer, cq, &wc);
	CHECK(wc.wr_id == id, "completion of %llu, not %llu", (unsigned long long)wc.wr_id,
	      (unsigned long long)id);
	CHECK(wc.status == status, "wr_id %llu: %s, not %s", (unsigned long long)id,
	      ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	CHECK(wc.qp_num == peer->qp->qp_num, "qp_num 0x%x", wc.qp_num);
}

/* Work requests posted in the error state are flushed, too. */
static void expect_flush_of_late_posts(struct peer *peer, const struct regions *regions)
{
	struct ibv_sge sge = {.addr = (uintptr_t)regions->buffer,
			      .length = SMALL_BYTES,
			      .lkey = regions->good->lkey};
	struct ibv_send_wr *bad_send, send = {.wr_id = 51,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr *bad_receive, receive = {.wr_id = 151, .sg_list = &sge, .num_sge = 1};

	CHECK(peer_qp_state(peer) == IBV_QPS_ERR, "state %d", (int)peer_qp_state(peer));
	CHECK(ibv_post_send(peer->qp, &send, &bad_send) == 0, "post_send in ERR");
	expect(peer, peer->send_cq, 51, IBV_WC_WR_FLUSH_ERR);
	CHECK(ibv_post_recv(peer->qp, &receive, &bad_receive) == 0, "post_recv in ERR");
	expect(peer, peer->recv_cq, 151, IBV_WC_WR_FLUSH_ERR);
}

static void run_client(struct peer *peer, struct regions *regions, struct region_keys remote,
		       const struct error_case *error)
{
	post_requests(peer, regions, remote, error);
	for (unsigned i = 0; i < WRS; i++) {
		bool ok = i < error->faulty || error->client_status == IBV_WC_SUCCESS;

		expect(peer, peer->send_cq, 1 + i,
		       ok		    ? IBV_WC_SUCCESS
		       : i == error->faulty ? error->client_status
					    : IBV_WC_WR_FLUSH_ERR);
	}
	peer_expect_empty(peer->send_cq);
	if (error->client_status != IBV_WC_SUCCESS)
		expect_flush_of_late_posts(peer, regions);
	peer_barrier(peer);
}

static void check_untouched(const struct regions *regions)
{
	for (unsigned i = 0; i < AREA_BYTES; i++)
		CHECK(regions->buffer[i] == GUARD, "byte %u was written", i);
}

static void run_server(struct peer *peer, struct regions *regions, const struct error_case *error)
{
	bool dies = error->server_status != NONE && error->server_status != IBV_WC_SUCCESS;

	if (error->server_status != NONE)
		expect(peer, peer->recv_cq, 101, error->server_status);
	for (unsigned i = 1; dies && i < WRS; i++)
		expect(peer, peer->recv_cq, 101 + i, IBV_WC_WR_FLUSH_ERR);
	peer_barrier(peer); /* the client has all its completions */
	if (error->server_status == NONE && !error->server_may_receive)
		peer_expect_empty(peer->recv_cq);
	if (error->opcode != IBV_WR_SEND && error->client_status != IBV_WC_SUCCESS &&
	    !error->server_may_receive)
		check_untouched(regions);
	if (dies)
		expect_flush_of_late_posts(peer, regions);
	else if (error->server != NOT_CONNECTED)
		CHECK(peer_qp_state(peer) == IBV_QPS_RTS, "state %d", (int)peer_qp_state(peer));
}

static void reset_qp(struct peer *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_wc wc;

	CHECK(ibv_modify_qp(peer->qp, &attr, IBV_QP_STATE) == 0, "to RESET");
	while (ibv_poll_cq(peer->recv_cq, 1, &wc) > 0)
		;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL};
	CHECK(ibv_modify_qp(peer->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		      0,
	      "to INIT");
}

/* After RESET and back to RTS a SEND goes through. */
static void check_recovery(struct peer *peer, struct regions *regions)
{
	const struct error_case good = {.opcode = IBV_WR_SEND,
					.bytes = SMALL_BYTES,
					.receive_bytes = 64,
					.server_access = ALL,
					.client_status = IBV_WC_SUCCESS,
					.server_status = IBV_WC_SUCCESS};

	peer_barrier(peer);
	reset_qp(peer);
	peer->options.psn = (peer->options.psn + 1000) & 0xffffff;
	if (peer->is_server)
		post_receives(peer, regions, &good);
	peer_connect(peer, regions->buffer, regions->good->rkey);
	if (peer->is_server)
		run_server(peer, regions, &good);
	else
		run_client(peer, regions, keys_of(regions), &good);
}

static void run_case(struct peer *peer, const struct error_case *error)
{
	struct regions regions;
	struct region_keys mine, remote;

	peer->options.qp_access = peer->is_server ? error->server_access : ALL;
	peer->options.rnr_retry = error->server == NO_RECEIVES ? 1 : 7;
	peer->options.retry_cnt = error->server == NOT_CONNECTED ? 1 : 7;
	peer->options.ack_timeout = error->server == NOT_CONNECTED ? 10 : 14;
	register_regions(peer, &regions);
	peer_create_qp(peer);
	memset(regions.buffer, peer->is_server ? GUARD : 0x11, AREA_BYTES);
	if (peer->is_server && error->server == READY)
		post_receives(peer, &regions, error);
	mine = keys_of(&regions);
	peer_write(peer, &mine, sizeof(mine));
	peer_read(peer, &remote, sizeof(remote));
	peer_exchange(peer, regions.buffer, regions.good->rkey);
	if (!peer->is_server || error->server != NOT_CONNECTED) {
		peer_to_rtr(peer);
		peer_to_rts(peer);
	}
	peer_barrier(peer);
	if (peer->is_server)
		run_server(peer, &regions, error);
	else
		run_client(peer, &regions, remote, error);
	check_recovery(peer, &regions);
	peer_barrier(peer);
	peer_destroy_qp(peer);
	release_regions(&regions);
	printf("%s ok\n", error->name);
	fflush(stdout);
}

/* A program moves its queue pair to ERR: what was posted is flushed in order. */
static void run_modify_to_error(struct peer *peer)
{
	const struct error_case good = {.receive_bytes = 64};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct regions regions;

	peer->options.qp_access = ALL;
	register_regions(peer, &regions);
	peer_create_qp(peer);
	post_receives(peer, &regions, &good);
	peer_connect(peer, regions.buffer, regions.good->rkey);
	CHECK(ibv_modify_qp(peer->qp, &attr, IBV_QP_STATE) == 0, "to ERR");
	for (unsigned i = 0; i < WRS; i++)
		expect(peer, peer->recv_cq, 101 + i, IBV_WC_WR_FLUSH_ERR);
	expect_flush_of_late_posts(peer, &regions);
	peer_barrier(peer);
	peer_destroy_qp(peer);
	release_regions(&regions);
	printf("modify_to_error ok\n");
}

static const char *only;

static void take(int letter, const char *argument)
{
	if (letter == 'c') {
		only = argument;
		return;
	}
	for (unsigned i = 0; i < CASES; i++)
		printf("%s\n", cases[i].name);
	printf("modify_to_error\n");
	exit(0);
}

int main(int argc, char **argv)
{
	struct peer_options options = peer_defaults;
	struct peer peer;
	unsigned done = 0;

	peer_parse(&options, argc, argv, "c:L", take, usage);
	peer_open(&peer, &options);
	for (unsigned i = 0; i < CASES; i++)
		if (!only || !strcmp(only, cases[i].name)) {
			run_case(&peer, &cases[i]);
			done++;
		}
	if (!only || !strcmp(only, "modify_to_error")) {
		run_modify_to_error(&peer);
		done++;
	}
	CHECK(done, "no case %s", only);
	peer_barrier(&peer);
	peer_close(&peer);
	printf("rc_errors: %u cases, all as expected\n", done);
	return 0;
}
