#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/transport/world.h"
#include "sim/buffer.h"
#include "wire/opcode.h"
#include "wire/psn.h"

#define US UINT64_C(1000000)
#define REMOTE 0x40000u

static const uint32_t sizes[] = {0, 1, 3, 64, 1023, 1024, 1025, 4096, 10000};

static const struct rn_completion *completion(const struct world *world, unsigned host, unsigned n)
{
	ck_assert_uint_gt(world->host[host].completions, n);
	return &world->host[host].completion[n];
}

static void check_success(const struct world *world, unsigned host, unsigned count)
{
	ck_assert_uint_eq(world->host[host].completions, count);
	for (unsigned i = 0; i < count; i++)
		ck_assert_uint_eq(world->host[host].completion[i].status, RN_WC_SUCCESS);
}

START_TEST(writes_of_all_sizes_arrive)
{
	struct world *world = world_new(0);
	uint32_t bytes = sizes[_i];

	world_start(world);
	world_fill(world, 0, 0, bytes + 1, 3);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, bytes);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_success(world, 0, 1);
	ck_assert(world_same(world, 0, REMOTE, bytes));
	ck_assert_uint_eq(world->host[1].memory[REMOTE + bytes], 0);
	ck_assert_uint_eq(world_frames(world, 0, -1), bytes ? (bytes + 1023) / 1024 : 1);
	ck_assert_uint_eq(world_frames(world, 1, RN_BTH_ACKNOWLEDGE), 1);
	world_free(world, true);
}
END_TEST

START_TEST(reads_of_all_sizes_arrive)
{
	struct world *world = world_new(0);
	uint32_t bytes = sizes[_i];

	world_start(world);
	world_fill(world, 1, REMOTE, bytes + 1, 9);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, bytes);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_success(world, 0, 1);
	ck_assert_uint_eq(completion(world, 0, 0)->byte_len, bytes);
	ck_assert(world_same(world, 0, REMOTE, bytes));
	ck_assert_uint_eq(world->host[0].memory[bytes], 0);
	ck_assert_uint_eq(world_frames(world, 1, -1), bytes ? (bytes + 1023) / 1024 : 1);
	ck_assert_uint_eq(world_frames(world, 1, RN_BTH_ACKNOWLEDGE), 0);
	world_free(world, true);
}
END_TEST

START_TEST(sends_of_all_sizes_arrive_with_receive_completions)
{
	struct world *world = world_new(0);
	uint32_t bytes = sizes[_i];

	world_start(world);
	world_fill(world, 0, 0, bytes, 5);
	world_recv(world, 1, 1, REMOTE, bytes + 7);
	world_send(world, 0, 1, RN_WQE_SEND_IMM, 0, 0, bytes)->flags |= RN_WQE_SOLICITED;
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_success(world, 0, 1);
	check_success(world, 1, 1);
	ck_assert_uint_eq(completion(world, 1, 0)->byte_len, bytes);
	ck_assert_uint_eq(completion(world, 1, 0)->opcode, RN_CQE_RECV_IMM);
	ck_assert_uint_eq(completion(world, 1, 0)->imm_be, 0x78563412);
	ck_assert_uint_eq(completion(world, 1, 0)->solicited, 1);
	ck_assert(world_same(world, 0, REMOTE, bytes));
	world_free(world, true);
}
END_TEST

START_TEST(write_with_immediate_consumes_a_receive)
{
	struct world *world = world_new(0);

	world_start(world);
	world_fill(world, 0, 0, 3000, 5);
	world_recv(world, 1, 1, 0, 0);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE_IMM, 0, REMOTE, 3000);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_success(world, 1, 1);
	ck_assert_uint_eq(completion(world, 1, 0)->byte_len, 3000);
	ck_assert_uint_eq(completion(world, 1, 0)->opcode, RN_CQE_RECV_WRITE_IMM);
	ck_assert(world_same(world, 0, REMOTE, 3000));
	world_free(world, true);
}
END_TEST

/* Segments of odd lengths, zero-length ones among them, on both sides. */
static void split(struct rn_wqe *wqe, uint32_t base, uint32_t bytes)
{
	static const uint32_t lengths[] = {1, 0, 700, 3, 0, 1024, 5, 2000};

	wqe->sge_count = 0;
	wqe->total_bytes = bytes;
	for (unsigned i = 0; bytes && i < 8; i++) {
		uint32_t len = i == 7 || lengths[i] > bytes ? bytes : lengths[i];

		wqe->sge[wqe->sge_count++] =
			(struct rn_sge){.va = WORLD_VA + base, .bytes = len, .lkey = WORLD_KEY};
		base += len;
		bytes -= len;
	}
}

