/*
 * The MAC's flow control against its thresholds: each holds at its value and not a byte, a frame or a cycle before.
 */
#include <check.h>

#include "block/common/bench.h"
#include "nic/mac/mac.h"
#include "run_suite.h"
#include "wire/line.h"

#define FRAME_BYTES 996u /* 1000 with FCS */
#define STORED 1000u
#define QUANTUM_PS 5120u /* at 100 Gb/s */

static struct bench bench;
static struct rn_mac *mac;
static struct rn_mac_params params;
static struct rn_cable cable;
static struct rn_nic_identity identity = {.smac = {2, 0, 0, 0, 0, 1}};
static struct rn_fifo *tx_frame, *rx_frame, *line_out, *line_in;

static void set_up(void)
{
	rn_params_set_defaults(&rn_mac_param_table, &params);
	params.clock_hz = 1000000000;
	params.rx_latency_cycles = 3;
	params.tx_latency_cycles = 4;
	params.xoff_bytes = 10 * STORED;
	params.xon_bytes = 4 * STORED;
	cable = (struct rn_cable){
		.bps = 100000000000, .delay_ps = 25000, .reaction_ps = 20000, .is_lossless = true};
}

static void build(void)
{
	bench_init(&bench, 0);
	bench.env.packets = rn_packets_new(bench.buffers);
	bench.env.mac = &bench.clock;
	tx_frame = bench_fifo(&bench, "tx_frame", 64, sizeof(struct rn_frame));
	rx_frame = bench_fifo(&bench, "rx_frame", 256, sizeof(struct rn_frame));
	line_out = bench_fifo(&bench, "line_out", 64, sizeof(struct rn_frame));
	line_in = bench_fifo(&bench, "line_in", 256, sizeof(struct rn_frame));
	mac = rn_mac_new(&bench.env, &params,
			 &(struct rn_mac_ports){.tx_frame = tx_frame,
						.rx_frame = rx_frame,
						.line_out = line_out,
						.line_in = line_in,
						.cable = &cable,
						.identity = &identity});
}

static void drain(struct rn_fifo *fifo, unsigned most)
{
	struct rn_frame frame;

	while (most-- && rn_fifo_pop(fifo, &frame))
		rn_packet_put(bench.env.packets, frame.packet);
}

static void destroy(void)
{
	/* What is on its way becomes visible. */
	bench_run(&bench, 10);
	drain(tx_frame, UINT32_MAX);
	drain(rx_frame, UINT32_MAX);
	drain(line_out, UINT32_MAX);
	rn_mac_free(mac);
	ck_assert_uint_eq(rn_packets_in_use(bench.env.packets), 0);
	rn_packets_free(bench.env.packets);
	bench_fini(&bench);
}

static void push(struct rn_fifo *fifo, uint32_t bytes)
{
	rn_fifo_push(fifo, &(struct rn_frame){.packet = rn_packet_get(bench.env.packets),
					      .bytes = bytes});
}

/* @count frames arrive in one cycle. */
static void arrive(unsigned count, uint32_t bytes)
{
	while (count--)
		push(line_in, bytes);
	bench_run(&bench, 2);
}

static void pause(uint32_t quanta)
{
	rn_fifo_push(line_in, &(struct rn_frame){.packet = rn_pause_new(bench.env.packets,
									identity.smac, quanta),
						 .bytes = RN_LINE_MIN_FRAME_BYTES});
}

static uint64_t count(const char *counter)
{
	return bench_counter(&bench, "mac", counter);
}

/* What has left for the line last is a pause of @quanta. */
static void check_pause(uint32_t quanta)
{
	struct rn_frame frame;
	const struct rn_packet *packet;

	ck_assert(rn_fifo_pop(line_out, &frame));
	packet = rn_packet_at(bench.env.packets, frame.packet);
	ck_assert_uint_eq(packet->is_pause, 1);
	ck_assert_uint_eq(packet->pause_quanta, quanta);
	ck_assert_uint_eq(frame.bytes, RN_LINE_MIN_FRAME_BYTES);
	ck_assert_mem_eq(packet->smac, identity.smac, 6);
	rn_packet_put(bench.env.packets, frame.packet);
}

