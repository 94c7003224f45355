/* The data really takes the hardware's way: translation tables, work queues and TLPs are what moves it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pcie/tlp_log.h"
#include "run_suite.h"
#include "world.h"

#define PAGE 4096u

static struct world world;
static struct world_link link;

static void start(const char *const *set, const struct world_options *options)
{
	world_init(&world, 2, set);
	world_start(&world, options);
	world_connect(&world, 1 << 18, &RN_SCRIPTED_PATH, &link);
}

static void finish(void)
{
	world_fini(&world);
}

/* --- translation --- */

static void swap_pages(unsigned side, uint64_t a, uint64_t b)
{
	uint64_t *first = rn_scripted_mtt(link.host[side], link.key[side], a);
	uint64_t *second = rn_scripted_mtt(link.host[side], link.key[side], b);
	const uint64_t value = *first;

	*first = *second;
	*second = value;
}

/* Write two pages with patterns 1 and 2; says whether they came out swapped. */
static bool come_swapped(uint32_t rkey)
{
	struct rn_scripted_wr wr = world_wr(&link, RN_WQE_RDMA_WRITE, 2 * PAGE);
	uint8_t *to = link.buffer[1].data;
	bool swapped;

	wr.rkey = rkey;
	rn_scripted_fill(link.buffer[0].data, PAGE, 1);
	rn_scripted_fill(link.buffer[0].data + PAGE, PAGE, 2);
	memset(to, 0, 2 * PAGE);
	ck_assert_uint_eq(world_transfer(&link, &wr), RN_WC_SUCCESS);
	rn_scripted_run_for(link.host[0], 10 * WORLD_US);
	swapped = rn_scripted_holds(to, PAGE, 2) && rn_scripted_holds(to + PAGE, PAGE, 1);
	if (!swapped)
		ck_assert(rn_scripted_holds(to, PAGE, 1) && rn_scripted_holds(to + PAGE, PAGE, 2));
	return swapped;
}

START_TEST(translations_swapped_while_cold_put_data_into_each_others_pages)
{
	start(NULL, NULL);
	swap_pages(1, 0, 1);
	ck_assert(come_swapped(link.key[1]));
	finish();
}
END_TEST

START_TEST(translations_of_the_source_swapped_while_cold_read_each_others_pages)
{
	start(NULL, NULL);
	swap_pages(0, 0, 1);
	ck_assert(come_swapped(link.key[1]));
	finish();
}
END_TEST

START_TEST(translations_swapped_while_warm_do_nothing_until_the_key_is_invalidated)
{
	uint32_t key;

	start(NULL, NULL);
	ck_assert(!come_swapped(link.key[1]));
	swap_pages(1, 0, 1);
	ck_assert(!come_swapped(link.key[1]));
	/* Another key over the same memory has translations of its own. */
	ck_assert_int_eq(rn_scripted_reg_mr(link.host[1], link.buffer[1].va, 2 * PAGE, 7, &key), 0);
	ck_assert(!come_swapped(key));
	ck_assert(!come_swapped(link.key[1]));
	ck_assert_int_eq(rn_scripted_dereg_mr(link.host[1], key), 0);
	ck_assert(!come_swapped(link.key[1]));
	finish();
}
END_TEST

START_TEST(dereg_ends_what_the_cache_knows_of_a_key)
{
	uint32_t key, again;

	start(NULL, NULL);
	ck_assert_int_eq(rn_scripted_reg_mr(link.host[1], link.buffer[1].va, 2 * PAGE, 7, &key), 0);
	ck_assert(!come_swapped(key));

	const uint64_t *old = rn_scripted_mtt(link.host[1], key, 0);

	ck_assert_int_eq(rn_scripted_dereg_mr(link.host[1], key), 0);
	ck_assert_int_eq(rn_scripted_reg_mr(link.host[1], link.buffer[1].va, 2 * PAGE, 7, &again),
			 0);
	/* The same table entries: only the invalidation tells them from those that were cached. */
	ck_assert_ptr_eq(rn_scripted_mtt(link.host[1], again, 0), old);
	link.key[1] = again;
	swap_pages(1, 0, 1);
	ck_assert(come_swapped(again));
	finish();
}
END_TEST

