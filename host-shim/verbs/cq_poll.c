/*
 * Polling: from CQEs to work completions.
 */
#include <errno.h>
#include <string.h>

#include "verbs/objects.h"
#include "verbs/virtual_time.h"
#include "verbs/wait.h"

/* Polls of this thread since the last completion it found on any CQ. */
static __thread unsigned misses;

static enum ibv_wc_opcode request_opcode(uint8_t opcode)
{
	switch (opcode) {
	case RN_WQE_RDMA_WRITE:
	case RN_WQE_RDMA_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case RN_WQE_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case RN_WQE_ATOMIC_CAS:
		return IBV_WC_COMP_SWAP;
	case RN_WQE_ATOMIC_FAA:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static bool retire_send(struct rn_verbs_qp *qp, const struct rn_hw_cqe *cqe, struct ibv_wc *wc)
{
	const struct rn_sq_slot *slot;

	pthread_mutex_lock(&qp->sq_lock);
	slot = rn_sq_retire(&qp->sq, cqe->wqe_idx);
	if (slot) {
		wc->wr_id = slot->wr_id;
		wc->opcode = request_opcode(slot->opcode);
	}
	pthread_mutex_unlock(&qp->sq_lock);
	return slot != NULL;
}

static bool retire_recv(struct rn_verbs_qp *qp, const struct rn_hw_cqe *cqe, struct ibv_wc *wc)
{
	bool found;

	pthread_mutex_lock(&qp->rq_lock);
	found = rn_rq_retire(&qp->rq, cqe->wqe_idx, &wc->wr_id);
	pthread_mutex_unlock(&qp->rq_lock);
	wc->opcode = cqe->opcode == RN_CQE_RECV_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	if (cqe->opcode == RN_CQE_RECV_IMM || cqe->opcode == RN_CQE_RECV_WRITE_IMM) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_data = cqe->imm_be;
	}
	if (cqe->flags & 2)
		wc->wc_flags |= IBV_WC_GRH;
	return found;
}

/* False for a CQE that fits no work request of a living QP: it is passed over. */
static bool decode(struct rn_verbs_cq *cq, const struct rn_hw_cqe *cqe, struct ibv_wc *wc)
{
	struct rn_verbs_qp *qp = rn_registry_qp(&cq->conn->registry, cqe->qpn & 0xffffff);

	if (!qp)
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->status = (enum ibv_wc_status)cqe->status;
	wc->vendor_err = cqe->vendor_syndrome;
	wc->byte_len = cqe->byte_len;
	wc->qp_num = cqe->qpn;
	wc->src_qp = cqe->src_qpn;
	if (wc->status != IBV_WC_SUCCESS)
		atomic_store_explicit(&qp->flushing, true, memory_order_relaxed);
	return rn_cqe_is_recv(cqe) ? retire_recv(qp, cqe, wc) : retire_send(qp, cqe, wc);
}

bool rn_cq_next(struct rn_verbs_cq *cq, struct ibv_wc *wc, uint64_t *timestamp_ps)
{
	const struct rn_hw_cqe *cqe;

	while ((cqe = rn_cq_peek(&cq->queue))) {
		const bool found = decode(cq, cqe, wc);

		if (timestamp_ps)
			*timestamp_ps = cqe->timestamp_ps;
		rn_cq_advance(&cq->queue);
		if (found) {
			misses = 0;
			return true;
		}
	}
	return false;
}

int rn_cq_miss(struct rn_verbs_cq *cq, bool *again)
{
	*again = rn_vt_is_on();
	return rn_shim_wait(cq->conn, RN_WAIT_CQE, &misses);
}

void rn_cq_charge_poll(unsigned found)
{
	rn_vt_charge(found ? RN_TIME_POLL_HIT : RN_TIME_POLL_MISS, 1);
}

void rn_cq_worked(void)
{
	misses = 0;
}

static int take(struct rn_verbs_cq *cq, int count, struct ibv_wc *wc)
{
	int n = 0;

	pthread_mutex_lock(&cq->lock);
	while (n < count && rn_cq_next(cq, &wc[n], NULL))
		n++;
	if (n)
		rn_cq_publish(&cq->queue);
	pthread_mutex_unlock(&cq->lock);
	return n;
}

int rn_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct rn_verbs_cq *cq = rn_cq_of(ibv);
	bool again = false;
	int n;

	/* In a child after fork the locks may have been held by threads that do not exist here. */
	if (rn_conn_is_dead(cq->conn) || count < 0) {
		errno = rn_conn_is_dead(cq->conn) ? EIO : EINVAL;
		return -1;
	}
	n = take(cq, count, wc);
	if (n == 0 && count > 0 && rn_cq_miss(cq, &again)) {
		errno = EIO;
		return -1;
	}
	if (again)
		n = take(cq, count, wc);
	rn_cq_charge_poll((unsigned)n);
	return n;
}

void rn_cq_forget_qp(struct rn_verbs_cq *cq, uint32_t qpn)
{
	rn_cq_clean(&cq->queue, qpn, NULL, NULL);
}
