/*
 * Nothing depends on the order in which blocks run within a cycle, nor does any data on the depth of a fifo: two
 * NICs under loss, several queue pairs, all operations in both directions at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "frames.h"
#include "run_suite.h"
#include "traffic.h"

#define LINKS 3
#define MESSAGES 24
#define LIMIT_PS RN_SCRIPTED_SECOND_PS

static const struct rn_scripted_path path = {
	.mtu_bytes = 1024,
	.psn = {0xffffe0, 0x123},
	.rd_atomic = 4,
	.timeout = 8,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 1,
};

static struct world world;
static struct traffic traffic;

/* Frames lost by their number: every 23rd, and now and then two in a row. */
static void lose_frames(unsigned every)
{
	for (unsigned host = 0; host < 2; host++)
		for (unsigned n = 1; n <= 20; n++) {
			world_fault(&world, RN_FAULT_DROP, RN_FAULT_ANY, host, RN_FAULT_ANY_VALUE,
				    n * every + host);
			if (n % 4 == 0)
				world_fault(&world, RN_FAULT_DROP, RN_FAULT_ANY, host,
					    RN_FAULT_ANY_VALUE, n * every + host + 1);
		}
}

/* --- depths --- */

static bool is_depth(const char *key)
{
	const char *end = strstr(key, "_depth");

	return end && end[strlen("_depth")] == '\0';
}

/* Every depth of every fifo of both NICs: its least value, or @huge. Returns how many. */
static unsigned set_depths(uint32_t huge)
{
	unsigned count = 0;

	for (unsigned host = 0; host < 2; host++)
		for (const struct rn_nic_section *s = rn_nic_sections; s->table; s++)
			for (size_t n = 0; n < s->table->count; n++) {
				const struct rn_param_desc *row = &s->table->rows[n];
				char *params = (char *)&world.scenario->host[host].nic + s->offset;

				if (!is_depth(row->key))
					continue;
				ck_assert_int_eq(row->type, RN_PARAM_u32);
				*(uint32_t *)(void *)(params + row->offset) =
					huge ? huge : (uint32_t)row->min;
				count++;
			}
	return count;
}

/* --- permutations --- */

struct outcome {
	uint8_t *capture, *tlps;
	size_t capture_bytes, tlps_bytes;
	uint64_t digest;
	uint64_t counters; /* of everything */
};

static uint64_t sum_up(void)
{
	const struct rn_stats *stats = rn_system_stats(world.system);
	const struct rn_stats_counters *counters;
	uint64_t sum = 0;

	for (size_t n = 0; (counters = rn_stats_counters_at(stats, n)); n++)
		for (size_t i = 0; i < counters->count; i++)
			sum = sum * 31 +
			      *(const uint64_t *)(const void *)((const char *)counters->values +
								counters->descs[i].offset);
	return sum;
}

static struct outcome run_permuted(uint64_t permute_seed, bool least_depths)
{
	struct outcome outcome;

	world_init(&world, 2, NULL);
	if (least_depths)
		set_depths(0);
	world_start(&world, &(struct world_options){
				    .permute_seed = permute_seed, .capture = true, .tlps = true});
	lose_frames(23);
	traffic_init(&traffic, &world, LINKS, MESSAGES, &path);
	ck_assert(traffic_run(&traffic, LIMIT_PS));
	traffic_check(&traffic);
	ck_assert_uint_gt(world_nic_counter(&world, 0, "tx_retransmitted_packets"), 0);
	ck_assert_uint_gt(world_nic_counter(&world, 1, "tx_retransmitted_packets"), 0);
	outcome.digest = traffic.digest;
	outcome.counters = sum_up();
	world_end(&world);
	outcome.capture = frames_read_file(world_path(&world, "pcap"), &outcome.capture_bytes);
	outcome.tlps = frames_read_file(world_path(&world, "tlp.csv"), &outcome.tlps_bytes);
	world_fini(&world);
	return outcome;
}

static void check_orders(bool least_depths)
{
	const unsigned permutations = getenv("RN_LONG") ? 200 : 20;
	const struct outcome first = run_permuted(0, least_depths);

	for (unsigned seed = 1; seed <= permutations; seed++) {
		const struct outcome other = run_permuted(seed, least_depths);

		ck_assert_uint_eq(other.capture_bytes, first.capture_bytes);
		ck_assert_mem_eq(other.capture, first.capture, first.capture_bytes);
		ck_assert_uint_eq(other.tlps_bytes, first.tlps_bytes);
		ck_assert_mem_eq(other.tlps, first.tlps, first.tlps_bytes);
		ck_assert_uint_eq(other.digest, first.digest);
		ck_assert_uint_eq(other.counters, first.counters);
		free(other.capture);
		free(other.tlps);
	}
	free(first.capture);
	free(first.tlps);
}

