/* Moves patterned data over one RC connection with every RC operation and checks every byte, every completion
 * and that nothing beside the data changed, at both ends.
 *
 * Source and target are split in several scatter/gather entries with gaps between them; gaps and ends of the
 * target hold a guard byte that must survive. The side that starts an operation alternates with the round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

enum { GAP_BYTES = 13, MAX_SGES = 4, UNSIGNALED = 5 };
enum { GUARD = 0xee, SCRIBBLE = 0xdd };

static const char usage[] =
	"Usage: rc_verify [options] [SERVER]\n"
	"Without SERVER it is the server. Both sides need the same options.\n"
	"  -p PORT   TCP port for set-up (18600)      -g INDEX  GID index (0)\n"
	"  -m BYTES  path MTU (1024)                  -t S      longest wait (30)\n"
	"  -e        completion events, no polling    -P PSN    first PSN (0)\n"
	"  -o LIST   operations: send,send_imm,write,write_imm,read (all)\n"
	"  -s LIST   sizes in bytes (0,1,3,64,MTU,MTU+1,4096,65536,1048576)\n"
	"  -n N      rounds (2)                       -k N      scatter/gather entries, 1 to 4 (3)\n"
	"  -i        inline where the size allows it  -u        unsignaled writes before each operation\n"
	"  -l MS     post receives so late (RNR NAK)  -R CODE   RNR timer code (12)\n";

static const char *const operations[] = {"send", "send_imm", "write", "write_imm", "read"};

enum { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, OPERATIONS };

static struct settings {
	bool wanted[OPERATIONS];
	size_t sizes[32];
	unsigned size_count, rounds, sges, late_ms;
	bool use_inline, unsignaled;
} settings = {.rounds = 2, .sges = 3};

/* A buffer of both sides: source, target and a page for the unsignaled writes. */
struct area {
	uint8_t *source, *target;
	size_t bytes; /* of each half */
	struct ibv_mr *mr;
};

/* The low bits keep a last byte, padded with zeroes, from looking like an EtherType to a dissector. */
static uint8_t pattern(size_t at, unsigned seed)
{
	return (uint8_t)(((at * 7 + (at >> 8) * 13 + seed * 31 + 1) ^ (at >> 16)) | 3);
}

/* Cuts size bytes into the settings' number of entries with gaps; some of them may be empty. */
static unsigned split(uint8_t *base, size_t size, unsigned sges, uint32_t lkey,
		      struct ibv_sge *list)
{
	size_t at = 0, done = 0;

	for (unsigned i = 0; i < sges; i++) {
		size_t left = size - done;
		size_t take = i + 1 == sges ? left : left / 2 + (left > 100 ? i * 3 : 0);

		if (take > left)
			take = left;
		at += GAP_BYTES;
		list[i].addr = (uintptr_t)(base + at);
		list[i].length = (uint32_t)take;
		list[i].lkey = lkey;
		at += take;
		done += take;
	}
	return sges;
}

/* One entry that holds it all: what a remote address can express. */
static uint8_t *whole(uint8_t *base)
{
	return base + GAP_BYTES;
}

static void fill(const struct ibv_sge *list, unsigned count, unsigned seed)
{
	size_t at = 0;

	for (unsigned i = 0; i < count; i++)
		for (uint32_t j = 0; j < list[i].length; j++)
			((uint8_t *)(uintptr_t)list[i].addr)[j] = pattern(at++, seed);
}

/* The entries hold the pattern, everything else of the area the guard byte. */
static void check_target(const struct area *area, const struct ibv_sge *list, unsigned count,
			 unsigned seed)
{
	const uint8_t *at = area->target, *end = area->target + area->bytes;
	size_t position = 0;

	for (unsigned i = 0; i < count; i++) {
		const uint8_t *entry = (const uint8_t *)(uintptr_t)list[i].addr;

		for (; at < entry; at++)
			CHECK(*at == GUARD, "wrote outside, at offset %zd", at - area->target);
		for (; at < entry + list[i].length; at++, position++)
			CHECK(*at == pattern(position, seed), "byte %zu is 0x%02x, not 0x%02x",
			      position, *at, pattern(position, seed));
	}
	for (; at < end; at++)
		CHECK(*at == GUARD, "wrote behind, at offset %zd", at - area->target);
}

static struct area make_area(struct peer *peer)
{
	struct area area = {.bytes = 0};

