/*
 * Lossless links: whatever two idle hosts or many on a switch do to each other, no frame is discarded, nothing is
 * sent twice, and no timer expires. On lossy links the same traffic loses frames.
 */
#include <stdlib.h>

#include "frames.h"
#include "run_suite.h"
#include "wire/pause.h"
#include "world.h"

#define LINKS_MAX 1024u

static struct world world;
static struct world_link links[LINKS_MAX];
static struct rn_scripted_flow flows[LINKS_MAX];

static bool is_long(void)
{
	return getenv("RN_LONG");
}

static void connect(unsigned from, unsigned to, unsigned count, uint64_t bytes)
{
	const unsigned hosts[2] = {from, to};
	const struct rn_scripted_qp_spec spec = {.sq_wqebbs = 64, .rq_wqes = 64};

	for (unsigned i = 0; i < count; i++)
		world_connect_hosts(&world, hosts, bytes, &RN_SCRIPTED_PATH, &spec, &links[i]);
}

static void start(unsigned count, uint8_t opcode, uint32_t bytes, uint32_t depth, uint64_t messages)
{
	for (unsigned i = 0; i < count; i++) {
		struct rn_scripted_flow_spec spec =
			world_flow(&links[i], opcode, bytes, depth, messages);

		spec.stride = 0;
		spec.interval_ps = WORLD_US * (1 + count / 16);
		rn_scripted_flow_start(&flows[i], &spec);
	}
}

static bool are_done(void *arg)
{
	for (unsigned i = 0; i < *(const unsigned *)arg; i++)
		if (!rn_scripted_flow_is_done(&flows[i]))
			return false;
	return true;
}

static void finish(unsigned count)
{
	const uint64_t limit_ps = rn_scripted_now_ps(world.host[0]) + 10 * RN_SCRIPTED_SECOND_PS;

	ck_assert(rn_scripted_run_until(world.host[0], are_done, &count, limit_ps));
	for (unsigned i = 0; i < count; i++) {
		ck_assert_uint_eq(flows[i].errors, 0);
		rn_scripted_flow_stop(&flows[i]);
	}
}

static uint64_t sum(const char *counter)
{
	uint64_t total = 0;

	for (unsigned host = 0; host < world.hosts; host++)
		total += world_nic_counter(&world, host, counter);
	return total;
}