START_TEST(many_segments_gather_and_scatter)
{
	struct world *world = world_new(0);

	world_start(world);
	world_fill(world, 0, 0, 5000, 5);
	split(world_recv(world, 1, 1, 0, 0), REMOTE, 5000);
	split(world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 0), 0, 5000);
	split(world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 0), 0x20000, 5000);
	world_ring(world, 0, 1);
	world_run(world, 200 * US);
	check_success(world, 0, 2);
	check_success(world, 1, 1);
	ck_assert(world_same(world, 0, REMOTE, 5000));
	ck_assert(world_same(world, 0x20000, REMOTE, 5000));
	world_free(world, true);
}
END_TEST

START_TEST(inline_data_needs_no_dma)
{
	struct world *world = world_new(0);
	struct rn_wqe *wqe;

	world->mtu_log2 = 8;
	world_start(world);
	wqe = world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 600);
	wqe->inline_buf = rn_buffer_get(world->buffers);
	wqe->sge_count = 0;
	memset(rn_buffer_data(world->buffers, wqe->inline_buf), 0x5a, 600);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_success(world, 0, 1);
	ck_assert_uint_eq(world->host[1].memory[REMOTE], 0x5a);
	ck_assert_uint_eq(world->host[1].memory[REMOTE + 599], 0x5a);
	ck_assert_uint_eq(world->host[1].memory[REMOTE + 600], 0);
	ck_assert_uint_eq(world->host[0].ports.tx_dma_req->pushes, 0);
	rn_buffer_put(world->buffers, wqe->inline_buf);
	world_free(world, true);
}
END_TEST

START_TEST(psn_and_msn_wrap)
{
	struct world *world = world_new(0);

	world_qpc(world, 0, 1)->sq_psn = 0xfffffe;
	world_qpc(world, 1, 1)->rq_psn = 0xfffffe;
	world_start(world);
	world_fill(world, 0, 0, 4096, 1);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 4096);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 8192, REMOTE, 4096);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_success(world, 0, 2);
	ck_assert(world_same(world, 8192, REMOTE, 4096));
	ck_assert_uint_eq(world_frame(world, 0, RN_BTH_WRITE_LAST, 0)->packet.psn, 1);
	ck_assert_uint_eq(world_requester(world, 0, 1)->una_psn, 6);
	ck_assert_uint_eq(world_frame(world, 1, RN_BTH_READ_RESPONSE_LAST, 0)->packet.aeth_msn, 2);
	world_free(world, true);
}
END_TEST

START_TEST(unsignaled_work_retires_silently)
{
	struct world *world = world_new(0);

	world_start(world);
	for (unsigned i = 0; i < 50; i++)
		world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8)->flags = 0;
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 200 * US);
	check_success(world, 0, 1);
	ck_assert_uint_eq(completion(world, 0, 0)->wqe_idx, 50);
	world_free(world, true);
}
END_TEST

START_TEST(ack_request_and_solicited_stand_where_they_belong)
{
	struct world *world = world_new(0);

	world->params.ack_req_interval = 3;
	world_start(world);
	world_recv(world, 1, 1, REMOTE, 10000);
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 8 * 1024)->flags |= RN_WQE_SOLICITED;
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	for (unsigned i = 0; i < 8; i++) {
		const struct rn_packet *packet = &world_frame(world, 0, -1, i)->packet;

		ck_assert_uint_eq(packet->ackreq, i == 2 || i == 5 || i == 7);
		ck_assert_uint_eq(packet->se, i == 7);
		ck_assert_uint_eq(packet->migreq, 1);
	}
	world_free(world, true);
}
END_TEST

START_TEST(reads_outstanding_never_exceed_max_rd_atomic)
{
	struct world *world = world_new(0);

	world_qpc(world, 0, 1)->max_rd_atomic = 2;
	world_qpc(world, 1, 1)->max_dest_rd_atomic = 2;
	world_start(world);
	world_fill(world, 1, REMOTE, 40000, 4);
	for (unsigned i = 0; i < 10; i++)
		world_send(world, 0, 1, RN_WQE_RDMA_READ, 4000 * i, REMOTE + 4000 * i, 4000);
	world_ring(world, 0, 1);
	world_run(world, 300 * US);
	check_success(world, 0, 10);
	ck_assert(world_same(world, 0, REMOTE, 40000));
	/* The third request left after the first READ's last response had come. */
	ck_assert_uint_gt(world_frame(world, 0, RN_BTH_READ_REQUEST, 2)->at_ps,
			  world_frame(world, 1, RN_BTH_READ_RESPONSE_LAST, 0)->at_ps);
	world_free(world, true);
}
END_TEST

START_TEST(a_fence_waits_for_reads)
{
	struct world *world = world_new(0);

	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 4000);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8)->flags |= RN_WQE_FENCE;
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_success(world, 0, 2);
	ck_assert_uint_gt(world_frame(world, 0, RN_BTH_WRITE_ONLY, 0)->at_ps,
			  world_frame(world, 1, RN_BTH_READ_RESPONSE_LAST, 0)->at_ps);
	world_free(world, true);
}
END_TEST

