/* See traffic.h. */
#include "traffic.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* A side's buffer: sources, targets of the peer's messages, targets of its own READs; a slot a message in each. */
#define SLOT 16384u
enum region { SOURCE, TARGET, READ_TARGET, REGIONS };

static const uint32_t sizes[] = {0, 1, 100, 1023, 1024, 1025, 4096, 10000, 64, 2048, 3};

static uint8_t opcode_of(unsigned link, unsigned side, unsigned message)
{
	static const uint8_t opcodes[] = {RN_WQE_SEND,	    RN_WQE_RDMA_WRITE,
					  RN_WQE_RDMA_READ, RN_WQE_SEND_IMM,
					  RN_WQE_RDMA_READ, RN_WQE_RDMA_WRITE_IMM,
					  RN_WQE_RDMA_WRITE};

	return opcodes[(message + 3 * side + link) % RN_ARRAY_LEN(opcodes)];
}

static uint32_t bytes_of(unsigned link, unsigned side, unsigned message)
{
	return sizes[(message * 5 + side + 2 * link) % RN_ARRAY_LEN(sizes)];
}

static bool takes_receive(uint8_t opcode)
{
	return opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM ||
	       opcode == RN_WQE_RDMA_WRITE_IMM;
}

static uint64_t offset_of(const struct traffic *traffic, enum region region, unsigned message)
{
	return ((uint64_t)region * traffic->messages + message) * SLOT;
}

static uint64_t seed_of(unsigned link, unsigned side, unsigned message)
{
	return 1 + message + 1000 * side + 10000 * link;
}

static unsigned receives(const struct traffic *traffic, unsigned link, unsigned side)
{
	unsigned count = 0;

	for (unsigned m = 0; m < traffic->messages; m++)
		count += takes_receive(opcode_of(link, !side, m));
	return count;
}

static void prepare(struct traffic *traffic, unsigned l, unsigned side)
{
	struct world_link *link = &traffic->link[l];

	for (unsigned m = 0; m < traffic->messages; m++) {
		const uint64_t target = offset_of(traffic, TARGET, m);

		rn_scripted_fill(link->buffer[side].data + offset_of(traffic, SOURCE, m), SLOT,
				 seed_of(l, side, m));
		if (takes_receive(opcode_of(l, !side, m)))
			ck_assert_int_eq(rn_scripted_post_recv(link->qp[side], m,
							       link->buffer[side].va + target, SLOT,
							       link->key[side]),
					 RN_POST_OK);
	}
}

void traffic_init(struct traffic *traffic, struct world *world, unsigned links, unsigned messages,
		  const struct rn_scripted_path *path)
{
	memset(traffic, 0, sizeof(*traffic));
	traffic->world = world;
	traffic->links = links;
	traffic->messages = messages;
	for (unsigned l = 0; l < links; l++) {
		world_connect(world, (uint64_t)REGIONS * messages * SLOT, path, &traffic->link[l]);
		prepare(traffic, l, 0);
		prepare(traffic, l, 1);
	}
}

static void post(struct traffic *traffic, unsigned l, unsigned side, unsigned m)
{
	struct world_link *link = &traffic->link[l];
	const uint8_t opcode = opcode_of(l, side, m);
	const bool is_read = opcode == RN_WQE_RDMA_READ;

	ck_assert_int_eq(
		rn_scripted_post(link->qp[side],
				 &(struct rn_scripted_wr){
					 .opcode = opcode,
					 .flags = RN_WQE_SIGNALED,
					 .wr_id = m,
					 .va = link->buffer[side].va +
					       offset_of(traffic, is_read ? READ_TARGET : SOURCE, m),
					 .bytes = bytes_of(l, side, m),
					 .lkey = link->key[side],
					 .raddr = link->buffer[!side].va +
						  offset_of(traffic, is_read ? SOURCE : TARGET, m),
					 .rkey = link->key[!side],
					 .imm_be = m,
				 }),
		RN_POST_OK);
}

static void mix(uint64_t *digest, uint64_t value)
{
	*digest = (*digest ^ value) * UINT64_C(0x100000001b3);
	*digest ^= *digest >> 29;
}

static void take(struct traffic *traffic, unsigned l, unsigned side,
		 const struct rn_scripted_wc *wc)
{
	unsigned *count = wc->is_recv ? &traffic->received[l][side] : &traffic->sent[l][side];

	ck_assert_uint_eq(wc->status, RN_WC_SUCCESS);
	if (wc->is_recv)
		ck_assert_uint_eq(wc->byte_len, bytes_of(l, !side, (unsigned)wc->wr_id));
	else /* in order of posting */
		ck_assert_uint_eq(wc->wr_id, *count);
	++*count;
	mix(&traffic->digest, wc->made_ps);
	mix(&traffic->digest, wc->wr_id << 8 | wc->opcode);
}

static bool is_done(void *arg)
{
	struct traffic *traffic = arg;
	struct rn_scripted_wc wc[16];
	bool done = true;

	for (unsigned n = 0; n < 2 * traffic->links; n++) {
		const unsigned l = n / 2, side = n % 2;
		const uint32_t got = rn_scripted_poll(traffic->link[l].cq[side], wc, 16);

		for (uint32_t i = 0; i < got; i++)
			take(traffic, l, side, &wc[i]);
		done = done && traffic->sent[l][side] == traffic->messages &&
		       traffic->received[l][side] == receives(traffic, l, side);
	}
	return done;
}

bool traffic_run(struct traffic *traffic, uint64_t ps)
{
	struct rn_scripted *host = traffic->link[0].host[0];
	const uint64_t until_ps = rn_scripted_now_ps(host) + ps;
	bool done = false;

	for (unsigned n = 0; n < 2 * traffic->links; n++) {
		for (unsigned m = 0; m < traffic->messages; m++)
			post(traffic, n / 2, n % 2, m);
		rn_scripted_ring(traffic->link[n / 2].qp[n % 2]);
	}
	/* Looked at on a grid: what an order of wakes within a picosecond shows of memory does not count. */
	while (!done && rn_scripted_now_ps(host) < until_ps) {
		rn_scripted_run_for(host, WORLD_US);
		done = is_done(traffic);
	}
	mix(&traffic->digest, rn_scripted_now_ps(host));
	/* The last ACKs, and writes behind completions of the other side. */
	rn_scripted_run_for(host, 20 * WORLD_US);
	return done;
}

static void check_slot(const struct traffic *traffic, const struct world_link *link, unsigned side,
		       enum region region, unsigned m, uint32_t bytes, uint64_t seed)
{
	const uint8_t *data = link->buffer[side].data + offset_of(traffic, region, m);

	uint32_t clean = bytes;

	ck_assert(rn_scripted_holds(data, bytes, seed));
	while (clean < SLOT && !data[clean])
		clean++;
	ck_assert_uint_eq(clean, SLOT);
}

void traffic_check(const struct traffic *traffic)
{
	for (unsigned n = 0; n < 2 * traffic->links; n++) {
		const unsigned l = n / 2, side = n % 2;
		const struct world_link *link = &traffic->link[l];

		for (unsigned m = 0; m < traffic->messages; m++) {
			const bool is_read = opcode_of(l, side, m) == RN_WQE_RDMA_READ;
			const uint32_t bytes = bytes_of(l, side, m);

			check_slot(traffic, link, !side, TARGET, m, is_read ? 0 : bytes,
				   seed_of(l, side, m));
			check_slot(traffic, link, side, READ_TARGET, m, is_read ? bytes : 0,
				   seed_of(l, !side, m));
		}
	}
}
