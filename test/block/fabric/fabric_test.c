/*
 * The fabric against closed forms: when frames arrive, what a switch drops, which frame a fault hits.
 */
#include <check.h>
#include <string.h>

#include "fabric/fabric.h"
#include "nic/msg/frame.h"
#include "run_suite.h"
#include "sim/stats.h"
#include "wire/line.h"
#include "wire/opcode.h"

#define PORTS 4
#define REACTION_PS 20000
#define BYTE_PS 80u /* at 100 Gb/s */

/* A NIC that sends what the test says and notes when frames become visible. */
struct nic {
	struct rn_block block;
	struct rn_fifo out, in;
	struct rn_line line;
	unsigned got;
	uint64_t got_ps[64];
	uint32_t got_psn[64];
	uint8_t got_corrupt[64];
	unsigned discards;
	unsigned pauses;
	uint64_t pause_ps[64];
	uint32_t quanta[64];
};

static struct rn_sim *sim;
static struct rn_clock clock_1thz;
static struct rn_stats *stats;
static struct rn_buffers *buffers;
static struct rn_packets *packets;
static struct rn_fabric *fabric;
static struct nic nics[PORTS];

static void take(void *self, uint64_t cycle)
{
	struct nic *nic = self;
	struct rn_frame frame;

	while (rn_fifo_pop(&nic->in, &frame)) {
		if (rn_packet_at(packets, frame.packet)->is_pause) {
			nic->pause_ps[nic->pauses] = cycle;
			nic->quanta[nic->pauses++] =
				rn_packet_at(packets, frame.packet)->pause_quanta;
			rn_packet_put(packets, frame.packet);
			continue;
		}
		nic->got_ps[nic->got] = cycle;
		nic->got_corrupt[nic->got] = rn_packet_at(packets, frame.packet)->corrupt;
		nic->got_psn[nic->got++] = rn_packet_at(packets, frame.packet)->psn;
		rn_packet_put(packets, frame.packet);
	}
}

static void discard(void *arg)
{
	struct nic *nic = arg;

	nic->discards++;
}

static void build_with(const struct rn_fabric_params *params, bool is_lossless, unsigned ports,
		       uint64_t permute_seed)
{
	const struct rn_cable cable = {
		.bps = params->link_mbps * 1000000,
		.delay_ps = params->link_delay_ps,
		.reaction_ps = REACTION_PS,
		.is_lossless = is_lossless,
	};
	struct rn_fabric_port port[PORTS];

	sim = rn_sim_new(permute_seed);
	rn_clock_init(&clock_1thz, "test", 1000000000000u);
	stats = rn_stats_new();
	buffers = rn_buffers_new();
	packets = rn_packets_new(buffers);
	memset(nics, 0, sizeof(nics));
	for (unsigned i = 0; i < ports; i++) {
		rn_block_init(&nics[i].block, sim, &clock_1thz, "test.nic", take, &nics[i]);
		rn_fifo_init(&nics[i].out, sim, "test.out", 64, sizeof(struct rn_frame), 1);
		rn_fifo_init(&nics[i].in, sim, "test.in", 64, sizeof(struct rn_frame), 1);
		rn_fifo_set_consumer(&nics[i].in, &nics[i].block);
		rn_line_init(&nics[i].line, 100000000000u);
		port[i] = (struct rn_fabric_port){.out = &nics[i].out,
						  .in = &nics[i].in,
						  .mac = {2, 0, 0, 0, 0, (uint8_t)(i + 1)},
						  .discard = discard,
						  .arg = &nics[i]};
	}
	fabric = rn_fabric_new(sim, stats, packets, params, &cable, port, ports, NULL);
}

static void build(const struct rn_fabric_params *params, unsigned ports, uint64_t permute_seed)
{
	build_with(params, false, ports, permute_seed);
}

static void destroy(unsigned ports)
{
	rn_fabric_free(fabric);
	ck_assert_uint_eq(rn_packets_in_use(packets), 0);
	for (unsigned i = 0; i < ports; i++) {
		rn_fifo_fini(&nics[i].out);
		rn_fifo_fini(&nics[i].in);
	}
	rn_packets_free(packets);
	rn_buffers_free(buffers);
	rn_stats_free(stats);
	rn_sim_free(sim);
}

static struct rn_fabric_params defaults(void)
{
	struct rn_fabric_params params;

	rn_params_set_defaults(&rn_fabric_param_table, &params);
	return params;
}

