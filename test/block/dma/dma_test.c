/*
 * The DMA engine with link and memory: latency, splitting, order, errors.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/dma/rig.h"

#define VA 0x10000u

static struct rig rig;

static struct rn_dma_req physical(uint8_t op, uint32_t buf, uint32_t len, uint64_t addr)
{
	return (struct rn_dma_req){.op = op,
				   .flags = RN_DMA_PHYSICAL,
				   .token = 5,
				   .buf = buf,
				   .len = len,
				   .addr = addr};
}

static struct rn_dma_req keyed(uint8_t op, uint32_t buf, uint32_t len, uint64_t addr, uint32_t key)
{
	return (struct rn_dma_req){
		.op = op, .token = 6, .buf = buf, .len = len, .addr = addr, .key = key};
}

static uint64_t edge_after(uint64_t ps)
{
	return (ps + RIG_CYCLE_PS - 1) / RIG_CYCLE_PS * RIG_CYCLE_PS;
}

/* When the answer of a lone physical read that is pushed at time 0 is visible. */
static uint64_t read_answer_ps(const struct rig *r, uint32_t len)
{
	uint64_t at = RIG_CYCLE_PS; /* request fifo */

	at += r->dma_params.issue_latency_cycles * RIG_CYCLE_PS;
	at += rig_link_ps(&r->pcie, r->pcie.header_bytes) + r->pcie.propagation_ps;
	at += r->root.read_latency_ps;
	at += rig_link_ps(&r->pcie, len + r->pcie.completion_header_bytes) + r->pcie.propagation_ps;
	return edge_after(at) + r->dma_params.response_latency_cycles * RIG_CYCLE_PS;
}

START_TEST(one_read_takes_the_sum_of_its_stages_and_not_a_cycle_less)
{
	rig_init(&rig);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);
	uint64_t due = read_answer_ps(&rig, 64) / RIG_CYCLE_PS;

	rig_ask(&rig, RN_DMA_CH_TX, physical(RN_DMA_READ, buf, 64, VA));
	rig_run(&rig, due - 1);
	ck_assert_ptr_null(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
	rig_run(&rig, 1);
	ck_assert_ptr_nonnull(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
	ck_assert_mem_eq(rn_buffer_data(rig.buffers, buf), rig.bytes + VA, 64);
	ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).token, 5);
	/* pcie-bench's 64 B read on generation 3 x16: 546 ns. */
	ck_assert_uint_ge(due, 520);
	ck_assert_uint_le(due, 570);
	rig_stop(&rig, 1);
}
END_TEST

/* Each parameter moves the latency by exactly its uses. */
START_TEST(each_parameter_moves_a_read_by_its_uses)
{
	uint64_t base = 0;

	for (int which = 0; which < 5; which++) {
		rig_init(&rig);
		rig.dma_params.issue_latency_cycles += which == 1;
		rig.dma_params.response_latency_cycles += which == 2;
		rig.pcie.propagation_ps += which == 3 ? RIG_CYCLE_PS : 0;
		rig.root.read_latency_ps += which == 4 ? RIG_CYCLE_PS : 0;
		rig_start(&rig);
		uint32_t buf = rn_buffer_get(rig.buffers);

		rig_ask(&rig, RN_DMA_CH_CMD, physical(RN_DMA_READ, buf, 64, VA));
		uint64_t cycles = rig_wait(&rig, &rig.rsp[RN_DMA_CH_CMD], 10000);

		if (!which)
			base = cycles;
		ck_assert_uint_eq(cycles, base + (which == 3 ? 2 : which != 0));
		rig_stop(&rig, 1);
	}
}
END_TEST

START_TEST(translation_adds_its_round_trip)
{
	uint64_t cycles[2];

	for (int i = 0; i < 2; i++) {
		rig_init(&rig);
		rig_start(&rig);
		uint32_t buf = rn_buffer_get(rig.buffers);

		rig_ask(&rig, RN_DMA_CH_TX,
			i ? keyed(RN_DMA_READ, buf, 64, VA, 1)
			  : physical(RN_DMA_READ, buf, 64, VA));
		cycles[i] = rig_wait(&rig, &rig.rsp[RN_DMA_CH_TX], 10000);
		rig_run(&rig, 20);
		rig_stop(&rig, 1);
	}
	/* One cycle of fifo to the cache, and the cache's latency. */
	ck_assert_uint_eq(cycles[1], cycles[0] + 1 + rig.pte_latency_cycles);
}
END_TEST

