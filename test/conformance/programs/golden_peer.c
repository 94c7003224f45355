/* Does what the program behind the captures in traces/rocev2_verbs did (traces/README.md describes it), so that
 * the simulator's capture can be compared packet by packet: same addresses, data, sizes, first PSNs and order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peer.h"

static const char usage[] =
	"Usage: golden_peer [options] -o MODE [SERVER]\n"
	"Without SERVER it is the server. Both sides need the same options.\n"
	"  -p PORT   TCP port for set-up (18600)      -g INDEX  GID index (0)\n"
	"  -m BYTES  path MTU (1024)                  -t S      longest wait (30)\n"
	"  -P PSN    the client's first PSN (0x123400)\n"
	"  -o MODE   send send_imm send_se send_inline write write_imm read: sizes 0 to 4096, one at a time\n"
	"            burst duplex one_write one_send one_read: by -c and -s\n"
	"            bad_rkey_write bad_rkey_read oob_write oob_read noperm_write noperm_read long_send:\n"
	"            the responder refuses\n"
	"            rnr rnr_exceeded: the receive is posted 250 ms late, or never\n"
	"            dead_peer: the server does not connect\n"
	"  -c N      messages of burst (32), -s BYTES size (one_*: 4096, burst: 64)\n"
	"  -R CODE   RNR timer code, -r N rnr_retry, -A CODE ACK timeout, -n N retry_cnt\n";

enum { AREA_BYTES = 65536, RECEIVE_AT = 0x8000, SLOT_BYTES = 4096 + 104, RECEIVES = 8 };

static const size_t sizes[] = {0, 1, 3, 64, 1024, 1025, 4096};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct {
	const char *mode;
	unsigned count, bytes;
} settings = {.count = 32};

static struct peer_options options;

struct area {
	uint8_t *bytes, *no_rights;
	struct ibv_mr *mr, *no_rights_mr;
};

static struct area map_area(struct peer *peer)
{
	uintptr_t base = peer->is_server ? 0x20000000 : 0x10000000;
	struct area area;

	area.bytes = mmap((void *)base, AREA_BYTES + 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(area.bytes == (void *)base, "map at 0x%zx", (size_t)base);
	area.no_rights = area.bytes + AREA_BYTES;
	for (unsigned i = 0; i < AREA_BYTES; i++)
		area.bytes[i] = (uint8_t)(7 * i + (peer->is_server ? 2 : 1));
	area.mr = ibv_reg_mr(peer->pd, area.bytes, AREA_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	area.no_rights_mr = ibv_reg_mr(peer->pd, area.no_rights, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(area.mr && area.no_rights_mr, "reg_mr");
	return area;
}

static bool is_mode(const char *name)
{
	return strcmp(settings.mode, name) == 0;
}

static void post_receive(struct peer *peer, struct area *area, unsigned index, uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)area->bytes + RECEIVE_AT +
				      (index % RECEIVES) * (uintptr_t)SLOT_BYTES % 0x7000,
			      .length = bytes,
			      .lkey = area->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 1001 + index, .sg_list = &sge, .num_sge = 1};

	CHECK(ibv_post_recv(peer->qp, &wr, &bad) == 0, "post_recv");
}

struct request {
	enum ibv_wr_opcode opcode;
	size_t bytes;
	unsigned flags;
	uint32_t imm, rkey;
	uint64_t remote;
};

static void post(struct peer *peer, struct area *area, struct request request, uint64_t id)
{
	bool reads = request.opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sge = {.addr = (uintptr_t)area->bytes + (reads ? RECEIVE_AT : 0),
			      .length = (uint32_t)request.bytes,
			      .lkey = area->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = id,
		      .sg_list = &sge,
		      .num_sge = request.bytes ? 1 : 0,
		      .opcode = request.opcode,
		      .send_flags = request.flags,
		      .imm_data = htobe32(request.imm),
		      .wr.rdma = {.remote_addr = request.remote, .rkey = request.rkey}};

	CHECK(ibv_post_send(peer->qp, &wr, &bad) == 0, "post_send");
}

static void expect(struct peer *peer, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	peer_wait(peer, cq, &wc);
	CHECK(wc.wr_id == id && wc.status == status, "wr_id %llu: %s", (unsigned long long)wc.wr_id,
	      ibv_wc_status_str(wc.status));
}

/* The request of a mode that goes through all sizes; opcode IBV_WR_BIND_MW if it is none. */
static struct request sized_request(struct peer *peer, unsigned index)
{
	struct request request = {.opcode = IBV_WR_SEND,
				  .bytes = sizes[index],
				  .flags = IBV_SEND_SIGNALED,
				  .rkey = peer->remote.rkey,
				  .remote = peer->remote.va + RECEIVE_AT + index * SLOT_BYTES};

