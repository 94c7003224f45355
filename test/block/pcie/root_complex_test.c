/*
 * The root complex: MMIO, interrupts, PCIe's ordering rules, the TLP log.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "block/dma/rig.h"

#define VA 0x20000u

static struct rig rig;

static uint64_t mmio_arrival_ps(const struct rig *r, uint64_t at_ps, uint32_t len)
{
	uint64_t ps = at_ps + r->root.mmio_latency_ps +
		      rig_link_ps(&r->pcie, len + r->pcie.header_bytes) + r->pcie.propagation_ps;

	return (ps + RIG_CYCLE_PS - 1) / RIG_CYCLE_PS * RIG_CYCLE_PS;
}

static bool post(uint64_t at_ps, uint64_t offset, uint32_t value)
{
	return rn_root_complex_mmio_write(rig.rc, at_ps, offset, &value, 4);
}

START_TEST(mmio_write_arrives_in_its_cycle_and_not_before)
{
	rig_init(&rig);
	rig_start(&rig);
	uint64_t due = mmio_arrival_ps(&rig, 7000, 4) / RIG_CYCLE_PS;
	const struct rn_mmio_write *write;

	ck_assert(post(7000, 0x1234, 42));
	rig_run(&rig, due - 1);
	ck_assert_ptr_null(rn_fifo_peek(&rig.mmio_write));
	rig_run(&rig, 1);
	write = rn_fifo_peek(&rig.mmio_write);
	ck_assert_ptr_nonnull(write);
	ck_assert_uint_eq(write->offset, 0x1234);
	ck_assert_uint_eq(write->len, 4);
	ck_assert_uint_eq(write->data[0], 42);
	ck_assert_uint_eq(write->data[4], 0);
	rig_stop(&rig, 0);
}
END_TEST

START_TEST(mmio_writes_keep_their_order_and_a_full_queue_refuses)
{
	rig_init(&rig);
	rig.root.mmio_queue_entries = 16;
	rig_start(&rig);
	uint32_t posted = 0, got = 0;
	struct rn_mmio_write write;

	while (post(1000000 - posted * 1000, posted, posted))
		posted++;
	ck_assert_uint_eq(posted, 16);
	ck_assert_uint_eq(rig_counter(&rig, "host0.root_complex", "mmio_full"), 1);
	while (got < 200) {
		posted += post(0, posted, posted);
		rig_run(&rig, 10);
		if (rn_fifo_pop(&rig.mmio_write, &write))
			ck_assert_uint_eq(write.offset, got++);
	}
	rig_stop(&rig, 0);
}
END_TEST

static struct rn_dma_req read_req(uint32_t buf, uint32_t len)
{
	return (struct rn_dma_req){
		.op = RN_DMA_READ, .flags = RN_DMA_PHYSICAL, .buf = buf, .len = len, .addr = VA};
}

START_TEST(completion_does_not_pass_an_earlier_mmio_write)
{
	/* The doorbell is due a picosecond before the read is served, or at the same time. */
	for (uint64_t early_ps = 0; early_ps < 2; early_ps++) {
		rig_init(&rig);
		rig.pcie.lanes = 1;
		rig_start(&rig);
		uint32_t buf = rn_buffer_get(rig.buffers);
		uint64_t served_ps = 5 * RIG_CYCLE_PS +
				     rig_link_ps(&rig.pcie, rig.pcie.header_bytes) +
				     rig.pcie.propagation_ps + rig.root.read_latency_ps;

		rig_ask(&rig, RN_DMA_CH_TX, read_req(buf, 1));
		post(served_ps - rig.root.mmio_latency_ps - early_ps, 0, 1);
		while (!rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]) && !rn_fifo_peek(&rig.mmio_write))
			rig_run(&rig, 1);
		ck_assert_ptr_nonnull(rn_fifo_peek(&rig.mmio_write));
		ck_assert_ptr_null(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
		rig_run(&rig, 1000);
		rig_stop(&rig, 1);
	}
}
END_TEST

