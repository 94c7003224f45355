/*
 * One frame lost, doubled, late or damaged: the data is right, the first PSN sent again, the number of
 * NAKs and the time of the retransmission are what IBA says.
 */
#include <check.h>
#include <stdlib.h>

#include "block/transport/world.h"
#include "wire/opcode.h"

#define US UINT64_C(1000000)
#define REMOTE 0x40000u
#define PSN0 0x123400u
#define EXPIRY (UINT64_C(4096000) << 8) /* timeout 8 of the world's contexts */

static struct world *start(void)
{
	struct world *world = world_new(0);

	world_start(world);
	world_fill(world, 0, 0, 8192, 3);
	world_fill(world, 1, REMOTE, 8192, 77);
	return world;
}

/* A 4-packet message of QP 1, PSNs PSN0 .. PSN0 + 3. */
static void transfer(struct world *world, uint8_t opcode)
{
	if (opcode == RN_WQE_SEND)
		world_recv(world, 1, 1, REMOTE, 4096);
	world_send(world, 0, 1, opcode, 0, REMOTE, 4096);
	world_ring(world, 0, 1);
	world_run(world, 60000 * US);
}

static void check_done(struct world *world, uint32_t bytes)
{
	ck_assert_uint_eq(world->host[0].completions, 1);
	ck_assert_uint_eq(world->host[0].completion[0].status, RN_WC_SUCCESS);
	ck_assert(world_same(world, 0, REMOTE, bytes));
	world_free(world, true);
}

/* Frames of host 0 in order of PSN offset and opcode. */
static void check_requests(const struct world *world, const uint8_t (*expected)[2], unsigned count)
{
	ck_assert_uint_eq(world_frames(world, 0, -1), count);
	for (unsigned i = 0; i < count; i++) {
		const struct rn_packet *packet = &world_frame(world, 0, -1, i)->packet;

		ck_assert_uint_eq(packet->psn, PSN0 + expected[i][0]);
		ck_assert_uint_eq(packet->opcode, expected[i][1]);
	}
}

#define F RN_BTH_WRITE_FIRST
#define M RN_BTH_WRITE_MIDDLE
#define L RN_BTH_WRITE_LAST

START_TEST(a_lost_first_packet_is_naked_once_and_all_is_sent_again)
{
	static const uint8_t expected[][2] = {{0, F}, {1, M}, {2, M}, {3, L},
					      {0, F}, {1, M}, {2, M}, {3, L}};
	struct world *world = start();

	world_add_rule(world, WORLD_DROP, 0, -1, PSN0, 1);
	transfer(world, RN_WQE_RDMA_WRITE);
	check_requests(world, expected, 8);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 1);
	ck_assert_uint_eq(world_frame(world, 1, RN_BTH_ACKNOWLEDGE, 0)->packet.psn, PSN0);
	ck_assert_uint_eq(world_count(world, 1, "out_of_sequence"), 3);
	ck_assert_uint_eq(world_count(world, 0, "packet_seq_err"), 1);
	ck_assert_uint_eq(world->host[0].queue[1].fetches, 2);
	check_done(world, 4096);
}
END_TEST

START_TEST(after_a_lost_middle_packet_the_write_goes_on_with_middle)
{
	static const uint8_t expected[][2] = {{0, F}, {1, M}, {2, M}, {3, L},
					      {1, M}, {2, M}, {3, L}};
	struct world *world = start();

	world_add_rule(world, WORLD_DROP, 0, -1, PSN0 + 1, 1);
	transfer(world, RN_WQE_RDMA_WRITE);
	check_requests(world, expected, 7);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 1);
	check_done(world, 4096);
}
END_TEST

START_TEST(a_lost_last_packet_waits_for_the_timer)
{
	struct world *world = start();
	uint64_t started_ps;
	uint64_t again_ps;

	world_add_rule(world, WORLD_DROP, 0, -1, PSN0 + 3, 1);
	transfer(world, RN_WQE_RDMA_WRITE);
	/* No ACK came: the timer runs from the first packet, and everything is sent again. */
	started_ps = world_frame(world, 0, F, 0)->at_ps;
	again_ps = world_frame(world, 0, F, 1)->at_ps;
	ck_assert_uint_ge(again_ps, started_ps + EXPIRY);
	ck_assert_uint_le(again_ps, started_ps + EXPIRY + 2 * US);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 0);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 1);
	ck_assert_uint_eq(world_frames(world, 0, -1), 8);
	check_done(world, 4096);
}
END_TEST