START_TEST(translations_swapped_while_warm_count_after_their_eviction)
{
	struct rn_scripted_wr other;

	start((const char *const[]){"hosts.*.nic.pte_cache.mtt_sets=1",
				    "hosts.*.nic.pte_cache.mtt_ways=1", NULL},
	      NULL);
	ck_assert(!come_swapped(link.key[1]));
	swap_pages(1, 0, 1);
	/* Two pages of one line: the cache of one line holds them as long as nothing else comes in. */
	other = world_wr(&link, RN_WQE_RDMA_WRITE, 64);
	other.raddr += 16 * PAGE;
	ck_assert_uint_eq(world_transfer(&link, &other), RN_WC_SUCCESS);
	ck_assert(come_swapped(link.key[1]));
	finish();
}
END_TEST

/* --- work queues --- */

/* The WQE's target is moved @after_ps behind its doorbell; says whether that took effect. */
static bool change_counts(uint64_t after_ps, uint32_t wqe_idx)
{
	struct rn_scripted_wr wr = world_wr(&link, RN_WQE_RDMA_WRITE, 64);
	struct rn_hw_wqe_raddr *raddr;
	struct rn_scripted_wc wc;

	rn_scripted_fill(link.buffer[0].data, 64, wqe_idx + 1);
	memset(link.buffer[1].data, 0, 2 * PAGE);
	ck_assert_int_eq(rn_scripted_post(link.qp[0], &wr), RN_POST_OK);
	rn_scripted_ring(link.qp[0]);
	rn_scripted_run_for(link.host[0], after_ps);
	raddr = (void *)((uint8_t *)rn_scripted_wqebb(link.qp[0], wqe_idx) +
			 sizeof(struct rn_hw_wqe_ctrl));
	raddr->va += PAGE;
	ck_assert_uint_eq(rn_scripted_wait(link.cq[0], &wc, 1, WORLD_MS), 1);
	rn_scripted_run_for(link.host[0], 10 * WORLD_US);
	/* At the one or the other place, whole. */
	ck_assert(rn_scripted_holds(link.buffer[1].data, 64, wqe_idx + 1) !=
		  rn_scripted_holds(link.buffer[1].data + PAGE, 64, wqe_idx + 1));
	return rn_scripted_holds(link.buffer[1].data + PAGE, 64, wqe_idx + 1);
}

#define STEP_PS 20000u
#define STEPS 100u

START_TEST(a_wqe_changed_before_its_fetch_counts_and_after_it_does_not)
{
	uint32_t last = 0;
	uint64_t doorbell_ps, fetch_ps, rung_ps = 0;

	start(NULL, &(struct world_options){.stamps = true});
	for (uint32_t n = 0; n < STEPS; n++) {
		const uint64_t now_ps = rn_scripted_now_ps(link.host[0]);

		/* Once too late, always too late. */
		if (change_counts((uint64_t)n * STEP_PS, n)) {
			ck_assert_uint_eq(last, n ? n - 1 : 0);
			last = n;
			rung_ps = now_ps;
		}
	}
	ck_assert_uint_gt(last, 0);
	ck_assert_uint_lt(last, STEPS - 1);
	/* The read is on its way between doorbell and decoded WQE. */
	doorbell_ps = world_stamp(&world, 0, link.qp[0], last, RN_STAMP_DOORBELL, 0);
	fetch_ps = world_stamp(&world, 0, link.qp[0], last, RN_STAMP_FETCH, 0);
	ck_assert_uint_gt(rung_ps + (uint64_t)last * STEP_PS, doorbell_ps);
	ck_assert_uint_lt(rung_ps + (uint64_t)last * STEP_PS, fetch_ps);
	finish();
}
END_TEST

/* --- TLPs --- */

#define BYTES 50000u
#define TO_OFFSET 3000u