START_TEST(stalled_doorbells_hold_completions_until_one_is_taken)
{
	rig_init(&rig);
	rig.mmio_depth = 2;
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);
	struct rn_mmio_write write;

	for (uint32_t i = 0; i < 3; i++)
		post(0, i, i);
	rig_ask(&rig, RN_DMA_CH_TX, read_req(buf, 64));
	rig_run(&rig, 5000);
	ck_assert_ptr_null(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
	ck_assert(rn_fifo_pop(&rig.mmio_write, &write));
	uint64_t wait = rig_wait(&rig, &rig.rsp[RN_DMA_CH_TX], 5000);

	/* Credit back, then doorbell and completion come down. */
	ck_assert_uint_ge(wait * RIG_CYCLE_PS, rig.pcie.credit_return_ps + rig.pcie.propagation_ps);
	ck_assert_uint_le(wait * RIG_CYCLE_PS,
			  rig.pcie.credit_return_ps + rig.pcie.propagation_ps + 20000);
	for (uint32_t i = 1; i < 3; i++) {
		ck_assert(rn_fifo_pop(&rig.mmio_write, &write));
		ck_assert_uint_eq(write.offset, i);
	}
	rig_run(&rig, 100);
	rig_stop(&rig, 1);
}
END_TEST

struct reader {
	uint64_t value;
	uint64_t at_ps;
	unsigned count;
};

static void take_value(void *arg, uint64_t value)
{
	struct reader *reader = arg;

	reader->value = value;
	reader->at_ps = rig_now_ps(&rig);
	reader->count++;
}

START_TEST(mmio_read_takes_both_ways)
{
	rig_init(&rig);
	rig_start(&rig);
	struct reader reader = {0};
	struct rn_mmio_read read;

	ck_assert(rn_root_complex_mmio_read(rig.rc, 0, 0x40, 8, take_value, &reader));
	uint64_t cycles = rig_wait(&rig, &rig.mmio_read, 10000);

	ck_assert_uint_eq(cycles * RIG_CYCLE_PS, mmio_arrival_ps(&rig, 0, 0));
	ck_assert(rn_fifo_pop(&rig.mmio_read, &read));
	ck_assert_uint_eq(read.offset, 0x40);
	ck_assert_uint_eq(read.len, 8);
	struct rn_mmio_read_rsp rsp = {.tag = read.tag, .value = UINT64_C(0x1122334455667788)};
	uint64_t sent_ps = rig_now_ps(&rig);
	/* No clocked end on the NIC's side here: the fifo's latency is a picosecond. */
	uint64_t due_ps = sent_ps + 1 +
			  rig_link_ps(&rig.pcie, 8 + rig.pcie.completion_header_bytes) +
			  rig.pcie.propagation_ps;

	rn_fifo_push(&rig.mmio_read_rsp, &rsp);
	rsp.tag = 77; /* never asked */
	rn_fifo_push(&rig.mmio_read_rsp, &rsp);
	rig_run(&rig, 1000);
	ck_assert_uint_eq(reader.count, 1);
	ck_assert_uint_eq(reader.value, UINT64_C(0x1122334455667788));
	ck_assert_uint_eq(reader.at_ps, due_ps);
	rig_stop(&rig, 0);
}
END_TEST

START_TEST(sixteen_mmio_reads_at_a_time)
{
	rig_init(&rig);
	rig_start(&rig);
	struct reader reader = {0};

	for (unsigned i = 0; i < 16; i++)
		ck_assert(rn_root_complex_mmio_read(rig.rc, 0, i, 4, take_value, &reader));
	ck_assert(!rn_root_complex_mmio_read(rig.rc, 0, 0, 4, take_value, &reader));
	for (unsigned i = 0; i < 10000 && reader.count < 16; i++) {
		struct rn_mmio_read read;

		if (rn_fifo_can_push(&rig.mmio_read_rsp) && rn_fifo_pop(&rig.mmio_read, &read)) {
			struct rn_mmio_read_rsp rsp = {.tag = read.tag, .value = UINT64_MAX};

			rn_fifo_push(&rig.mmio_read_rsp, &rsp);
		}
		rig_run(&rig, 1);
	}
	ck_assert_uint_eq(reader.count, 16);
	ck_assert_uint_eq(reader.value, UINT32_MAX);
	ck_assert(rn_root_complex_mmio_read(rig.rc, 0, 0, 4, take_value, &reader));
	rig_stop(&rig, 0);
}
END_TEST