	if (is_mode("send_imm")) {
		request.opcode = IBV_WR_SEND_WITH_IMM;
		request.imm = 0xdeadbe00 + index;
	} else if (is_mode("send_se")) {
		request.flags |= IBV_SEND_SOLICITED;
	} else if (is_mode("send_inline")) {
		request.flags |= IBV_SEND_INLINE;
	} else if (is_mode("write")) {
		request.opcode = IBV_WR_RDMA_WRITE;
	} else if (is_mode("write_imm")) {
		request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		request.imm = 0xcafe0000 + index;
	} else if (is_mode("read")) {
		request.opcode = IBV_WR_RDMA_READ;
		request.remote = peer->remote.va;
	} else if (!is_mode("send")) {
		request.opcode = IBV_WR_BIND_MW;
	}
	return request;
}

static unsigned sized_count(void)
{
	return is_mode("send_inline") ? 4 : SIZES;
}

static void client_sized(struct peer *peer, struct area *area)
{
	for (unsigned i = 0; i < sized_count(); i++) {
		post(peer, area, sized_request(peer, i), i + 1);
		expect(peer, peer->send_cq, i + 1, IBV_WC_SUCCESS);
	}
}

static struct request one_request(struct peer *peer)
{
	struct request request = {.opcode = IBV_WR_SEND,
				  .bytes = settings.bytes,
				  .flags = IBV_SEND_SIGNALED,
				  .rkey = peer->remote.rkey,
				  .remote = peer->remote.va + RECEIVE_AT};

	if (is_mode("one_write"))
		request.opcode = IBV_WR_RDMA_WRITE;
	if (is_mode("dead_peer")) {
		request.opcode = IBV_WR_RDMA_WRITE;
		request.remote = peer->remote.va;
	}
	if (is_mode("one_read")) {
		request.opcode = IBV_WR_RDMA_READ;
		request.remote = peer->remote.va;
	}
	return request;
}

/* One list, only its last request signaled. */
static void post_burst(struct peer *peer, struct area *area, unsigned count, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)area->bytes, .length = bytes, .lkey = area->mr->lkey};
	struct ibv_send_wr wrs[64], *bad;

	CHECK(count <= 64, "%u messages", count);
	memset(wrs, 0, sizeof(wrs));
	for (unsigned i = 0; i < count; i++) {
		wrs[i].wr_id = i + 1;
		wrs[i].next = i + 1 < count ? &wrs[i + 1] : NULL;
		wrs[i].sg_list = &sge;
		wrs[i].num_sge = 1;
		wrs[i].opcode = IBV_WR_SEND;
		wrs[i].send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED;
	}
	CHECK(ibv_post_send(peer->qp, wrs, &bad) == 0, "post_send");
}

static void receive_all(struct peer *peer, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		expect(peer, peer->recv_cq, 1001 + i, IBV_WC_SUCCESS);
}

/* What the responder refuses; false if the mode is none of these. */
static bool faulty_request(struct peer *peer, uint64_t no_rights_rkey, struct request *request)
{
	*request = (struct request){.opcode = IBV_WR_RDMA_WRITE,
				    .bytes = 64,
				    .flags = IBV_SEND_SIGNALED,
				    .rkey = peer->remote.rkey,
				    .remote = peer->remote.va};
	if (is_mode("bad_rkey_read") || is_mode("oob_read") || is_mode("noperm_read"))
		request->opcode = IBV_WR_RDMA_READ;
	if (is_mode("bad_rkey_write") || is_mode("bad_rkey_read")) {
		request->rkey ^= 0x550000;
	} else if (is_mode("oob_write") || is_mode("oob_read")) {
		request->remote += AREA_BYTES - 32;
	} else if (is_mode("noperm_write") || is_mode("noperm_read")) {
		request->remote += AREA_BYTES;
		request->rkey = (uint32_t)no_rights_rkey;
	} else if (is_mode("long_send")) {
		request->opcode = IBV_WR_SEND;
		request->bytes = 128;
	} else {
		return false;
	}
	return true;
}

static void client_faulty(struct peer *peer, struct area *area, struct request request)
{
	struct request next = {.opcode = IBV_WR_RDMA_WRITE,
			       .bytes = 16,
			       .flags = IBV_SEND_SIGNALED,
			       .rkey = peer->remote.rkey,
			       .remote = peer->remote.va};
	bool access = request.opcode != IBV_WR_SEND;

	post(peer, area, request, 1);
	post(peer, area, next, 2);
	expect(peer, peer->send_cq, 1, access ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR);
	expect(peer, peer->send_cq, 2, IBV_WC_WR_FLUSH_ERR);
}

