/*
 * Bandwidth of the DMA engine, link and root complex against the closed form of each limit,
 * within 1 %; fairness; and that the order of ticks changes nothing.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/dma/rig.h"

#define REQUEST_BYTES 4096u
#define WARM_UP_CYCLES 20000u
#define MEASURED_CYCLES 100000u

static struct rig rig;

/* Keep @ch full of 4 KiB requests and drop its answers. */
static void feed(struct rig *r, unsigned ch, uint8_t op, uint32_t buf)
{
	struct rn_dma_rsp rsp;
	struct rn_dma_req req = {.op = op,
				 .flags = RN_DMA_PHYSICAL,
				 .buf = buf,
				 .len = REQUEST_BYTES,
				 .addr = 0x100000};

	while (rn_fifo_can_push(&r->req[ch]))
		rn_fifo_push(&r->req[ch], &req);
	while (rn_fifo_pop(&r->rsp[ch], &rsp))
		ck_assert_uint_eq(rsp.status, RN_DMA_OK);
}

/* Bytes per picosecond times 1e6 of back-to-back requests on one channel. */
static double measure(struct rig *r, uint8_t op)
{
	const char *instance = op == RN_DMA_READ ? "host0.nic0.pcie_down" : "host0.nic0.pcie_up";
	const char *counter = op == RN_DMA_READ ? "completion_bytes" : "posted_bytes";
	unsigned ch = op == RN_DMA_READ ? RN_DMA_CH_TX : RN_DMA_CH_RX;

	rig_start(r);
	uint32_t buf = rn_buffer_get(r->buffers);
	uint64_t start = 0;

	for (uint64_t cycle = 0; cycle < WARM_UP_CYCLES + MEASURED_CYCLES; cycle++) {
		feed(r, ch, op, buf);
		rig_run(r, 1);
		if (cycle == WARM_UP_CYCLES - 1)
			start = rig_counter(r, instance, counter);
	}

	uint64_t bytes = rig_counter(r, instance, counter) - start;

	rig_run(r, 200000); /* what is on its way */
	rig_stop(r, 1);
	return (double)bytes / MEASURED_CYCLES / RIG_CYCLE_PS * 1e6;
}

static double link_ps(const struct rig *r, double bytes)
{
	/* A million times for the fraction. */
	return bytes * (double)rig_link_ps(&r->pcie, 1000000) / 1e6;
}

static void check_rate(double got, double bytes, double ps)
{
	double want = bytes / ps * 1e6;

	ck_assert_msg(got > want * 0.99 && got < want * 1.01, "%.1f instead of %.1f", got, want);
}

/* Time from taking a tag to its being free, on an otherwise idle link. */
static double tag_ps(const struct rig *r, uint32_t bytes)
{
	uint32_t tlps = (bytes + r->pcie.mps_bytes - 1) / r->pcie.mps_bytes;
	double ps = r->dma_params.issue_latency_cycles * RIG_CYCLE_PS;

	ps += link_ps(r, r->pcie.header_bytes) + (double)r->root.read_latency_ps;
	ps += link_ps(r, bytes + tlps * r->pcie.completion_header_bytes);
	ps += 2.0 * (double)r->pcie.propagation_ps;
	return (double)(((uint64_t)ps + RIG_CYCLE_PS - 1) / RIG_CYCLE_PS * RIG_CYCLE_PS);
}

START_TEST(reads_fill_the_link)
{
	for (uint32_t gen = 1; gen <= 5; gen++) {
		for (uint32_t lanes = 4; lanes <= 16; lanes *= 4) {
			rig_init(&rig);
			rig.pcie.gen = gen;
			rig.pcie.lanes = lanes;
			rig.dma_params.tags = 256;
			rig.dma_params.reassembly_bytes = 1 << 20;
			rig.root.outstanding_reads = 256;
			rig.root.memory_gbps = 10000;
			check_rate(measure(&rig, RN_DMA_READ), 512, link_ps(&rig, 552));
		}
	}
}
END_TEST

