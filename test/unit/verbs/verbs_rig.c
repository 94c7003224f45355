#include "verbs_rig.h"

#include <errno.h>
#include <stdlib.h>

void rig_open(struct rig *rig)
{
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	int count;

	rig->max_wr = 16;
	rig->max_sge = 2;
	rig->max_inline = 100;
	rig->list = ibv_get_device_list(&count);
	ck_assert_ptr_nonnull(rig->list);
	ck_assert_int_eq(count, 1);
	rig->context = ibv_open_device(rig->list[0]);
	ck_assert_ptr_nonnull(rig->context);
	rig->pd = ibv_alloc_pd(rig->context);
	rig->channel = ibv_create_comp_channel(rig->context);
	ck_assert_ptr_nonnull(rig->channel);
	for (unsigned i = 0; i < 2; i++) {
		rig->buf[i] = aligned_alloc(4096, RIG_BYTES);
		memset(rig->buf[i], (int)i, RIG_BYTES);
		rig->mr[i] = ibv_reg_mr(rig->pd, rig->buf[i], RIG_BYTES, access);
		ck_assert_ptr_nonnull(rig->mr[i]);
		rig->cq[i] = ibv_create_cq(rig->context, 64, rig, rig->channel, 0);
		ck_assert_ptr_nonnull(rig->cq[i]);
	}
}

void rig_close(struct rig *rig)
{
	for (unsigned i = 0; i < 2; i++) {
		if (rig->qp[i])
			ck_assert_int_eq(ibv_destroy_qp(rig->qp[i]), 0);
		ck_assert_int_eq(ibv_destroy_cq(rig->cq[i]), 0);
		ck_assert_int_eq(ibv_dereg_mr(rig->mr[i]), 0);
		free(rig->buf[i]);
	}
	ck_assert_int_eq(ibv_destroy_comp_channel(rig->channel), 0);
	ck_assert_int_eq(ibv_dealloc_pd(rig->pd), 0);
	ck_assert_int_eq(ibv_close_device(rig->context), 0);
	ibv_free_device_list(rig->list);
}

static struct ibv_qp *make_qp(struct rig *rig, unsigned i, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = rig->cq[i],
		.recv_cq = rig->cq[i],
		.cap = {.max_send_wr = rig->max_wr,
			.max_recv_wr = rig->max_wr,
			.max_send_sge = rig->max_sge,
			.max_recv_sge = rig->max_sge,
			.max_inline_data = rig->max_inline},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = rig->pd,
		.send_ops_flags = ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(rig->context, &attr);

	ck_assert_ptr_nonnull(qp);
	ck_assert_uint_ge(attr.cap.max_send_wr, rig->max_wr);
	ck_assert_uint_ge(attr.cap.max_inline_data, rig->max_inline);
	return qp;
}

int rig_modify(struct rig *rig, unsigned qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state,
				   .port_num = 1,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = rig->qp[1 - qp]->qp_num};
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	if (state == IBV_QPS_RTR)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(rig->qp[qp], &attr, mask);
}

void rig_connect(struct rig *rig, uint64_t ops)
{
	for (unsigned i = 0; i < 2; i++)
		rig->qp[i] = make_qp(rig, i, ops);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_modify(rig, i, IBV_QPS_INIT), 0);
		ck_assert_int_eq(rig_modify(rig, i, IBV_QPS_RTR), 0);
		ck_assert_int_eq(rig_modify(rig, i, IBV_QPS_RTS), 0);
	}
}

int rig_post_send(struct rig *rig, unsigned qp, enum ibv_wr_opcode opcode, uint32_t bytes,
		  unsigned flags, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)rig->buf[qp], bytes, rig->mr[qp]->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = flags,
				 .imm_data = 0x12345678};
	struct ibv_send_wr *bad = NULL;
	int error;

	wr.wr.rdma.remote_addr = (uintptr_t)rig->buf[1 - qp];
	wr.wr.rdma.rkey = rig->mr[1 - qp]->rkey;
	error = ibv_post_send(rig->qp[qp], &wr, &bad);
	ck_assert_ptr_eq(bad, error ? &wr : NULL);
	return error;
}

int rig_post_recv(struct rig *rig, unsigned qp, uint32_t bytes, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)rig->buf[qp], bytes, rig->mr[qp]->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(rig->qp[qp], &wr, &bad);
}

struct ibv_wc rig_poll(struct rig *rig, unsigned qp)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(rig->cq[qp], 1, &wc);
	while (n == 0);
	ck_assert_int_eq(n, 1);
	return wc;
}
