/* The driver's building blocks: numbers, MTT ranges, frames, pages, addresses, the QP state table. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "driver/address.h"
#include "driver/bitset.h"
#include "driver/buddy.h"
#include "driver/frames.h"
#include "driver/ids.h"
#include "driver/pages.h"
#include "driver/qp_state.h"
#include "hw/gen/rnic_hw.h"
#include "run_suite.h"

START_TEST(a_number_comes_back_only_after_all_others_were_out)
{
	struct rn_ids ids;
	uint32_t id;

	rn_ids_init(&ids, 64, 200, 1000, 130);
	for (uint32_t n = 0; n < 136; n++) {
		ck_assert(rn_ids_get(&ids, &id));
		ck_assert_uint_eq(id, n < 70 ? 130 + n : 64 + n - 70);
		rn_ids_put(&ids, id);
	}
	ck_assert(rn_ids_get(&ids, &id));
	ck_assert_uint_eq(id, 130);
	rn_ids_fini(&ids);
}
END_TEST

START_TEST(numbers_run_out_at_the_limit_and_not_before)
{
	struct rn_ids ids;
	uint32_t id;

	rn_ids_init(&ids, 1, 100, 10, 1);
	for (uint32_t n = 0; n < 10; n++)
		ck_assert(rn_ids_get(&ids, &id));
	ck_assert(!rn_ids_get(&ids, &id));
	rn_ids_put(&ids, 3);
	ck_assert(rn_ids_get(&ids, &id));
	ck_assert_uint_eq(id, 11);
	rn_ids_fini(&ids);
}
END_TEST

START_TEST(the_next_member_of_a_set_is_that_of_an_array)
{
	enum { BITS = 9000 };
	static bool member[BITS];
	struct rn_bitset set;
	struct rn_rng rng;

	rn_rng_init(&rng, 1, "bitset");
	rn_bitset_init(&set, BITS);
	rn_bitset_fill(&set, 130, 64 * 65 + 1);
	for (uint32_t n = 0; n < BITS; n++)
		member[n] = n >= 130 && n <= 64 * 65;
	for (uint32_t round = 0; round < 3000; round++) {
		const uint64_t n = rn_rng_below(&rng, BITS), from = rn_rng_below(&rng, BITS);
		uint64_t next = from;

		ck_assert(rn_bitset_has(&set, n) == member[n]);
		if (member[n])
			rn_bitset_remove(&set, n);
		else if (rn_rng_below(&rng, 50) == 0)
			rn_bitset_add(&set, n);
		member[n] = rn_bitset_has(&set, n);
		while (next < BITS && !member[next])
			next++;
		ck_assert_uint_eq(rn_bitset_next(&set, from), next);
	}
	ck_assert_uint_eq(rn_bitset_next(&set, BITS), BITS);
	rn_bitset_fini(&set);
}
END_TEST

/* Words read to find one member far from where the search starts: as many at 2^14 numbers as at 2^24, but for the levels. */
static uint64_t words_to_find(uint32_t log_bits)
{
	struct rn_bitset set;
	uint64_t words;

	rn_bitset_init(&set, UINT64_C(1) << log_bits);
	rn_bitset_add(&set, (UINT64_C(1) << log_bits) - 1);
	ck_assert_uint_eq(rn_bitset_next(&set, 1), (UINT64_C(1) << log_bits) - 1);
	words = set.words_read;
	rn_bitset_fini(&set);
	return words;
}

START_TEST(finding_a_number_costs_a_word_a_level_and_way)
{
	ck_assert_uint_le(words_to_find(14), 2 * 3);
	ck_assert_uint_le(words_to_find(24), 2 * 4);
}
END_TEST

/* Every second MTT entry stays taken while the others come and go: a worst case for a search. */
static uint64_t words_per_range(uint32_t log_entries)
{
	const uint32_t entries = 1u << log_entries;
	struct rn_buddy buddy;
	uint32_t first;
	uint64_t words;

	rn_buddy_init(&buddy, log_entries);
	bool got = true;

	for (uint32_t n = 0; n < entries; n++)
		got &= rn_buddy_get(&buddy, 1, &first);
	for (uint32_t n = 0; n < entries; n += 2)
		rn_buddy_put(&buddy, n, 1);
	for (uint32_t n = 0; n < entries / 2; n++)
		got &= rn_buddy_get(&buddy, 1, &first);
	ck_assert(got);
	words = buddy.order[0].blocks.words_read;
	rn_buddy_fini(&buddy);
	return words / (entries / 2);
}