START_TEST(interrupt_handler_runs_after_its_latency_and_not_before)
{
	rig_init(&rig);
	rig_start(&rig);
	struct rn_dma_req msi = {.op = RN_DMA_MSI, .len = 4, .addr = 3};
	uint64_t due_ps = 5 * RIG_CYCLE_PS + rig_link_ps(&rig.pcie, 4 + rig.pcie.header_bytes) +
			  rig.pcie.propagation_ps + 4 * 8000 / rig.root.memory_gbps +
			  rig.root.write_latency_ps + rig.root.interrupt_latency_ps;

	rig_ask(&rig, RN_DMA_CH_EQ, msi);
	rn_sim_run(rig.sim, due_ps - 1, UINT64_MAX);
	ck_assert_uint_eq(rig.interrupts, 0);
	rn_sim_run(rig.sim, due_ps, UINT64_MAX);
	ck_assert_uint_eq(rig.interrupts, 1);
	ck_assert_uint_eq(rig.interrupt_ps, due_ps);
	rig_stop(&rig, 0);
}
END_TEST

/* A write and a read of the same place, asked for in the same cycle on two channels. */
START_TEST(read_does_not_pass_the_write_before_it)
{
	uint64_t alone_ps = 0;

	for (int with_write = 0; with_write < 2; with_write++) {
		rig_init(&rig);
		rig_start(&rig);
		uint32_t from = rn_buffer_get(rig.buffers), to = rn_buffer_get(rig.buffers);
		struct rn_dma_req write = read_req(from, 64);

		write.op = RN_DMA_WRITE;
		memset(rn_buffer_data(rig.buffers, from), 0xab, 64);
		rig.bytes[VA] = 0;
		if (with_write)
			rig_ask(&rig, RN_DMA_CH_PTE, write);
		rig_run(&rig, 1);
		rig_ask(&rig, RN_DMA_CH_CMD, read_req(to, 64));
		uint64_t ps = rig_wait(&rig, &rig.rsp[RN_DMA_CH_CMD], 10000) * RIG_CYCLE_PS;

		ck_assert_uint_eq(rn_buffer_data(rig.buffers, to)[0], with_write ? 0xab : 0);
		if (with_write) /* pcie-bench: 205 ns more for write then read */
			ck_assert(ps > alone_ps + 190000 && ps < alone_ps + 220000);
		alone_ps = ps;
		rig_run(&rig, 1000);
		rig_stop(&rig, 2);
	}
}
END_TEST

/* The second write lacks credits; the read behind it could go, and must not. */
START_TEST(read_waits_behind_a_write_that_lacks_credits)
{
	rig_init(&rig);
	rig.pcie.posted_header_credits = 1;
	rig.pcie.credit_return_ps = 5000000;
	rig_start(&rig);
	uint32_t from = rn_buffer_get(rig.buffers), to = rn_buffer_get(rig.buffers);
	struct rn_dma_req write = read_req(from, 64);

	write.op = RN_DMA_WRITE;
	rn_buffer_data(rig.buffers, from)[0] = 0xab;
	rig.bytes[VA] = 0;
	rig_ask(&rig, RN_DMA_CH_PTE, write);
	rig_ask(&rig, RN_DMA_CH_PTE, write);
	rig_run(&rig, 50);
	rig.bytes[VA] = 0;
	rig_ask(&rig, RN_DMA_CH_CMD, read_req(to, 64));
	rig_run(&rig, 4000);
	ck_assert_ptr_null(rn_fifo_peek(&rig.rsp[RN_DMA_CH_CMD]));
	rig_answer(&rig, RN_DMA_CH_CMD);
	ck_assert_uint_eq(rn_buffer_data(rig.buffers, to)[0], 0xab);
	rig_run(&rig, 10000);
	rig_stop(&rig, 2);
}
END_TEST

