/* The verbs API over a simulator that models nothing: objects, data path, errors, death, fork. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_suite.h"
#include "verbs_rig.h"

/* Exported, but declared in no installed header. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static struct rig rig;

static void start(void)
{
	static const struct fake_sim_options options;

	fake_sim_start(&options);
	rig_open(&rig);
}

static void stop(void)
{
	rig_close(&rig);
	fake_sim_stop();
}

START_TEST(outside_a_run_there_is_no_device)
{
	int count = 7;

	unsetenv("RNICSIM_SOCKET");
	errno = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	ck_assert_int_eq(count, 0);
	if (list)
		ck_assert_ptr_null(list[0]);
	else
		ck_assert_int_eq(errno, ENOSYS);
}
END_TEST

START_TEST(device_and_port_say_what_the_driver_says)
{
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_gid_entry entry;
	char board[32];

	ck_assert_str_eq(ibv_get_device_name(rig.list[0]), "rnicsim0");
	ck_assert_int_eq(rig.list[0]->node_type, IBV_NODE_CA);
	ck_assert_int_eq(ibv_query_device(rig.context, &attr), 0);
	ck_assert_int_eq(ibv_query_device_ex(rig.context, NULL, &ex), 0);
	ck_assert_mem_eq(&ex.orig_attr, &attr, sizeof(attr));
	ck_assert_int_eq(ibv_query_port(rig.context, 1, &port), 0);
	ck_assert_int_eq(port.state, IBV_PORT_ACTIVE);
	ck_assert_int_eq(ibv_query_port(rig.context, 2, &port), EINVAL);
	ck_assert_int_eq(ibv_query_gid(rig.context, 1, 0, &gid), 0);
	ck_assert_uint_eq(gid.raw[12], 10);
	ck_assert_int_eq(ibv_query_gid(rig.context, 1, 9, &gid), 0);
	ck_assert_uint_eq(gid.global.interface_id, 0);
	ck_assert_int_eq(ibv_query_gid(rig.context, 1, 16, &gid), -1);
	ck_assert_int_eq(ibv_query_gid_ex(rig.context, 1, 1, &entry, 0), 0);
	ck_assert_int_eq(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	ck_assert_int_eq(ibv_query_gid_ex(rig.context, 1, 9, &entry, 0), ENODATA);
	ck_assert_int_eq(ibv_query_gid_ex(rig.context, 1, 16, &entry, 0), EINVAL);
	ck_assert_int_eq(ibv_query_gid_table(rig.context, &entry, 1, 0), -EINVAL);
	ck_assert_int_gt(ibv_read_sysfs_file(rig.list[0]->ibdev_path, "board_id", board, 32), 0);
	ck_assert_str_eq(board, "FAKE");
}
END_TEST

START_TEST(a_legacy_caller_gets_no_more_bytes_than_it_has_room_for)
{
	struct ibv_port_attr port[2];
	struct verbs_context *verbs = verbs_get_ctx_op(rig.context, query_port);

	memset(port, 0x55, sizeof(port));
	ck_assert_int_eq(verbs->query_port(rig.context, 1, port, 48), 0);
	ck_assert_uint_eq(((uint8_t *)port)[48], 0x55);
	ck_assert_int_eq(port[0].state, IBV_PORT_ACTIVE);
}
END_TEST

static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
					     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

START_TEST(every_operation_moves_its_bytes_and_completes_as_itself)
{
	const enum ibv_wr_opcode opcode = opcodes[_i];
	const bool read = opcode == IBV_WR_RDMA_READ;
	const bool receives = opcode != IBV_WR_RDMA_WRITE && !read;
	struct ibv_wc wc;

	rig_connect(&rig, 0);
	rig_post_recv(&rig, 1, RIG_BYTES, 77);
	rig.buf[read ? 1 : 0][5000] = 99;
	ck_assert_int_eq(rig_post_send(&rig, 0, opcode, 10000, IBV_SEND_SIGNALED, 55), 0);
	wc = rig_poll(&rig, 0);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 55);
	ck_assert_uint_eq(wc.qp_num, rig.qp[0]->qp_num);
	ck_assert_int_eq(wc.opcode, read ? IBV_WC_RDMA_READ
				    : receives && opcode != IBV_WR_RDMA_WRITE_WITH_IMM
					    ? IBV_WC_SEND
					    : IBV_WC_RDMA_WRITE);
	ck_assert_uint_eq(rig.buf[read ? 0 : 1][5000], 99);
	if (!receives)
		return;
	wc = rig_poll(&rig, 1);
	ck_assert_uint_eq(wc.wr_id, 77);
	ck_assert_int_eq(wc.opcode, opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
									 : IBV_WC_RECV);
	ck_assert_uint_eq(wc.byte_len, 10000);
	if (opcode != IBV_WR_SEND) {
		ck_assert(wc.wc_flags & IBV_WC_WITH_IMM);
		ck_assert_uint_eq(wc.imm_data, 0x12345678);
	}
}
END_TEST

START_TEST(posting_is_refused_where_the_state_forbids_it)
{
	rig_connect(&rig, 0);
	ck_assert_int_eq(rig_modify(&rig, 0, IBV_QPS_RESET), 0);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_SEND, 1, 0, 0), EINVAL);
	ck_assert_int_eq(rig_post_recv(&rig, 0, 1, 0), EINVAL);
	rig_modify(&rig, 0, IBV_QPS_INIT);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_SEND, 1, 0, 0), EINVAL);
	ck_assert_int_eq(rig_post_recv(&rig, 0, 1, 0), 0);
	rig_modify(&rig, 0, IBV_QPS_RTR);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_SEND, 1, 0, 0), EINVAL);
	rig_modify(&rig, 0, IBV_QPS_RTS);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 1, 0, 0), 0);
}
END_TEST

START_TEST(requests_beyond_the_capabilities_are_refused)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sges[16] = {{0}};
	struct ibv_send_wr wr = {.sg_list = sges, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr recv = {.sg_list = sges}, *bad_recv;

	rig_connect(&rig, 0);
	ck_assert_int_eq(ibv_query_qp(rig.qp[0], &attr, IBV_QP_CAP, &init), 0);
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	ck_assert_int_eq(ibv_post_send(rig.qp[0], &wr, &bad), EINVAL);
	recv.num_sge = (int)init.cap.max_recv_sge + 1;
	ck_assert_int_eq(ibv_post_recv(rig.qp[0], &recv, &bad_recv), EINVAL);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_SEND, init.cap.max_inline_data + 1,
				       IBV_SEND_INLINE, 0),
			 EINVAL);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_READ, 8, IBV_SEND_INLINE, 0), EINVAL);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0), EOPNOTSUPP);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_LOCAL_INV, 8, 0, 0), EOPNOTSUPP);
	ck_assert_int_eq(rig_post_send(&rig, 0, (enum ibv_wr_opcode)99, 8, 0, 0), EINVAL);
}
END_TEST

#define REQUESTS 40u

START_TEST(a_full_queue_names_the_first_request_it_did_not_take)
{
	struct ibv_sge sge = {(uintptr_t)rig.buf[0], 8, rig.mr[0]->lkey};
	struct ibv_send_wr wr[REQUESTS], *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	rig_connect(&rig, 0);
	ibv_query_qp(rig.qp[0], &attr, IBV_QP_CAP, &init);
	ck_assert_uint_lt(init.cap.max_send_wr, REQUESTS);
	for (unsigned i = 0; i < REQUESTS; i++) {
		wr[i] = (struct ibv_send_wr){.wr_id = i,
					     .next = i + 1 < REQUESTS ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = IBV_SEND_SIGNALED};
		wr[i].wr.rdma.remote_addr = (uintptr_t)rig.buf[1];
		wr[i].wr.rdma.rkey = rig.mr[1]->rkey;
	}
	ck_assert_int_eq(ibv_post_send(rig.qp[0], wr, &bad), ENOMEM);
	ck_assert_ptr_eq(bad, &wr[init.cap.max_send_wr]);
	for (unsigned i = 0; i < init.cap.max_send_wr; i++)
		ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, i);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 40), 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 40);
}
END_TEST

START_TEST(inline_data_is_taken_at_once)
{
	rig_connect(&rig, 0);
	for (unsigned i = 0; i < 100; i++) {
		memset(rig.buf[0], (int)i, 100);
		ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 100,
					       IBV_SEND_INLINE | IBV_SEND_SIGNALED, i),
				 0);
		memset(rig.buf[0], 0xee, 100);
		ck_assert_int_eq(rig_poll(&rig, 0).status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(rig.buf[1][99], i);
	}
}
END_TEST

START_TEST(after_an_error_everything_is_flushed_in_order)
{
	struct ibv_wc wc;

	rig_connect(&rig, 0);
	for (unsigned i = 0; i < 3; i++)
		rig_post_recv(&rig, 0, 100, 10 + i);
	rig.mr[1]->rkey ^= 0xff00;
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, 0, 1), 0);
	wc = rig_poll(&rig, 0);
	ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
	ck_assert_uint_eq(wc.wr_id, 1);
	for (unsigned i = 0; i < 3; i++) {
		wc = rig_poll(&rig, 0);
		ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.wr_id, 10 + i);
	}
	/* Posted in error: flushed as well, receives too. */
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_SEND, 8, 0, 2), 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 2);
	ck_assert_int_eq(rig_post_recv(&rig, 0, 8, 3), 0);
	wc = rig_poll(&rig, 0);
	ck_assert_uint_eq(wc.wr_id, 3);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	rig.mr[1]->rkey ^= 0xff00;
}
END_TEST

