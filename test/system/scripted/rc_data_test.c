/* RC data end to end: sizes, PSNs, segments, message limits, READs outstanding, acknowledgements. */
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "run_suite.h"
#include "wire/opcode.h"
#include "wire/psn.h"
#include "world.h"

#define BUFFER (1u << 17)

static struct world world;
static struct world_link link;
static struct frames frames;

static void start(const struct rn_scripted_path *path, const struct rn_scripted_qp_spec *spec,
		  const char *const *set)
{
	world_init(&world, 2, set);
	world_start(&world, &(struct world_options){.capture = true});
	world_connect_hosts(&world, (const unsigned[]){0, 1}, BUFFER, path, spec, &link);
}

static void load(uint32_t mtu_bytes)
{
	world_end(&world);
	frames_load(&frames, world_path(&world, "pcap"), mtu_bytes);
}

static void finish(void)
{
	frames_free(&frames);
	world_fini(&world);
}

static bool takes_receive(uint8_t opcode)
{
	return opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM ||
	       opcode == RN_WQE_RDMA_WRITE_IMM;
}

/* --- sizes --- */

static const uint8_t opcodes[] = {RN_WQE_SEND, RN_WQE_SEND_IMM, RN_WQE_RDMA_WRITE,
				  RN_WQE_RDMA_WRITE_IMM, RN_WQE_RDMA_READ};

#define OPCODES (int)sizeof(opcodes)
#define MTUS 5 /* 256 .. 4096 */

/* Addresses are odd, so that pages, lines and words are crossed anywhere. */
#define FROM_OFFSET 4093u
#define TO_OFFSET 8190u

static void transfer(uint8_t opcode, uint32_t bytes, uint64_t seed)
{
	const bool is_read = opcode == RN_WQE_RDMA_READ;
	struct rn_scripted_wr wr = world_wr(&link, opcode, bytes);
	uint8_t *from = link.buffer[is_read].data + FROM_OFFSET;
	uint8_t *to = link.buffer[!is_read].data + TO_OFFSET;
	struct rn_scripted_wc wc;

	rn_scripted_fill(from, bytes + 8, seed);
	memset(link.buffer[!is_read].data, 0xee, BUFFER);
	wr.va += is_read ? TO_OFFSET : FROM_OFFSET;
	wr.raddr += is_read ? FROM_OFFSET : TO_OFFSET;
	if (takes_receive(opcode))
		ck_assert_int_eq(rn_scripted_post_recv(link.qp[1], seed,
						       link.buffer[1].va + TO_OFFSET, bytes,
						       link.key[1]),
				 RN_POST_OK);
	ck_assert_uint_eq(world_transfer(&link, &wr), RN_WC_SUCCESS);
	rn_scripted_run_for(link.host[0], 20 * WORLD_US);
	ck_assert(rn_scripted_holds(to, bytes, seed));
	ck_assert_uint_eq(to[-1], 0xee);
	ck_assert_uint_eq(to[bytes], 0xee);
	ck_assert_uint_eq(rn_scripted_poll(link.cq[1], &wc, 1), takes_receive(opcode));
	if (!takes_receive(opcode))
		return;
	ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, seed);
	ck_assert_uint_eq(wc.byte_len, bytes);
	if (opcode != RN_WQE_SEND)
		ck_assert_uint_eq(wc.imm_be, wr.imm_be);
}

static uint32_t packets_of(uint32_t bytes, uint32_t mtu)
{
	return bytes ? (bytes + mtu - 1) / mtu : 1;
}

/* Every PSN of the data in order, once, and no other frames than ACKs. */
static void check_psns(uint8_t opcode, uint32_t psn, uint32_t packets)
{
	const uint32_t data_host = opcode == RN_WQE_RDMA_READ;
	uint32_t seen = 0;

	for (size_t n = 0; n < frames.count; n++) {
		const struct frame *frame = &frames.frame[n];

		ck_assert(!frame->is_again);
		ck_assert(frame->class != RN_FAULT_NAK && frame->class != RN_FAULT_RNR_NAK);
		if (frame->host != data_host || frame->class == RN_FAULT_ACK)
			continue;
		ck_assert_uint_eq(frame->packet.psn, psn);
		psn = rn_psn_add(psn, 1);
		seen++;
	}
	ck_assert_uint_eq(seen, packets);
}

