/* The scripted host over two whole NICs: data, events, errors, and that data takes the hardware's way. */
#include <string.h>

#include "driver/qp_state.h"
#include "run_suite.h"
#include "world.h"

#define MS UINT64_C(1000000000)

static struct world world;
static struct link_pair pair;

static void set_up(void)
{
	world_init(&world, 2);
	world_start(&world, NULL);
	world_connect(&world, 0, 1, 1 << 20, &RN_SCRIPTED_PATH, &pair);
}

static void tear_down(void)
{
	world_fini(&world);
}

static struct rn_scripted_wr wr_of(uint8_t opcode, uint32_t bytes)
{
	return (struct rn_scripted_wr){
		.opcode = opcode,
		.va = pair.buffer[0].va,
		.bytes = bytes,
		.lkey = pair.key[0],
		.raddr = pair.buffer[1].va,
		.rkey = pair.key[1],
		.imm_be = 0x11223344,
	};
}

static const uint32_t sizes[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 8192, 65536, 1 << 20};

START_TEST(writes_arrive_whole_in_every_size)
{
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		const struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, sizes[n]);

		rn_scripted_fill(pair.buffer[0].data, pair.buffer[0].bytes, n);
		memset(pair.buffer[1].data, 0xee, pair.buffer[1].bytes);
		ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_SUCCESS);
		rn_scripted_run_for(world.host[0], MS);
		ck_assert(rn_scripted_holds(pair.buffer[1].data, sizes[n], n));
		if (sizes[n] < pair.buffer[1].bytes)
			ck_assert_uint_eq(pair.buffer[1].data[sizes[n]], 0xee);
	}
}
END_TEST

START_TEST(reads_arrive_whole_in_every_size)
{
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		const struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_READ, sizes[n]);

		rn_scripted_fill(pair.buffer[1].data, pair.buffer[1].bytes, n);
		memset(pair.buffer[0].data, 0xee, pair.buffer[0].bytes);
		ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_SUCCESS);
		ck_assert(rn_scripted_holds(pair.buffer[0].data, sizes[n], n));
	}
}
END_TEST

START_TEST(sends_arrive_with_length_and_immediate)
{
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		const struct rn_scripted_wr wr = wr_of(RN_WQE_SEND_IMM, sizes[n]);
		struct rn_scripted_wc wc;

		rn_scripted_fill(pair.buffer[0].data, pair.buffer[0].bytes, n);
		ck_assert_int_eq(rn_scripted_post_recv(pair.qp[1], 77 + n, pair.buffer[1].va,
						       (uint32_t)pair.buffer[1].bytes, pair.key[1]),
				 RN_POST_OK);
		ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_SUCCESS);
		ck_assert_uint_eq(rn_scripted_wait(pair.cq[1], &wc, 1, MS), 1);
		ck_assert_uint_eq(wc.wr_id, 77 + n);
		ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
		ck_assert_uint_eq(wc.byte_len, sizes[n]);
		ck_assert_uint_eq(wc.imm_be, 0x11223344);
		ck_assert(rn_scripted_holds(pair.buffer[1].data, sizes[n], n));
	}
}
END_TEST

START_TEST(inline_data_and_blueflame_arrive)
{
	char text[300];
	struct rn_scripted_wc wc;

	rn_scripted_fill(text, sizeof(text), 5);
	for (uint32_t bytes = 0; bytes <= sizeof(text); bytes += 25) {
		struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, bytes);

		wr.data = text;
		wr.flags = RN_WQE_SIGNALED;
		memset(pair.buffer[1].data, 0, sizeof(text) + 1);
		ck_assert_int_eq(rn_scripted_post(pair.qp[0], &wr), RN_POST_OK);
		rn_scripted_ring_blueflame(pair.qp[0]);
		ck_assert_uint_eq(rn_scripted_wait(pair.cq[0], &wc, 1, MS), 1);
		ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
		rn_scripted_run_for(world.host[0], MS / 100);
		ck_assert_mem_eq(pair.buffer[1].data, text, bytes);
		ck_assert_uint_eq(pair.buffer[1].data[bytes], 0);
	}
}
END_TEST

