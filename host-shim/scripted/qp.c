/*
 * Queue pairs of a scripted process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "driver/qp_state.h"
#include "scripted/internal.h"

#define PAGE 4096u
#define DEFAULT_ENTRIES 256

const struct rn_scripted_path RN_SCRIPTED_PATH = {
	.mtu_bytes = 4096,
	.rd_atomic = 16,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 12,
};

struct rn_scripted_qp *rn_scripted_find_qp(const struct rn_scripted *host, uint32_t qpn)
{
	return qpn < host->by_qpn_entries ? host->by_qpn[qpn] : NULL;
}

static void enter_qpn(struct rn_scripted_qp *qp)
{
	struct rn_scripted *host = qp->host;

	if (qp->qpn >= host->by_qpn_entries) {
		const uint32_t entries = 1u << rn_log2_ceil((uint64_t)qp->qpn + 1);

		host->by_qpn =
			rn_reallocarray(host->by_qpn, entries, sizeof(struct rn_scripted_qp *));
		for (uint32_t n = host->by_qpn_entries; n < entries; n++)
			host->by_qpn[n] = NULL;
		host->by_qpn_entries = entries;
	}
	host->by_qpn[qp->qpn] = qp;
}

/* --- life --- */

static uint64_t whole_pages(uint64_t bytes)
{
	return rn_div_ceil(bytes, PAGE) * PAGE;
}

/* Send ring, receive ring, doorbell record, each from a page of its own on. */
static bool make_rings(struct rn_scripted_qp *qp, struct rn_uapi_create_qp *request)
{
	const uint64_t sq_bytes = whole_pages((uint64_t)request->sq_wqebbs * RN_WQEBB_BYTES);
	const uint64_t rq_bytes = whole_pages((uint64_t)request->rq_wqes * request->rq_segments *
					      RN_RQ_SEGMENT_BYTES);
	uint8_t *data;

	if (!rn_scripted_alloc(qp->host, sq_bytes + rq_bytes + PAGE, &qp->memory))
		return false;
	data = qp->memory.data;
	rn_sq_init(&qp->sq, data, rn_calloc(request->sq_wqebbs, sizeof(struct rn_sq_slot)),
		   request->sq_wqebbs, request->sq_wqebbs);
	rn_rq_init(&qp->rq, data + sq_bytes, rn_calloc(request->rq_wqes, sizeof(uint64_t)),
		   request->rq_wqes, request->rq_segments);
	qp->dbr = (void *)(data + sq_bytes + rq_bytes);
	request->sq_va = qp->memory.va;
	request->rq_va = qp->memory.va + sq_bytes;
	request->dbr_va = qp->memory.va + sq_bytes + rq_bytes;
	return true;
}

struct rn_scripted_qp *rn_scripted_qp_new(struct rn_scripted *host,
					  const struct rn_scripted_qp_spec *spec)
{
	const struct rn_scripted_cq *recv_cq = spec->recv_cq ? spec->recv_cq : spec->send_cq;
	struct rn_uapi_create_qp request = {
		.pd = host->pd,
		.service = RN_QPT_RC,
		.send_cq = spec->send_cq->queue.cqn,
		.recv_cq = recv_cq->queue.cqn,
		.sq_wqebbs = spec->sq_wqebbs ? spec->sq_wqebbs : DEFAULT_ENTRIES,
		.rq_wqes = spec->rq_wqes ? spec->rq_wqes : DEFAULT_ENTRIES,
		.rq_segments = spec->rq_segments ? spec->rq_segments : 1,
		.cookie = spec->cookie,
	};
	struct rn_scripted_qp *qp = rn_calloc(1, sizeof(*qp));
	struct rn_uapi_rsp rsp;

	qp->host = host;
	request.rq_max_sge = request.rq_segments;
	rn_list_init(&qp->link);
	if (!make_rings(qp, &request) || rn_scripted_call(host, RN_UAPI_CREATE_QP, &request,
							  sizeof(request), &rsp, sizeof(rsp))) {
		rn_scripted_qp_drop(qp);
		return NULL;
	}
	qp->qpn = rsp.handle;
	qp->sq.qpn = rsp.handle;
	rn_list_add(&host->qps, &qp->link);
	enter_qpn(qp);
	return qp;
}

void rn_scripted_qp_drop(struct rn_scripted_qp *qp)
{
	rn_scripted_writes_forget(qp);
	if (rn_scripted_find_qp(qp->host, qp->qpn) == qp)
		qp->host->by_qpn[qp->qpn] = NULL;
	rn_list_remove(&qp->link);
	free(qp->sq.slot);
	free(qp->rq.wr_id);
	free(qp);
}

int rn_scripted_qp_free(struct rn_scripted_qp *qp)
{
	struct rn_uapi_req request = {.handle = qp->qpn};
	int error =
		rn_scripted_call(qp->host, RN_UAPI_DESTROY_QP, &request, sizeof(request), NULL, 0);

	if (error)
		return error;
	error = rn_scripted_release(qp->host, &qp->memory);
	rn_scripted_qp_drop(qp);
	return error;
}

uint32_t rn_scripted_qpn(const struct rn_scripted_qp *qp)
{
	return qp->qpn;
}