START_TEST(a_reset_qp_starts_afresh_and_its_completions_are_gone)
{
	rig_connect(&rig, 0);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, i),
				 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 0);
	ck_assert_int_eq(rig_modify(&rig, 0, IBV_QPS_RESET), 0);
	rig_modify(&rig, 0, IBV_QPS_INIT);
	rig_modify(&rig, 0, IBV_QPS_RTR);
	rig_modify(&rig, 0, IBV_QPS_RTS);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 9), 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 9);
}
END_TEST

START_TEST(completions_of_a_destroyed_qp_are_not_seen)
{
	struct ibv_wc wc;

	rig_connect(&rig, 0);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 1);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 2);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 1);
	ck_assert_int_eq(ibv_destroy_qp(rig.qp[0]), 0);
	rig.qp[0] = NULL;
	ck_assert_int_eq(ibv_poll_cq(rig.cq[0], 1, &wc), 0);
}
END_TEST

START_TEST(an_armed_queue_raises_one_event)
{
	struct pollfd pfd = {.fd = rig.channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	rig_connect(&rig, 0);
	ck_assert_int_eq(ibv_req_notify_cq(rig.cq[0], 0), 0);
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 1);
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), 0);
	ck_assert_ptr_eq(cq, rig.cq[0]);
	ck_assert_ptr_eq(context, &rig);
	/* Armed again before the poll: the same completion raises no second event. */
	ck_assert_int_eq(ibv_req_notify_cq(rig.cq[0], 0), 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 1);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 2);
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 2);
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	ck_assert_int_eq(fcntl(rig.channel->fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ibv_ack_cq_events(rig.cq[0], 2);
	ck_assert_int_eq(ibv_destroy_comp_channel(rig.channel), EBUSY);
}
END_TEST

static void *destroy_cq(void *cq)
{
	return (void *)(intptr_t)ibv_destroy_cq(cq);
}

START_TEST(destroying_waits_for_acknowledgements)
{
	struct ibv_cq *extra = ibv_create_cq(rig.context, 10, NULL, rig.channel, 0), *cq;
	struct ibv_cq *kept = rig.cq[0];
	pthread_t thread;
	void *context, *result;

	rig.cq[0] = extra;
	rig_connect(&rig, 0);
	ibv_req_notify_cq(extra, 0);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 1);
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), 0);
	ibv_destroy_qp(rig.qp[0]);
	rig.qp[0] = NULL;
	rig.cq[0] = kept;
	pthread_create(&thread, NULL, destroy_cq, extra);
	/* It has not ended, however much the simulator has done meanwhile: the event is not acknowledged. */
	for (unsigned i = 0; i < 200; i++) {
		ck_assert_int_eq(rig_post_send(&rig, 1, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, i),
				 0);
		rig_poll(&rig, 1);
		ck_assert_int_eq(pthread_tryjoin_np(thread, &result), EBUSY);
	}
	ibv_ack_cq_events(extra, 1);
	pthread_join(thread, &result);
	ck_assert_ptr_null(result);
}
END_TEST