	for (unsigned i = 0; i < settings.size_count; i++)
		if (settings.sizes[i] > area.bytes)
			area.bytes = settings.sizes[i];
	area.bytes += (MAX_SGES + 2) * GAP_BYTES + 64;

	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t total = (2 * area.bytes + page) / page * page;
	area.source = aligned_alloc(page, total);
	CHECK(area.source, "%zu bytes", total);
	memset(area.source, GUARD, total);
	area.target = area.source + area.bytes;
	area.mr = ibv_reg_mr(peer->pd, area.source, total,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	CHECK(area.mr, "reg_mr");
	return area;
}

static bool takes_receive(unsigned operation)
{
	return operation == SEND || operation == SEND_IMM || operation == WRITE_IMM;
}

static void post_receive(struct peer *peer, const struct ibv_sge *list, unsigned count, uint64_t id)
{
	struct ibv_recv_wr wr = {
		.wr_id = id, .sg_list = (struct ibv_sge *)list, .num_sge = (int)count};
	struct ibv_recv_wr *bad;

	CHECK(ibv_post_recv(peer->qp, &wr, &bad) == 0, "post_recv");
}

/* Writes of one byte, without completions, into the last byte of the other side's source. */
static void post_unsignaled(struct peer *peer, struct area *area, uint64_t remote)
{
	struct ibv_sge one = {.addr = (uintptr_t)area->source, .length = 1, .lkey = area->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 666,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = &one,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = remote, .rkey = peer->remote.rkey}};
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i < UNSIGNALED; i++)
		CHECK(ibv_post_send(peer->qp, &wr, &bad) == 0, "post_send");
}

static const enum ibv_wr_opcode wr_opcodes[OPERATIONS] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
							  IBV_WR_RDMA_WRITE,
							  IBV_WR_RDMA_WRITE_WITH_IMM,
							  IBV_WR_RDMA_READ};
static const enum ibv_wc_opcode wc_opcodes[OPERATIONS] = {
	IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};

/* The side that posts the operation. */
static void start(struct peer *peer, struct area *area, unsigned operation, size_t size,
		  unsigned seed)
{
	struct ibv_sge list[MAX_SGES];
	uint8_t *base = operation == READ ? area->target : area->source;
	unsigned count = split(base, size, settings.sges, area->mr->lkey, list);
	bool fits = settings.use_inline && operation != READ && size <= peer->options.inline_bytes;
	uint64_t other_target = peer->remote.va + area->bytes + GAP_BYTES;
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = seed,
			.opcode = wr_opcodes[operation],
			.send_flags = IBV_SEND_SIGNALED | (fits ? IBV_SEND_INLINE : 0),
			.imm_data = htobe32(0xabc00000 | seed),
			.sg_list = list,
			.num_sge = (int)count,
			.wr.rdma = {.remote_addr = operation == READ ? peer->remote.va + GAP_BYTES
								     : other_target,
				    .rkey = peer->remote.rkey},
		};
	struct ibv_wc wc;

	memset(area->target, GUARD, area->bytes);
	if (operation != READ)
		fill(list, count, seed);
	if (fits)
		for (unsigned i = 0; i < count; i++)
			list[i].lkey = 0xbad;
	peer_barrier(peer); /* the other side is ready */
	if (settings.unsignaled)
		post_unsignaled(peer, area, peer->remote.va);
	CHECK(ibv_post_send(peer->qp, &wr, &bad) == 0, "post_send of %s", operations[operation]);
	if (fits) /* inline data is the library's once post_send has returned */
		memset(area->source, SCRIBBLE, area->bytes);
	peer_wait(peer, peer->send_cq, &wc);
	CHECK(wc.status == IBV_WC_SUCCESS, "%s of %zu: %s", operations[operation], size,
	      ibv_wc_status_str(wc.status));
	CHECK(wc.wr_id == seed && wc.qp_num == peer->qp->qp_num, "wr_id %llu",
	      (unsigned long long)wc.wr_id);
	CHECK(wc.opcode == wc_opcodes[operation], "opcode %d", (int)wc.opcode);
	CHECK(operation != READ || wc.byte_len == size, "byte_len %u", wc.byte_len);
	peer_expect_empty(peer->send_cq);
	if (operation == READ)
		check_target(area, list, count, seed);
	peer_barrier(peer);
}

static void check_receive(struct peer *peer, unsigned operation, size_t size, unsigned seed)
{
	struct ibv_wc wc;
	bool imm = operation != SEND;

	peer_wait(peer, peer->recv_cq, &wc);
	CHECK(wc.status == IBV_WC_SUCCESS, "receive of %s: %s", operations[operation],
	      ibv_wc_status_str(wc.status));
	CHECK(wc.wr_id == (seed | 1u << 31) && wc.qp_num == peer->qp->qp_num, "wr_id %llu",
	      (unsigned long long)wc.wr_id);
	CHECK(wc.byte_len == size, "byte_len %u, not %zu", wc.byte_len, size);
	CHECK(wc.opcode == (operation == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV),
	      "opcode %d", (int)wc.opcode);
	CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == imm, "flags 0x%x", wc.wc_flags);
	CHECK(!imm || be32toh(wc.imm_data) == (0xabc00000 | seed), "immediate data 0x%x",
	      be32toh(wc.imm_data));
	peer_expect_empty(peer->recv_cq);
}

/*
 * Without immediate data nothing tells this side of a WRITE. Its requester's completion does not promise that the data
 * is in memory (IBA volume 1, 9.5): it may still be on its way through PCIe. The last byte comes last.
 */
