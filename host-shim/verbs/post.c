/*
 * Posting work requests: the data path, without a call to the driver.
 */
#include <errno.h>
#include <string.h>

#include "verbs/objects.h"
#include "verbs/virtual_time.h"

#define MAX_SGES 64u

static const struct {
	uint8_t opcode; /* enum rn_wqe_opcode; 0: not supported */
	bool imm, raddr;
} send_ops[] = {
	[IBV_WR_RDMA_WRITE] = {RN_WQE_RDMA_WRITE, false, true},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {RN_WQE_RDMA_WRITE_IMM, true, true},
	[IBV_WR_SEND] = {RN_WQE_SEND, false, false},
	[IBV_WR_SEND_WITH_IMM] = {RN_WQE_SEND_IMM, true, false},
	[IBV_WR_RDMA_READ] = {RN_WQE_RDMA_READ, false, true},
};

int rn_post_errno(enum rn_post_status status)
{
	switch (status) {
	case RN_POST_OK:
		return 0;
	case RN_POST_FULL:
		return ENOMEM;
	default:
		return EINVAL;
	}
}

int rn_qp_check_send(const struct rn_verbs_qp *qp)
{
	if (rn_conn_is_dead(qp->conn))
		return EIO;
	return qp->ibv.state <= IBV_QPS_RTR ? EINVAL : 0;
}

static int ring_doorbell(struct rn_verbs_qp *qp)
{
	const struct rn_hw_sq_doorbell doorbell = rn_sq_doorbell(&qp->sq);
	const struct rn_mmio write = {
		.offset = RN_UAR_SQ_DOORBELL, .len = sizeof(doorbell), .data = &doorbell};

	return rn_conn_mmio(qp->conn, qp->uar_page, &write, 1);
}

void rn_qp_charge_posted(uint32_t posted)
{
	rn_cq_worked();
	if (posted) {
		rn_vt_charge(RN_TIME_POST_SEND, 1);
		rn_vt_charge(RN_TIME_POST_SEND_NEXT, posted - 1);
	}
}

int rn_qp_ring(struct rn_verbs_qp *qp, uint32_t posted_before)
{
	uint8_t image[RN_UAR_BLUEFLAME_BYTES];
	uint32_t bytes = 0;

	if (qp->sq.posted == posted_before)
		return 0;
	rn_dbr_store(&qp->dbr->sq_pi, qp->sq.pi);
	if (qp->conn->device.blueflame_bytes && qp->sq.posted - posted_before == 1)
		bytes = rn_sq_blueflame(&qp->sq, image);
	if (bytes && bytes <= qp->conn->device.blueflame_bytes)
		return rn_conn_blueflame(qp->conn, qp->uar_page, image, bytes);
	return ring_doorbell(qp);
}

/* Verbs' scatter/gather elements and the hardware's data segments differ in the order of fields. */
static uint64_t pack_sges(struct rn_hw_wqe_data *out, const struct ibv_sge *in, unsigned count)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < count; i++) {
		out[i] = (struct rn_hw_wqe_data){
			.bytes = in[i].length, .lkey = in[i].lkey, .va = in[i].addr};
		total += in[i].length;
	}
	return total;
}

static uint8_t wqe_flags(const struct rn_verbs_qp *qp, unsigned flags)
{
	uint8_t out = 0;

	if (qp->sq_sig_all || (flags & IBV_SEND_SIGNALED))
		out |= RN_WQE_SIGNALED;
	if (flags & IBV_SEND_SOLICITED)
		out |= RN_WQE_SOLICITED;
	if (flags & IBV_SEND_FENCE)
		out |= RN_WQE_FENCE;
	if (flags & IBV_SEND_INLINE)
		out |= RN_WQE_INLINE;
	return out;
}