START_TEST(a_range_costs_the_same_in_a_small_and_in_a_large_table)
{
	const uint64_t small = words_per_range(10), large = words_per_range(16);

	ck_assert_uint_gt(small, 0);
	ck_assert_uint_le(large, 2 * small);
}
END_TEST

START_TEST(mtt_ranges_never_overlap_and_all_come_back)
{
	enum { LOG = 12, LIVE = 64, ROUNDS = 20000 };
	struct rn_buddy buddy;
	uint8_t owner[1 << LOG] = {0};
	uint32_t first[LIVE] = {0}, count[LIVE] = {0};
	struct rn_rng rng;

	rn_rng_init(&rng, 1, "buddy");
	rn_buddy_init(&buddy, LOG);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		const uint32_t k = (uint32_t)rn_rng_below(&rng, LIVE);

		if (count[k]) {
			for (uint32_t n = 0; n < count[k]; n++) {
				ck_assert_uint_eq(owner[first[k] + n], k + 1);
				owner[first[k] + n] = 0;
			}
			rn_buddy_put(&buddy, first[k], count[k]);
			count[k] = 0;
			continue;
		}

		const uint32_t want = 1 + (uint32_t)rn_rng_below(&rng, 200);

		if (!rn_buddy_get(&buddy, want, &first[k]))
			continue;
		count[k] = want;
		for (uint32_t n = 0; n < want; n++) {
			ck_assert_uint_eq(owner[first[k] + n], 0);
			owner[first[k] + n] = (uint8_t)(k + 1);
		}
	}
	for (uint32_t k = 0; k < LIVE; k++)
		if (count[k])
			rn_buddy_put(&buddy, first[k], count[k]);
	ck_assert_uint_eq(buddy.used, 0);
	/* All in one piece again. */
	ck_assert(rn_buddy_get(&buddy, 1 << LOG, &first[0]));
	ck_assert(!rn_buddy_get(&buddy, 1, &first[1]));
	rn_buddy_fini(&buddy);
}
END_TEST

START_TEST(runs_of_frames_never_touch_each_other)
{
	struct rn_frames frames;
	uint8_t *taken = calloc(1 << 16, 1); /* 256 MiB of frames */
	struct rn_rng rng;

	rn_rng_init(&rng, 7, "frames");
	ck_assert_int_eq(rn_frames_init(&frames, UINT64_C(256) << 20, 1, "test"), 0);
	for (uint32_t round = 0; round < 500; round++) {
		const uint32_t pages = 1 + (uint32_t)rn_rng_below(&rng, 16);
		uint64_t first;

		ck_assert(rn_frames_get(&frames, pages, &first));
		ck_assert_uint_le((first + pages) * RN_FRAME_BYTES, frames.bytes);
		for (uint64_t n = first; n < first + pages; n++)
			ck_assert(!taken[n]);
		ck_assert(!first || !taken[first - 1]);
		ck_assert(!taken[first + pages]);
		memset(taken + first, 1, pages);
	}
	rn_frames_fini(&frames);
	free(taken);
}
END_TEST

START_TEST(another_seed_gives_other_frames_and_the_same_seed_the_same)
{
	struct rn_frames frames[3];
	uint64_t first[3];
	int same = 0;

	ck_assert_int_eq(rn_frames_init(&frames[0], UINT64_C(256) << 20, 1, "a"), 0);
	ck_assert_int_eq(rn_frames_init(&frames[1], UINT64_C(256) << 20, 1, "a"), 0);
	ck_assert_int_eq(rn_frames_init(&frames[2], UINT64_C(256) << 20, 2, "a"), 0);
	for (int n = 0; n < 50; n++) {
		for (int k = 0; k < 3; k++)
			ck_assert(rn_frames_get(&frames[k], 4, &first[k]));
		ck_assert_uint_eq(first[0], first[1]);
		same += first[0] == first[2];
	}
	ck_assert_int_lt(same, 5);
	for (int k = 0; k < 3; k++)
		rn_frames_fini(&frames[k]);
}
END_TEST