/* Send a request with payload of @bytes from @from to @to at @at_ps or as soon as the line is free. */
static uint64_t send(unsigned from, unsigned to, uint32_t psn, uint16_t bytes, uint64_t at_ps)
{
	struct rn_frame frame = {.packet = rn_packet_get(packets)};
	struct rn_packet *packet = rn_packet_at(packets, frame.packet);
	uint64_t end_ps;

	packet->opcode = RN_BTH_WRITE_MIDDLE;
	packet->psn = psn;
	packet->is_request = 1;
	packet->src_host = from;
	packet->src_qpn = 0x100 + from;
	packet->dqpn = 0x100 + to;
	packet->sgid[15] = (uint8_t)from;
	packet->dgid[15] = (uint8_t)to;
	packet->dmac[0] = 2;
	packet->dmac[5] = (uint8_t)(to + 1);
	if (bytes) {
		packet->payload_buf = rn_buffer_get(buffers);
		packet->payload_bytes = bytes;
	}
	frame.bytes = rn_packet_frame_bytes(packet);
	packet->sent_ps = rn_line_send(&nics[from].line, at_ps, frame.bytes, &end_ps);
	rn_fifo_push_at(&nics[from].out, &frame, packet->sent_ps);
	return packet->sent_ps;
}

/* Preamble to the end of the FCS. */
static uint64_t frame_ps(uint16_t payload_bytes)
{
	return (14u + 20 + 8 + 12 + payload_bytes + 4 + 4 + 8) * BYTE_PS;
}

START_TEST(last_bit_arrives_after_serialisation_and_cable)
{
	struct rn_fabric_params params = defaults();

	params.link_delay_ps = 12345;
	build(&params, 2, 0);
	send(0, 1, 7, 1024, 5000);
	rn_sim_run(sim, 5000 + frame_ps(1024) + 12345, UINT64_MAX);
	ck_assert_uint_eq(nics[1].got, 0);
	rn_sim_run(sim, 5000 + frame_ps(1024) + 12345 + 1, UINT64_MAX);
	ck_assert_uint_eq(nics[1].got, 1);
	destroy(2);
}
END_TEST

START_TEST(own_mac_comes_back_by_the_loopback)
{
	struct rn_fabric_params params = defaults();

	build(&params, 2, 0);
	send(0, 0, 7, 64, 1000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[0].got, 1);
	ck_assert_uint_eq(nics[0].got_ps[0], 1000 + frame_ps(64) + params.loopback_delay_ps + 1);
	destroy(2);
}
END_TEST

START_TEST(frame_to_nobody_is_dropped_and_counted)
{
	struct rn_fabric_params params = defaults();

	build(&params, 2, 0);
	send(0, 2, 7, 64, 1000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(rn_stats_value(stats, "fabric.port0", "unknown_destination"), 1);
	destroy(2);
}
END_TEST

START_TEST(two_senders_share_one_output_line_in_any_order_of_ticks)
{
	struct rn_fabric_params params = defaults();
	uint64_t reference_ps[20] = {0};
	uint32_t reference_psn[20] = {0};

	params.switched = true;
	for (uint64_t seed = 0; seed < 20; seed++) {
		build(&params, 3, seed);
		for (uint32_t i = 0; i < 10; i++) {
			send(0, 2, i, 1024, 1000);
			send(1, 2, 100 + i, 1024, 1000);
		}
		rn_sim_run(sim, 1000000000, UINT64_MAX);
		ck_assert_uint_eq(nics[2].got, 20);
		if (!seed) {
			memcpy(reference_ps, nics[2].got_ps, sizeof(reference_ps));
			memcpy(reference_psn, nics[2].got_psn, sizeof(reference_psn));
			/* Saturated: frames follow each other with the gap alone between them. */
			for (unsigned i = 1; i < 20; i++)
				ck_assert_uint_eq(reference_ps[i] - reference_ps[i - 1],
						  frame_ps(1024) + 12 * BYTE_PS);
			ck_assert_uint_eq(reference_ps[0], 1000 + 2 * frame_ps(1024) +
								   2 * params.link_delay_ps +
								   params.switch_latency_ps + 1);
		}
		ck_assert_mem_eq(reference_ps, nics[2].got_ps, sizeof(reference_ps));
		ck_assert_mem_eq(reference_psn, nics[2].got_psn, sizeof(reference_psn));
		destroy(3);
	}
}
END_TEST

START_TEST(full_switch_buffer_drops_the_tail)
{
	struct rn_fabric_params params = defaults();
	uint64_t drops;

	params.switched = true;
	params.switch_buffer_bytes = 4608;
	build(&params, 3, 0);
	for (uint32_t i = 0; i < 20; i++) {
		send(0, 2, i, 1024, 1000);
		send(1, 2, 100 + i, 1024, 1000);
	}
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	drops = rn_stats_value(stats, "fabric.port2", "switch_discards");
	ck_assert_uint_gt(drops, 0);
	ck_assert_uint_eq(nics[2].got, 40 - drops);
	destroy(3);
}
END_TEST

/* --- lossless --- */

/* A pause frame from the NIC of @from at @at_ps. */
static void send_pause(unsigned from, uint32_t quanta, uint64_t at_ps)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(from + 1)};
	struct rn_frame frame = {.packet = rn_pause_new(packets, mac, quanta),
				 .bytes = RN_LINE_MIN_FRAME_BYTES};
	uint64_t end_ps;

	rn_packet_at(packets, frame.packet)->sent_ps =
		rn_line_send(&nics[from].line, at_ps, frame.bytes, &end_ps);
	rn_fifo_push_at(&nics[from].out, &frame, at_ps);
}