START_TEST(an_event_of_a_queue_that_is_gone_is_passed_over)
{
	struct ibv_cq *extra = ibv_create_cq(rig.context, 10, NULL, rig.channel, 0), *cq;
	struct ibv_cq *kept = rig.cq[0];
	void *context;

	rig.cq[0] = extra;
	rig_connect(&rig, 0);
	ibv_req_notify_cq(extra, 0);
	ibv_req_notify_cq(rig.cq[1], 0);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 1);
	rig_poll(&rig, 0);
	ibv_destroy_qp(rig.qp[0]);
	rig.qp[0] = NULL;
	rig.cq[0] = kept;
	ck_assert_int_eq(ibv_destroy_cq(extra), 0);
	/* The peer has lost its QP: its request fails, which is an event too. */
	rig_post_send(&rig, 1, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 2);
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), 0);
	ck_assert_ptr_eq(cq, rig.cq[1]);
	ibv_ack_cq_events(cq, 1);
}
END_TEST

#define ALL_OPS                                                                                    \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |    \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ)

START_TEST(extended_requests_go_out_together_or_not_at_all)
{
	struct ibv_qp_ex *ex;

	rig_connect(&rig, ALL_OPS);
	ex = ibv_qp_to_qp_ex(rig.qp[0]);
	ck_assert_ptr_nonnull(ex);
	ibv_wr_start(ex);
	for (unsigned i = 0; i < 3; i++) {
		ex->wr_id = i;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, rig.mr[1]->rkey, (uintptr_t)rig.buf[1] + i);
		ibv_wr_set_inline_data(ex, &(uint8_t){(uint8_t)(0xa0 + i)}, 1);
	}
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, i);
	ck_assert_mem_eq(rig.buf[1], "\xa0\xa1\xa2", 3);
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ibv_wr_rdma_write(ex, rig.mr[1]->rkey, (uintptr_t)rig.buf[1]);
	ibv_wr_set_sge(ex, rig.mr[0]->lkey, (uintptr_t)rig.buf[0], 8);
	ibv_wr_rdma_write(ex, rig.mr[1]->rkey, (uintptr_t)rig.buf[1]);
	ibv_wr_set_inline_data(ex, rig.buf[0], 5000);
	ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 0, NULL);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	ex->wr_id = 6;
	ibv_wr_rdma_read(ex, rig.mr[1]->rkey, (uintptr_t)rig.buf[1]);
	ibv_wr_set_sge(ex, rig.mr[0]->lkey, (uintptr_t)rig.buf[0], 3);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 6);
	ck_assert_mem_eq(rig.buf[0], "\xa0\xa1\xa2", 3);
}
END_TEST