START_TEST(payload_sizes_cost_their_headers)
{
	static const uint32_t sizes[][2] = {{128, 128}, {128, 512}, {256, 256}, {512, 4096}};

	for (unsigned i = 0; i < 4; i++) {
		uint32_t mps = sizes[i][0], mrrs = sizes[i][1];

		rig_init(&rig);
		rig.pcie.mps_bytes = mps;
		rig.pcie.mrrs_bytes = mrrs;
		rig.dma_params.tags = 256;
		rig.dma_params.reassembly_bytes = 1 << 20;
		rig.root.outstanding_reads = 256;
		check_rate(measure(&rig, RN_DMA_READ), mps, link_ps(&rig, mps + 20));
		check_rate(measure(&rig, RN_DMA_WRITE), mps, link_ps(&rig, mps + 24));
	}
}
END_TEST

START_TEST(writes_fill_the_link)
{
	rig_init(&rig);
	check_rate(measure(&rig, RN_DMA_WRITE), 256, link_ps(&rig, 280));
}
END_TEST

START_TEST(tags_limit_reads_by_littles_law)
{
	for (uint32_t tags = 1; tags <= 8; tags *= 2) {
		rig_init(&rig);
		rig.dma_params.tags = tags;
		/*
		 * Several at once share the link: the first of a burst is what counts, they keep
		 * their distance.
		 */
		check_rate(measure(&rig, RN_DMA_READ), 512.0 * tags, tag_ps(&rig, 512) + 1000);
	}
}
END_TEST

START_TEST(reassembly_buffer_limits_reads)
{
	rig_init(&rig);
	rig.dma_params.reassembly_bytes = 1024 + 511; /* two reads */
	check_rate(measure(&rig, RN_DMA_READ), 1024, tag_ps(&rig, 512) + 1000);
}
END_TEST

START_TEST(slots_of_the_root_complex_limit_reads)
{
	rig_init(&rig);
	rig.root.outstanding_reads = 4;
	/* Four at once, which leave one after the other. */
	check_rate(measure(&rig, RN_DMA_READ), 4 * 512.0,
		   (double)rig.root.read_latency_ps + link_ps(&rig, 552));
}
END_TEST

START_TEST(memory_bandwidth_limits_both)
{
	rig_init(&rig);
	rig.root.memory_gbps = 40;
	check_rate(measure(&rig, RN_DMA_READ), 512, 512 * 8000.0 / 40);
	check_rate(measure(&rig, RN_DMA_WRITE), 256, 256 * 8000.0 / 40);
}
END_TEST

START_TEST(header_credits_limit_writes)
{
	for (uint32_t credits = 1; credits <= 4; credits++) {
		rig_init(&rig);
		rig.pcie.posted_header_credits = credits;
		check_rate(measure(&rig, RN_DMA_WRITE), 256.0 * credits,
			   link_ps(&rig, 280) + (double)rig.pcie.propagation_ps +
				   256 * 8000.0 / rig.root.memory_gbps +
				   (double)rig.pcie.credit_return_ps);
	}
}
END_TEST

START_TEST(data_credits_limit_writes)
{
	/* 16 units are one TLP of 256 bytes; fewer are raised to that. */
	static const uint32_t credits[] = {1, 16, 31, 32, 48};
	static const uint32_t tlps[] = {1, 1, 1, 2, 3};

	for (unsigned i = 0; i < 5; i++) {
		rig_init(&rig);
		rig.pcie.posted_data_credits = credits[i];
		check_rate(measure(&rig, RN_DMA_WRITE), 256.0 * tlps[i],
			   link_ps(&rig, 280) + (double)rig.pcie.propagation_ps +
				   256 * 8000.0 / rig.root.memory_gbps +
				   (double)rig.pcie.credit_return_ps);
	}
}
END_TEST

START_TEST(nonposted_credits_limit_reads)
{
	rig_init(&rig);
	rig.pcie.nonposted_header_credits = 1;
	/* The root complex takes a read on as it arrives. */
	check_rate(measure(&rig, RN_DMA_READ), 512,
		   link_ps(&rig, 24) + (double)rig.pcie.propagation_ps +
			   (double)rig.pcie.credit_return_ps);
}
END_TEST

