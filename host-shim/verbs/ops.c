/*
 * The tables of a context. Where the header's inline functions check for NULL a missing function stays NULL,
 * and the caller sees EOPNOTSUPP; where they do not, a function says so.
 */
#include <errno.h>

#include "verbs/objects.h"

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd, (void)type;
	errno = EOPNOTSUPP;
	return NULL;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	(void)qp, (void)mw, (void)mw_bind;
	return rn_return(EOPNOTSUPP);
}

static int dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return rn_return(EOPNOTSUPP);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	(void)srq;
	*bad_wr = wr;
	return rn_return(EOPNOTSUPP);
}

static int close_xrcd(struct ibv_xrcd *xrcd)
{
	(void)xrcd;
	return rn_return(EOPNOTSUPP);
}

void rn_context_set_ops(struct rn_context *context)
{
	struct verbs_context *verbs = &context->verbs;
	struct ibv_context_ops *ops = &verbs->context.ops;

	ops->alloc_mw = alloc_mw;
	ops->bind_mw = bind_mw;
	ops->dealloc_mw = dealloc_mw;
	ops->poll_cq = rn_poll_cq;
	ops->req_notify_cq = rn_req_notify_cq;
	ops->post_srq_recv = post_srq_recv;
	ops->post_send = rn_post_send;
	ops->post_recv = rn_post_recv;
	verbs->query_port = rn_query_port;
	verbs->query_device_ex = rn_query_device_ex;
	verbs->create_cq_ex = rn_create_cq_ex;
	verbs->create_qp_ex = rn_create_qp_ex;
	verbs->query_rt_values = rn_query_rt_values;
	verbs->close_xrcd = close_xrcd;
}