START_TEST(messages_of_all_sizes_around_the_mtu_arrive_and_psns_wrap)
{
	const uint8_t opcode = opcodes[_i % OPCODES];
	const uint32_t mtu = 256u << _i / OPCODES;
	const uint32_t sizes[] = {
		0,	 1,	      2,       3,	    4,	63,	 mtu - 1,      mtu,
		mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 65, 3 * mtu, 7 * mtu + 13, 16 * mtu + 1,
		mtu / 2};
	const unsigned count = sizeof(sizes) / sizeof(sizes[0]);
	struct rn_scripted_path path = RN_SCRIPTED_PATH;
	uint32_t packets = 0;

	path.mtu_bytes = mtu;
	path.psn[0] = 0xfffff0;
	path.psn[1] = 0xfffffe;
	path.gid_index = _i & 1;
	start(&path, NULL, NULL);
	for (unsigned n = 0; n < count; n++) {
		transfer(opcode, sizes[n], n + 1);
		packets += packets_of(sizes[n], mtu);
	}
	load(mtu);
	ck_assert_uint_gt(packets, 0x10);
	check_psns(opcode, 0xfffff0, packets);
	finish();
}
END_TEST

/* --- segments --- */

/* Lengths of nothing, of one byte, across pages; together as long on both sides. */
static const uint32_t gather[] = {0, 1, 4095, 4097, 0, 333, 1, 5000, 0};
static const uint32_t scatter[] = {7, 0, 5000, 1, 4096, 2000, 2423};

static uint32_t lay_out(const uint32_t *bytes, unsigned count, unsigned side,
			struct rn_hw_wqe_data *segments)
{
	uint32_t at = 5, total = 0;

	for (unsigned n = 0; n < count; n++) {
		segments[n] = (struct rn_hw_wqe_data){
			.bytes = bytes[n], .lkey = link.key[side], .va = link.buffer[side].va + at};
		at += bytes[n] + 11 * n; /* with gaps */
		total += bytes[n];
	}
	return total;
}

static void copy(bool out, unsigned side, const struct rn_hw_wqe_data *segments, unsigned count,
		 uint8_t *flat)
{
	for (unsigned n = 0; n < count; n++) {
		uint8_t *at = link.buffer[side].data + (segments[n].va - link.buffer[side].va);

		memcpy(out ? at : flat, out ? flat : at, segments[n].bytes);
		flat += segments[n].bytes;
	}
}

START_TEST(data_is_gathered_from_and_scattered_to_many_segments)
{
	const uint8_t opcode = opcodes[_i];
	const unsigned gathers = sizeof(gather) / sizeof(gather[0]);
	const unsigned scatters = sizeof(scatter) / sizeof(scatter[0]);
	const bool is_read = opcode == RN_WQE_RDMA_READ;
	const struct rn_scripted_qp_spec spec = {.rq_segments = 8};
	struct rn_hw_wqe_data from[16], to[16];
	static uint8_t sent[20000], got[20000];
	struct rn_scripted_path path = RN_SCRIPTED_PATH;
	struct rn_scripted_wc wc;
	uint32_t bytes;

	path.mtu_bytes = 1024;
	start(&path, &spec, NULL);
	bytes = lay_out(gather, gathers, 0, from);
	ck_assert_uint_eq(lay_out(scatter, scatters, 1, to), bytes);
	rn_scripted_fill(sent, bytes, 3);
	if (is_read) /* the requester scatters what lies in one piece */
		memcpy(link.buffer[1].data, sent, bytes);
	else
		copy(true, 0, from, gathers, sent);
	if (takes_receive(opcode))
		ck_assert_int_eq(rn_scripted_post_recv_segments(link.qp[1], 1, to, scatters),
				 RN_POST_OK);
	ck_assert_int_eq(rn_scripted_post_request(
				 link.qp[0], &(struct rn_send_request){.opcode = opcode,
								       .flags = RN_WQE_SIGNALED,
								       .rkey = link.key[1],
								       .raddr = link.buffer[1].va,
								       .segments = from,
								       .segment_count = gathers}),
			 RN_POST_OK);
	rn_scripted_ring(link.qp[0]);
	ck_assert_uint_eq(rn_scripted_wait(link.cq[0], &wc, 1, WORLD_MS), 1);
	ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
	rn_scripted_run_for(link.host[0], 20 * WORLD_US);
	if (is_read)
		copy(false, 0, from, gathers, got);
	else if (opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM)
		copy(false, 1, to, scatters, got);
	else
		memcpy(got, link.buffer[1].data, bytes);
	ck_assert_mem_eq(got, sent, bytes);
	finish();
}
END_TEST

