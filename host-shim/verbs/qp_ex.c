/*
 * The extended posting interface: ibv_wr_start, then per request an operation and its data, then
 * ibv_wr_complete, which announces all or, after any mistake, none.
 *
 * A request is built when its data is set, since inline data must be copied then; one whose data never is set carries
 * none.
 */
#include <errno.h>

#include "verbs/objects.h"

#define MAX_SGES 64u

static struct rn_verbs_qp *of(struct ibv_qp_ex *ex)
{
	return rn_qp_of(&ex->qp_base);
}

static void set_error(struct rn_verbs_qp *qp, int error)
{
	if (!qp->wr_error)
		qp->wr_error = error;
}

static void finish(struct rn_verbs_qp *qp, const struct rn_hw_wqe_data *segments, size_t count)
{
	if (!qp->wr_open) {
		set_error(qp, EINVAL);
		return;
	}
	qp->wr_open = false;
	if (qp->wr_error)
		return;
	qp->wr.segments = segments;
	qp->wr.segment_count = (uint32_t)count;
	set_error(qp, rn_post_errno(rn_sq_post(&qp->sq, &qp->wr)));
}

static void open_request(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t raddr,
			 uint32_t imm_be)
{
	struct rn_verbs_qp *qp = of(ex);

	if (qp->wr_open)
		finish(qp, NULL, 0);
	qp->wr = (struct rn_send_request){.opcode = opcode,
					  .imm_be = imm_be,
					  .rkey = rkey,
					  .raddr = raddr,
					  .wr_id = ex->wr_id};
	if (qp->sq_sig_all || (ex->wr_flags & IBV_SEND_SIGNALED))
		qp->wr.flags |= RN_WQE_SIGNALED;
	if (ex->wr_flags & IBV_SEND_SOLICITED)
		qp->wr.flags |= RN_WQE_SOLICITED;
	if (ex->wr_flags & IBV_SEND_FENCE)
		qp->wr.flags |= RN_WQE_FENCE;
	qp->wr_open = true;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	open_request(ex, RN_WQE_SEND, 0, 0, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	open_request(ex, RN_WQE_SEND_IMM, 0, 0, imm_data);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_request(ex, RN_WQE_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	open_request(ex, RN_WQE_RDMA_WRITE_IMM, rkey, remote_addr, imm_data);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_request(ex, RN_WQE_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct rn_hw_wqe_data segment = {.bytes = length, .lkey = lkey, .va = addr};

	finish(of(ex), &segment, 1);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct rn_hw_wqe_data segments[MAX_SGES];
	struct rn_verbs_qp *qp = of(ex);

	if (num_sge > qp->cap.max_send_sge || num_sge > MAX_SGES) {
		set_error(qp, EINVAL);
		return;
	}
	for (size_t i = 0; i < num_sge; i++)
		segments[i] = (struct rn_hw_wqe_data){
			.bytes = sg_list[i].length, .lkey = sg_list[i].lkey, .va = sg_list[i].addr};
	finish(qp, segments, num_sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct rn_hw_wqe_data segments[MAX_SGES];
	struct rn_verbs_qp *qp = of(ex);
	uint64_t total = 0;

	if (num_buf > MAX_SGES || qp->wr.opcode == RN_WQE_RDMA_READ) {
		set_error(qp, EINVAL);
		return;
	}
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length > qp->cap.max_inline_data) {
			set_error(qp, EINVAL);
			return;
		}
		segments[i] = (struct rn_hw_wqe_data){.bytes = (uint32_t)buf_list[i].length,
						      .va = (uint64_t)(uintptr_t)buf_list[i].addr};
		total += buf_list[i].length;
	}
	if (total > qp->cap.max_inline_data) {
		set_error(qp, EINVAL);
		return;
	}
	qp->wr.flags |= RN_WQE_INLINE;
	finish(qp, segments, num_buf);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* ---- batches ---- */

static void roll_back(struct rn_verbs_qp *qp)
{
	qp->sq.pi = qp->wr_pi;
	qp->sq.posted = qp->wr_posted;
	qp->wr_open = false;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct rn_verbs_qp *qp = of(ex);
	const int error = rn_qp_check_send(qp);

	pthread_mutex_lock(&qp->sq_lock);
	qp->wr_pi = qp->sq.pi;
	qp->wr_posted = qp->sq.posted;
	qp->wr_open = false;
	qp->wr_error = error;
}

static int ring_posted(struct rn_verbs_qp *qp)
{
	rn_qp_charge_posted(qp->sq.posted - qp->wr_posted);
	return rn_qp_ring(qp, qp->wr_posted);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct rn_verbs_qp *qp = of(ex);
	int error;

	if (qp->wr_open)
		finish(qp, NULL, 0);
	error = qp->wr_error;
	if (error)
		roll_back(qp);
	else
		error = ring_posted(qp);
	pthread_mutex_unlock(&qp->sq_lock);
	return rn_return(error);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct rn_verbs_qp *qp = of(ex);

	roll_back(qp);
	pthread_mutex_unlock(&qp->sq_lock);
}

/* ---- what the hardware does not have: callable, and an error at wr_complete ---- */

static void unsupported(struct ibv_qp_ex *ex)
{
	set_error(of(ex), EOPNOTSUPP);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	(void)rkey, (void)remote_addr, (void)compare, (void)swap;
	unsupported(ex);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	(void)rkey, (void)remote_addr, (void)add;
	unsupported(ex);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	(void)rkey, (void)remote_addr, (void)atomic_wr;
	unsupported(ex);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	(void)mw, (void)rkey, (void)bind_info;
	unsupported(ex);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	(void)invalidate_rkey;
	unsupported(ex);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	(void)invalidate_rkey;
	unsupported(ex);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr, (void)hdr_sz, (void)mss;
	unsupported(ex);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	(void)ah, (void)remote_qpn, (void)remote_qkey;
	unsupported(ex);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	(void)remote_srqn;
	unsupported(ex);
}

static void set_unsupported(struct ibv_qp_ex *ex)
{
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
}

void rn_qp_set_ex_ops(struct rn_verbs_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	set_unsupported(ex);
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
}