#define PAUSE_PS (72 * BYTE_PS) /* preamble to the end of the FCS */

START_TEST(a_pause_crosses_the_cable_and_goes_no_farther)
{
	struct rn_fabric_params params = defaults();

	build_with(&params, true, 2, 0);
	send_pause(0, 77, 1000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[1].pauses, 1);
	ck_assert_uint_eq(nics[1].quanta[0], 77);
	ck_assert_uint_eq(nics[1].pause_ps[0], 1000 + PAUSE_PS + params.link_delay_ps + 1);
	ck_assert_uint_eq(rn_stats_value(stats, "fabric.port0", "unknown_destination"), 0);
	destroy(2);
	params.switched = true;
	build_with(&params, true, 3, 0);
	send_pause(0, 77, 1000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[1].pauses + nics[2].pauses, 0);
	ck_assert_uint_eq(rn_stats_value(stats, "fabric.port0", "switch_rx_pause"), 1);
	destroy(3);
}
END_TEST

/* A frame that the switch would send just before the pause takes effect goes; one just after waits for its end. */
START_TEST(a_pause_holds_the_switch_back_from_its_last_bit_for_its_quanta)
{
	const uint32_t quanta = 1000;
	struct rn_fabric_params params = defaults();
	/* When the frame has crossed the switch, and when the pause has crossed the cable. */
	const uint64_t frame_at =
		50000 + frame_ps(64) + params.link_delay_ps + params.switch_latency_ps;
	const uint64_t pause_takes = PAUSE_PS + params.link_delay_ps;

	params.switched = true;
	for (int64_t late = -1; late <= 1; late++) {
		uint64_t pause_at = frame_at - pause_takes + (uint64_t)late;
		uint64_t starts = late > 0 ? frame_at : pause_at + pause_takes + quanta * 5120;

		build_with(&params, true, 3, 0);
		send(0, 2, 0, 64, 50000);
		send_pause(2, quanta, pause_at);
		rn_sim_run(sim, 1000000000, UINT64_MAX);
		ck_assert_uint_eq(nics[2].got, 1);
		ck_assert_uint_eq(nics[2].got_ps[0],
				  starts + frame_ps(64) + params.link_delay_ps + 1);
		destroy(3);
	}
}
END_TEST

START_TEST(a_pause_of_nothing_ends_the_one_before)
{
	struct rn_fabric_params params = defaults();
	const uint64_t end_ps = 200000000 + PAUSE_PS + params.link_delay_ps;

	params.switched = true;
	build_with(&params, true, 3, 0);
	send_pause(2, 65535, 1000);
	send(0, 2, 0, 64, 50000);
	send_pause(2, 0, 200000000);
	rn_sim_run(sim, end_ps, UINT64_MAX);
	ck_assert_uint_eq(nics[2].got, 0);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[2].got, 1);
	ck_assert_uint_eq(nics[2].got_ps[0], end_ps + frame_ps(64) + params.link_delay_ps + 1);
	ck_assert_uint_eq(rn_stats_value(stats, "fabric.port2", "switch_held_ps"),
			  200000000 - 1000);
	destroy(3);
}
END_TEST

/* Bytes of a frame of 64 of payload in the switch, with FCS. */
#define SMALL_BYTES (14u + 20 + 8 + 12 + 64 + 4 + 4)