START_TEST(a_flow_of_each_kind_goes_through)
{
	static const uint8_t opcodes[] = {RN_WQE_SEND, RN_WQE_SEND_IMM, RN_WQE_RDMA_WRITE,
					  RN_WQE_RDMA_WRITE_IMM, RN_WQE_RDMA_READ};

	for (size_t n = 0; n < sizeof(opcodes); n++) {
		struct rn_scripted_flow flow;

		rn_scripted_flow_start(
			&flow, &(struct rn_scripted_flow_spec){.from = pair.qp[0],
							       .to = pair.qp[1],
							       .from_cq = pair.cq[0],
							       .to_cq = pair.cq[1],
							       .opcode = opcodes[n],
							       .bytes = 8192,
							       .depth = 16,
							       .count = 300,
							       .signal_every = 4,
							       .va = pair.buffer[0].va,
							       .lkey = pair.key[0],
							       .remote_va = pair.buffer[1].va,
							       .rkey = pair.key[1],
							       .stride = 8192});
		ck_assert(rn_scripted_flow_run(&flow, RN_SCRIPTED_SECOND_PS));
		rn_scripted_flow_stop(&flow);
		ck_assert_uint_eq(flow.done, 300);
		ck_assert(rn_scripted_flow_bps(&flow) > 1e9);
	}
}
END_TEST

START_TEST(an_armed_cq_raises_one_event)
{
	struct rn_scripted_cq *cq = rn_scripted_cq_new_with_events(world.host[0], 64, 1);
	struct rn_scripted_qp *qp =
		rn_scripted_qp_new(world.host[0], &(struct rn_scripted_qp_spec){.send_cq = cq});
	struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, 64);
	struct rn_scripted_qp *peer = rn_scripted_qp_new(
		world.host[1], &(struct rn_scripted_qp_spec){.send_cq = pair.cq[1]});

	ck_assert(cq && qp && peer);
	ck_assert_int_eq(rn_scripted_connect(qp, peer, &RN_SCRIPTED_PATH), 0);
	wr.flags = RN_WQE_SIGNALED;
	for (int round = 0; round < 3; round++) {
		rn_scripted_arm(cq, false);
		rn_scripted_run_for(world.host[0], MS);
		ck_assert(!rn_scripted_take_event(cq));
		for (int n = 0; n < 4; n++)
			ck_assert_int_eq(rn_scripted_post(qp, &wr), RN_POST_OK);
		rn_scripted_ring(qp);
		rn_scripted_run_for(world.host[0], MS);
		ck_assert(rn_scripted_take_event(cq));
		ck_assert(!rn_scripted_take_event(cq));

		struct rn_scripted_wc wc[8];

		ck_assert_uint_eq(rn_scripted_poll(cq, wc, 8), 4);
	}
	ck_assert_int_eq(rn_scripted_qp_free(qp), 0);
	ck_assert_int_eq(rn_scripted_cq_free(cq), 0);
}
END_TEST

/* --- errors --- */

START_TEST(a_wrong_rkey_gives_a_remote_access_error_and_flushes)
{
	struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, 64);
	struct rn_scripted_wc wc[3];

	wr.flags = RN_WQE_SIGNALED;
	wr.rkey ^= 1;
	for (int n = 0; n < 3; n++)
		ck_assert_int_eq(rn_scripted_post(pair.qp[0], &wr), RN_POST_OK);
	rn_scripted_ring(pair.qp[0]);
	ck_assert_uint_eq(rn_scripted_wait(pair.cq[0], wc, 3, MS), 3);
	ck_assert_uint_eq(wc[0].status, RN_WC_REM_ACCESS_ERR);
	ck_assert_uint_eq(wc[1].status, RN_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc[2].status, RN_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(rn_scripted_state(pair.qp[0]), RN_QPS_ERR);
	ck_assert_uint_eq(rn_scripted_state(pair.qp[1]), RN_QPS_ERR);
}
END_TEST

START_TEST(a_wrong_lkey_gives_a_local_protection_error)
{
	struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, 64);

	wr.lkey ^= 1;
	ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_LOC_PROT_ERR);
}
END_TEST

