/*
 * Queue pairs: attributes and state. What is legal is the driver's to say.
 */
#include <errno.h>
#include <string.h>

#include "verbs/objects.h"

#define UNSUPPORTED_ATTRS (IBV_QP_ALT_PATH | IBV_QP_CAP | IBV_QP_RATE_LIMIT)

static void pack_attr(const struct ibv_qp_attr *in, struct rn_uapi_qp_attr *out)
{
	*out = (struct rn_uapi_qp_attr){
		.qp_state = in->qp_state,
		.cur_qp_state = in->cur_qp_state,
		.path_mtu = in->path_mtu,
		.path_mig_state = in->path_mig_state,
		.qkey = in->qkey,
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
		.dest_qpn = in->dest_qp_num,
		.access = in->qp_access_flags,
		.pkey_index = in->pkey_index,
		.max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
		.min_rnr_timer = in->min_rnr_timer,
		.port_num = in->port_num,
		.timeout = in->timeout,
		.retry_cnt = in->retry_cnt,
		.rnr_retry = in->rnr_retry,
		.en_sqd_async_notify = in->en_sqd_async_notify,
		.is_global = in->ah_attr.is_global,
		.sgid_index = in->ah_attr.grh.sgid_index,
		.hop_limit = in->ah_attr.grh.hop_limit,
		.traffic_class = in->ah_attr.grh.traffic_class,
		.flow_label = in->ah_attr.grh.flow_label,
		.dlid = in->ah_attr.dlid,
		.sl = in->ah_attr.sl,
		.ah_port = in->ah_attr.port_num,
	};
	memcpy(out->dgid, in->ah_attr.grh.dgid.raw, sizeof(out->dgid));
}

static void unpack_attr(const struct rn_uapi_qp_attr *in, struct ibv_qp_attr *out)
{
	*out = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)in->qp_state,
		.cur_qp_state = (enum ibv_qp_state)in->qp_state,
		.path_mtu = (enum ibv_mtu)in->path_mtu,
		.path_mig_state = (enum ibv_mig_state)in->path_mig_state,
		.qkey = in->qkey,
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
		.dest_qp_num = in->dest_qpn,
		.qp_access_flags = in->access,
		.pkey_index = (uint16_t)in->pkey_index,
		.en_sqd_async_notify = (uint8_t)in->en_sqd_async_notify,
		.sq_draining = (uint8_t)in->sq_draining,
		.max_rd_atomic = (uint8_t)in->max_rd_atomic,
		.max_dest_rd_atomic = (uint8_t)in->max_dest_rd_atomic,
		.min_rnr_timer = (uint8_t)in->min_rnr_timer,
		.port_num = (uint8_t)in->port_num,
		.timeout = (uint8_t)in->timeout,
		.retry_cnt = (uint8_t)in->retry_cnt,
		.rnr_retry = (uint8_t)in->rnr_retry,
	};
	out->ah_attr.is_global = (uint8_t)in->is_global;
	out->ah_attr.grh.sgid_index = (uint8_t)in->sgid_index;
	out->ah_attr.grh.hop_limit = (uint8_t)in->hop_limit;
	out->ah_attr.grh.traffic_class = (uint8_t)in->traffic_class;
	out->ah_attr.grh.flow_label = in->flow_label;
	out->ah_attr.dlid = (uint16_t)in->dlid;
	out->ah_attr.sl = (uint8_t)in->sl;
	out->ah_attr.port_num = (uint8_t)in->ah_port;
	memcpy(out->ah_attr.grh.dgid.raw, in->dgid, sizeof(in->dgid));
}

/* The QP starts afresh: nothing is posted, nothing completes. */
static void reset_queues(struct rn_verbs_qp *qp)
{
	rn_qp_lock_cqs(qp, true);
	rn_qp_forget_completions(qp);
	pthread_mutex_lock(&qp->sq_lock);
	rn_sq_reset(&qp->sq);
	rn_dbr_store(&qp->dbr->sq_pi, 0);
	pthread_mutex_unlock(&qp->sq_lock);
	pthread_mutex_lock(&qp->rq_lock);
	rn_rq_reset(&qp->rq);
	rn_dbr_store(&qp->dbr->rq_pi, 0);
	pthread_mutex_unlock(&qp->rq_lock);
	rn_qp_lock_cqs(qp, false);
}

static void state_changed(struct rn_verbs_qp *qp, enum ibv_qp_state state)
{
	if (state == IBV_QPS_RESET)
		reset_queues(qp);
	atomic_store(&qp->flushing, state == IBV_QPS_ERR);
	qp->ibv.state = state;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct rn_verbs_qp *qp = rn_qp_of(ibv);
	struct rn_uapi_modify_qp req = {.req.op = RN_UAPI_MODIFY_QP,
					.req.handle = ibv->handle,
					.attr_mask = (uint32_t)attr_mask};
	struct rn_uapi_rsp rsp;
	int error;

	if (attr_mask & (int)UNSUPPORTED_ATTRS)
		return rn_return(EOPNOTSUPP);
	pack_attr(attr, &req.attr);
	error = rn_conn_call(qp->conn, &req, sizeof(req), &rsp, sizeof(rsp));
	if (!error && (attr_mask & IBV_QP_STATE))
		state_changed(qp, attr->qp_state);
	return error;
}

static void echo_init_attr(const struct rn_verbs_qp *qp, struct ibv_qp_init_attr *out)
{
	*out = (struct ibv_qp_init_attr){.qp_context = qp->ibv.qp_context,
					 .send_cq = qp->ibv.send_cq,
					 .recv_cq = qp->ibv.recv_cq,
					 .srq = qp->ibv.srq,
					 .cap = qp->cap,
					 .qp_type = qp->ibv.qp_type,
					 .sq_sig_all = qp->sq_sig_all};
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct rn_verbs_qp *qp = rn_qp_of(ibv);
	struct rn_uapi_req req = {.op = RN_UAPI_QUERY_QP, .handle = ibv->handle};
	struct rn_uapi_query_qp_rsp rsp;
	const int error = rn_conn_call(qp->conn, &req, sizeof(req), &rsp, sizeof(rsp));

	(void)attr_mask; /* everything is filled in, which is allowed */
	if (error)
		return error;
	unpack_attr(&rsp.attr, attr);
	attr->cap = qp->cap;
	ibv->state = attr->qp_state;
	if (ibv->state == IBV_QPS_ERR)
		atomic_store(&qp->flushing, true);
	echo_init_attr(qp, init_attr);
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}