START_TEST(a_lost_ack_is_made_good_by_a_duplicate)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DROP, 1, RN_BTH_ACKNOWLEDGE, -1, 1);
	transfer(world, RN_WQE_SEND);
	ck_assert_uint_ge(world_count(world, 1, "duplicate_request"), 1);
	ck_assert_uint_eq(world->host[1].completions, 1);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 0);
	check_done(world, 4096);
}
END_TEST

START_TEST(a_lost_nak_waits_for_the_timer)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DROP, 0, -1, PSN0 + 1, 1);
	world_add_rule(world, WORLD_DROP, 1, RN_BTH_ACKNOWLEDGE, -1, 1);
	transfer(world, RN_WQE_RDMA_WRITE);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 1);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 1);
	check_done(world, 4096);
}
END_TEST

START_TEST(a_lost_only_packet_between_others_is_naked)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DROP, 0, -1, PSN0 + 1, 1);
	for (uint32_t i = 0; i < 4; i++) {
		world_recv(world, 1, 1, REMOTE + 1024 * i, 1024);
		world_send(world, 0, 1, RN_WQE_SEND, 1024 * i, 0, 1024);
	}
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 1);
	ck_assert_uint_eq(world->host[0].completions, 4);
	ck_assert_uint_eq(world->host[1].completions, 4);
	ck_assert(world_same(world, 0, REMOTE, 4096));
	world_free(world, true);
}
END_TEST

START_TEST(a_lost_read_request_waits_for_the_timer)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DROP, 0, -1, PSN0, 1);
	transfer(world, RN_WQE_RDMA_READ);
	ck_assert_uint_eq(world_frames(world, 0, RN_BTH_READ_REQUEST), 2);
	ck_assert_uint_eq(world_frame(world, 0, -1, 1)->packet.psn, PSN0);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 1);
	check_done(world, 4096);
}
END_TEST

/* Which response is lost, and what the second request asks for. */
static void lose_response(uint32_t lost, unsigned timeouts, unsigned implied)
{
	struct world *world = start();
	const struct rn_packet *again;

	world_add_rule(world, WORLD_DROP, 1, -1, PSN0 + lost, 1);
	transfer(world, RN_WQE_RDMA_READ);
	ck_assert_uint_eq(world_frames(world, 0, -1), 2);
	again = &world_frame(world, 0, -1, 1)->packet;
	ck_assert_uint_eq(again->opcode, RN_BTH_READ_REQUEST);
	ck_assert_uint_eq(again->psn, PSN0 + lost);
	ck_assert_uint_eq(again->reth_va, WORLD_VA + REMOTE + 1024 * lost);
	ck_assert_uint_eq(again->reth_bytes, 4096 - 1024 * lost);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), timeouts);
	ck_assert_uint_eq(world_count(world, 0, "implied_nak_seq_err"), implied);
	ck_assert_uint_eq(world_frames(world, 1, -1), 8 - lost);
	ck_assert_uint_eq(world_frame(world, 1, -1, 4)->packet.opcode,
			  lost == 0   ? RN_BTH_READ_RESPONSE_FIRST
			  : lost == 3 ? RN_BTH_READ_RESPONSE_LAST
				      : RN_BTH_READ_RESPONSE_MIDDLE);
	check_done(world, 4096);
}

START_TEST(a_lost_first_response_is_asked_for_at_once)
{
	lose_response(0, 0, 1);
}
END_TEST

START_TEST(a_lost_middle_response_is_asked_for_from_there)
{
	lose_response(1, 0, 1);
}
END_TEST

START_TEST(a_lost_last_response_waits_for_the_timer)
{
	lose_response(3, 1, 0);
}
END_TEST

START_TEST(an_ack_behind_a_lost_response_is_an_implied_nak)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DROP, 1, -1, PSN0 + 3, 1);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 4096);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0x4000, 0x60000, 8);
	world_ring(world, 0, 1);
	world_run(world, 1000 * US);
	ck_assert_uint_eq(world_count(world, 0, "implied_nak_seq_err"), 1);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 0);
	ck_assert_uint_eq(world->host[0].completions, 2);
	ck_assert(world_same(world, 0, REMOTE, 4096));
	world_free(world, true);
}
END_TEST