/* --- the longest message --- */

/* Keys of 4 GiB whose pages are all the first of a small buffer: only the tables are large. */
static void make_long(unsigned side)
{
	ck_assert_int_eq(rn_scripted_reg_mr(link.host[side], link.buffer[side].va, BUFFER, 7,
					    &link.key[side]),
			 0);
	rn_scripted_mpt(link.host[side], link.key[side])->length = UINT64_C(1) << 32;
}

/* What becomes of one WQE of 2^31 and @more bytes; 255: it is on its way. */
static uint8_t post_long(uint8_t opcode, uint32_t more)
{
	struct rn_scripted_path path = RN_SCRIPTED_PATH;
	struct rn_scripted_wc wc;

	path.mtu_bytes = 256; /* 2^23 packets: the whole window */
	start(&path, NULL, NULL);
	make_long(0);
	make_long(1);

	const struct rn_hw_wqe_data segments[] = {
		{.bytes = 0x80000000, .lkey = link.key[0], .va = link.buffer[0].va},
		{.bytes = more, .lkey = link.key[0], .va = link.buffer[0].va},
	};

	ck_assert_int_eq(rn_scripted_post_request(
				 link.qp[0], &(struct rn_send_request){.opcode = opcode,
								       .flags = RN_WQE_SIGNALED,
								       .rkey = link.key[1],
								       .raddr = link.buffer[1].va,
								       .segments = segments,
								       .segment_count = 2}),
			 RN_POST_OK);
	rn_scripted_ring(link.qp[0]);
	return rn_scripted_wait(link.cq[0], &wc, 1, 5 * WORLD_US) ? wc.status : 255;
}

START_TEST(a_message_of_two_to_the_31_is_begun_and_one_byte_more_is_refused)
{
	const uint8_t opcode = _i ? RN_WQE_RDMA_READ : RN_WQE_RDMA_WRITE;
	const enum rn_fault_class class = _i ? RN_FAULT_READ_REQUEST : RN_FAULT_REQUEST_FIRST;
	const struct frame *first;

	ck_assert_uint_eq(post_long(opcode, 0), 255);
	load(256);
	first = frames_find(&frames, 0, class, 0, 0);
	ck_assert_ptr_nonnull(first);
	ck_assert_uint_eq(first->packet.reth_bytes, 0x80000000);
	finish();
	ck_assert_uint_eq(post_long(opcode, 1), RN_WC_LOC_LEN_ERR);
	load(256);
	ck_assert_uint_eq(frames_count(&frames, 0, RN_FAULT_ANY), 0);
	finish();
}
END_TEST

#define PIECES 16u
#define PIECE (0x80000000u / PIECES)