START_TEST(unsupported_kinds_fail_cleanly)
{
	struct ibv_qp_init_attr_ex attr = {.send_cq = rig.cq[0],
					   .recv_cq = rig.cq[0],
					   .cap = {1, 1, 1, 1, 0},
					   .qp_type = IBV_QPT_RC,
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .pd = rig.pd,
					   .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1}};

	ck_assert_ptr_null(ibv_create_qp_ex(rig.context, &attr));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	attr.send_ops_flags = 0;
	attr.qp_type = IBV_QPT_UD;
	ck_assert_ptr_null(ibv_create_qp_ex(rig.context, &attr));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_ptr_null(ibv_create_srq(rig.pd, &srq));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_ptr_null(ibv_alloc_mw(rig.pd, IBV_MW_TYPE_1));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_ptr_null(ibv_alloc_td(rig.context, NULL));
	ck_assert_ptr_null(ibv_open_xrcd(rig.context, NULL));
	ck_assert_int_eq(ibv_resize_cq(rig.cq[0], 100), EOPNOTSUPP);
	ck_assert_ptr_null(ibv_create_cq(rig.context, 0, NULL, NULL, 0));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_create_cq(rig.context, 10, NULL, NULL, 1));
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(registration_checks_access_and_ignores_optional_bits)
{
	struct ibv_mr *mr = ibv_reg_mr_iova2(rig.pd, rig.buf[0], 100, 0x5000, 0x100003);

	ck_assert_ptr_nonnull(mr);
	ck_assert_ptr_eq(mr->addr, rig.buf[0]);
	ck_assert_uint_eq(mr->length, 100);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, rig.buf[0], 100, IBV_ACCESS_REMOTE_WRITE));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, (void *)0x1000, 100, IBV_ACCESS_LOCAL_WRITE));
	ck_assert_int_eq(errno, EFAULT);
}
END_TEST