START_TEST(write_becomes_visible_after_its_stages_and_not_before)
{
	rig_init(&rig);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);
	uint64_t drain_ps = 100 * 8000 / rig.root.memory_gbps;
	uint64_t due_ps = RIG_CYCLE_PS + rig.dma_params.issue_latency_cycles * RIG_CYCLE_PS +
			  rig_link_ps(&rig.pcie, 100 + rig.pcie.header_bytes) +
			  rig.pcie.propagation_ps + drain_ps + rig.root.write_latency_ps;
	struct rn_dma_req req = physical(RN_DMA_WRITE, buf, 100, VA);

	memset(rn_buffer_data(rig.buffers, buf), 0xaa, 100);
	req.flags |= RN_DMA_LAST;
	rig_ask(&rig, RN_DMA_CH_RX, req);
	rn_sim_run(rig.sim, due_ps - 1, UINT64_MAX);
	ck_assert_uint_ne(rig.bytes[VA], 0xaa);
	rn_sim_run(rig.sim, due_ps, UINT64_MAX);
	ck_assert_uint_eq(rig.bytes[VA], 0xaa);
	ck_assert_uint_eq(rig.bytes[VA + 99], 0xaa);
	ck_assert_uint_eq(rig.hook_ps, due_ps);
	ck_assert_uint_eq(rig.hook_pa, VA + 99);
	rig_stop(&rig, 1);
}
END_TEST

START_TEST(write_is_answered_when_its_last_tlp_has_its_turn)
{
	rig_init(&rig);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	rig_ask(&rig, RN_DMA_CH_RX, physical(RN_DMA_WRITE, buf, 64, VA));
	ck_assert_uint_eq(rig_wait(&rig, &rig.rsp[RN_DMA_CH_RX], 1000),
			  1 + rig.dma_params.response_latency_cycles);
	rig_answer(&rig, RN_DMA_CH_RX);
	/* Four bursts of 4 TLPs: the last has its turn after three of them. */
	rig_run(&rig, 1000);
	rig_ask(&rig, RN_DMA_CH_RX, physical(RN_DMA_WRITE, buf, 4096, VA));
	ck_assert_uint_eq(rig_wait(&rig, &rig.rsp[RN_DMA_CH_RX], 1000),
			  1 + 3 * 4 + rig.dma_params.response_latency_cycles);
	rig_answer(&rig, RN_DMA_CH_RX);
	rig_run(&rig, 2000);
	rig_stop(&rig, 1);
}
END_TEST

/* Requests at awkward addresses: data, TLP counts, nothing across 4 KiB. */
START_TEST(no_tlp_crosses_a_page_or_exceeds_its_size)
{
	static const struct {
		uint32_t offset, len, reads, writes;
	} cases[] = {
		{0, 1, 1, 1},	     {0, 256, 1, 1},   {0, 257, 1, 2},	 {0, 512, 1, 2},
		{0, 513, 2, 3},	     {4095, 2, 2, 2},  {4095, 1, 1, 1},	 {3584, 1024, 2, 4},
		{4000, 4096, 9, 17}, {0, 4096, 8, 16}, {1, 4095, 8, 16}, {4032, 64, 1, 1},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = NULL;
		size_t text_bytes = 0;

		rig_init(&rig);
		rig.log_file = open_memstream(&text, &text_bytes);
		rig_start(&rig);
		uint32_t buf = rn_buffer_get(rig.buffers);

		rig_ask(&rig, RN_DMA_CH_TX,
			keyed(RN_DMA_READ, buf, cases[i].len, VA + cases[i].offset, 1));
		ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).status, RN_DMA_OK);
		rig_ask(&rig, RN_DMA_CH_RX,
			keyed(RN_DMA_WRITE, buf, cases[i].len, 4 * VA + cases[i].offset, 1));
		rig_answer(&rig, RN_DMA_CH_RX);
		rig_run(&rig, 2000);
		ck_assert_mem_eq(rig.bytes + VA + cases[i].offset,
				 rig.bytes + 4 * VA + cases[i].offset, cases[i].len);
		ck_assert_uint_eq(rig_counter(&rig, "host0.nic0.pcie_up", "nonposted_tlps"),
				  cases[i].reads);
		ck_assert_uint_eq(rig_counter(&rig, "host0.nic0.pcie_up", "posted_tlps"),
				  cases[i].writes);
		rig_stop(&rig, 1);
		fclose(rig.log_file);

		unsigned lines = 0;

		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			char type[8];
			unsigned long long first, arrival, addr;
			unsigned len;

			if (sscanf(line, "%llu,%llu,%*u,%*[a-z],%7[A-Za-z],0x%llx,%u,", &first,
				   &arrival, type, &addr, &len) != 5)
				continue;
			lines++;
			ck_assert_uint_eq(addr / 4096, (addr + len - 1) / 4096);
			ck_assert_uint_le(len, strcmp(type, "MRd") ? 256 : 512);
		}
		ck_assert_uint_ge(lines, 2 * cases[i].reads + cases[i].writes);
		free(text);
	}
}
END_TEST

