/*
 * Timing: the latency of a small WRITE is the sum of its stages' parameters, packets follow each other at
 * their intervals, timers run for their formula's time.
 */
#include <check.h>
#include <stdlib.h>

#include "block/transport/world.h"
#include "wire/opcode.h"

#define US UINT64_C(1000000)
#define CYCLE UINT64_C(2000)
#define REMOTE 0x40000u
#define PSN0 0x123400u
#define EXPIRY (UINT64_C(4096000) << 8) /* timeout 8 of the world's contexts */

/* Time at which the completion of one small WRITE comes, with one parameter a cycle longer. */
static uint64_t write_latency_ps(size_t longer)
{
	struct world *world = world_new(0);
	uint64_t posted_ps;
	uint64_t result;

	world->params.context_hold_cycles = 1000000;
	if (longer)
		++*(uint32_t *)((char *)&world->params + longer);
	world_start(world);
	/* Contexts are at hand from a first one on. */
	for (unsigned i = 0; i < 2; i++) {
		posted_ps = rn_sim_now_ps(world->sim);
		world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
		world_ring(world, 0, 1);
		world_run(world, 20 * US);
	}
	ck_assert_uint_eq(world->host[0].completions, 2);
	result = world->host[0].completion_ps[1] - posted_ps;
	world_free(world, true);
	return result;
}

#define USES(param, times)                                                                         \
	ck_assert_uint_eq(write_latency_ps(offsetof(struct rn_transport_params, param)) - base,    \
			  (times)*CYCLE)

START_TEST(each_stage_adds_its_cycles_to_a_small_write_as_often_as_it_is_passed)
{
	uint64_t base = write_latency_ps(0);

	USES(turn_cycles, 1);
	USES(tx_pipeline_cycles, 2);
	USES(rx_pipeline_cycles, 2);
	USES(ack_generation_cycles, 1);
	USES(completion_cycles, 1);
	USES(tx_packet_cycles, 0);
	USES(rx_packet_cycles, 0);
	USES(reply_packet_cycles, 0);
	USES(nak_generation_cycles, 0);
	USES(nak_reaction_cycles, 0);
	USES(timeout_reaction_cycles, 0);
}
END_TEST

START_TEST(a_small_write_takes_the_sum_of_its_stages)
{
	struct rn_transport_params p;
	/* The world's: work item, DMA read, key check, DMA write, wire, completion fifo; with their hops. */
	const uint64_t work = 10, read = 301, key = 2, write = 76, wire = 251, last = 1;
	uint64_t cycles;

	rn_params_set_defaults(&rn_transport_param_table, &p);
	cycles = work + 1 + p.turn_cycles + read + p.tx_pipeline_cycles + wire +
		 p.rx_pipeline_cycles + key + write + p.ack_generation_cycles +
		 p.tx_pipeline_cycles + wire + p.rx_pipeline_cycles + p.completion_cycles + last;
	ck_assert_uint_eq(write_latency_ps(0), cycles * CYCLE);
}
END_TEST

/* Times between frames @first .. 7 of @host. */
static void check_spacing(const struct world *world, unsigned host, unsigned first, uint64_t cycles)
{
	for (unsigned i = first + 1; i < 8; i++)
		ck_assert_uint_eq(world_frame(world, host, -1, i)->at_ps -
					  world_frame(world, host, -1, i - 1)->at_ps,
				  cycles * CYCLE);
}

START_TEST(request_packets_follow_at_their_interval_across_turns)
{
	struct world *world = world_new(0);

	world->params.tx_packet_cycles = 67 + (uint32_t)_i;
	world->params.quantum_packets = 3;
	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 7 * 1024);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 1024);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_spacing(world, 0, 0, 67 + (uint64_t)_i);
	world_free(world, true);
}
END_TEST

START_TEST(response_packets_follow_at_their_interval)
{
	struct world *world = world_new(0);

	world->params.reply_packet_cycles = 37 + (uint32_t)_i;
	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_READ, 0, REMOTE, 8 * 1024);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	check_spacing(world, 1, 0, 37 + (uint64_t)_i);
	world_free(world, true);
}
END_TEST

START_TEST(requests_are_checked_at_their_interval)
{
	struct world *world = world_new(0);

	world->params.rx_packet_cycles = 90 + (uint32_t)_i;
	world->params.ack_every_packets = 1;
	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8 * 1024);
	world_ring(world, 0, 1);
	world_run(world, 100 * US);
	/* The first one waited for its context. */
	check_spacing(world, 1, 1, 90 + (uint64_t)_i);
	world_free(world, true);
}
END_TEST

START_TEST(responses_share_the_port_with_requests_in_turn)
{
	struct world *world = world_new(0);
	unsigned switches = 0;

	world->params.tx_packet_cycles = 1;
	world->params.reply_packet_cycles = 1;
	world->wire_interval_ps = 100 * CYCLE;
	world_start(world);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 64 * 1024);
	world_send(world, 1, 1, RN_WQE_RDMA_READ, 0, REMOTE, 64 * 1024);
	world_ring(world, 0, 1);
	world_ring(world, 1, 1);
	world_run(world, 1000 * US);
	for (unsigned i = 21; i < 100; i++)
		switches += world_frame(world, 0, -1, i)->packet.is_request !=
			    world_frame(world, 0, -1, i - 1)->packet.is_request;
	ck_assert_uint_ge(switches, 75);
	world_free(world, true);
}
END_TEST