START_TEST(initiation_interval_limits_both)
{
	rig_init(&rig);
	rig.dma_params.issue_interval_cycles = 64;
	check_rate(measure(&rig, RN_DMA_READ), 512, 64.0 * RIG_CYCLE_PS);
	check_rate(measure(&rig, RN_DMA_WRITE), 256, 64.0 * RIG_CYCLE_PS);
}
END_TEST

START_TEST(completion_interval_limits_reads)
{
	rig_init(&rig);
	rig.dma_params.completion_interval_cycles = 64;
	check_rate(measure(&rig, RN_DMA_READ), 512, 64.0 * RIG_CYCLE_PS);
}
END_TEST

/* Two channels share the link by their weights, and writes get through beside reads. */
START_TEST(weights_share_the_engine)
{
	rig_init(&rig);
	rig.dma_params.weight_rx = 3;
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);
	uint64_t answers[2] = {0};

	for (unsigned cycle = 0; cycle < MEASURED_CYCLES; cycle++) {
		struct rn_dma_req req = {
			.op = RN_DMA_WRITE, .flags = RN_DMA_PHYSICAL, .buf = buf, .len = 1024};
		struct rn_dma_rsp rsp;

		for (unsigned i = 0; i < 2; i++) {
			unsigned ch = i ? RN_DMA_CH_READ_DATA : RN_DMA_CH_RX;

			if (rn_fifo_can_push(&rig.req[ch]))
				rn_fifo_push(&rig.req[ch], &req);
			while (rn_fifo_pop(&rig.rsp[ch], &rsp))
				answers[i]++;
		}
		rig_run(&rig, 1);
	}
	ck_assert_double_eq_tol((double)answers[0] / (double)answers[1], 3.0, 0.03);
	rig_run(&rig, 20000);
	rig_stop(&rig, 1);
}
END_TEST

START_TEST(starved_credits_recover)
{
	rig_init(&rig);
	rig.pcie.posted_header_credits = 1;
	rig.pcie.nonposted_header_credits = 1;
	rig.root.outstanding_reads = 1;
	rig.dma_params.tags = 3;
	rig.tlp_depth = 1;
	rig.mmio_depth = 1;
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	for (unsigned cycle = 0; cycle < 20000; cycle++) {
		feed(&rig, RN_DMA_CH_TX, RN_DMA_READ, buf);
		feed(&rig, RN_DMA_CH_RX, RN_DMA_WRITE, buf);
		rig_run(&rig, 1);
	}
	ck_assert_uint_gt(rig_counter(&rig, "host0.nic0.pcie_up", "credit_stall_ps"), 0);
	for (unsigned cycle = 0; cycle < 1000000; cycle += 100) {
		struct rn_dma_rsp rsp;

		while (rn_fifo_pop(&rig.rsp[RN_DMA_CH_TX], &rsp) ||
		       rn_fifo_pop(&rig.rsp[RN_DMA_CH_RX], &rsp))
			;
		rig_run(&rig, 100);
	}
	ck_assert_uint_eq(rn_fifo_occupancy(&rig.req[RN_DMA_CH_TX]), 0);
	ck_assert_uint_eq(rn_fifo_occupancy(&rig.req[RN_DMA_CH_RX]), 0);
	ck_assert_uint_eq(rn_fifo_occupancy(&rig.posted), 0);
	rig_stop(&rig, 1);
}
END_TEST

/*
 * A mixture on all channels under tight limits: the TLP log must not depend on the order of
 * ticks.
 */