struct byte_log { /* what happened to a byte, and when */
	uint64_t asked_ps, answered_ps, written_ps;
	uint8_t asked, answered, written;
};

struct side {
	uint64_t pa[BYTES / PAGE + 2]; /* of the pages of the buffer */
	uint64_t page_offset;	       /* of the first byte in the first page */
	const uint8_t *data;
};

static struct byte_log bytes_log[BYTES];

static void find_pages(unsigned side, uint64_t offset, struct side *pages)
{
	for (unsigned n = 0; n < sizeof(pages->pa) / sizeof(pages->pa[0]); n++)
		ck_assert(rn_driver_find_pa(rn_scripted_client(link.host[side]),
					    link.buffer[side].va + offset / PAGE * PAGE +
						    (uint64_t)n * PAGE,
					    &pages->pa[n]));
	pages->page_offset = offset % PAGE;
	pages->data = link.buffer[side].data + offset;
}

/* Index in the message of the byte at @pa; -1 when it does not belong to it. */
static int64_t index_of(const struct side *pages, uint64_t pa)
{
	for (unsigned n = 0; n < sizeof(pages->pa) / sizeof(pages->pa[0]); n++) {
		int64_t idx;

		if (pa / PAGE != pages->pa[n] / PAGE)
			continue;
		idx = (int64_t)((uint64_t)n * PAGE + pa % PAGE) - (int64_t)pages->page_offset;
		return idx >= 0 && idx < (int64_t)BYTES ? idx : -1;
	}
	return -1;
}

struct tlp {
	uint64_t first_bit_ps, arrival_ps, addr, hash;
	unsigned host, length;
	char direction[8], type[8], channel[16];
	bool has_hash;
};

static bool read_tlp(FILE *file, struct tlp *tlp)
{
	char line[256], tag[16], status[16];
	const char *hash;

	if (!fgets(line, sizeof(line), file))
		return false;
	/* The tag may be empty, which scanf cannot say. */
	ck_assert_int_ge(
		sscanf(line, "%" SCNu64 ",%" SCNu64 ",%u,%7[^,],%7[^,],0x%" SCNx64 ",%u,%15[0-9]",
		       &tlp->first_bit_ps, &tlp->arrival_ps, &tlp->host, tlp->direction, tlp->type,
		       &tlp->addr, &tlp->length, tag),
		7);
	hash = strrchr(line, ',');
	tlp->has_hash = sscanf(hash, ",%" SCNx64, &tlp->hash) == 1;
	for (unsigned n = 0; n < 2; n++)
		hash = memrchr(line, ',', (size_t)(hash - line));
	ck_assert_int_eq(sscanf(hash, ",%15[^,],%15[^,]", tlp->channel, status), 2);
	ck_assert_str_eq(status, "ok");
	return true;
}

static bool is_tlp(const struct tlp *tlp, unsigned host, const char *type, const char *channel)
{
	return tlp->host == host && strcmp(tlp->type, type) == 0 &&
	       strcmp(tlp->channel, channel) == 0;
}

/* The data of a TLP is what lies in memory there: its hash is recomputed. */
static void check_data(const struct tlp *tlp, const struct side *side, int64_t idx)
{
	ck_assert(tlp->has_hash);
	ck_assert_uint_le((uint64_t)idx + tlp->length, BYTES);
	ck_assert_uint_eq(tlp->hash, rn_tlp_log_hash(side->data + idx, tlp->length));
}

static void note_read(const struct tlp *tlp, const struct side *source, bool is_completion)
{
	const int64_t idx = index_of(source, tlp->addr);

	ck_assert_int_ge(idx, 0);
	if (is_completion)
		check_data(tlp, source, idx);
	for (struct byte_log *byte = &bytes_log[idx]; byte < &bytes_log[idx] + tlp->length;
	     byte++) {
		if (is_completion) {
			byte->answered++;
			byte->answered_ps = tlp->arrival_ps;
			ck_assert_uint_gt(tlp->first_bit_ps, byte->asked_ps);
		} else {
			byte->asked++;
			byte->asked_ps = tlp->arrival_ps;
		}
	}
}

