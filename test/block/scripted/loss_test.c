/* One frame is lost, damaged, doubled or late: the data is right all the same, and the rule acted once. */
#include <string.h>

#include "run_suite.h"
#include "world.h"

#define BYTES 20000u /* five packets of 4096 */

static struct world world;
static struct link_pair pair;

/* First PSNs near the wrap: it lies inside every message. */
static const struct rn_scripted_path path = {
	.mtu_bytes = 4096,
	.psn = {0xfffffe, 0xfffffd},
	.rd_atomic = 16,
	.timeout = 8, /* 1.05 ms */
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 1,
};

static void set_up(void)
{
	world_init(&world, 2);
	world_start(&world, NULL);
	world_connect(&world, 0, 1, 1 << 20, &path, &pair);
}

static void tear_down(void)
{
	world_fini(&world);
}

static const struct {
	enum rn_fault_class class;
	uint32_t host; /* sender of the frame */
	uint8_t opcode;
	uint32_t bytes;
} cases[] = {
	{RN_FAULT_REQUEST_FIRST, 0, RN_WQE_RDMA_WRITE, BYTES},
	{RN_FAULT_REQUEST_MIDDLE, 0, RN_WQE_RDMA_WRITE, BYTES},
	{RN_FAULT_REQUEST_LAST, 0, RN_WQE_RDMA_WRITE, BYTES},
	{RN_FAULT_REQUEST_ONLY, 0, RN_WQE_RDMA_WRITE, 100},
	{RN_FAULT_ACK, 1, RN_WQE_RDMA_WRITE, BYTES},
	{RN_FAULT_REQUEST_FIRST, 0, RN_WQE_SEND, BYTES},
	{RN_FAULT_REQUEST_MIDDLE, 0, RN_WQE_SEND, BYTES},
	{RN_FAULT_REQUEST_LAST, 0, RN_WQE_SEND_IMM, BYTES},
	{RN_FAULT_REQUEST_ONLY, 0, RN_WQE_SEND, 100},
	{RN_FAULT_ACK, 1, RN_WQE_SEND, BYTES},
	{RN_FAULT_READ_REQUEST, 0, RN_WQE_RDMA_READ, BYTES},
	{RN_FAULT_READ_RESPONSE_FIRST, 1, RN_WQE_RDMA_READ, BYTES},
	{RN_FAULT_READ_RESPONSE_MIDDLE, 1, RN_WQE_RDMA_READ, BYTES},
	{RN_FAULT_READ_RESPONSE_LAST, 1, RN_WQE_RDMA_READ, BYTES},
	{RN_FAULT_READ_RESPONSE_ONLY, 1, RN_WQE_RDMA_READ, 100},
};

static void run_case(enum rn_fault_action action, size_t idx)
{
	struct rn_faults *faults = rn_fabric_faults(rn_system_fabric(world.system));
	const unsigned rule = rn_faults_add(faults, &(struct rn_fault){
							    .action = action,
							    .class = cases[idx].class,
							    .host = cases[idx].host,
							    .connection = RN_FAULT_ANY_VALUE,
							    .psn_offset = RN_FAULT_ANY_VALUE,
							    .transmission = 1,
							    .delay_ps = 3000000,
						    });
	const bool reads = cases[idx].opcode == RN_WQE_RDMA_READ;
	struct rn_scripted_flow flow;

	memset(pair.buffer[reads ? 0 : 1].data, 0, pair.buffer[0].bytes);
	rn_scripted_fill(pair.buffer[reads ? 1 : 0].data, pair.buffer[0].bytes, idx);
	rn_scripted_flow_start(&flow, &(struct rn_scripted_flow_spec){
					      .from = pair.qp[0],
					      .to = pair.qp[1],
					      .from_cq = pair.cq[0],
					      .to_cq = pair.cq[1],
					      .opcode = cases[idx].opcode,
					      .bytes = cases[idx].bytes,
					      .depth = 4,
					      .count = 12,
					      .va = pair.buffer[0].va,
					      .lkey = pair.key[0],
					      .remote_va = pair.buffer[1].va,
					      .rkey = pair.key[1],
					      .stride = 20480,
				      });
	ck_assert_msg(rn_scripted_flow_run(&flow, RN_SCRIPTED_SECOND_PS),
		      "case %zu: %u of 12 done, status %u", idx, (unsigned)flow.done,
		      flow.first_error);
	rn_scripted_flow_stop(&flow);
	rn_scripted_run_for(world.host[0], 10000000);
	ck_assert_uint_eq(rn_faults_at(faults, rule)->done, 1);
	for (uint32_t n = 0; n < 4; n++)
		ck_assert_mem_eq(pair.buffer[0].data + n * 20480u, pair.buffer[1].data + n * 20480u,
				 cases[idx].bytes);
}

START_TEST(a_lost_frame_costs_time_but_no_data)
{
	run_case(RN_FAULT_DROP, (size_t)_i);
}
END_TEST

START_TEST(a_damaged_frame_costs_time_but_no_data)
{
	run_case(RN_FAULT_CORRUPT, (size_t)_i);
}
END_TEST

START_TEST(a_doubled_frame_changes_nothing)
{
	run_case(RN_FAULT_DUPLICATE, (size_t)_i);
}
END_TEST

START_TEST(an_overtaken_frame_costs_time_but_no_data)
{
	run_case(RN_FAULT_DELAY, (size_t)_i);
}
END_TEST

START_TEST(a_receiver_without_buffers_is_waited_for)
{
	struct rn_scripted_wr wr = {.opcode = RN_WQE_SEND,
				    .flags = RN_WQE_SIGNALED,
				    .va = pair.buffer[0].va,
				    .bytes = BYTES,
				    .lkey = pair.key[0]};
	struct rn_scripted_wc wc;

	rn_scripted_fill(pair.buffer[0].data, BYTES, 1);
	ck_assert_int_eq(rn_scripted_post(pair.qp[0], &wr), RN_POST_OK);
	rn_scripted_ring(pair.qp[0]);
	ck_assert_uint_eq(rn_scripted_wait(pair.cq[0], &wc, 1, 5000000000), 0);
	ck_assert_int_eq(rn_scripted_post_recv(pair.qp[1], 1, pair.buffer[1].va, BYTES,
					       pair.key[1]),
			 RN_POST_OK);
	ck_assert_uint_eq(rn_scripted_wait(pair.cq[0], &wc, 1, 5000000000), 1);
	ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
	rn_scripted_run_for(world.host[0], 10000000);
	ck_assert(rn_scripted_holds(pair.buffer[1].data, BYTES, 1));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("loss");
	const int count = sizeof(cases) / sizeof(cases[0]);

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, a_lost_frame_costs_time_but_no_data, 0, count);
	tcase_add_loop_test(tcase, a_damaged_frame_costs_time_but_no_data, 0, count);
	tcase_add_loop_test(tcase, a_doubled_frame_changes_nothing, 0, count);
	tcase_add_loop_test(tcase, an_overtaken_frame_costs_time_but_no_data, 0, count);
	tcase_add_test(tcase, a_receiver_without_buffers_is_waited_for);
	return run_suite(tcase, "scripted_loss");
}