START_TEST(refused_keys_answer_protection_and_hold_nothing)
{
	static const struct {
		uint32_t key;
		uint8_t status;
	} cases[] = {{RIG_BAD_KEY, RN_DMA_PROTECTION},
		     {RIG_ABORT_KEY, RN_DMA_ABORT},
		     {RIG_SECOND_BAD_KEY, RN_DMA_PROTECTION}};

	for (unsigned i = 0; i < 3; i++) {
		rig_init(&rig);
		rig_start(&rig);
		uint32_t buf = rn_buffer_get(rig.buffers);
		/* Page 16 is even, 17 is odd: the second key fails half way. */
		uint64_t va = VA + 100;

		for (int n = 0; n < 300; n++) {
			rig_ask(&rig, RN_DMA_CH_TX,
				keyed(RN_DMA_READ, buf, 4096, va, cases[i].key));
			rig_ask(&rig, RN_DMA_CH_RX,
				keyed(RN_DMA_WRITE, buf, 4096, va, cases[i].key));
			ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).status, cases[i].status);
			ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_RX).status, cases[i].status);
		}
		/* All tags are there again. */
		rig_ask(&rig, RN_DMA_CH_TX, keyed(RN_DMA_READ, buf, 64, VA, 1));
		ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).status, RN_DMA_OK);
		rig_run(&rig, 2000);
		rig_stop(&rig, 1);
	}
}
END_TEST

START_TEST(memory_that_vanished_aborts_the_read_and_leaks_no_tag)
{
	rig_init(&rig);
	rig.dma_params.tags = 2;
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	for (int n = 0; n < 100; n++) {
		/* The last two pages of the arena, and what would come after. */
		rig_ask(&rig, RN_DMA_CH_TX,
			keyed(RN_DMA_READ, buf, 4096, RIG_MEMORY_BYTES - 1000, 1));
		ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).status, RN_DMA_ABORT);
		rig_ask(&rig, RN_DMA_CH_CMD,
			physical(RN_DMA_READ, buf, 4096, rn_pa(RN_ARENAS_MAX - 1, 0)));
		ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_CMD).status, RN_DMA_ABORT);
	}
	ck_assert_uint_eq(rig_counter(&rig, "host0.nic0.dma", "aborts"), 200);
	rig_ask(&rig, RN_DMA_CH_TX, physical(RN_DMA_READ, buf, 4096, VA));
	ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).status, RN_DMA_OK);
	ck_assert_mem_eq(rn_buffer_data(rig.buffers, buf), rig.bytes + VA, 4096);
	rig_run(&rig, 2000);
	rig_stop(&rig, 1);
}
END_TEST

START_TEST(write_to_nowhere_is_dropped_and_counted)
{
	rig_init(&rig);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	rig_ask(&rig, RN_DMA_CH_RX, physical(RN_DMA_WRITE, buf, 64, UINT64_MAX - 100));
	ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_RX).status, RN_DMA_OK);
	rig_run(&rig, 2000);
	ck_assert_uint_eq(rig_counter(&rig, "host0.root_complex", "write_aborts"), 1);
	rig_stop(&rig, 1);
}
END_TEST

/*
 * Every virtual channel is full of requests that are never translated; fills and contexts still
 * pass.
 */