START_TEST(the_peer_is_held_back_from_the_threshold_on)
{
	set_up();
	build();
	arrive(9, FRAME_BYTES);
	arrive(1, FRAME_BYTES - 1);
	bench_run(&bench, 100);
	ck_assert_uint_eq(count("tx_prio3_pause"), 0);
	destroy();
	build();
	arrive(10, FRAME_BYTES);
	bench_run(&bench, 100);
	ck_assert_uint_eq(count("tx_prio3_pause"), 1);
	check_pause(params.pause_quanta);
	ck_assert_uint_eq(count("rx_buffer_high_bytes"), params.xoff_bytes);
	destroy();
}
END_TEST

START_TEST(the_peer_goes_on_from_the_lower_threshold_on)
{
	set_up();
	build();
	arrive(10, FRAME_BYTES);
	bench_run(&bench, 100);
	check_pause(params.pause_quanta);
	drain(rx_frame, 5);
	bench_run(&bench, 100);
	ck_assert_uint_eq(count("tx_prio3_pause"), 1);
	drain(rx_frame, 1);
	bench_run(&bench, 100);
	ck_assert_uint_eq(count("tx_prio3_pause"), 2);
	check_pause(0);
	/* And no more of either. */
	bench_run(&bench, 1000);
	ck_assert_uint_eq(count("tx_prio3_pause"), 2);
	ck_assert_uint_gt(count("tx_prio3_pause_duration"), 200 * BENCH_CYCLE_PS);
	destroy();
}
END_TEST

/* Seen in the cycle behind its push, then through PMA, PCS and MAC both ways. */
#define REACTION_CYCLES (1 + 3 + 4)

START_TEST(a_pause_leaves_after_the_latencies_of_both_directions)
{
	set_up();
	build();
	while (rn_fifo_occupancy(line_in) < 10)
		push(line_in, FRAME_BYTES);
	bench_run(&bench, REACTION_CYCLES - 1);
	ck_assert_uint_eq(count("tx_prio3_pause"), 0);
	bench_run(&bench, 1);
	ck_assert_uint_eq(count("tx_prio3_pause"), 1);
	destroy();
}
END_TEST

START_TEST(a_pause_is_asked_for_again_at_its_half)
{
	uint64_t half_cycles;

	set_up();
	params.pause_quanta = 1000;
	half_cycles = 1000 * QUANTUM_PS / 2 / BENCH_CYCLE_PS;
	build();
	while (rn_fifo_occupancy(line_in) < 10)
		push(line_in, FRAME_BYTES);
	bench_run(&bench, REACTION_CYCLES);
	ck_assert_uint_eq(count("tx_prio3_pause"), 1);
	bench_run(&bench, half_cycles - 1);
	ck_assert_uint_eq(count("tx_prio3_pause"), 1);
	bench_run(&bench, 1);
	ck_assert_uint_eq(count("tx_prio3_pause"), 2);
	destroy();
}
END_TEST

START_TEST(a_pause_that_comes_holds_frames_back_for_its_quanta)
{
	const uint64_t held_cycles = 100 * QUANTUM_PS / BENCH_CYCLE_PS;

	set_up();
	build();
	pause(100);
	bench_run(&bench, REACTION_CYCLES);
	push(tx_frame, FRAME_BYTES);
	bench_run(&bench, held_cycles - 1);
	ck_assert_uint_eq(count("tx_packets_phy"), 0);
	bench_run(&bench, 1);
	ck_assert_uint_eq(count("tx_packets_phy"), 1);
	ck_assert_uint_eq(count("rx_prio3_pause_transition"), 1);
	ck_assert_uint_eq(count("rx_prio3_pause_duration"), 100 * QUANTUM_PS);
	destroy();
}
END_TEST

START_TEST(a_pause_of_nothing_lets_frames_go)
{
	set_up();
	build();
	pause(65535);
	bench_run(&bench, REACTION_CYCLES);
	push(tx_frame, FRAME_BYTES);
	bench_run(&bench, 100);
	pause(0);
	bench_run(&bench, REACTION_CYCLES - 1);
	ck_assert_uint_eq(count("tx_packets_phy"), 0);
	bench_run(&bench, 1);
	ck_assert_uint_eq(count("tx_packets_phy"), 1);
	ck_assert_uint_eq(count("rx_prio3_pause"), 2);
	destroy();
}
END_TEST

