/*
 * Extended CQs: completions read field by field.
 */
#include <errno.h>

#include "verbs/objects.h"

static struct rn_verbs_cq *of(struct ibv_cq_ex *ex)
{
	return rn_cq_of(ibv_cq_ex_to_cq(ex));
}

static void lock(struct rn_verbs_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
}

static void unlock(struct rn_verbs_cq *cq)
{
	pthread_mutex_unlock(&cq->lock);
}

static int take(struct rn_verbs_cq *cq)
{
	if (!rn_cq_next(cq, &cq->current, &cq->current_ps))
		return ENOENT;
	cq->ex.status = cq->current.status;
	cq->ex.wr_id = cq->current.wr_id;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct rn_verbs_cq *cq = of(ex);
	bool again;
	int error;

	if (attr->comp_mask)
		return rn_return(EINVAL);
	if (rn_conn_is_dead(cq->conn))
		return rn_return(EIO);
	lock(cq);
	error = take(cq);
	if (!error) {
		rn_cq_charge_poll(1);
		return 0; /* locked until end_poll */
	}
	unlock(cq);
	if (rn_cq_miss(cq, &again))
		return rn_return(EIO);
	if (again) {
		lock(cq);
		error = take(cq);
		if (error)
			unlock(cq);
	}
	rn_cq_charge_poll(!error);
	return error;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	rn_cq_publish(&of(ex)->queue);
	unlock(of(ex));
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return of(ex)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of(ex)->current.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of(ex)->current.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return of(ex)->current.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of(ex)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of(ex)->current.src_qp;
}

static unsigned read_wc_flags(struct ibv_cq_ex *ex)
{
	return of(ex)->current.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of(ex)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return of(ex)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return of(ex)->current.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return rn_clock_ticks(of(ex)->conn, of(ex)->current_ps);
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return rn_clock_wall_ns(of(ex)->epoch_ns, of(ex)->current_ps);
}

void rn_cq_set_ex_ops(struct rn_verbs_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