START_TEST(a_killed_peer_costs_all_retries)
{
	const struct rn_scripted_path path = {.mtu_bytes = 1024,
					      .rd_atomic = 1,
					      .timeout = 8,
					      .retry_cnt = 2,
					      .rnr_retry = 7,
					      .min_rnr_timer = 1};
	struct link_pair doomed;
	struct rn_scripted_wr wr;
	uint64_t start_ps;

	world_connect(&world, 0, 1, 4096, &path, &doomed);
	wr = (struct rn_scripted_wr){.opcode = RN_WQE_RDMA_WRITE,
				     .va = doomed.buffer[0].va,
				     .bytes = 64,
				     .lkey = doomed.key[0],
				     .raddr = doomed.buffer[1].va,
				     .rkey = doomed.key[1]};
	rn_scripted_kill(world.host[1]);
	world.host[1] = NULL;
	rn_scripted_run_for(world.host[0], MS);
	start_ps = rn_scripted_now_ps(world.host[0]);
	ck_assert_uint_eq(world_transfer(&doomed, &wr), RN_WC_RETRY_EXC_ERR);
	/* Three transmissions, each waited for 4.096 us * 2^8 at least. */
	ck_assert_uint_ge(rn_scripted_now_ps(world.host[0]) - start_ps, 3 * UINT64_C(1048576000));
	ck_assert_uint_lt(rn_scripted_now_ps(world.host[0]) - start_ps, 4 * UINT64_C(1048576000));
}
END_TEST

START_TEST(a_reset_qp_can_be_connected_again)
{
	struct rn_uapi_qp_attr attr = {.qp_state = RN_QPS_RESET};
	struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, 64);
	const struct rn_scripted_wr good = wr;

	wr.rkey ^= 1;
	ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_REM_ACCESS_ERR);
	for (int n = 0; n < 2; n++) {
		ck_assert_int_eq(rn_scripted_modify(pair.qp[n], RN_QP_STATE, &attr), 0);
		ck_assert_uint_eq(rn_scripted_state(pair.qp[n]), RN_QPS_RESET);
	}
	ck_assert_int_eq(rn_scripted_connect(pair.qp[0], pair.qp[1], &RN_SCRIPTED_PATH), 0);
	ck_assert_uint_eq(world_transfer(&pair, &good), RN_WC_SUCCESS);
}
END_TEST

/* --- the hardware's way --- */

static void swap_u64(uint64_t *a, uint64_t *b)
{
	const uint64_t value = *a;

	*a = *b;
	*b = value;
}

START_TEST(mtt_entries_swapped_while_cold_put_the_data_elsewhere)
{
	struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, 4096);
	uint64_t *first = rn_scripted_mtt(world.host[1], pair.key[1], 0);
	uint64_t *second = rn_scripted_mtt(world.host[1], pair.key[1], 1);

	rn_scripted_fill(pair.buffer[0].data, 4096, 9);
	memset(pair.buffer[1].data, 0, 8192);
	ck_assert(first && second);
	swap_u64(first, second);
	ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_SUCCESS);
	rn_scripted_run_for(world.host[0], MS / 100);
	ck_assert(rn_scripted_holds(pair.buffer[1].data + 4096, 4096, 9));
	ck_assert(!rn_scripted_holds(pair.buffer[1].data, 4096, 9));
	/* Warm: swapping back changes nothing until the key is invalidated. */
	swap_u64(first, second);
	memset(pair.buffer[1].data, 0, 8192);
	ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_SUCCESS);
	rn_scripted_run_for(world.host[0], MS / 100);
	ck_assert(rn_scripted_holds(pair.buffer[1].data + 4096, 4096, 9));
	ck_assert_int_eq(rn_scripted_dereg_mr(world.host[1], pair.key[1]), 0);
	ck_assert_int_eq(rn_scripted_reg_mr(world.host[1], pair.buffer[1].va, 8192, 7, &wr.rkey),
			 0);
	memset(pair.buffer[1].data, 0, 8192);
	ck_assert_uint_eq(world_transfer(&pair, &wr), RN_WC_SUCCESS);
	rn_scripted_run_for(world.host[0], MS / 100);
	ck_assert(rn_scripted_holds(pair.buffer[1].data, 4096, 9));
}
END_TEST