/* Arrival 0 2 1 3: the first gap closes when 1 comes, and 3 finds another. */
START_TEST(a_late_frame_opens_two_gaps_and_draws_a_nak_for_each)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DELAY, 0, -1, PSN0 + 1, 1);
	transfer(world, RN_WQE_RDMA_WRITE);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 2);
	ck_assert_uint_eq(world_frame(world, 1, -1, 0)->packet.psn, PSN0 + 1);
	ck_assert_uint_eq(world_frame(world, 1, -1, 1)->packet.psn, PSN0 + 2);
	check_done(world, 4096);
}
END_TEST

START_TEST(doubled_requests_are_executed_once)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DOUBLE, 0, -1, -1, 0);
	transfer(world, RN_WQE_SEND);
	ck_assert_uint_eq(world->host[1].completions, 1);
	ck_assert_uint_eq(world_count(world, 1, "duplicate_request"), 4);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 0);
	check_done(world, 4096);
}
END_TEST

START_TEST(doubled_responses_are_taken_once)
{
	struct world *world = start();

	world_add_rule(world, WORLD_DOUBLE, 1, -1, -1, 0);
	transfer(world, RN_WQE_RDMA_READ);
	ck_assert_uint_eq(world_count(world, 0, "rx_read_response_packets"), 4);
	ck_assert_uint_eq(world_count(world, 0, "implied_nak_seq_err"), 0);
	check_done(world, 4096);
}
END_TEST

START_TEST(a_damaged_frame_counts_as_lost)
{
	struct world *world = start();

	world_add_rule(world, WORLD_CORRUPT, 0, -1, PSN0 + 2, 1);
	transfer(world, RN_WQE_RDMA_WRITE);
	ck_assert_uint_eq(world_count(world, 1, "rx_icrc_encapsulated"), 1);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 1);
	check_done(world, 4096);
}
END_TEST

START_TEST(a_dead_peer_costs_retry_cnt_plus_one_timeouts)
{
	struct world *world = world_new(0);

	world_qpc(world, 0, 1)->retry_cnt = 2;
	world_start(world);
	world_add_rule(world, WORLD_DROP, 0, -1, -1, 0);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 4 * EXPIRY);
	ck_assert_uint_eq(world_frames(world, 0, RN_BTH_WRITE_ONLY), 3);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 3);
	ck_assert_uint_eq(world->host[0].completions, 2);
	ck_assert_uint_eq(world->host[0].completion[0].status, RN_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(world->host[0].completion[1].status, RN_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(world->host[0].completion[1].wqe_idx, 1);
	ck_assert_uint_ge(world->host[0].completion_ps[0],
			  world_frame(world, 0, -1, 0)->at_ps + 3 * EXPIRY);
	world_free(world, true);
}
END_TEST

START_TEST(progress_reloads_the_retries)
{
	struct world *world = world_new(0);

	world_qpc(world, 0, 1)->retry_cnt = 1;
	world_start(world);
	for (uint32_t i = 0; i < 10; i++) {
		world_add_rule(world, WORLD_DROP, 0, -1, PSN0 + i, 1);
		world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	}
	world_ring(world, 0, 1);
	world_run(world, 20 * EXPIRY);
	ck_assert_uint_eq(world->host[0].completions, 10);
	ck_assert_uint_eq(world->host[0].completion[9].status, RN_WC_SUCCESS);
	world_free(world, true);
}
END_TEST

START_TEST(packets_behind_an_rnr_nak_draw_no_other)
{
	struct world *world = start();

	world_recv(world, 1, 1, REMOTE, 4096);
	world->host[1].queue[1].recv_hidden = true;
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 4096);
	world_ring(world, 0, 1);
	world_run(world, 5 * US);
	world->host[1].queue[1].recv_hidden = false;
	world_run(world, 1000 * US);
	ck_assert_uint_eq(world_naks(world, 1, 0x21), 1);
	ck_assert_uint_eq(world_naks(world, 1, 0x60), 0);
	ck_assert_uint_eq(world_frames(world, 0, -1), 8);
	check_done(world, 4096);
}
END_TEST