/* How long after the first packet the second transmission's first packet leaves. */
static uint64_t resend_after_ps(uint64_t factor, uint32_t floor_log2, uint64_t reaction)
{
	struct world *world = world_new(0);
	uint64_t result;

	world->params.timeout_factor = factor;
	world->params.timeout_floor_log2 = floor_log2;
	world->params.timeout_reaction_cycles = (uint32_t)reaction;
	world_start(world);
	world_add_rule(world, WORLD_DROP, 0, -1, PSN0, 1);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 60000 * US);
	result = world_frame(world, 0, -1, 1)->at_ps - world_frame(world, 0, -1, 0)->at_ps;
	world_free(world, true);
	return result;
}

START_TEST(the_timer_expires_by_its_formula_to_the_cycle)
{
	uint64_t base = resend_after_ps(1, 0, 0);

	ck_assert_uint_eq(resend_after_ps(2, 0, 0) - base, EXPIRY);
	ck_assert_uint_eq(resend_after_ps(1, 8, 0), base);
	ck_assert_uint_eq(resend_after_ps(1, 9, 0) - base, EXPIRY);
	/* The reaction takes a wake of its own beside its cycles. */
	ck_assert_uint_eq(resend_after_ps(1, 0, 101) - resend_after_ps(1, 0, 100), 2000);
	ck_assert_uint_ge(base, EXPIRY);
}
END_TEST

START_TEST(nothing_is_resent_a_cycle_before_the_timer_expires)
{
	struct world *world = world_new(0);
	uint64_t first_ps;

	/* The context stays at hand, so that the expiry takes effect in its own cycle. */
	world->params.context_hold_cycles = 1000000;
	world_start(world);
	world_add_rule(world, WORLD_DROP, 0, -1, PSN0, 1);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 10 * US);
	/* The wire takes the frame a cycle after transport has let it go. */
	first_ps = world_frame(world, 0, -1, 0)->at_ps - 2000;
	world_run(world, first_ps + EXPIRY - 2000 - rn_sim_now_ps(world->sim));
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 0);
	world_run(world, 2000 * 2);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 1);
	world_run(world, 100 * US);
	ck_assert_uint_eq(world_frames(world, 0, -1), 2);
	world_free(world, true);
}
END_TEST

START_TEST(a_timeout_of_zero_never_expires)
{
	struct world *world = world_new(0);

	world_qpc(world, 0, 1)->timeout = 0;
	world_start(world);
	world_add_rule(world, WORLD_DROP, 0, -1, PSN0, 1);
	world_send(world, 0, 1, RN_WQE_RDMA_WRITE, 0, REMOTE, 8);
	world_ring(world, 0, 1);
	world_run(world, 1000000 * US);
	ck_assert_uint_eq(world_frames(world, 0, -1), 1);
	ck_assert_uint_eq(world->host[0].completions, 0);
	world_free(world, true);
}
END_TEST

/* Time from the RNR NAK's departure to the SEND's second transmission. */
static uint64_t rnr_wait_ps(uint8_t code)
{
	struct world *world = world_new(0);
	uint64_t result;

	world_qpc(world, 1, 1)->min_rnr_timer = code;
	world_start(world);
	world_fill(world, 0, 0, 100, 1);
	world_recv(world, 1, 1, REMOTE, 100);
	world->host[1].queue[1].recv_hidden = true;
	world_send(world, 0, 1, RN_WQE_SEND, 0, 0, 100);
	world_ring(world, 0, 1);
	world_run(world, 5 * US);
	world->host[1].queue[1].recv_hidden = false;
	world_run(world, 1000000 * US);
	ck_assert_uint_eq(world_naks(world, 1, 0x20 | code), 1);
	ck_assert_uint_eq(world_frames(world, 0, -1), 2);
	ck_assert_uint_eq(world_count(world, 1, "out_of_buffer"), 1);
	ck_assert_uint_eq(world_count(world, 0, "rnr_nak_retry_err"), 1);
	ck_assert_uint_eq(world_count(world, 0, "local_ack_timeout_err"), 0);
	result = world_frame(world, 0, -1, 1)->at_ps - world_frame(world, 1, -1, 0)->at_ps;
	ck_assert_uint_eq(world->host[0].completions, 1);
	ck_assert(world_same(world, 0, REMOTE, 100));
	world_free(world, true);
	return result;
}

START_TEST(an_rnr_nak_waits_for_the_time_of_its_code)
{
	uint64_t shortest = rnr_wait_ps(1);

	ck_assert_uint_ge(shortest, 10 * US);
	ck_assert_uint_le(shortest, 13 * US);
	ck_assert_uint_eq(rnr_wait_ps(25) - shortest, 61440 * US - 10 * US);
	ck_assert_uint_eq(rnr_wait_ps(0) - shortest, 655360 * US - 10 * US);
	ck_assert_uint_eq(rnr_wait_ps(31) - shortest, 491520 * US - 10 * US);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transport_timing");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);

	tcase_add_test(tests, a_small_write_takes_the_sum_of_its_stages);
	tcase_add_test(tests, each_stage_adds_its_cycles_to_a_small_write_as_often_as_it_is_passed);
	tcase_add_loop_test(tests, request_packets_follow_at_their_interval_across_turns, 0, 2);
	tcase_add_loop_test(tests, response_packets_follow_at_their_interval, 0, 2);
	tcase_add_loop_test(tests, requests_are_checked_at_their_interval, 0, 2);
	tcase_add_test(tests, responses_share_the_port_with_requests_in_turn);
	tcase_add_test(tests, the_timer_expires_by_its_formula_to_the_cycle);
	tcase_add_test(tests, nothing_is_resent_a_cycle_before_the_timer_expires);
	tcase_add_test(tests, a_timeout_of_zero_never_expires);
	tcase_add_test(tests, an_rnr_nak_waits_for_the_time_of_its_code);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