struct rn_sq *rn_scripted_sq(struct rn_scripted_qp *qp)
{
	return &qp->sq;
}

/* --- states --- */

int rn_scripted_modify(struct rn_scripted_qp *qp, uint32_t attr_mask,
		       const struct rn_uapi_qp_attr *attr)
{
	struct rn_uapi_modify_qp request = {
		.req.handle = qp->qpn,
		.attr_mask = attr_mask,
		.attr = *attr,
	};
	const int error =
		rn_scripted_call(qp->host, RN_UAPI_MODIFY_QP, &request, sizeof(request), NULL, 0);

	if (!error && attr_mask & RN_QP_STATE && attr->qp_state == RN_QPS_RESET) {
		rn_sq_reset(&qp->sq);
		rn_rq_reset(&qp->rq);
		*qp->dbr = (struct rn_hw_qp_dbr){0};
	}
	return error;
}

uint32_t rn_scripted_state(struct rn_scripted_qp *qp)
{
	struct rn_uapi_req request = {.handle = qp->qpn};
	struct rn_uapi_query_qp_rsp answer;

	if (rn_scripted_call(qp->host, RN_UAPI_QUERY_QP, &request, sizeof(request), &answer,
			     sizeof(answer)))
		return UINT32_MAX;
	return answer.attr.qp_state;
}

static void fill_attr(const struct rn_scripted_qp *peer, const struct rn_scripted_path *path,
		      unsigned side, struct rn_uapi_qp_attr *attr)
{
	*attr = (struct rn_uapi_qp_attr){
		.path_mtu = rn_log2_ceil(path->mtu_bytes) - 7,
		.rq_psn = path->psn[!side],
		.sq_psn = path->psn[side],
		.dest_qpn = peer->qpn,
		.access = RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_WRITE | RN_ACCESS_REMOTE_READ,
		.max_rd_atomic = path->rd_atomic,
		.max_dest_rd_atomic = path->rd_atomic,
		.min_rnr_timer = path->min_rnr_timer,
		.port_num = 1,
		.timeout = path->timeout,
		.retry_cnt = path->retry_cnt,
		.rnr_retry = path->rnr_retry,
		.is_global = 1,
		.sgid_index = path->gid_index,
		.hop_limit = 64,
		.traffic_class = path->tclass,
		.flow_label = path->flow_label,
		.ah_port = 1,
	};
	memcpy(attr->dgid, rn_driver_port(peer->host->env.driver)->gid[path->gid_index % 16], 16);
}

static int bring_to_rts(struct rn_scripted_qp *qp, const struct rn_scripted_qp *peer,
			const struct rn_scripted_path *path, unsigned side)
{
	struct rn_uapi_qp_attr attr;
	int error = 0;

	fill_attr(peer, path, side, &attr);
	for (uint8_t state = RN_QPS_INIT; !error && state <= RN_QPS_RTS; state++) {
		attr.qp_state = state;
		error = rn_scripted_modify(
			qp, RN_QP_STATE | rn_qp_transition((uint8_t)(state - 1), state)->required,
			&attr);
	}
	return error;
}

int rn_scripted_connect(struct rn_scripted_qp *first, struct rn_scripted_qp *second,
			const struct rn_scripted_path *path)
{
	const int error = bring_to_rts(first, second, path, 0);

	/* A QP may be connected to itself. */
	return error || first == second ? error : bring_to_rts(second, first, path, 1);
}

/* --- posting --- */

enum rn_post_status rn_scripted_post_request(struct rn_scripted_qp *qp,
					     const struct rn_send_request *request)
{
	return rn_sq_post(&qp->sq, request);
}

enum rn_post_status rn_scripted_post(struct rn_scripted_qp *qp, const struct rn_scripted_wr *wr)
{
	const struct rn_hw_wqe_data segment = {
		.bytes = wr->bytes,
		.lkey = wr->lkey,
		.va = wr->data ? (uintptr_t)wr->data : wr->va,
	};
	const struct rn_send_request request = {
		.opcode = wr->opcode,
		.flags = (uint8_t)(wr->flags | (wr->data ? RN_WQE_INLINE : 0)),
		.imm_be = wr->imm_be,
		.rkey = wr->rkey,
		.raddr = wr->raddr,
		.wr_id = wr->wr_id,
		.segments = &segment,
		.segment_count = wr->opcode == RN_WQE_NOP ? 0 : 1,
	};

	return rn_sq_post(&qp->sq, &request);
}

enum rn_post_status rn_scripted_post_recv(struct rn_scripted_qp *qp, uint64_t wr_id, uint64_t va,
					  uint32_t bytes, uint32_t lkey)
{
	const struct rn_hw_wqe_data segment = {.bytes = bytes, .lkey = lkey, .va = va};

	return rn_scripted_post_recv_segments(qp, wr_id, &segment, 1);
}

enum rn_post_status rn_scripted_post_recv_segments(struct rn_scripted_qp *qp, uint64_t wr_id,
						   const struct rn_hw_wqe_data *segments,
						   uint32_t count)
{
	const enum rn_post_status status = rn_rq_post(&qp->rq, wr_id, segments, count);

	if (status == RN_POST_OK)
		rn_dbr_store(&qp->dbr->rq_pi, qp->rq.pi);
	return status;
}