static void wait_for_last_byte(const struct peer *peer, const struct ibv_sge *entry, unsigned seed)
{
	const volatile uint8_t *last =
		(const volatile uint8_t *)(uintptr_t)(entry->addr + entry->length - 1);
	time_t deadline = time(NULL) + (time_t)peer->options.wait_s;

	/* What is wrong then, the check of all bytes tells. */
	while (entry->length && *last != pattern(entry->length - 1, seed) && time(NULL) < deadline)
		;
}

/* The side on which the operation lands. */
static void serve(struct peer *peer, struct area *area, unsigned operation, size_t size,
		  unsigned seed)
{
	struct ibv_sge list[MAX_SGES];
	bool scattered = operation == SEND || operation == SEND_IMM;
	unsigned count =
		scattered ? split(area->target, size, settings.sges, area->mr->lkey, list) : 1;

	if (!scattered) {
		list[0].addr = (uintptr_t)whole(operation == READ ? area->source : area->target);
		list[0].length = (uint32_t)size;
	}
	memset(area->target, GUARD, area->bytes);
	if (operation == READ)
		fill(list, count, seed);
	bool late = settings.late_ms && takes_receive(operation);
	if (late)
		peer_barrier(peer);
	if (late)
		usleep(settings.late_ms * 1000);
	if (takes_receive(operation))
		post_receive(peer, list, scattered ? count : 0, seed | 1u << 31);
	if (!late)
		peer_barrier(peer);
	if (takes_receive(operation))
		check_receive(peer, operation, size, seed);
	peer_barrier(peer); /* the starter has its completion */
	if (operation == WRITE)
		wait_for_last_byte(peer, &list[0], seed);
	if (operation != READ)
		check_target(area, list, count, seed);
}

static void run(struct peer *peer, struct area *area)
{
	unsigned seed = 0, done = 0;

	for (unsigned round = 0; round < settings.rounds; round++)
		for (unsigned operation = 0; operation < OPERATIONS; operation++)
			for (unsigned i = 0; settings.wanted[operation] && i < settings.size_count;
			     i++) {
				bool mine = peer->is_server == (round % 2 == 1);

				seed++;
				(mine ? start : serve)(peer, area, operation, settings.sizes[i],
						       seed);
				done++;
			}
	printf("rc_verify: %u operations, all data right\n", done);
}

static void take_operations(const char *list)
{
	char *copy = strdup(list), *rest = copy;

	for (char *name; (name = strsep(&rest, ","));) {
		unsigned at = 0;

		while (at < OPERATIONS && strcmp(name, operations[at]))
			at++;
		CHECK(at < OPERATIONS, "%s is no operation", name);
		settings.wanted[at] = true;
	}
	free(copy);
}

static void take_sizes(const char *list)
{
	char *end;

	settings.size_count = 0;
	do {
		CHECK(settings.size_count < 32, "too many sizes");
		settings.sizes[settings.size_count++] = strtoull(list, &end, 0);
		CHECK(end != list && (*end == ',' || !*end), "%s is no size", list);
		list = end + 1;
	} while (*end);
}

static struct peer_options options;

static void take(int letter, const char *argument)
{
	unsigned value = argument ? (unsigned)strtoul(argument, NULL, 0) : 0;

	switch (letter) {
	case 'o':
		take_operations(argument);
		break;
	case 's':
		take_sizes(argument);
		break;
	case 'n':
		settings.rounds = value;
		break;
	case 'k':
		CHECK(value >= 1 && value <= MAX_SGES, "%u entries", value);
		settings.sges = value;
		break;
	case 'l':
		settings.late_ms = value;
		break;
	case 'R':
		options.rnr_timer = value;
		break;
	case 'i':
		settings.use_inline = true;
		break;
	case 'u':
		settings.unsignaled = true;
		break;
	}
}

static void default_settings(void)
{
	const size_t sizes[] = {0,    1,     3,	     64, options.mtu_bytes, options.mtu_bytes + 1,
				4096, 65536, 1 << 20};
	bool any = false;

	for (unsigned i = 0; i < OPERATIONS; i++)
		any |= settings.wanted[i];
	for (unsigned i = 0; i < OPERATIONS && !any; i++)
		settings.wanted[i] = true;
	if (!settings.size_count) {
		memcpy(settings.sizes, sizes, sizeof(sizes));
		settings.size_count = sizeof(sizes) / sizeof(sizes[0]);
	}
}

int main(int argc, char **argv)
{
	struct peer peer;

	options = peer_defaults;
	options.sges = MAX_SGES;
	peer_parse(&options, argc, argv, "o:s:n:k:l:R:iu", take, usage);
	default_settings();

	peer_open(&peer, &options);
	struct area area = make_area(&peer);
	peer_create_qp(&peer);
	peer_connect(&peer, area.source, area.mr->rkey);
	run(&peer, &area);
	peer_barrier(&peer);
	peer_destroy_qp(&peer);
	CHECK(ibv_dereg_mr(area.mr) == 0, "dereg_mr");
	free(area.source);
	peer_close(&peer);
	return 0;
}