START_TEST(writes_pass_reads_that_wait_for_credits)
{
	rig_init(&rig);
	rig.pcie.nonposted_header_credits = 1;
	rig.root.outstanding_reads = 1;
	rig.root.read_latency_ps = 50000000;
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);
	struct rn_dma_req write = read_req(buf, 64);

	write.op = RN_DMA_WRITE;
	write.flags |= RN_DMA_LAST;
	for (int i = 0; i < 5; i++)
		rig_ask(&rig, RN_DMA_CH_TX, read_req(buf, 64));
	rig_run(&rig, 100);
	rig_ask(&rig, RN_DMA_CH_RX, write);
	rig_run(&rig, 1000);
	ck_assert_uint_ne(rig.hook_ps, 0);
	ck_assert_ptr_null(rn_fifo_peek(&rig.rsp[RN_DMA_CH_TX]));
	rig_run(&rig, 300000);
	ck_assert_uint_eq(rn_fifo_occupancy(&rig.rsp[RN_DMA_CH_TX]), 5);
	rig_stop(&rig, 1);
}
END_TEST

struct line {
	uint64_t first_ps, arrival_ps, addr, hash;
	unsigned host, len, tag;
	char direction[8], type[8], channel[16], status[8];
};

static unsigned parse(char *text, struct line *lines, unsigned most)
{
	unsigned count = 0;

	strtok(text, "\n");
	for (char *row = strtok(NULL, "\n"); row; row = strtok(NULL, "\n")) {
		struct line *line = &lines[count++];
		char tag[16] = "", rest[64] = "";

		ck_assert_uint_le(count, most);
		*line = (struct line){0};
		ck_assert_int_ge(sscanf(row,
					"%" SCNu64 ",%" SCNu64 ",%u,%7[a-z],%7[A-Za-z],%" SCNx64
					",%u,%15[0-9]",
					&line->first_ps, &line->arrival_ps, &line->host,
					line->direction, line->type, &line->addr, &line->len, tag),
				 7);
		line->tag = (unsigned)atoi(tag);
		char *comma = row;

		for (int i = 0; i < 8; i++)
			comma = strchr(comma, ',') + 1;
		ck_assert_int_ge(sscanf(comma, "%15[a-z_],%7[a-z],%63s", line->channel,
					line->status, rest),
				 2);
		line->hash = strtoull(rest, NULL, 16);
	}
	return count;
}

/* Order and capacity of both directions. */
static void check_times(const struct line *lines, unsigned count)
{
	uint64_t free_ps[2] = {0};

	for (unsigned i = 0; i < count; i++) {
		unsigned down = !strcmp(lines[i].direction, "down");
		uint64_t end_ps = lines[i].arrival_ps - rig.pcie.propagation_ps;

		ck_assert(!i || lines[i].first_ps >= lines[i - 1].first_ps);
		ck_assert_uint_ge(lines[i].first_ps, free_ps[down]);
		ck_assert_uint_gt(end_ps, lines[i].first_ps);
		free_ps[down] = end_ps;
	}
}