START_TEST(physical_channels_pass_requests_that_wait_for_translation)
{
	rig_init(&rig);
	rig.dma_params.translations = 704;
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	for (unsigned ch = RN_DMA_CH_WQE_SQ; ch < RN_DMA_CH_COUNT; ch++)
		for (unsigned i = 0; i < rig.req_depth; i++)
			rig_ask(&rig, ch, keyed(RN_DMA_READ, buf, 4096, VA, RIG_SILENT_KEY));
	rig_run(&rig, 1000);
	for (unsigned ch = RN_DMA_CH_PTE; ch <= RN_DMA_CH_CONTEXT; ch++) {
		rig_ask(&rig, ch, physical(RN_DMA_READ, buf, 64, VA));
		ck_assert_uint_eq(rig_wait(&rig, &rig.rsp[ch], 10000),
				  read_answer_ps(&rig, 64) / RIG_CYCLE_PS);
	}
	rig_stop(&rig, 1);
}
END_TEST

START_TEST(data_then_cqe_then_interrupt_arrive_in_that_order)
{
	rig_init(&rig);
	rig.pcie.lanes = 1;
	rig.root.interrupt_latency_ps = 0;
	rig_start(&rig);
	uint32_t data = rn_buffer_get(rig.buffers);
	uint32_t cqe = rn_buffer_get(rig.buffers);
	struct rn_dma_req msi = {.op = RN_DMA_MSI, .len = 4, .addr = 3};

	memset(rn_buffer_data(rig.buffers, data), 0x11, 4096);
	memset(rn_buffer_data(rig.buffers, cqe), 0x22, 64);
	rig.bytes[VA + 4095] = 0;
	rig.bytes[8 * VA + 63] = 0;
	rig_ask(&rig, RN_DMA_CH_RX, physical(RN_DMA_WRITE, data, 4096, VA));
	rig_answer(&rig, RN_DMA_CH_RX);
	rig_ask(&rig, RN_DMA_CH_CQE, physical(RN_DMA_WRITE, cqe, 64, 8 * VA));
	rig_answer(&rig, RN_DMA_CH_CQE);
	rig_ask(&rig, RN_DMA_CH_EQ, msi);
	rig_answer(&rig, RN_DMA_CH_EQ);

	while (rig.bytes[8 * VA + 63] != 0x22)
		rig_run(&rig, 1);
	ck_assert_uint_eq(rig.bytes[VA + 4095], 0x11);
	ck_assert_uint_eq(rig.interrupts, 0);
	rig_run(&rig, 3000);
	ck_assert_uint_eq(rig.interrupts, 1);
	rig_stop(&rig, 2);
}
END_TEST

START_TEST(answers_of_one_channel_come_in_order_although_one_fails_early)
{
	rig_init(&rig);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	for (uint16_t i = 0; i < 32; i++) {
		struct rn_dma_req req = keyed(RN_DMA_READ, buf, 4096, VA, i % 3 ? 1 : RIG_BAD_KEY);

		req.token = i;
		rig_ask(&rig, RN_DMA_CH_RESP, req);
	}
	for (uint16_t i = 0; i < 32; i++) {
		struct rn_dma_rsp rsp = rig_answer(&rig, RN_DMA_CH_RESP);

		ck_assert_uint_eq(rsp.token, i);
		ck_assert_uint_eq(rsp.status, i % 3 ? RN_DMA_OK : RN_DMA_PROTECTION);
	}
	rig_run(&rig, 100);
	rig_stop(&rig, 1);
}
END_TEST

START_TEST(answers_wait_for_a_full_response_fifo_and_none_is_lost)
{
	rig_init(&rig);
	rig.rsp_depth = 1;
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	for (uint16_t i = 0; i < 12; i++) {
		struct rn_dma_req req = keyed(RN_DMA_READ, buf, 64, VA, 1);

		req.token = i;
		rig_ask(&rig, RN_DMA_CH_TX, req);
		req.op = RN_DMA_WRITE;
		rig_ask(&rig, RN_DMA_CH_RX, req);
	}
	rig_run(&rig, 3000);
	for (uint16_t i = 0; i < 12; i++) {
		ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).token, i);
		ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_RX).token, i);
	}
	rig_run(&rig, 3000);
	rig_stop(&rig, 1);
}
END_TEST