/* The same piece gathered 16 times into 2 GiB at the peer. */
static void post_two_gib(const struct rn_scripted_buffer *from, uint32_t lkey,
			 const struct rn_scripted_buffer *to, uint32_t rkey)
{
	struct rn_hw_wqe_data segments[PIECES];

	for (unsigned n = 0; n < PIECES; n++)
		segments[n] = (struct rn_hw_wqe_data){PIECE, lkey, from->va};
	ck_assert_int_eq(rn_scripted_post_request(
				 link.qp[0], &(struct rn_send_request){.opcode = RN_WQE_RDMA_WRITE,
								       .flags = RN_WQE_SIGNALED,
								       .rkey = rkey,
								       .raddr = to->va,
								       .segments = segments,
								       .segment_count = PIECES}),
			 RN_POST_OK);
	rn_scripted_ring(link.qp[0]);
}

START_TEST(a_message_of_two_to_the_31_arrives)
{
	struct rn_scripted_buffer from, to;
	struct rn_scripted_wc wc;
	uint32_t lkey, rkey;

	world_init(&world, 2, NULL);
	world_start(&world, NULL);
	world_connect(&world, BUFFER, &RN_SCRIPTED_PATH, &link);
	ck_assert(rn_scripted_alloc_mr(link.host[0], PIECE, &from, &lkey));
	ck_assert(rn_scripted_alloc_mr(link.host[1], UINT64_C(1) << 31, &to, &rkey));
	rn_scripted_fill(from.data, PIECE, 5);
	post_two_gib(&from, lkey, &to, rkey);
	ck_assert_uint_eq(rn_scripted_wait(link.cq[0], &wc, 1, 10 * RN_SCRIPTED_SECOND_PS), 1);
	ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
	rn_scripted_run_for(link.host[0], 20 * WORLD_US);
	for (unsigned n = 0; n < PIECES; n++)
		ck_assert(rn_scripted_holds(to.data + (uint64_t)n * PIECE, PIECE, 5));
	finish();
}
END_TEST

/* --- READs outstanding --- */

static const uint32_t rd_atomics[] = {1, 2, 3, 16};

START_TEST(reads_outstanding_reach_max_rd_atomic_and_never_exceed_it)
{
	const uint32_t limit = rd_atomics[_i];
	struct rn_scripted_path path = RN_SCRIPTED_PATH;
	struct rn_scripted_wc wc[40];
	uint32_t outstanding = 0, most = 0;

	path.rd_atomic = limit;
	path.mtu_bytes = 1024;
	start(&path, NULL, NULL);
	for (unsigned n = 0; n < 40; n++) {
		const struct rn_scripted_wr wr = world_wr(&link, RN_WQE_RDMA_READ, 3 * 1024);

		ck_assert_int_eq(rn_scripted_post(link.qp[0], &wr), RN_POST_OK);
	}
	rn_scripted_ring(link.qp[0]);
	ck_assert_uint_eq(rn_scripted_wait(link.cq[0], wc, 40, 10 * WORLD_MS), 40);
	load(1024);
	for (size_t n = 0; n < frames.count; n++) {
		if (frames.frame[n].class == RN_FAULT_READ_REQUEST)
			outstanding++;
		if (frames.frame[n].class == RN_FAULT_READ_RESPONSE_LAST)
			outstanding--;
		/* Those whose last response is on the line count no more: at least as many are outstanding. */
		ck_assert_uint_le(outstanding, limit);
		most = outstanding > most ? outstanding : most;
	}
	ck_assert_uint_eq(most, limit);
	finish();
}
END_TEST

/* --- acknowledgements --- */

static void flow(uint32_t bytes, uint32_t count)
{
	struct rn_scripted_flow run;
	struct rn_scripted_flow_spec spec =
		world_flow(&link, RN_WQE_RDMA_WRITE, bytes, count, count);

	rn_scripted_flow_start(&run, &spec);
	ck_assert(rn_scripted_flow_run(&run, RN_SCRIPTED_SECOND_PS));
	rn_scripted_flow_stop(&run);
	rn_scripted_run_for(link.host[0], 20 * WORLD_US);
}

static uint32_t acks_wanted(void)
{
	uint32_t count = 0;

	for (size_t n = 0; n < frames.count; n++)
		count += frames.frame[n].host == 0 && frames.frame[n].packet.ackreq;
	return count;
}