/* The account of a port is at the threshold, or a byte below it. */
START_TEST(a_port_is_held_back_from_its_threshold_on)
{
	struct rn_fabric_params params = defaults();

	params.switched = true;
	for (unsigned below = 0; below < 2; below++) {
		params.switch_xoff_bytes = 4 * SMALL_BYTES + below;
		params.switch_xon_bytes = 1;
		build_with(&params, true, 3, 0);
		/* The output is held back, so nothing leaves. */
		send_pause(2, 10000, 1000);
		for (uint32_t i = 0; i < 4; i++)
			send(0, 2, i, 64, 100000);
		rn_sim_run(sim, 1000000000, UINT64_MAX);
		ck_assert_uint_eq(nics[2].got, 4);
		ck_assert_uint_eq(nics[1].pauses, 0);
		ck_assert_uint_eq(nics[0].pauses, below ? 0 : 2);
		ck_assert_uint_eq(rn_stats_value(stats, "fabric.port0",
						 "switch_ingress_high_bytes"),
				  4 * SMALL_BYTES);
		if (!below) {
			ck_assert_uint_eq(nics[0].quanta[0], 65535);
			ck_assert_uint_eq(nics[0].quanta[1], 0);
			/* With the last bit of the last frame the account is empty. */
			ck_assert_uint_eq(nics[0].pause_ps[1], nics[2].got_ps[3] + PAUSE_PS);
		}
		destroy(3);
	}
}
END_TEST

START_TEST(a_pause_is_asked_for_again_at_its_half)
{
	struct rn_fabric_params params = defaults();

	params.switched = true;
	params.switch_xoff_bytes = SMALL_BYTES;
	params.switch_xon_bytes = 1;
	build_with(&params, true, 3, 0);
	send_pause(2, 50000, 1000);
	send(0, 2, 0, 64, 100000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[0].pauses, 3);
	ck_assert_uint_eq(nics[0].pause_ps[1] - nics[0].pause_ps[0], 65535 * UINT64_C(5120) / 2);
	ck_assert_uint_eq(nics[0].quanta[2], 0);
	destroy(3);
}
END_TEST

START_TEST(incast_is_the_same_in_any_order_of_ticks)
{
	struct rn_fabric_params params = defaults();
	struct nic reference = {0};

	params.switched = true;
	params.switch_xoff_bytes = 4000;
	params.switch_xon_bytes = 2000;
	for (uint64_t seed = 0; seed < 20; seed++) {
		build_with(&params, true, 4, seed);
		for (uint32_t i = 0; i < 10; i++)
			for (unsigned from = 0; from < 3; from++)
				send(from, 3, 100 * from + i, 1024, 1000);
		rn_sim_run(sim, 1000000000, UINT64_MAX);
		ck_assert_uint_eq(nics[3].got, 30);
		ck_assert_uint_gt(nics[0].pauses, 1);
		if (!seed)
			reference = nics[3];
		ck_assert_mem_eq(reference.got_ps, nics[3].got_ps, sizeof(reference.got_ps));
		ck_assert_mem_eq(reference.got_psn, nics[3].got_psn, sizeof(reference.got_psn));
		destroy(4);
	}
}
END_TEST

/* Connections are found again among thousands: a rule names the last by its ordinal. */
START_TEST(a_connection_is_found_among_thousands)
{
	const uint32_t connections = 5000;
	struct rn_fault fault = {.action = RN_FAULT_DROP,
				 .host = 0,
				 .connection = connections - 1,
				 .psn_offset = RN_FAULT_ANY_VALUE,
				 .transmission = 0};
	struct rn_faults *faults = rn_faults_new();
	struct rn_packet packet = {.opcode = RN_BTH_WRITE_MIDDLE, .is_request = 1};

	rn_faults_add(faults, &fault);
	for (unsigned round = 0; round < 3; round++)
		for (uint32_t i = 0; i < connections; i++) {
			/* The ends in turn: both directions are one connection. */
			packet.src_host = round % 2;
			packet.src_qpn = round % 2 ? 7000 - i : i;
			packet.dqpn = round % 2 ? i : 7000 - i;
			packet.sgid[15] = (uint8_t)(round % 2);
			packet.dgid[15] = (uint8_t)(1 - round % 2);
			ck_assert_int_eq(rn_faults_match(faults, &packet) != NULL,
					 i == connections - 1 && round != 1);
		}
	rn_faults_free(faults);
}
END_TEST