START_TEST(log_accounts_for_every_byte)
{
	static struct line lines[10000];
	char *text = NULL;
	size_t text_bytes = 0;

	rig_init(&rig);
	rig.log_file = open_memstream(&text, &text_bytes);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers), out = rn_buffer_get(rig.buffers);
	uint64_t asked = 0, written = 0;

	for (unsigned i = 0; i < 4096; i++)
		rn_buffer_data(rig.buffers, out)[i] = (uint8_t)(i * 3);
	for (unsigned i = 0; i < 100; i++) {
		struct rn_dma_req read = read_req(buf, 1 + i * 37);
		struct rn_dma_req write = read_req(out, 1 + i * 41 % 4096);

		read.addr = VA + i * 1000;
		write.op = RN_DMA_WRITE;
		write.addr = 8 * VA + i * 4097;
		asked += read.len;
		written += write.len;
		rig_ask(&rig, RN_DMA_CH_TX, read);
		rig_ask(&rig, RN_DMA_CH_RX, write);
		post(0, i * 8, i);
		rig_answer(&rig, RN_DMA_CH_TX);
		rig_answer(&rig, RN_DMA_CH_RX);
		rn_fifo_pop(&rig.mmio_write, &(struct rn_mmio_write){0});
	}
	rig_run(&rig, 10000);
	uint8_t *after = malloc(RIG_MEMORY_BYTES);

	memcpy(after, rig.bytes, RIG_MEMORY_BYTES);
	rig_stop(&rig, 1 + 1);
	fclose(rig.log_file);
	unsigned count = parse(text, lines, 10000);

	check_times(lines, count);

	/*
	 * Every completion belongs to the read of its tag, continues it, and carries what memory
	 * holds.
	 */
	struct {
		uint64_t next;
		unsigned left;
	} tags[64] = {{0}};
	uint64_t read = 0, got = 0, wrote = 0;
	unsigned doorbells = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct line *line = &lines[i];

		if (!strcmp(line->channel, "mmio")) {
			doorbells++;
			continue;
		}
		if (!strcmp(line->type, "MRd")) {
			ck_assert_uint_eq(tags[line->tag].left, 0);
			tags[line->tag].next = line->addr;
			tags[line->tag].left = line->len;
			read += line->len;
			continue;
		}
		ck_assert_uint_eq(line->hash, rn_tlp_log_hash(after + line->addr, line->len));
		if (!strcmp(line->type, "CplD")) {
			ck_assert_str_eq(line->channel, "tx");
			ck_assert_uint_eq(tags[line->tag].next, line->addr);
			ck_assert_uint_ge(tags[line->tag].left, line->len);
			tags[line->tag].next += line->len;
			tags[line->tag].left -= line->len;
			got += line->len;
		} else {
			ck_assert_str_eq(line->type, "MWr");
			ck_assert_str_eq(line->channel, "rx");
			wrote += line->len;
		}
	}
	ck_assert_uint_eq(read, asked);
	ck_assert_uint_eq(got, asked);
	ck_assert_uint_eq(wrote, written);
	ck_assert_uint_eq(doorbells, 100);
	free(after);
	free(text);
}
END_TEST

START_TEST(abort_is_a_completion_without_data)
{
	static struct line lines[10];
	char *text = NULL;
	size_t text_bytes = 0;

	rig_init(&rig);
	rig.log_file = open_memstream(&text, &text_bytes);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);
	struct rn_dma_req read = read_req(buf, 300);

	read.addr = RIG_MEMORY_BYTES - 200;
	rig_ask(&rig, RN_DMA_CH_TX, read);
	ck_assert_uint_eq(rig_answer(&rig, RN_DMA_CH_TX).status, RN_DMA_ABORT);
	rig_stop(&rig, 1);
	fclose(rig.log_file);
	/* 200 bytes in the last page, 100 beyond: two reads, of which one is refused. */
	ck_assert_uint_eq(parse(text, lines, 10), 4);
	ck_assert_str_eq(lines[3].type, "Cpl");
	ck_assert_str_eq(lines[3].status, "abort");
	ck_assert_uint_eq(lines[3].len, 0);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("root_complex");
	TCase *tcase = tcase_create("root_complex");

	tcase_add_test(tcase, mmio_write_arrives_in_its_cycle_and_not_before);
	tcase_add_test(tcase, mmio_writes_keep_their_order_and_a_full_queue_refuses);
	tcase_add_test(tcase, completion_does_not_pass_an_earlier_mmio_write);
	tcase_add_test(tcase, stalled_doorbells_hold_completions_until_one_is_taken);
	tcase_add_test(tcase, mmio_read_takes_both_ways);
	tcase_add_test(tcase, sixteen_mmio_reads_at_a_time);
	tcase_add_test(tcase, interrupt_handler_runs_after_its_latency_and_not_before);
	tcase_add_test(tcase, read_does_not_pass_the_write_before_it);
	tcase_add_test(tcase, read_waits_behind_a_write_that_lacks_credits);
	tcase_add_test(tcase, writes_pass_reads_that_wait_for_credits);
	tcase_add_test(tcase, log_accounts_for_every_byte);
	tcase_add_test(tcase, abort_is_a_completion_without_data);
	suite_add_tcase(suite, tcase);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