START_TEST(payload_is_what_memory_held_when_the_read_was_served)
{
	rig_init(&rig);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);
	uint64_t served_ps = 5 * RIG_CYCLE_PS + rig_link_ps(&rig.pcie, rig.pcie.header_bytes) +
			     rig.pcie.propagation_ps + rig.root.read_latency_ps;

	rig.bytes[VA] = 1;
	rig_ask(&rig, RN_DMA_CH_TX, physical(RN_DMA_READ, buf, 64, VA));
	rn_sim_run(rig.sim, served_ps - 1, UINT64_MAX);
	rig.bytes[VA] = 2;
	rn_sim_run(rig.sim, served_ps, UINT64_MAX);
	rig.bytes[VA] = 3;
	rig_answer(&rig, RN_DMA_CH_TX);
	ck_assert_uint_eq(rn_buffer_data(rig.buffers, buf)[0], 2);
	rig_stop(&rig, 1);
}
END_TEST

static void complete(uint16_t tag, uint32_t len, uint8_t status)
{
	struct rn_tlp tlp = {.type = RN_TLP_CPL, .tag = tag, .len = len, .status = status};

	rn_fifo_push(&rig.completion, &tlp);
}

/* Completions by hand, those of two reads interleaved and out of order. */
START_TEST(interleaved_completions_find_their_reads)
{
	rig_init(&rig);
	rig.root.read_latency_ps = 100000000; /* the root complex keeps out of it */
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	rig_ask(&rig, RN_DMA_CH_TX, physical(RN_DMA_READ, buf, 512, VA));
	rig_ask(&rig, RN_DMA_CH_CMD, physical(RN_DMA_READ, buf, 512, VA));
	rig_run(&rig, 20);
	ck_assert_uint_eq(rig_counter(&rig, "host0.nic0.dma", "tags_max"), 2);
	complete(1, 256, RN_TLP_OK);
	complete(0, 128, RN_TLP_OK);
	complete(9, 128, RN_TLP_OK);   /* no such read */
	complete(999, 128, RN_TLP_OK); /* no such tag */
	complete(1, 256, RN_TLP_OK);
	rig_run(&rig, 20);
	ck_assert_ptr_null(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
	ck_assert_ptr_nonnull(rn_fifo_peek(&rig.rsp[RN_DMA_CH_CMD]));
	complete(0, 383, RN_TLP_OK);
	rig_run(&rig, 20);
	ck_assert_ptr_null(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
	complete(0, 2, RN_TLP_OK); /* more than was asked for */
	complete(0, 1, RN_TLP_OK);
	rig_run(&rig, 20);
	ck_assert_ptr_nonnull(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
	ck_assert_uint_eq(rig_counter(&rig, "host0.nic0.dma", "unexpected_completions"), 3);
	rig_stop(&rig, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dma");
	TCase *tcase = tcase_create("dma");

	tcase_add_test(tcase, one_read_takes_the_sum_of_its_stages_and_not_a_cycle_less);
	tcase_add_test(tcase, each_parameter_moves_a_read_by_its_uses);
	tcase_add_test(tcase, translation_adds_its_round_trip);
	tcase_add_test(tcase, write_becomes_visible_after_its_stages_and_not_before);
	tcase_add_test(tcase, write_is_answered_when_its_last_tlp_has_its_turn);
	tcase_add_test(tcase, no_tlp_crosses_a_page_or_exceeds_its_size);
	tcase_add_test(tcase, refused_keys_answer_protection_and_hold_nothing);
	tcase_add_test(tcase, memory_that_vanished_aborts_the_read_and_leaks_no_tag);
	tcase_add_test(tcase, write_to_nowhere_is_dropped_and_counted);
	tcase_add_test(tcase, physical_channels_pass_requests_that_wait_for_translation);
	tcase_add_test(tcase, data_then_cqe_then_interrupt_arrive_in_that_order);
	tcase_add_test(tcase, answers_of_one_channel_come_in_order_although_one_fails_early);
	tcase_add_test(tcase, answers_wait_for_a_full_response_fifo_and_none_is_lost);
	tcase_add_test(tcase, payload_is_what_memory_held_when_the_read_was_served);
	tcase_add_test(tcase, interleaved_completions_find_their_reads);
	suite_add_tcase(suite, tcase);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