START_TEST(twenty_orders_of_ticks_give_one_capture_and_one_result)
{
	check_orders(false);
}
END_TEST

START_TEST(twenty_orders_of_ticks_give_one_result_with_fifos_of_the_least_depth)
{
	check_orders(true);
}
END_TEST

static void run_depths(uint32_t huge, unsigned lost_every)
{
	world_init(&world, 2, NULL);
	ck_assert_uint_gt(set_depths(huge), 30);
	world_start(&world, NULL);
	if (lost_every)
		lose_frames(lost_every);
	traffic_init(&traffic, &world, LINKS, MESSAGES, &path);
	ck_assert_msg(traffic_run(&traffic, LIMIT_PS), "not through after a second");
	traffic_check(&traffic);
	world_fini(&world);
}

START_TEST(fifos_of_the_least_depth_carry_the_same_data)
{
	run_depths(0, 0);
}
END_TEST

START_TEST(fifos_of_the_least_depth_carry_the_same_data_under_loss)
{
	run_depths(0, 23);
}
END_TEST

START_TEST(huge_fifos_carry_the_same_data)
{
	run_depths(16384, 0);
	run_depths(16384, 23);
}
END_TEST

/* --- scarcity --- */

/* Whatever there are finitely many of: one is enough, for each alone and for all together. */
static const char *const scarce[] = {
	"tags",
	"channel_requests",
	"channel_reads",
	"translations",
	"sq_slots",
	"rq_slots",
	"tx_packet_slots",
	"rx_slots",
	"reply_slots",
	"read_data_slots",
	"outstanding_wqes",
	"outstanding_reads",
	"send_fetches",
	"recv_fetches",
	"request_slots",
	"mpt_misses",
	"mtt_misses",
	"qpc_misses",
	"cqc_misses",
	"in_flight",
	"blueflame_slots",
	"blueflame_buffers",
	"grants_outstanding",
	"reply_jobs",
	"fifo_entries",
	"rx_lookahead",
	"quantum_packets",
	"reply_quantum_packets",
	"mpt_sets",
	"mpt_ways",
	"mtt_sets",
	"mtt_ways",
	"cache_sets",
	"cache_ways",
	"recv_cache_sets",
	"recv_cache_ways",
	"qpc_sets",
	"cqc_sets",
	"posted_header_credits",
	"posted_data_credits",
	"batch_wqebbs",
	"recv_batch_wqes",
	"nonposted_header_credits",
};

#define SCARCE (sizeof(scarce) / sizeof(scarce[0]))

static void set_one(struct rn_nic_params *nic, const char *key)
{
	bool found = false;

	for (const struct rn_nic_section *s = rn_nic_sections; s->table; s++)
		for (size_t n = 0; n < s->table->count; n++) {
			const struct rn_param_desc *row = &s->table->rows[n];

			if (strcmp(row->key, key) != 0)
				continue;
			*(uint32_t *)(void *)((char *)nic + s->offset + row->offset) =
				(uint32_t)row->min;
			found = true;
		}
	ck_assert_msg(found, "no parameter %s", key);
}

/* NICs that have the least of what @is_scarce says; SCARCE stands for the fifos. */
static void make_scarce(const bool is_scarce[SCARCE + 1])
{
	for (unsigned host = 0; host < 2; host++) {
		struct rn_nic_params *nic = &world.scenario->host[host].nic;

		for (size_t n = 0; n < SCARCE; n++)
			if (is_scarce[n])
				set_one(nic, scarce[n]);
		nic->context_cache.qpc_ways = 5;
		nic->context_cache.cqc_ways = 3;
		ck_assert_ptr_null(rn_nic_params_check(nic));
	}
	if (is_scarce[SCARCE])
		set_depths(0);
}

static void run_scarce(const bool is_scarce[SCARCE + 1], unsigned lost_every)
{
	world_init(&world, 2, NULL);
	make_scarce(is_scarce);
	world_start(&world, NULL);
	if (lost_every)
		lose_frames(lost_every);
	traffic_init(&traffic, &world, TRAFFIC_LINKS_MAX, MESSAGES, &path);
	ck_assert_msg(traffic_run(&traffic, LIMIT_PS), "not through after a second");
	traffic_check(&traffic);
	world_fini(&world);
}