static char *mixture(uint64_t permute_seed, bool on_the_grid)
{
	char *text = NULL;
	size_t text_bytes = 0;
	uint32_t random = 1;

	rig_init(&rig);
	rig.permute_seed = permute_seed;
	rig.tlp_depth = 2;
	rig.mmio_depth = 1;
	rig.req_depth = 4;
	rig.rsp_depth = 1;
	rig.dma_params.tags = 5;
	rig.dma_params.channel_requests = 3;
	rig.dma_params.channel_reads = 2;
	rig.dma_params.reassembly_bytes = 2000;
	rig.pcie.posted_header_credits = 3;
	rig.pcie.nonposted_header_credits = 2;
	rig.root.outstanding_reads = 2;
	rig.pcie.lanes = 4;
	if (on_the_grid) {
		/*
		 * A nanosecond a byte everywhere: as many things as can be happen in one
		 * picosecond.
		 */
		rig.pcie.gen = 1;
		rig.pcie.dllp_permille = 0;
		rig.root.memory_gbps = 8;
		rig.pcie.credit_return_ps = 3000;
		rig.root.read_latency_ps = 20000;
		rig.root.write_latency_ps = 5000;
		rig.pcie.propagation_ps = 4000;
	}
	rig.log_file = open_memstream(&text, &text_bytes);
	rig_start(&rig);
	uint32_t buf = rn_buffer_get(rig.buffers);

	for (unsigned cycle = 0; cycle < 600000; cycle++) {
		struct rn_mmio_write mmio;
		struct rn_dma_rsp rsp;

		for (unsigned ch = 0; ch < RN_DMA_CH_COUNT; ch++) {
			random = random * 1664525 + 1013904223;
			if (cycle < 30000 && (random >> 24) < 16 &&
			    rn_fifo_can_push(&rig.req[ch])) {
				struct rn_dma_req req = {
					.op = ch == RN_DMA_CH_EQ ? RN_DMA_MSI : random >> 10 & 1,
					.flags = ch < 2 ? RN_DMA_PHYSICAL : random >> 11 & 2,
					.token = (uint16_t)random,
					.buf = buf,
					.len = 1 + (random >> 12) % 4096,
					.addr = random >> 8 & 0xfffff,
					.key = (random >> 20) % 16 ? 1 : RIG_SECOND_BAD_KEY,
				};

				if (ch == RN_DMA_CH_EQ)
					req.addr = 3;
				rn_fifo_push(&rig.req[ch], &req);
			}
			if (random >> 31 || cycle > 30000)
				rn_fifo_pop(&rig.rsp[ch], &rsp);
		}
		if (cycle % 512 == 0 && cycle < 30000)
			rn_root_complex_mmio_write(rig.rc, rig_now_ps(&rig), cycle, &cycle, 4);
		if (random % 32 == 0 || cycle > 30000)
			rn_fifo_pop(&rig.mmio_write, &mmio);
		rig_run(&rig, 1);
	}
	rig_stop(&rig, 1);
	fclose(rig.log_file);
	return text;
}

START_TEST(order_of_ticks_does_not_change_a_byte)
{
	bool on_the_grid = _i;
	char *first = mixture(0, on_the_grid);

	ck_assert_uint_gt(strlen(first), 50000);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *other = mixture(seed, on_the_grid);

		ck_assert_str_eq(first, other);
		free(other);
	}
	free(first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dma_rate");
	TCase *tcase = tcase_create("rate");

	tcase_add_test(tcase, reads_fill_the_link);
	tcase_add_test(tcase, payload_sizes_cost_their_headers);
	tcase_add_test(tcase, writes_fill_the_link);
	tcase_add_test(tcase, tags_limit_reads_by_littles_law);
	tcase_add_test(tcase, reassembly_buffer_limits_reads);
	tcase_add_test(tcase, slots_of_the_root_complex_limit_reads);
	tcase_add_test(tcase, memory_bandwidth_limits_both);
	tcase_add_test(tcase, header_credits_limit_writes);
	tcase_add_test(tcase, data_credits_limit_writes);
	tcase_add_test(tcase, nonposted_credits_limit_reads);
	tcase_add_test(tcase, initiation_interval_limits_both);
	tcase_add_test(tcase, completion_interval_limits_reads);
	tcase_add_test(tcase, weights_share_the_engine);
	tcase_add_test(tcase, starved_credits_recover);
	tcase_add_loop_test(tcase, order_of_ticks_does_not_change_a_byte, 0, 2);
	suite_add_tcase(suite, tcase);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