START_TEST(a_window_of_four_psns_stops_and_goes_on)
{
	struct world *world = world_new(0);

	world->params.max_outstanding_psns = 4;
	world_start(world);
	world_fill(world, 0, 0, 20 * 1024, 5);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 20 * 1024);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0x20000, REMOTE, 4096);
	world_ring(world, 0, 1);
	world_run(world, 200 * US);
	check_success(world, 0, 2);
	ck_assert(world_same(world, 0, REMOTE, 20 * 1024));
	ck_assert_uint_gt(world_frame(world, 0, -1, 4)->at_ps,
			  world_frame(world, 1, RN_BTH_ACKNOWLEDGE, 0)->at_ps);
	world_free(world, true);
}
END_TEST

START_TEST(a_read_of_two_gibibytes_takes_the_whole_window)
{
	struct world *world = world_new(0);
	const struct rn_packet *packet;

	world->mtu_log2 = 8;
	world_qpc(world, 0, 1)->retry_cnt = 2;
	world_qpc(world, 0, 1)->sq_psn = 0xfffff0;
	world_start(world);
	world_add_rule(world, WORLD_DROP, 0, RN_BTH_READ_REQUEST, -1, 0);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, RN_MAX_MESSAGE_BYTES);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	packet = &world_frame(world, 0, -1, 0)->packet;
	ck_assert_uint_eq(packet->reth_bytes, RN_MAX_MESSAGE_BYTES);
	ck_assert_uint_eq(world_requester(world, 0, 1)->next_psn,
			  (0xfffff0 + (1 << 23)) & 0xffffff);
	world_run(world, 20000 * US);
	/* Three tries of the READ, and the WRITE behind it never left. */
	ck_assert_uint_eq(world_frames(world, 0, -1), 3);
	ck_assert_uint_eq(world->host[0].completions, 2);
	ck_assert_uint_eq(world->host[0].completion[0].status, RN_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(world->host[0].completion[1].status, RN_WC_WR_FLUSH_ERR);
	world_free(world, true);
}
END_TEST

START_TEST(a_pool_of_one_outstanding_wqe_serves_many_queue_pairs)
{
	struct world *world = world_new(0);

	world->params.outstanding_wqes = 1;
	world->params.outstanding_reads = 1;
	world->params.quantum_packets = 2;
	world_start(world);
	for (uint32_t qpn = 1; qpn < WORLD_QPS; qpn++) {
		world_send(world, 0, qpn, RN_WQE_RDMA_WRITE, 0, REMOTE, 5000);
		world_send(world, 0, qpn, RN_WQE_RDMA_READ, 0x20000, REMOTE, 5000);
		world_ring(world, 0, qpn);
	}
	world_run(world, 1000 * US);
	check_success(world, 0, 2 * (WORLD_QPS - 1));
	world_free(world, true);
}
END_TEST

START_TEST(minimal_structures_carry_everything)
{
	struct world *world = world_new(0);

	world->depth = 2;
	world->params.tx_packet_slots = 1;
	world->params.read_data_slots = 1;
	world->params.rx_lookahead = 1;
	world->params.rx_slots = 1;
	world->params.reply_jobs = 1;
	world->params.reply_slots = 1;
	world->params.response_fifo_depth = 1;
	world->params.reply_fifo_depth = 1;
	world->params.feedback_fifo_depth = 1;
	world->params.quantum_packets = 1;
	world_start(world);
	world_fill(world, 0, 0, 20000, 5);
	for (uint32_t qpn = 1; qpn < 4; qpn++)
		for (unsigned host = 0; host < 2; host++) {
			world_recv(world, host, qpn, 0x60000, 5000);
			world_send(world, host, qpn, RN_WQE_RDMA_WRITE, 0, REMOTE, 5000);
			world_send(world, host, qpn, RN_WQE_RDMA_READ, 0x20000, REMOTE, 5000);
			world_send(world, host, qpn, RN_WQE_SEND, 0, 0, 5000);
			world_ring(world, host, qpn);
		}
	world_run(world, 1000 * US);
	check_success(world, 0, 12);
	check_success(world, 1, 12);
	ck_assert(world_same(world, 0, REMOTE, 5000));
	world_free(world, true);
}
END_TEST

START_TEST(due_acks_of_a_queue_pair_merge)
{
	struct world *world = world_new(0);

	world->params.ack_delay_ps = 20 * US;
	world_start(world);
	for (unsigned i = 0; i < 10; i++)
		world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 200 * US);
	check_success(world, 0, 10);
	ck_assert_uint_eq(world_frames(world, 1, RN_BTH_ACKNOWLEDGE), 1);
	ck_assert_uint_eq(world_count(world, 1, "acks_merged"), 9);
	world_free(world, true);
}
END_TEST