static void run_client(struct peer *peer, struct area *area, uint64_t no_rights_rkey)
{
	struct request request;

	if (faulty_request(peer, no_rights_rkey, &request)) {
		client_faulty(peer, area, request);
	} else if (is_mode("burst")) {
		post_burst(peer, area, settings.count, settings.bytes);
		expect(peer, peer->send_cq, settings.count, IBV_WC_SUCCESS);
	} else if (is_mode("duplex")) {
		post_burst(peer, area, 8, 1500);
		receive_all(peer, 8);
		expect(peer, peer->send_cq, 8, IBV_WC_SUCCESS);
	} else if (sized_request(peer, 0).opcode != IBV_WR_BIND_MW) {
		client_sized(peer, area);
	} else {
		post(peer, area, one_request(peer), 1);
		expect(peer, peer->send_cq, 1,
		       is_mode("rnr_exceeded") ? IBV_WC_RNR_RETRY_EXC_ERR
		       : is_mode("dead_peer")  ? IBV_WC_RETRY_EXC_ERR
					       : IBV_WC_SUCCESS);
	}
}

static unsigned server_receives(void)
{
	struct request unused;
	struct peer none = {.is_server = true};

	if (faulty_request(&none, 0, &unused))
		return 1;
	if (is_mode("burst"))
		return settings.count;
	if (is_mode("duplex"))
		return 8;
	if (is_mode("one_send"))
		return 1;
	return is_mode("send") || is_mode("send_imm") || is_mode("send_se") ||
			       is_mode("send_inline") || is_mode("write_imm")
		       ? sized_count()
		       : 0;
}

static uint32_t receive_bytes(void)
{
	return is_mode("long_send") ? 64 : is_mode("one_send") ? settings.bytes : 4096;
}

static void run_server(struct peer *peer, struct area *area)
{
	struct request unused;

	if (faulty_request(peer, 0, &unused)) {
		expect(peer, peer->recv_cq, 1001,
		       is_mode("long_send") ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR);
	} else if (is_mode("duplex")) {
		post_burst(peer, area, 8, 1500);
		receive_all(peer, 8);
		expect(peer, peer->send_cq, 8, IBV_WC_SUCCESS);
	} else if (is_mode("rnr")) {
		usleep(250000);
		post_receive(peer, area, 0, 4096);
		receive_all(peer, 1);
	} else {
		receive_all(peer, server_receives());
	}
}

static void take(int letter, const char *argument)
{
	unsigned value = (unsigned)strtoul(argument, NULL, 0);

	switch (letter) {
	case 'o':
		settings.mode = argument;
		break;
	case 'c':
		settings.count = value;
		break;
	case 's':
		settings.bytes = value;
		break;
	case 'R':
		options.rnr_timer = value;
		break;
	case 'r':
		options.rnr_retry = value;
		break;
	case 'A':
		options.ack_timeout = value;
		break;
	case 'n':
		options.retry_cnt = value;
		break;
	}
}

int main(int argc, char **argv)
{
	struct peer peer;
	uint64_t mine, no_rights_rkey;

	options = peer_defaults;
	options.psn = 0x123400;
	options.ack_timeout = 20;
	peer_parse(&options, argc, argv, "o:c:s:R:r:A:n:", take, usage);
	CHECK(settings.mode, "no mode (-o)");
	if (!settings.bytes)
		settings.bytes = is_mode("one_write") || is_mode("one_send") || is_mode("one_read")
					 ? 4096
					 : 64;
	if (!options.server)
		options.psn = 0xabcd00;

	peer_open(&peer, &options);
	struct area area = map_area(&peer);
	peer_create_qp(&peer);
	if (peer.is_server || is_mode("duplex"))
		for (unsigned i = 0; i < server_receives(); i++)
			post_receive(&peer, &area, i, receive_bytes());
	mine = area.no_rights_mr->rkey;
	peer_write(&peer, &mine, sizeof(mine));
	peer_read(&peer, &no_rights_rkey, sizeof(no_rights_rkey));
	peer_exchange(&peer, area.bytes, area.mr->rkey);
	if (!peer.is_server || !is_mode("dead_peer")) {
		peer_to_rtr(&peer);
		peer_to_rts(&peer);
	}
	peer_barrier(&peer);
	if (peer.is_server)
		run_server(&peer, &area);
	else
		run_client(&peer, &area, no_rights_rkey);
	peer_barrier(&peer);
	peer_destroy_qp(&peer);
	printf("golden_peer: %s done\n", settings.mode);
	return 0;
}