/* ib_check_mr_access of Linux, written down again: what registration with @access leaves in errno, 0 for a region. */
static int linux_access_error(unsigned access)
{
	const unsigned remote_write = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	if ((access & remote_write) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (access >> 10)
		return EINVAL;
	return access & (IBV_ACCESS_ON_DEMAND | 0x300) ? EOPNOTSUPP : 0;
}

START_TEST(every_combination_of_access_bits_is_answered_as_by_linux)
{
	const unsigned extra[] = {
		0, IBV_ACCESS_RELAXED_ORDERING, 1u << 8, 1u << 9, 1u << 10, 1u << 19, 1u << 30};

	for (unsigned n = 0; n < sizeof(extra) / sizeof(extra[0]); n++)
		for (unsigned bits = 0; bits < 0x100; bits++) {
			const unsigned access = bits | extra[n];
			const int expected = linux_access_error(access);
			struct ibv_mr *mr = ibv_reg_mr_iova2(rig.pd, rig.buf[0], 100,
							     (uintptr_t)rig.buf[0], access);

			ck_assert_msg(!mr == !!expected, "access 0x%x", access);
			if (mr)
				ck_assert_int_eq(ibv_dereg_mr(mr), 0);
			else
				ck_assert_int_eq(errno, expected);
		}
}
END_TEST

START_TEST(ranges_that_are_none_and_memory_that_may_not_be_written_are_refused)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	ck_assert_ptr_null(ibv_reg_mr(rig.pd, rig.buf[0], 0, IBV_ACCESS_LOCAL_WRITE));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, rig.buf[0], SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE));
	ck_assert_int_eq(errno, EFAULT);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, page, 4096, IBV_ACCESS_MW_BIND));
	ck_assert_int_eq(errno, EFAULT);
	mr = ibv_reg_mr(rig.pd, page, 4096, IBV_ACCESS_REMOTE_READ);
	ck_assert_ptr_nonnull(mr);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

/* rdma-core's verbs are system calls: what fails leaves its error in errno, and what succeeds leaves errno alone. */
START_TEST(a_verb_that_fails_leaves_its_error_in_errno)
{
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_srq *srq = NULL;
	struct ibv_wc wc;

	rig_connect(&rig, 0);
	rig_modify(&rig, 0, IBV_QPS_RESET);
#define LEAVES(error, call)                                                                        \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq(call, error);                                                     \
		ck_assert_int_eq(errno, error);                                                    \
	} while (0)
	LEAVES(EINVAL, ibv_query_port(rig.context, 2, &port));
	LEAVES(EINVAL, ibv_query_gid_ex(rig.context, 1, 16, &entry, 0));
	LEAVES(ENODATA, ibv_query_gid_ex(rig.context, 1, 9, &entry, 0));
	LEAVES(EOPNOTSUPP, ibv_query_gid_ex(rig.context, 1, 0, &entry, 1));
	LEAVES(EOPNOTSUPP, ibv_resize_cq(rig.cq[0], 100));
	LEAVES(EOPNOTSUPP, ibv_modify_qp(rig.qp[0], &attr, IBV_QP_ALT_PATH));
	LEAVES(EOPNOTSUPP, ibv_destroy_srq(srq));
	LEAVES(EOPNOTSUPP, ibv_attach_mcast(rig.qp[0], &(union ibv_gid){{0}}, 0));
	LEAVES(EINVAL, rig_post_send(&rig, 0, IBV_WR_SEND, 1, 0, 0));
	LEAVES(EINVAL, rig_post_recv(&rig, 0, 1, 0));
	LEAVES(EBUSY, ibv_destroy_comp_channel(rig.channel));
	errno = 77;
	ck_assert_int_eq(ibv_query_port(rig.context, 1, &port), 0);
	ck_assert_int_eq(rig_modify(&rig, 0, IBV_QPS_INIT), 0);
	ck_assert_int_eq(ibv_poll_cq(rig.cq[0], 1, &wc), 0);
	ck_assert_int_eq(ibv_req_notify_cq(rig.cq[0], 0), 0);
	ck_assert_int_eq(ibv_dereg_mr(ibv_reg_mr(rig.pd, rig.buf[0], 100, 0)), 0);
	ck_assert_int_eq(errno, 77);
	fake_sim_kill();
	while (ibv_poll_cq(rig.cq[0], 1, &wc) == 0)
		;
	LEAVES(EIO, ibv_query_port(rig.context, 1, &port));
	LEAVES(EIO, ibv_req_notify_cq(rig.cq[0], 0));
	errno = 0;
	ck_assert_int_eq(ibv_poll_cq(rig.cq[0], 1, &wc), -1);
	ck_assert_int_eq(errno, EIO);