START_TEST(every_nth_packet_is_acknowledged_when_told_so)
{
	struct world *world = world_new(0);

	world->params.ack_every_packets = 2;
	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8 * 1024);
	world_ring(world, 0, 1);
	world_run(world, 200 * US);
	ck_assert_uint_eq(world_frames(world, 1, RN_BTH_ACKNOWLEDGE) +
				  world_count(world, 1, "acks_merged"),
			  4);
	world_free(world, true);
}
END_TEST

/* Everything that the log and the completions say, as one number. */
static uint64_t digest(const struct world *world)
{
	uint64_t hash = 14695981039346656037u;

	for (unsigned i = 0; i < world->frames; i++) {
		const struct world_frame *f = &world->frame[i];
		const uint64_t words[] = {f->at_ps, f->packet.psn, f->packet.opcode,
					  f->packet.aeth_syndrome, f->packet.ip_id};

		/* Frames of the two hosts at one time are logged in the order of the ticks. */
		for (unsigned w = 0; w < 5; w++)
			hash += (words[w] + 1) * (f->host + 3) * 1099511628211u * (w + 1);
	}
	for (unsigned host = 0; host < 2; host++)
		for (unsigned i = 0; i < world->host[host].completions; i++)
			hash = (hash ^ world->host[host].completion[i].wqe_idx ^
				world->host[host].completion_ps[i]) *
			       1099511628211u;
	return hash;
}

static uint64_t run_permuted(uint64_t seed)
{
	struct world *world = world_new(seed);
	uint64_t result;

	world_start(world);
	world_add_rule(world, WORLD_DROP, 0, -1, 0x123403, 1);
	world_add_rule(world, WORLD_DROP, 1, -1, 0xabcd04, 1);
	world_add_rule(world, WORLD_DROP, 1, RN_BTH_ACKNOWLEDGE, -1, 3);
	for (uint32_t qpn = 1; qpn < 4; qpn++)
		for (unsigned host = 0; host < 2; host++) {
			for (unsigned i = 0; i < 5; i++)
				world_recv(world, host, qpn, 0x60000, 5000);
			for (unsigned i = 0; i < 5; i++) {
				world_send(world, host, qpn, RN_WQE_RDMA_WRITE, 0, REMOTE, 3000);
				world_send(world, host, qpn, RN_WQE_SEND, 0, 0, 900);
				world_send(world, host, qpn, RN_WQE_RDMA_READ, 0x20000, REMOTE,
					   3000);
			}
			world_ring(world, host, qpn);
		}
	world_run(world, 20000 * US);
	check_success(world, 0, 60);
	check_success(world, 1, 60);
	result = digest(world);
	world_free(world, true);
	return result;
}

START_TEST(the_order_of_ticks_changes_nothing)
{
	uint64_t first = run_permuted(0);

	for (uint64_t seed = 1; seed <= 20; seed++)
		ck_assert_uint_eq(run_permuted(seed), first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transport_data");
	TCase *tests = tcase_create("all");
	const int count = sizeof(sizes) / sizeof(sizes[0]);
	SRunner *runner = srunner_create(suite);

	tcase_add_loop_test(tests, writes_of_all_sizes_arrive, 0, count);
	tcase_add_loop_test(tests, reads_of_all_sizes_arrive, 0, count);
	tcase_add_loop_test(tests, sends_of_all_sizes_arrive_with_receive_completions, 0, count);
	tcase_add_test(tests, write_with_immediate_consumes_a_receive);
	tcase_add_test(tests, many_segments_gather_and_scatter);
	tcase_add_test(tests, inline_data_needs_no_dma);
	tcase_add_test(tests, psn_and_msn_wrap);
	tcase_add_test(tests, unsignaled_work_retires_silently);
	tcase_add_test(tests, ack_request_and_solicited_stand_where_they_belong);
	tcase_add_test(tests, reads_outstanding_never_exceed_max_rd_atomic);
	tcase_add_test(tests, a_fence_waits_for_reads);
	tcase_add_test(tests, a_window_of_four_psns_stops_and_goes_on);
	tcase_add_test(tests, a_read_of_two_gibibytes_takes_the_whole_window);
	tcase_add_test(tests, a_pool_of_one_outstanding_wqe_serves_many_queue_pairs);
	tcase_add_test(tests, minimal_structures_carry_everything);
	tcase_add_test(tests, due_acks_of_a_queue_pair_merge);
	tcase_add_test(tests, every_nth_packet_is_acknowledged_when_told_so);
	tcase_add_test(tests, the_order_of_ticks_changes_nothing);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