static void note_write(const struct tlp *tlp, const struct side *target)
{
	const int64_t idx = index_of(target, tlp->addr);

	ck_assert_int_ge(idx, 0);
	check_data(tlp, target, idx);
	for (struct byte_log *byte = &bytes_log[idx]; byte < &bytes_log[idx] + tlp->length;
	     byte++) {
		byte->written++;
		byte->written_ps = tlp->first_bit_ps;
		ck_assert_uint_gt(tlp->first_bit_ps, byte->answered_ps);
	}
}

struct way {
	uint8_t opcode;
	unsigned source; /* host that the data comes from */
	const char *read_channel, *write_channel;
};

static const struct way ways[] = {
	{RN_WQE_RDMA_WRITE, 0, "tx", "rx"},
	{RN_WQE_SEND, 0, "tx", "rx"},
	{RN_WQE_RDMA_READ, 1, "resp", "read_data"},
};

START_TEST(every_byte_has_its_read_its_completion_and_its_write_in_the_tlp_log)
{
	static uint8_t data[BYTES];
	const struct way *way = &ways[_i];
	struct side source, target;
	struct rn_scripted_wr wr;
	struct tlp tlp;
	FILE *file;

	start(NULL, &(struct world_options){.tlps = true});
	rn_scripted_fill(link.buffer[way->source].data + 100, BYTES, 7);
	wr = world_wr(&link, way->opcode, BYTES);
	wr.va += way->source == 0 ? 100 : TO_OFFSET;
	wr.raddr += way->source == 0 ? TO_OFFSET : 100;
	ck_assert_int_eq(rn_scripted_post_recv(link.qp[1], 1, link.buffer[1].va + TO_OFFSET, BYTES,
					       link.key[1]),
			 RN_POST_OK);
	ck_assert_uint_eq(world_transfer(&link, &wr), RN_WC_SUCCESS);
	rn_scripted_run_for(link.host[0], 10 * WORLD_US);
	find_pages(way->source, 100, &source);
	find_pages(!way->source, TO_OFFSET, &target);
	ck_assert(rn_scripted_holds(target.data, BYTES, 7));
	/* The log is complete when the buffers are gone. */
	memcpy(data, target.data, BYTES);
	source.data = data;
	target.data = data;
	world_end(&world);
	file = fopen(world_path(&world, "tlp.csv"), "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets((char[256]){0}, 256, file));
	while (read_tlp(file, &tlp)) {
		if (is_tlp(&tlp, way->source, "MRd", way->read_channel))
			note_read(&tlp, &source, false);
		else if (is_tlp(&tlp, way->source, "CplD", way->read_channel))
			note_read(&tlp, &source, true);
		else if (is_tlp(&tlp, !way->source, "MWr", way->write_channel))
			note_write(&tlp, &target);
	}
	fclose(file);
	for (unsigned n = 0; n < BYTES; n++) {
		ck_assert_uint_eq(bytes_log[n].asked, 1);
		ck_assert_uint_eq(bytes_log[n].answered, 1);
		ck_assert_uint_eq(bytes_log[n].written, 1);
	}
	finish();
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("path");

	tcase_add_test(tcase, translations_swapped_while_cold_put_data_into_each_others_pages);
	tcase_add_test(tcase, translations_of_the_source_swapped_while_cold_read_each_others_pages);
	tcase_add_test(tcase,
		       translations_swapped_while_warm_do_nothing_until_the_key_is_invalidated);
	tcase_add_test(tcase, dereg_ends_what_the_cache_knows_of_a_key);
	tcase_add_test(tcase, translations_swapped_while_warm_count_after_their_eviction);
	tcase_add_test(tcase, a_wqe_changed_before_its_fetch_counts_and_after_it_does_not);
	tcase_add_loop_test(tcase,
			    every_byte_has_its_read_its_completion_and_its_write_in_the_tlp_log, 0,
			    sizeof(ways) / sizeof(ways[0]));
	return run_suite(tcase, "path");
}