START_TEST(full_receive_buffer_discards_frames)
{
	struct rn_fabric_params params = defaults();

	build(&params, 2, 0);
	nics[1].in.consumer = NULL; /* never takes a frame */
	for (uint32_t i = 0; i < 64; i++)
		send(0, 1, i, 64, 1000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	for (uint32_t i = 0; i < 3; i++)
		send(0, 1, i, 64, 2000000000);
	rn_sim_run(sim, 3000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[1].discards, 3);
	for (struct rn_frame frame; rn_fifo_pop(&nics[1].in, &frame);)
		rn_packet_put(packets, frame.packet);
	destroy(2);
}
END_TEST

START_TEST(fault_hits_the_named_frame_alone)
{
	struct rn_fabric_params params = defaults();
	struct rn_fault fault = {.action = RN_FAULT_DROP,
				 .class = RN_FAULT_REQUEST_MIDDLE,
				 .host = 0,
				 .connection = 0,
				 .psn_offset = 2,
				 .transmission = 2};

	build(&params, 2, 0);
	rn_faults_add(rn_fabric_faults(fabric), &fault);
	for (unsigned round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 4; i++)
			send(0, 1, 0xffffff + i, 64, 1000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[1].got, 11);
	/* Second round, third frame: PSN 0xffffff + 2 = 1. */
	ck_assert_uint_eq(nics[1].got_psn[5], 0xffffff + 1);
	ck_assert_uint_eq(nics[1].got_psn[6], 0xffffff + 3);
	ck_assert_uint_eq(rn_faults_at(rn_fabric_faults(fabric), 0)->seen, 3);
	ck_assert_uint_eq(rn_faults_at(rn_fabric_faults(fabric), 0)->done, 1);
	destroy(2);
}
END_TEST

START_TEST(faults_corrupt_duplicate_and_delay)
{
	struct rn_fabric_params params = defaults();
	struct rn_fault fault = {.action = RN_FAULT_CORRUPT,
				 .connection = RN_FAULT_ANY_VALUE,
				 .psn_offset = 0,
				 .transmission = 1};

	build(&params, 2, 0);
	rn_faults_add(rn_fabric_faults(fabric), &fault);
	fault.action = RN_FAULT_DUPLICATE;
	fault.psn_offset = 1;
	rn_faults_add(rn_fabric_faults(fabric), &fault);
	fault.action = RN_FAULT_DELAY;
	fault.psn_offset = 2;
	fault.delay_ps = 1000000;
	rn_faults_add(rn_fabric_faults(fabric), &fault);
	for (uint32_t i = 0; i < 4; i++)
		send(0, 1, i, 64, 1000);
	rn_sim_run(sim, 1000000000, UINT64_MAX);
	ck_assert_uint_eq(nics[1].got, 5);
	ck_assert_uint_eq(nics[1].got_corrupt[0], 1);
	ck_assert_uint_eq(nics[1].got_psn[1], 1);
	ck_assert_uint_eq(nics[1].got_psn[2], 1);
	ck_assert_uint_eq(nics[1].got_psn[3], 3);
	ck_assert_uint_eq(nics[1].got_psn[4], 2);
	destroy(2);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("fabric");

	tcase_add_test(tcase, last_bit_arrives_after_serialisation_and_cable);
	tcase_add_test(tcase, own_mac_comes_back_by_the_loopback);
	tcase_add_test(tcase, frame_to_nobody_is_dropped_and_counted);
	tcase_add_test(tcase, two_senders_share_one_output_line_in_any_order_of_ticks);
	tcase_add_test(tcase, full_switch_buffer_drops_the_tail);
	tcase_add_test(tcase, full_receive_buffer_discards_frames);
	tcase_add_test(tcase, a_pause_crosses_the_cable_and_goes_no_farther);
	tcase_add_test(tcase, a_pause_holds_the_switch_back_from_its_last_bit_for_its_quanta);
	tcase_add_test(tcase, a_pause_of_nothing_ends_the_one_before);
	tcase_add_test(tcase, a_port_is_held_back_from_its_threshold_on);
	tcase_add_test(tcase, a_pause_is_asked_for_again_at_its_half);
	tcase_add_test(tcase, incast_is_the_same_in_any_order_of_ticks);
	tcase_add_test(tcase, a_connection_is_found_among_thousands);
	tcase_add_test(tcase, fault_hits_the_named_frame_alone);
	tcase_add_test(tcase, faults_corrupt_duplicate_and_delay);
	return run_suite(tcase, "fabric");
}