START_TEST(a_long_message_is_acknowledged_as_often_as_it_asks)
{
	struct rn_scripted_path path = RN_SCRIPTED_PATH;

	path.mtu_bytes = 1024;
	start(&path, NULL, NULL);
	flow(100 * 1024, 1);
	load(1024);
	/* Every 32nd packet and the last. */
	ck_assert_uint_eq(acks_wanted(), 4);
	ck_assert_uint_le(frames_count(&frames, 1, RN_FAULT_ACK), 4);
	ck_assert_ptr_nonnull(frames_find(&frames, 1, RN_FAULT_ACK, 99, 0));
	finish();
}
END_TEST

START_TEST(acks_that_are_due_together_are_sent_as_one)
{
	uint64_t merged;
	uint32_t psn = 0;

	start(&RN_SCRIPTED_PATH, NULL,
	      (const char *const[]){"hosts.*.nic.transport.ack_delay_ps=1000000", NULL});
	flow(64, 200);
	merged = world_nic_counter(&world, 1, "acks_merged");
	load(4096);
	ck_assert_uint_eq(acks_wanted(), 200);
	ck_assert_uint_gt(merged, 100);
	ck_assert_uint_eq(frames_count(&frames, 1, RN_FAULT_ACK), 200 - merged);
	/* Each covers more than the one before, the last all. */
	for (size_t n = 0; n < frames.count; n++) {
		if (frames.frame[n].class != RN_FAULT_ACK)
			continue;
		ck_assert_uint_ge(frames.frame[n].packet.psn, psn);
		ck_assert_uint_eq(frames.frame[n].packet.aeth_msn, frames.frame[n].packet.psn + 1);
		psn = frames.frame[n].packet.psn + 1;
	}
	ck_assert_uint_eq(psn, 200);
	finish();
}
END_TEST

START_TEST(a_responder_told_to_acknowledges_every_nth_packet)
{
	struct rn_scripted_path path = RN_SCRIPTED_PATH;

	path.mtu_bytes = 1024;
	start(&path, NULL,
	      (const char *const[]){"hosts.*.nic.transport.ack_every_packets=5", NULL});
	flow(31 * 1024, 1);
	load(1024);
	/* PSNs 4, 9 ... 29, and 30 that asks; none due while another waits to be sent. */
	ck_assert_uint_eq(frames_count(&frames, 1, RN_FAULT_ACK) +
				  (frames_find(&frames, 1, RN_FAULT_ACK, 29, 0) ? 0 : 1),
			  7);
	ck_assert_ptr_nonnull(frames_find(&frames, 1, RN_FAULT_ACK, 4, 0));
	ck_assert_ptr_nonnull(frames_find(&frames, 1, RN_FAULT_ACK, 30, 0));
	finish();
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("rc_data");

	tcase_add_loop_test(tcase, messages_of_all_sizes_around_the_mtu_arrive_and_psns_wrap, 0,
			    OPCODES * MTUS);
	tcase_add_loop_test(tcase, data_is_gathered_from_and_scattered_to_many_segments, 0,
			    OPCODES);
	tcase_add_loop_test(tcase, a_message_of_two_to_the_31_is_begun_and_one_byte_more_is_refused,
			    0, 2);
	if (getenv("RN_LONG"))
		tcase_add_test(tcase, a_message_of_two_to_the_31_arrives);
	tcase_add_loop_test(tcase, reads_outstanding_reach_max_rd_atomic_and_never_exceed_it, 0,
			    sizeof(rd_atomics) / sizeof(rd_atomics[0]));
	tcase_add_test(tcase, a_long_message_is_acknowledged_as_often_as_it_asks);
	tcase_add_test(tcase, acks_that_are_due_together_are_sent_as_one);
	tcase_add_test(tcase, a_responder_told_to_acknowledges_every_nth_packet);
	return run_suite(tcase, "rc_data");
}