START_TEST(the_arena_cannot_be_shrunk_grown_or_unsealed)
{
	struct rn_frames frames;

	ck_assert_int_eq(rn_frames_init(&frames, UINT64_C(256) << 20, 1, "a"), 0);
	ck_assert_int_ne(ftruncate(frames.fd, 0), 0);
	ck_assert_int_ne(ftruncate(frames.fd, (off_t)frames.bytes * 2), 0);
	ck_assert_int_ne(fcntl(frames.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	rn_frames_fini(&frames);
}
END_TEST

START_TEST(a_freed_frame_loses_its_contents)
{
	struct rn_frames frames;
	uint64_t first;

	ck_assert_int_eq(rn_frames_init(&frames, UINT64_C(256) << 20, 1, "a"), 0);
	ck_assert(rn_frames_get(&frames, 2, &first));
	memset(frames.base + first * RN_FRAME_BYTES, 0x5a, 2 * RN_FRAME_BYTES);
	rn_frames_put(&frames, first + 1, 1);
	ck_assert_uint_eq(frames.base[first * RN_FRAME_BYTES], 0x5a);
	ck_assert_uint_eq(frames.base[(first + 1) * RN_FRAME_BYTES], 0);
	rn_frames_put(&frames, first, 1);
	ck_assert_uint_eq(frames.used, 0);
	rn_frames_fini(&frames);
}
END_TEST

START_TEST(frames_can_be_used_up_and_come_back)
{
	struct rn_frames frames;
	uint64_t first[8192];
	uint32_t count = 0;

	ck_assert_int_eq(rn_frames_init(&frames, UINT64_C(64) << 20, 1, "a"), 0);
	while (rn_frames_get(&frames, 1, &first[count]))
		count++;
	ck_assert_uint_gt(count, 1000);
	for (uint32_t n = 0; n < count; n++)
		rn_frames_put(&frames, first[n], 1);
	for (uint32_t n = 0; n < count; n++)
		ck_assert(rn_frames_get(&frames, 1, &first[n]));
	ck_assert(!rn_frames_get(&frames, 1, &first[0]));
	rn_frames_fini(&frames);
}
END_TEST

START_TEST(pages_are_found_until_they_are_removed)
{
	enum { COUNT = 5000 };
	struct rn_pages pages;
	struct rn_rng rng;
	bool present[COUNT] = {0};

	rn_pages_init(&pages);
	rn_rng_init(&rng, 3, "pages");
	for (uint32_t round = 0; round < 50000; round++) {
		const uint64_t n = rn_rng_below(&rng, COUNT);
		const uint64_t va = 0x7f0000000000 + n * n * 4096; /* clusters and gaps */
		struct rn_page *page = rn_pages_find(&pages, va + 17);

		ck_assert_int_eq(page != NULL, present[n]);
		if (page) {
			ck_assert_uint_eq(page->pa, n << 12);
			rn_pages_remove(&pages, page);
		} else {
			rn_pages_add(&pages, va, n << 12);
		}
		present[n] = !present[n];
	}
	rn_pages_fini(&pages);
}
END_TEST

START_TEST(addresses_are_those_of_the_documentation)
{
	static const uint8_t gid0[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 3};
	static const uint8_t gid1[16] = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe, [15] = 3};
	static const uint8_t host2[6] = {2, 0, 0, 0, 0, 3};
	uint8_t gid[16], mac[6];

	rn_address_gid(2, 0, gid);
	ck_assert_mem_eq(gid, gid0, 16);
	rn_address_gid(2, 1, gid);
	ck_assert_mem_eq(gid, gid1, 16);
	for (uint32_t index = 0; index < 2; index++) {
		rn_address_gid(2, index, gid);
		ck_assert_int_eq(rn_address_resolve(3, gid, mac), 0);
		ck_assert_mem_eq(mac, host2, 6);
		ck_assert_int_eq(rn_address_resolve(2, gid, mac), EHOSTUNREACH);
	}
}
END_TEST

START_TEST(foreign_addresses_are_unreachable)
{
	static const uint8_t other_net[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [15] = 1};
	static const uint8_t multicast[16] = {0xff, 2, [15] = 1};
	static const uint8_t zero[16];
	static const uint8_t global[16] = {0x20, 1, [15] = 1};
	static const uint8_t other_eui[16] = {
		0xfe, 0x80, [8] = 2, [11] = 0xff, [12] = 0xfe, [15] = 1};
	uint8_t mac[6];

	ck_assert_int_eq(rn_address_resolve(64, other_net, mac), ENETUNREACH);
	ck_assert_int_eq(rn_address_resolve(64, multicast, mac), EINVAL);
	ck_assert_int_eq(rn_address_resolve(64, zero, mac), EINVAL);
	ck_assert_int_eq(rn_address_resolve(64, global, mac), ENETUNREACH);
	ck_assert_int_eq(rn_address_resolve(64, other_eui, mac), EHOSTUNREACH);
}
END_TEST

START_TEST(source_ports_follow_the_formula)
{
	/* Folding by hand: 0x12345 -> 0x2345 ^ (0x10000 >> 14 = 4) = 0x2341. */
	ck_assert_uint_eq(rn_address_udp_sport(0x12345, 1, 1), 0xc000 | 0x2341);
	/* QPNs 17 and 18: 306 = 0x132, no high bits. */
	ck_assert_uint_eq(rn_address_udp_sport(0, 17, 18), 0xc000 | 0x132);
	ck_assert_uint_eq(rn_address_udp_sport(0, 18, 17), rn_address_udp_sport(0, 17, 18));
	/* 0x1234 * 0x5678: 0x6260060, ^ its >> 20 (0x62) = 0x6260002 -> label 0x60002 -> 0x0002 ^ 0x18. */
	ck_assert_uint_eq(rn_address_udp_sport(0, 0x1234, 0x5678), 0xc000 | (0x0002 ^ 0x18));
}
END_TEST

/* The table as ibv_modify_qp(3) prints it, per transition; everything else is illegal. */
static const struct {
	uint8_t from, to;
	uint32_t required, optional;
} manual[] = {
	{RN_QPS_RESET, RN_QPS_INIT, 0x38, 0},
	{RN_QPS_INIT, RN_QPS_INIT, 0, 0x38},
	{RN_QPS_INIT, RN_QPS_RTR, 0x129180, 0x4018},
	{RN_QPS_RTR, RN_QPS_RTS, 0x12e00, 0x4c00a},
	{RN_QPS_RTS, RN_QPS_RTS, 0, 0x4c00a},
	{RN_QPS_RTS, RN_QPS_SQD, 0, 0x4},
	{RN_QPS_SQD, RN_QPS_RTS, 0, 0x4c00a},
	{RN_QPS_SQD, RN_QPS_SQD, 0, 0x6eeb8},
	{RN_QPS_SQE, RN_QPS_RTS, 0, 0},
};

static bool manual_allows(uint8_t from, uint8_t to, uint32_t mask)
{
	if (to == RN_QPS_RESET || (to == RN_QPS_ERR && from != RN_QPS_RESET))
		return !(mask & ~1u);
	for (size_t n = 0; n < sizeof(manual) / sizeof(manual[0]); n++)
		if (manual[n].from == from && manual[n].to == to)
			return (mask & manual[n].required) == manual[n].required &&
			       !(mask & ~(manual[n].required | manual[n].optional | 1u));
	return false;
}

START_TEST(the_state_table_allows_what_the_manual_page_says)
{
	struct rn_rng rng;

	rn_rng_init(&rng, 1, "masks");
	for (uint8_t from = 0; from <= RN_QPS_ERR; from++) {
		for (uint8_t to = 0; to <= RN_QPS_ERR; to++) {
			const struct rn_qp_transition *move = rn_qp_transition(from, to);
			const uint32_t all = move->required | move->optional;

			ck_assert_int_eq(rn_qp_transition_allows(from, to, move->required | 1),
					 manual_allows(from, to, move->required | 1));
			ck_assert_int_eq(rn_qp_transition_allows(from, to, all | 1),
					 manual_allows(from, to, all | 1));
			for (uint32_t bit = 0; bit < 32; bit++)
				for (int n = 0; n < 2; n++) {
					const uint32_t mask =
						(n ? all : move->required) ^ UINT32_C(1) << bit;

					ck_assert_int_eq(rn_qp_transition_allows(from, to, mask),
							 manual_allows(from, to, mask));
				}
		}
	}
	ck_assert(!rn_qp_transition_allows(7, 0, 1));
	ck_assert(!rn_qp_transition_allows(0, 255, 1));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("tables");

	tcase_add_test(tcase, a_number_comes_back_only_after_all_others_were_out);
	tcase_add_test(tcase, numbers_run_out_at_the_limit_and_not_before);
	tcase_add_test(tcase, the_next_member_of_a_set_is_that_of_an_array);
	tcase_add_test(tcase, finding_a_number_costs_a_word_a_level_and_way);
	tcase_add_test(tcase, a_range_costs_the_same_in_a_small_and_in_a_large_table);
	tcase_add_test(tcase, mtt_ranges_never_overlap_and_all_come_back);
	tcase_add_test(tcase, runs_of_frames_never_touch_each_other);
	tcase_add_test(tcase, another_seed_gives_other_frames_and_the_same_seed_the_same);
	tcase_add_test(tcase, the_arena_cannot_be_shrunk_grown_or_unsealed);
	tcase_add_test(tcase, a_freed_frame_loses_its_contents);
	tcase_add_test(tcase, frames_can_be_used_up_and_come_back);
	tcase_add_test(tcase, pages_are_found_until_they_are_removed);
	tcase_add_test(tcase, addresses_are_those_of_the_documentation);
	tcase_add_test(tcase, foreign_addresses_are_unreachable);
	tcase_add_test(tcase, source_ports_follow_the_formula);
	tcase_add_test(tcase, the_state_table_allows_what_the_manual_page_says);
	return run_suite(tcase, "driver_tables");
}