static void exhaust_rnr(uint8_t rnr_retry, unsigned tries, uint8_t status)
{
	struct world *world = world_new(0);

	world_qpc(world, 0, 1)->rnr_retry = rnr_retry;
	world_start(world);
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 100);
	world_ring(world, 0, 1);
	world_run(world, 300 * US);
	if (status) {
		ck_assert_uint_eq(world_frames(world, 0, -1), tries);
		ck_assert_uint_eq(world->host[0].completions, 1);
		ck_assert_uint_eq(world->host[0].completion[0].status, status);
	} else {
		ck_assert_uint_gt(world_frames(world, 0, -1), tries);
		ck_assert_uint_eq(world->host[0].completions, 0);
	}
	world_free(world, false);
}

START_TEST(rnr_retry_two_means_three_tries_and_seven_for_ever)
{
	exhaust_rnr(2, 3, RN_WC_RNR_RETRY_EXC_ERR);
	exhaust_rnr(0, 1, RN_WC_RNR_RETRY_EXC_ERR);
	exhaust_rnr(7, 10, RN_WC_SUCCESS);
}
END_TEST

static void drop_all_once(struct world *world)
{
	for (uint32_t i = 0; i < 8; i++)
		world_add_rule(world, WORLD_DROP, i & 1, -1, PSN0 + 3 * i, 1 + (i & 1));
}

START_TEST(many_losses_in_a_mixed_stream_leave_right_data)
{
	struct world *world = start();

	drop_all_once(world);
	for (uint32_t i = 0; i < 8; i++) {
		world_recv(world, 1, 1, 0x60000 + 2048 * i, 2048);
		world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 1000 * i, 0x80000 + 1000 * i, 1000);
		world_send(world, 0, 1, RN_WQE_RDMA_READ, 0x10000 + 3000 * i, 0x80000, 3000);
		world_send(world, 0, 1, RN_WQE_SEND, 100 * i, 0, 2000);
	}
	world_ring(world, 0, 1);
	world_run(world, 60000 * US);
	ck_assert_uint_eq(world->host[0].completions, 24);
	ck_assert_uint_eq(world->host[1].completions, 8);
	for (unsigned i = 0; i < 24; i++) {
		ck_assert_uint_eq(world->host[0].completion[i].status, RN_WC_SUCCESS);
		ck_assert_uint_eq(world->host[0].completion[i].wqe_idx, i);
	}
	for (uint32_t i = 0; i < 8; i++)
		ck_assert(world_same(world, 100 * i, 0x60000 + 2048 * i, 2000));
	ck_assert(world_same(world, 0, 0x80000, 8000));
	world_free(world, true);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transport_loss");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);

	tcase_add_test(tests, a_lost_first_packet_is_naked_once_and_all_is_sent_again);
	tcase_add_test(tests, after_a_lost_middle_packet_the_write_goes_on_with_middle);
	tcase_add_test(tests, a_lost_last_packet_waits_for_the_timer);
	tcase_add_test(tests, a_lost_ack_is_made_good_by_a_duplicate);
	tcase_add_test(tests, a_lost_nak_waits_for_the_timer);
	tcase_add_test(tests, a_lost_only_packet_between_others_is_naked);
	tcase_add_test(tests, a_lost_read_request_waits_for_the_timer);
	tcase_add_test(tests, a_lost_first_response_is_asked_for_at_once);
	tcase_add_test(tests, a_lost_middle_response_is_asked_for_from_there);
	tcase_add_test(tests, a_lost_last_response_waits_for_the_timer);
	tcase_add_test(tests, an_ack_behind_a_lost_response_is_an_implied_nak);
	tcase_add_test(tests, a_late_frame_opens_two_gaps_and_draws_a_nak_for_each);
	tcase_add_test(tests, doubled_requests_are_executed_once);
	tcase_add_test(tests, doubled_responses_are_taken_once);
	tcase_add_test(tests, a_damaged_frame_counts_as_lost);
	tcase_add_test(tests, a_dead_peer_costs_retry_cnt_plus_one_timeouts);
	tcase_add_test(tests, progress_reloads_the_retries);
	tcase_add_test(tests, packets_behind_an_rnr_nak_draw_no_other);
	tcase_add_test(tests, rnr_retry_two_means_three_tries_and_seven_for_ever);
	tcase_add_test(tests, many_losses_in_a_mixed_stream_leave_right_data);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