START_TEST(the_headroom_is_used_to_the_last_byte)
{
	uint64_t room;

	set_up();
	build();
	room = params.xoff_bytes + rn_headroom_bytes(&cable);
	for (; room >= STORED + 64; room -= STORED)
		arrive(1, FRAME_BYTES);
	arrive(1, (uint32_t)room - RN_LINE_FCS_BYTES);
	ck_assert_uint_eq(count("rx_discards_phy"), 0);
	ck_assert_uint_eq(count("rx_buffer_high_bytes"),
			  params.xoff_bytes + rn_headroom_bytes(&cable));
	arrive(1, 60);
	ck_assert_uint_eq(count("rx_discards_phy"), 1);
	destroy();
}
END_TEST

START_TEST(a_buffer_that_does_not_move_lets_the_peer_go)
{
	const uint64_t storm_cycles = 2000;

	set_up();
	params.pause_storm_ps = storm_cycles * BENCH_CYCLE_PS;
	build();
	while (rn_fifo_occupancy(line_in) < 10)
		push(line_in, FRAME_BYTES);
	/* It holds its first frame from cycle 1 on. */
	bench_run(&bench, storm_cycles);
	ck_assert_uint_eq(count("tx_pause_storm_error_events"), 0);
	bench_run(&bench, 1);
	ck_assert_uint_eq(count("tx_pause_storm_error_events"), 1);
	bench_run(&bench, 100);
	check_pause(params.pause_quanta);
	check_pause(0);
	/* It holds the peer back again when it has moved. */
	drain(rx_frame, 6);
	bench_run(&bench, 10);
	arrive(6, FRAME_BYTES);
	bench_run(&bench, 100);
	check_pause(params.pause_quanta);
	ck_assert_uint_eq(count("tx_pause_storm_error_events"), 1);
	destroy();
}
END_TEST

START_TEST(without_flow_control_a_full_buffer_discards)
{
	set_up();
	cable.is_lossless = false;
	params.rx_fifo_depth = 20;
	build();
	arrive(20, FRAME_BYTES);
	ck_assert_uint_eq(count("rx_discards_phy"), 0);
	arrive(1, FRAME_BYTES);
	ck_assert_uint_eq(count("rx_discards_phy"), 1);
	pause(65535);
	bench_run(&bench, 20);
	push(tx_frame, FRAME_BYTES);
	bench_run(&bench, 20);
	ck_assert_uint_eq(count("tx_packets_phy"), 1);
	ck_assert_uint_eq(count("tx_prio3_pause"), 0);
	destroy();
}
END_TEST

START_TEST(thresholds_in_the_wrong_order_are_refused)
{
	set_up();
	ck_assert_ptr_null(rn_mac_check(&params));
	params.xon_bytes = params.xoff_bytes - 1;
	ck_assert_ptr_null(rn_mac_check(&params));
	params.xon_bytes = params.xoff_bytes;
	ck_assert_ptr_nonnull(rn_mac_check(&params));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("mac");

	tcase_add_test(tcase, the_peer_is_held_back_from_the_threshold_on);
	tcase_add_test(tcase, the_peer_goes_on_from_the_lower_threshold_on);
	tcase_add_test(tcase, a_pause_leaves_after_the_latencies_of_both_directions);
	tcase_add_test(tcase, a_pause_is_asked_for_again_at_its_half);
	tcase_add_test(tcase, a_pause_that_comes_holds_frames_back_for_its_quanta);
	tcase_add_test(tcase, a_pause_of_nothing_lets_frames_go);
	tcase_add_test(tcase, the_headroom_is_used_to_the_last_byte);
	tcase_add_test(tcase, a_buffer_that_does_not_move_lets_the_peer_go);
	tcase_add_test(tcase, without_flow_control_a_full_buffer_discards);
	tcase_add_test(tcase, thresholds_in_the_wrong_order_are_refused);
	return run_suite(tcase, "mac");
}