#undef LEAVES
}
END_TEST

START_TEST(the_clock_is_told_in_ticks_and_as_wall_time)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_cq_init_attr_ex init = {
		.cqe = 10,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_device_attr_ex ex;
	struct ibv_cq_ex *cq;

	ck_assert_int_eq(ibv_query_device_ex(rig.context, NULL, &ex), 0);
	ck_assert_uint_eq(ex.hca_core_clock, 400000); /* kHz */
	ck_assert_uint_ne(ex.completion_timestamp_mask, 0);
	ck_assert_int_eq(ibv_query_rt_values_ex(rig.context, &values), 0);
	ck_assert_int_eq(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	ck_assert_int_eq(values.raw_clock.tv_sec, 0);
	ck_assert_int_eq(values.raw_clock.tv_nsec, (long)(FAKE_CLOCK_PS / 1000 * 400 / 1000));
	values.comp_mask = 2;
	ck_assert_int_eq(ibv_query_rt_values_ex(rig.context, &values), EINVAL);
	cq = ibv_create_cq_ex(rig.context, &init);
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}
END_TEST

/* What memory of rings costs does not grow with their number. */
START_TEST(rings_share_what_is_pinned)
{
	enum { COUNT = 200 };
	struct ibv_cq *cq[COUNT];
	const unsigned before = fake_sim_pinned_pages();
	unsigned grown;

	for (unsigned n = 0; n < COUNT; n++)
		cq[n] = ibv_create_cq(rig.context, 16, NULL, NULL, 0);
	grown = fake_sim_pinned_pages() - before;
	ck_assert_uint_ge(grown, COUNT);
	ck_assert_uint_le(grown, COUNT * 3 / 2); /* a page each; records share theirs */
	for (unsigned n = 0; n < COUNT; n++) {
		ck_assert_ptr_nonnull(cq[n]);
		ck_assert_int_eq(ibv_destroy_cq(cq[n]), 0);
	}
	ck_assert_uint_eq(fake_sim_pinned_pages(), before);
}
END_TEST

START_TEST(when_the_simulator_dies_nothing_hangs_and_everything_fails)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	struct ibv_port_attr port;
	void *context;
	int n;

	rig_connect(&rig, 0);
	fake_sim_kill();
	do
		n = ibv_poll_cq(rig.cq[0], 1, &wc);
	while (n == 0);
	ck_assert_int_eq(n, -1);
	ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_SEND, 8, 0, 0), EIO);
	ck_assert_int_eq(rig_post_recv(&rig, 0, 8, 0), EIO);
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), -1);
	ck_assert_int_eq(errno, EIO);
	ck_assert_int_eq(ibv_query_port(rig.context, 1, &port), EIO);
	ck_assert_ptr_null(ibv_alloc_pd(rig.context));
	ck_assert_int_eq(errno, EIO);
	/* Destroying frees the memory; the fixture does it. */
}
END_TEST

START_TEST(posting_into_the_void_ends)
{
	int error = 0;

	rig.max_wr = 4096;
	rig_connect(&rig, 0);
	fake_sim_kill();
	/* More than the channel holds. */
	for (unsigned i = 0; i < 4096 && !error; i++)
		error = rig_post_send(&rig, 0, IBV_WR_SEND, 8, 0, 0);
	ck_assert_int_eq(error, EIO);
}
END_TEST

static int use_parents_objects(void)
{
	struct ibv_wc wc;
	struct ibv_recv_wr recv = {0}, *bad;

	if (ibv_poll_cq(rig.cq[0], 1, &wc) != -1)
		return 1;
	if (rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, 0, 0) != EIO)
		return 2;
	if (ibv_post_recv(rig.qp[0], &recv, &bad) != EIO)
		return 3;
	if (ibv_destroy_qp(rig.qp[0]) || ibv_dereg_mr(rig.mr[0]) || ibv_close_device(rig.context))
		return 4;
	return 0;
}

START_TEST(a_childs_objects_are_dead_and_the_parents_live_on)
{
	int status;
	pid_t child;

	rig_connect(&rig, 0);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 1);
	child = fork();
	if (child == 0)
		_exit(use_parents_objects());
	waitpid(child, &status, 0);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 1);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 2);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 2);
}
END_TEST