static void check_nothing_was_lost(void)
{
	static const char *const counters[] = {
		"rx_discards_phy", "tx_retransmitted_packets",	  "local_ack_timeout_err",
		"packet_seq_err",  "implied_nak_seq_err",	  "duplicate_request",
		"out_of_sequence", "tx_pause_storm_error_events",
	};

	for (unsigned i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		ck_assert_msg(sum(counters[i]) == 0, "%s: %llu", counters[i],
			      (unsigned long long)sum(counters[i]));
}

/* --- two hosts and a cable --- */

static const uint8_t opcodes[] = {RN_WQE_SEND, RN_WQE_RDMA_WRITE, RN_WQE_RDMA_WRITE_IMM,
				  RN_WQE_RDMA_READ};
static const uint32_t sizes[] = {0, 1, 64, 128, 1024, 4096};
static const unsigned counts[] = {1, 2, 16, 128, 1024};

#define OPCODES ((int)(sizeof(opcodes) / sizeof(opcodes[0])))
#define SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))
#define COUNTS ((int)(sizeof(counts) / sizeof(counts[0])))

static uint64_t messages_of(uint32_t bytes, unsigned count)
{
	const uint64_t most = is_long() ? 512 : 64;
	const uint64_t packets = (is_long() ? 65536 : 4096) / count;
	const uint64_t messages = packets / (bytes / 4096 + 1);

	return messages < 2 ? 2 : messages > most ? most : messages;
}

/* All sizes with one number of queue pairs, all posted at once. */
START_TEST(no_operation_size_or_number_of_queue_pairs_is_discarded)
{
	const unsigned count = counts[_i / OPCODES];
	const uint8_t opcode = opcodes[_i % OPCODES];

	world_init(&world, 2, NULL);
	world_start(&world, NULL);
	connect(0, 1, count, 4096);
	for (int size = 0; size < SIZES; size++) {
		/* All sizes of a thousand queue pairs take minutes. */
		if (count > 128 && !is_long() && sizes[size] != 128 && sizes[size] != 4096)
			continue;
		start(count, opcode, sizes[size], 32, messages_of(sizes[size], count));
		finish(count);
	}
	check_nothing_was_lost();
	world_fini(&world);
}
END_TEST

START_TEST(no_long_message_is_discarded)
{
	const unsigned count = counts[_i / OPCODES];
	const uint8_t opcode = opcodes[_i % OPCODES];
	const uint32_t bytes = count > 2 && !is_long() ? 65536 : 1048576;

	if (count > 128)
		return;
	world_init(&world, 2, NULL);
	world_start(&world, NULL);
	connect(0, 1, count, bytes);
	start(count, opcode, bytes, 4, messages_of(bytes, count));
	finish(count);
	check_nothing_was_lost();
	world_fini(&world);
}
END_TEST

/* What gave 2,960 discards and an ACK timeout: ib_send_bw -F -q 16 -s 128 -n 2000. */
START_TEST(sixteen_queue_pairs_send_ten_million_messages_a_second_without_a_loss)
{
	uint64_t start_ps, end_ps = 0;
	double rate;

	world_init(&world, 2, NULL);
	world_start(&world, NULL);
	connect(0, 1, 16, 4096);
	start(16, RN_WQE_SEND, 128, 32, 2000);
	start_ps = flows[0].start_ps;
	finish(16);
	for (unsigned i = 0; i < 16; i++)
		end_ps = flows[i].end_ps > end_ps ? flows[i].end_ps : end_ps;
	rate = 16.0 * 2000 * 1e12 / (double)(end_ps - start_ps);
	ck_assert_msg(rate > 10e6, "%.2f million messages a second", rate / 1e6);
	check_nothing_was_lost();
	world_fini(&world);
}
END_TEST

/* --- pause frames --- */

/* A receiver that is slower than the line holds its peer back: its PCIe link has two lanes. */
static const char *const slow_target[] = {"hosts.1.nic.pcie.lanes=2", NULL};
static const char *const slow_lossy_target[] = {"hosts.1.nic.pcie.lanes=2",
						"fabric.flow_control=none",
						"hosts.1.nic.mac.rx_fifo_depth=16", NULL};

START_TEST(a_slow_receiver_holds_its_peer_back_within_the_headroom)
{
	const struct rn_mac_params *mac;
	struct frames frames;
	uint64_t high, pauses;

	world_init(&world, 2, slow_target);
	mac = &world.scenario->host[1].nic.mac;
	world_start(&world, &(struct world_options){.capture = true});
	connect(0, 1, 4, 65536);
	start(4, RN_WQE_RDMA_WRITE, 65536, 16, 64);
	finish(4);
	check_nothing_was_lost();
	high = world_counter(&world, "host1.nic0.mac", "rx_buffer_high_bytes");
	ck_assert_uint_ge(high, mac->xoff_bytes);
	/* Two frames, the line while the pause is on its way, and another frame: see rn_headroom_bytes(). */
	ck_assert_uint_lt(high, mac->xoff_bytes + 4 * 4400 + 4000);
	ck_assert_uint_gt(world_counter(&world, "host1.nic0.mac", "tx_prio3_pause"), 1);
	ck_assert_uint_eq(world_counter(&world, "host1.nic0.mac", "tx_prio3_pause"),
			  world_counter(&world, "host0.nic0.mac", "rx_prio3_pause"));
	ck_assert_uint_gt(world_counter(&world, "host0.nic0.mac", "rx_prio3_pause_duration"), 0);
	ck_assert_uint_eq(world_counter(&world, "host0.nic0.mac", "tx_prio3_pause"), 0);
	pauses = world_counter(&world, "host1.nic0.mac", "tx_prio3_pause");
	/* The capture has them all. */
	world_end(&world);
	frames_load(&frames, world_path(&world, "pcap"), 4096);
	ck_assert_uint_eq(frames.pauses, pauses);
	ck_assert_ptr_null(frames_first_again(&frames, 0));
	frames_free(&frames);
	world_fini(&world);
}
END_TEST

START_TEST(a_lossy_link_discards_what_a_lossless_one_holds_back)
{
	world_init(&world, 2, slow_lossy_target);
	world_start(&world, NULL);
	connect(0, 1, 4, 65536);
	start(4, RN_WQE_RDMA_WRITE, 65536, 16, 64);
	finish(4);
	ck_assert_uint_gt(sum("rx_discards_phy"), 0);
	ck_assert_uint_gt(sum("tx_retransmitted_packets"), 0);
	ck_assert_uint_eq(sum("tx_prio3_pause"), 0);
	world_fini(&world);
}
END_TEST

/* Both ends full, both pausing, all operations: nobody waits for the other for ever. */
START_TEST(two_slow_hosts_do_not_hold_each_other_back_for_good)
{
	static const char *const set[] = {"hosts.*.nic.transport.rx_packet_cycles=400", NULL};
	static const unsigned back[] = {1, 0};
	static const uint8_t all[] = {RN_WQE_RDMA_READ, RN_WQE_SEND, RN_WQE_RDMA_WRITE,
				      RN_WQE_RDMA_WRITE_IMM};

	world_init(&world, 2, set);
	world_start(&world, NULL);
	connect(0, 1, 16, 65536);
	for (unsigned i = 16; i < 32; i++)
		world_connect_hosts(&world, back, 65536, &RN_SCRIPTED_PATH, NULL, &links[i]);
	for (unsigned i = 0; i < 32; i++) {
		struct rn_scripted_flow_spec spec = world_flow(&links[i], all[i % 4], 65536, 8, 16);

		spec.stride = 0;
		rn_scripted_flow_start(&flows[i], &spec);
	}
	finish(32);
	check_nothing_was_lost();
	ck_assert_uint_gt(world_nic_counter(&world, 0, "tx_prio3_pause"), 0);
	ck_assert_uint_gt(world_nic_counter(&world, 1, "tx_prio3_pause"), 0);
	world_fini(&world);
}
END_TEST

/* A host and itself: no cable is between, and no pause helps. */
START_TEST(a_slow_host_loses_nothing_to_itself)
{
	static const char *const set[] = {"hosts.*.nic.pcie.lanes=1", NULL};

	world_init(&world, 2, set);
	world_start(&world, NULL);
	connect(0, 0, 8, 65536);
	start(8, RN_WQE_RDMA_READ, 65536, 8, 16);
	finish(8);
	check_nothing_was_lost();
	world_fini(&world);
}
END_TEST

/* --- a switch --- */

START_TEST(many_to_one_over_the_switch_loses_nothing)
{
	const unsigned hosts = 6;
	const uint8_t opcode = opcodes[_i];
	char port[32];

	world_init(&world, hosts, NULL);
	world_start(&world, NULL);
	for (unsigned i = 0; i < 4 * (hosts - 1); i++) {
		/* The one that all data goes to: the requester of a READ. */
		unsigned ends[2] = {1 + i % (hosts - 1), 0};

		if (opcode == RN_WQE_RDMA_READ)
			ends[0] = 0, ends[1] = 1 + i % (hosts - 1);
		world_connect_hosts(&world, ends, 65536, &RN_SCRIPTED_PATH, NULL, &links[i]);
	}
	start(4 * (hosts - 1), opcode, 65536, 16, 32);
	finish(4 * (hosts - 1));
	check_nothing_was_lost();
	for (unsigned i = 0; i < hosts; i++) {
		snprintf(port, sizeof(port), "fabric.port%u", i);
		ck_assert_uint_eq(world_counter(&world, port, "switch_discards"), 0);
		if (!i)
			continue;
		ck_assert_uint_gt(world_counter(&world, port, "switch_tx_pause"), 0);
		ck_assert_uint_lt(world_counter(&world, port, "switch_ingress_high_bytes"),
				  world.scenario->fabric.switch_xoff_bytes + 4 * 4400 + 12000);
	}
	world_fini(&world);
}
END_TEST

/* The switch is slower than nobody, its output port is held back by a host, and it holds the senders back in turn. */
START_TEST(a_slow_host_behind_a_switch_holds_the_senders_back)
{
	static const char *const set[] = {"hosts.0.nic.pcie.lanes=1", NULL};

	world_init(&world, 3, set);
	world_start(&world, NULL);
	connect(1, 0, 4, 65536);
	start(4, RN_WQE_RDMA_WRITE, 65536, 16, 64);
	finish(4);
	check_nothing_was_lost();
	ck_assert_uint_gt(world_counter(&world, "fabric.port0", "switch_rx_pause"), 1);
	ck_assert_uint_gt(world_counter(&world, "fabric.port0", "switch_held_ps"), 0);
	ck_assert_uint_gt(world_counter(&world, "fabric.port1", "switch_tx_pause"), 1);
	ck_assert_uint_eq(world_counter(&world, "fabric.port2", "switch_tx_pause"), 0);
	world_fini(&world);
}
END_TEST

START_TEST(a_lossy_switch_discards_what_a_lossless_one_holds_back)
{
	static const char *const set[] = {"fabric.flow_control=none",
					  "fabric.switch_buffer_bytes=65536", NULL};

	world_init(&world, 3, set);
	world_start(&world, NULL);
	for (unsigned i = 0; i < 4; i++) {
		const unsigned ends[2] = {1 + i % 2, 0};

		world_connect_hosts(&world, ends, 65536, &RN_SCRIPTED_PATH, NULL, &links[i]);
	}
	start(4, RN_WQE_RDMA_WRITE, 65536, 16, 32);
	finish(4);
	ck_assert_uint_gt(world_counter(&world, "fabric.port0", "switch_discards"), 0);
	world_fini(&world);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("lossless");

	/* A thousand queue pairs on a loaded machine. */
	tcase_set_timeout(tcase, 600);

	tcase_add_loop_test(tcase, no_operation_size_or_number_of_queue_pairs_is_discarded, 0,
			    OPCODES * COUNTS);
	tcase_add_loop_test(tcase, no_long_message_is_discarded, 0, OPCODES * COUNTS);
	tcase_add_test(tcase,
		       sixteen_queue_pairs_send_ten_million_messages_a_second_without_a_loss);
	tcase_add_test(tcase, a_slow_receiver_holds_its_peer_back_within_the_headroom);
	tcase_add_test(tcase, a_lossy_link_discards_what_a_lossless_one_holds_back);
	tcase_add_test(tcase, two_slow_hosts_do_not_hold_each_other_back_for_good);
	tcase_add_test(tcase, a_slow_host_loses_nothing_to_itself);
	tcase_add_loop_test(tcase, many_to_one_over_the_switch_loses_nothing, 0, OPCODES);
	tcase_add_test(tcase, a_slow_host_behind_a_switch_holds_the_senders_back);
	tcase_add_test(tcase, a_lossy_switch_discards_what_a_lossless_one_holds_back);
	return run_suite(tcase, "lossless");
}