static int post_one(struct rn_verbs_qp *qp, const struct ibv_send_wr *wr)
{
	struct rn_hw_wqe_data segments[MAX_SGES];
	struct rn_send_request request = {.wr_id = wr->wr_id, .segments = segments};
	uint64_t total;

	if ((unsigned)wr->opcode >= sizeof(send_ops) / sizeof(send_ops[0]))
		return wr->opcode <= IBV_WR_ATOMIC_WRITE ? EOPNOTSUPP : EINVAL;
	if (!send_ops[wr->opcode].opcode)
		return EOPNOTSUPP;
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	request.opcode = send_ops[wr->opcode].opcode;
	request.flags = wqe_flags(qp, wr->send_flags);
	request.segment_count = (unsigned)wr->num_sge;
	total = pack_sges(segments, wr->sg_list, request.segment_count);
	if (request.flags & RN_WQE_INLINE) {
		if (request.opcode == RN_WQE_RDMA_READ || total > qp->cap.max_inline_data)
			return EINVAL;
	}
	if (send_ops[wr->opcode].imm)
		request.imm_be = wr->imm_data;
	if (send_ops[wr->opcode].raddr) {
		request.raddr = wr->wr.rdma.remote_addr;
		request.rkey = wr->wr.rdma.rkey;
	}
	return rn_post_errno(rn_sq_post(&qp->sq, &request));
}

int rn_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct rn_verbs_qp *qp = rn_qp_of(ibv);
	struct ibv_send_wr *first = wr;
	uint32_t posted;
	int error = rn_qp_check_send(qp), ring_error;

	if (error) {
		*bad_wr = wr;
		return rn_return(error);
	}
	pthread_mutex_lock(&qp->sq_lock);
	posted = qp->sq.posted;
	for (; wr; wr = wr->next) {
		error = post_one(qp, wr);
		if (error)
			break;
	}
	rn_qp_charge_posted(qp->sq.posted - posted);
	ring_error = rn_qp_ring(qp, posted);
	pthread_mutex_unlock(&qp->sq_lock);
	if (error)
		*bad_wr = wr;
	else if (ring_error)
		*bad_wr = first;
	return rn_return(error ? error : ring_error);
}

static int kick_receive(struct rn_verbs_qp *qp)
{
	const struct rn_hw_rq_kick kick = {.qpn = qp->ibv.qp_num};
	const struct rn_mmio write = {.offset = RN_UAR_RQ_KICK, .len = sizeof(kick), .data = &kick};

	return rn_conn_mmio(qp->conn, qp->uar_page, &write, 1);
}

static void charge_received(uint32_t posted)
{
	rn_cq_worked();
	if (posted) {
		rn_vt_charge(RN_TIME_POST_RECV, 1);
		rn_vt_charge(RN_TIME_POST_RECV_NEXT, posted - 1);
	}
}

static int post_one_recv(struct rn_verbs_qp *qp, const struct ibv_recv_wr *wr)
{
	struct rn_hw_wqe_data segments[MAX_SGES];

	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->rq.max_sge ||
	    (unsigned)wr->num_sge > MAX_SGES)
		return EINVAL;
	pack_sges(segments, wr->sg_list, (unsigned)wr->num_sge);
	return rn_post_errno(rn_rq_post(&qp->rq, wr->wr_id, segments, (unsigned)wr->num_sge));
}

int rn_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct rn_verbs_qp *qp = rn_qp_of(ibv);
	struct ibv_recv_wr *first = wr;
	int error = 0, kick_error = 0;
	uint32_t before;

	if (ibv->state == IBV_QPS_RESET || rn_conn_is_dead(qp->conn)) {
		*bad_wr = wr;
		return rn_return(ibv->state == IBV_QPS_RESET ? EINVAL : EIO);
	}
	pthread_mutex_lock(&qp->rq_lock);
	before = qp->rq.pi;
	for (; wr; wr = wr->next) {
		error = post_one_recv(qp, wr);
		if (error)
			break;
	}
	charge_received(qp->rq.pi - before);
	rn_dbr_store(&qp->dbr->rq_pi, qp->rq.pi);
	/* Nothing tells the NIC of a receive, except where it waits for no packet: in error it flushes. */
	if (qp->rq.pi != before && atomic_load_explicit(&qp->flushing, memory_order_relaxed))
		kick_error = kick_receive(qp);
	pthread_mutex_unlock(&qp->rq_lock);
	if (error)
		*bad_wr = wr;
	else if (kick_error)
		*bad_wr = first;
	return rn_return(error ? error : kick_error);
}