START_TEST(a_wqe_changed_between_doorbell_and_fetch_takes_effect)
{
	struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, 64);
	struct rn_scripted_wc wc;
	struct rn_hw_wqe_raddr *raddr;

	wr.flags = RN_WQE_SIGNALED;
	rn_scripted_fill(pair.buffer[0].data, 64, 4);
	ck_assert_int_eq(rn_scripted_post(pair.qp[0], &wr), RN_POST_OK);
	rn_scripted_ring(pair.qp[0]);
	raddr = (void *)((uint8_t *)rn_scripted_wqebb(pair.qp[0], 0) +
			 sizeof(struct rn_hw_wqe_ctrl));
	raddr->va += 0x3000;
	ck_assert_uint_eq(rn_scripted_wait(pair.cq[0], &wc, 1, MS), 1);
	rn_scripted_run_for(world.host[0], MS / 100);
	ck_assert(rn_scripted_holds(pair.buffer[1].data + 0x3000, 64, 4));
	ck_assert(!rn_scripted_holds(pair.buffer[1].data, 64, 4));
}
END_TEST

START_TEST(a_doorbell_rung_at_a_time_is_not_seen_before)
{
	struct rn_scripted_wr wr = wr_of(RN_WQE_RDMA_WRITE, 64);
	const uint64_t at_ps = rn_scripted_now_ps(world.host[0]) + 5 * MS;
	struct rn_scripted_wc wc;

	wr.flags = RN_WQE_SIGNALED;
	ck_assert_int_eq(rn_scripted_post(pair.qp[0], &wr), RN_POST_OK);
	rn_scripted_ring_at(pair.qp[0], at_ps);
	ck_assert_uint_eq(rn_scripted_wait(pair.cq[0], &wc, 1, 5 * MS), 0);
	ck_assert_uint_eq(rn_scripted_wait(pair.cq[0], &wc, 1, MS), 1);
	ck_assert_uint_gt(wc.made_ps, at_ps);
}
END_TEST

/* --- order --- */

static uint64_t end_of_a_flow(uint64_t permute_seed)
{
	struct world other;
	struct link_pair link;
	struct rn_scripted_flow flow;
	uint64_t end_ps;

	world_init(&other, 2);
	world_start(&other, &(struct rn_system_options){.permute_seed = permute_seed});
	world_connect(&other, 0, 1, 1 << 18, &RN_SCRIPTED_PATH, &link);
	rn_scripted_flow_start(&flow,
			       &(struct rn_scripted_flow_spec){.from = link.qp[0],
							       .to = link.qp[1],
							       .from_cq = link.cq[0],
							       .to_cq = link.cq[1],
							       .opcode = RN_WQE_SEND,
							       .bytes = 10000,
							       .depth = 8,
							       .count = 60,
							       .va = link.buffer[0].va,
							       .lkey = link.key[0],
							       .remote_va = link.buffer[1].va,
							       .rkey = link.key[1],
							       .stride = 16384});
	ck_assert(rn_scripted_flow_run(&flow, RN_SCRIPTED_SECOND_PS));
	rn_scripted_flow_stop(&flow);
	end_ps = flow.end_ps;
	world_fini(&other);
	return end_ps;
}

START_TEST(the_order_of_wakes_changes_no_time)
{
	const uint64_t end_ps = end_of_a_flow(0);

	for (uint64_t seed = 1; seed <= 3; seed++)
		ck_assert_uint_eq(end_of_a_flow(seed), end_ps);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("scripted");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, writes_arrive_whole_in_every_size);
	tcase_add_test(tcase, reads_arrive_whole_in_every_size);
	tcase_add_test(tcase, sends_arrive_with_length_and_immediate);
	tcase_add_test(tcase, inline_data_and_blueflame_arrive);
	tcase_add_test(tcase, a_flow_of_each_kind_goes_through);
	tcase_add_test(tcase, an_armed_cq_raises_one_event);
	tcase_add_test(tcase, a_wrong_rkey_gives_a_remote_access_error_and_flushes);
	tcase_add_test(tcase, a_wrong_lkey_gives_a_local_protection_error);
	tcase_add_test(tcase, a_killed_peer_costs_all_retries);
	tcase_add_test(tcase, a_reset_qp_can_be_connected_again);
	tcase_add_test(tcase, mtt_entries_swapped_while_cold_put_the_data_elsewhere);
	tcase_add_test(tcase, a_wqe_changed_between_doorbell_and_fetch_takes_effect);
	tcase_add_test(tcase, a_doorbell_rung_at_a_time_is_not_seen_before);
	tcase_add_test(tcase, the_order_of_wakes_changes_no_time);
	return run_suite(tcase, "scripted");
}