#define THREADS 3
#define PER_THREAD 3000u

static void *post_and_poll(void *arg)
{
	unsigned *polled = arg;
	struct ibv_wc wc[4];

	for (unsigned i = 0; i < PER_THREAD;) {
		int n;

		if (rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 0) == 0)
			i++;
		n = ibv_poll_cq(rig.cq[0], 4, wc);
		ck_assert_int_ge(n, 0);
		*polled += (unsigned)n;
	}
	return NULL;
}

START_TEST(threads_share_a_queue_pair_and_a_completion_queue)
{
	unsigned polled[THREADS] = {0}, total = 0;
	pthread_t thread[THREADS];

	rig_connect(&rig, 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, post_and_poll, &polled[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		total += polled[i];
	}
	while (total < THREADS * PER_THREAD) {
		rig_poll(&rig, 0);
		total++;
	}
}
END_TEST

START_TEST(contexts_of_a_process_share_its_connection)
{
	struct ibv_context *second = ibv_open_device(rig.list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(second);

	ck_assert_ptr_nonnull(pd);
	ck_assert_int_ne(second->async_fd, rig.context->async_fd);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_close_device(second), 0);
	rig_connect(&rig, 0);
	rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED, 2);
	ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, 2);
}
END_TEST

START_TEST(blueflame_and_doorbell_say_the_same)
{
	static const struct fake_sim_options options = {.blueflame = true};

	rig_close(&rig);
	fake_sim_stop();
	fake_sim_start(&options);
	rig_open(&rig);
	rig_connect(&rig, 0);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(rig_post_send(&rig, 0, IBV_WR_RDMA_WRITE, i % 101,
					       (i & 1 ? IBV_SEND_INLINE : 0) | IBV_SEND_SIGNALED,
					       i),
				 0);
		ck_assert_uint_eq(rig_poll(&rig, 0).wr_id, i);
	}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("verbs");

	tcase_add_checked_fixture(tc, start, stop);
	tcase_add_test(tc, device_and_port_say_what_the_driver_says);
	tcase_add_test(tc, a_legacy_caller_gets_no_more_bytes_than_it_has_room_for);
	tcase_add_loop_test(tc, every_operation_moves_its_bytes_and_completes_as_itself, 0, 5);
	tcase_add_test(tc, posting_is_refused_where_the_state_forbids_it);
	tcase_add_test(tc, requests_beyond_the_capabilities_are_refused);
	tcase_add_test(tc, a_full_queue_names_the_first_request_it_did_not_take);
	tcase_add_test(tc, inline_data_is_taken_at_once);
	tcase_add_test(tc, after_an_error_everything_is_flushed_in_order);
	tcase_add_test(tc, a_reset_qp_starts_afresh_and_its_completions_are_gone);
	tcase_add_test(tc, completions_of_a_destroyed_qp_are_not_seen);
	tcase_add_test(tc, an_armed_queue_raises_one_event);
	tcase_add_test(tc, destroying_waits_for_acknowledgements);
	tcase_add_test(tc, an_event_of_a_queue_that_is_gone_is_passed_over);
	tcase_add_test(tc, extended_requests_go_out_together_or_not_at_all);
	tcase_add_test(tc, unsupported_kinds_fail_cleanly);
	tcase_add_test(tc, registration_checks_access_and_ignores_optional_bits);
	tcase_add_test(tc, every_combination_of_access_bits_is_answered_as_by_linux);
	tcase_add_test(tc, ranges_that_are_none_and_memory_that_may_not_be_written_are_refused);
	tcase_add_test(tc, a_verb_that_fails_leaves_its_error_in_errno);
	tcase_add_test(tc, the_clock_is_told_in_ticks_and_as_wall_time);
	tcase_add_test(tc, rings_share_what_is_pinned);
	tcase_add_test(tc, when_the_simulator_dies_nothing_hangs_and_everything_fails);
	tcase_add_test(tc, posting_into_the_void_ends);
	tcase_add_test(tc, a_childs_objects_are_dead_and_the_parents_live_on);
	tcase_add_test(tc, threads_share_a_queue_pair_and_a_completion_queue);
	tcase_add_test(tc, contexts_of_a_process_share_its_connection);
	tcase_add_test(tc, blueflame_and_doorbell_say_the_same);
	tcase_add_test(tc, outside_a_run_there_is_no_device);
	return run_suite(tc, "verbs");
}