START_TEST(one_of_a_kind_is_enough)
{
	bool is_scarce[SCARCE + 1] = {false};

	is_scarce[_i] = true;
	run_scarce(is_scarce, 0);
	run_scarce(is_scarce, 37);
}
END_TEST

START_TEST(one_of_every_kind_is_enough)
{
	bool is_scarce[SCARCE + 1];

	memset(is_scarce, true, sizeof(is_scarce));
	run_scarce(is_scarce, 0);
	run_scarce(is_scarce, 37);
}
END_TEST

/* Frames lost, damaged, doubled and late, by their numbers. */
static void disturb(struct rn_rng *rng)
{
	for (unsigned n = 0; n < 60; n++)
		world_fault_add(&world,
				&(struct rn_fault){
					.action = rn_rng_below(rng, 4),
					.class = RN_FAULT_ANY,
					.host = (uint32_t)rn_rng_below(rng, 2),
					.connection = RN_FAULT_ANY_VALUE,
					.psn_offset = RN_FAULT_ANY_VALUE,
					.transmission = (uint32_t)rn_rng_below(rng, 900) + 1,
					.delay_ps = rn_rng_below(rng, 20 * WORLD_US),
				});
}

/* NICs, fabric and connections drawn from @seed; what comes of it as a number. */
static uint64_t run_random(uint64_t seed, uint64_t permute_seed)
{
	uint64_t result;

	struct rn_scripted_path random_path = path;
	bool is_scarce[SCARCE + 1];
	struct rn_rng rng;

	rn_rng_init(&rng, seed, "mixture");
	for (size_t n = 0; n <= SCARCE; n++)
		is_scarce[n] = rn_rng_below(&rng, 3) == 0;
	world_init(&world, 2, NULL);
	make_scarce(is_scarce);
	world.scenario->fabric.switched = rn_rng_below(&rng, 2);
	world.scenario->fabric.link_mbps = 10000 << rn_rng_below(&rng, 4);
	world.scenario->host[0].nic.transport.advertise_credits = rn_rng_below(&rng, 2);
	world.scenario->host[1].nic.transport.ack_delay_ps = rn_rng_below(&rng, 2) * WORLD_US;
	world.scenario->host[0].nic.pcie.gen = 1 + (uint32_t)rn_rng_below(&rng, 5);
	world_start(&world, &(struct world_options){.permute_seed = permute_seed});
	disturb(&rng);
	random_path.mtu_bytes = 256u << rn_rng_below(&rng, 5);
	random_path.rd_atomic = 1 + (uint32_t)rn_rng_below(&rng, 16);
	random_path.psn[0] = (uint32_t)rn_rng_below(&rng, 1 << 24);
	traffic_init(&traffic, &world, 1 + (unsigned)rn_rng_below(&rng, TRAFFIC_LINKS_MAX),
		     MESSAGES, &random_path);
	ck_assert_msg(traffic_run(&traffic, LIMIT_PS), "seed %u: not through after a second",
		      (unsigned)seed);
	traffic_check(&traffic);
	result = traffic.digest ^ sum_up();
	world_fini(&world);
	return result;
}

START_TEST(any_mixture_of_scarcity_and_disturbance_goes_through_in_any_order)
{
	const uint64_t rounds = getenv("RN_LONG") ? 500 : 8;

	for (uint64_t seed = 1; seed <= rounds; seed++)
		ck_assert_msg(run_random(seed, 0) == run_random(seed, seed),
			      "seed %u: the order of ticks shows", (unsigned)seed);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("order");

	tcase_add_test(tcase, twenty_orders_of_ticks_give_one_capture_and_one_result);
	tcase_add_test(tcase, twenty_orders_of_ticks_give_one_result_with_fifos_of_the_least_depth);
	tcase_add_test(tcase, fifos_of_the_least_depth_carry_the_same_data);
	tcase_add_test(tcase, fifos_of_the_least_depth_carry_the_same_data_under_loss);
	tcase_add_test(tcase, huge_fifos_carry_the_same_data);
	tcase_add_loop_test(tcase, one_of_a_kind_is_enough, 0, SCARCE + 1);
	tcase_add_test(tcase, one_of_every_kind_is_enough);
	tcase_add_test(tcase, any_mixture_of_scarcity_and_disturbance_goes_through_in_any_order);
	return run_suite(tcase, "order");
}
