/*
 * Transport tx: may the WQE at hand begin, or go on? What never can becomes a failed entry of the
 * outstanding list, so that it completes in its order; what cannot now parks the QP.
 */
#include "nic/transport/header.h"
#include "nic/transport/tx.h"
#include "wire/psn.h"

static const struct rn_wqe *wqe_of(const struct rn_tx *tx)
{
	const struct rn_work *work = &tx->turn.work;

	return work->status == RN_WORK_OK ? &tx->ports.sq_slots->slot[work->slot] : NULL;
}

static bool is_known_opcode(uint8_t opcode)
{
	return opcode <= RN_WQE_RDMA_READ;
}

/* What is wrong with a new WQE whatever the peer says; SUCCESS when nothing. */
static uint8_t fault_of(const struct rn_hw_qpc *qpc, const struct rn_wqe *wqe)
{
	if (!wqe || !wqe->valid || !is_known_opcode(wqe->opcode))
		return RN_WC_LOC_QP_OP_ERR;
	if (wqe->total_bytes > RN_MAX_MESSAGE_BYTES)
		return RN_WC_LOC_LEN_ERR;
	if (wqe->opcode == RN_WQE_RDMA_READ &&
	    (!qpc->max_rd_atomic || wqe->inline_buf != RN_BUFFER_NONE))
		return RN_WC_LOC_QP_OP_ERR;
	return RN_WC_SUCCESS;
}

static bool spends_credit(uint8_t opcode)
{
	return opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM ||
	       opcode == RN_WQE_RDMA_WRITE_IMM;
}

/* End-to-end credits (IBA volume 1, 9.7.7.2): one message may go beyond the limit. */
static bool lacks_credit(const struct rn_tx *tx, const struct rn_hw_qpc_requester *r,
			 const struct rn_wqe *wqe)
{
	return tx->params->honour_credits && r->credit_valid && spends_credit(wqe->opcode) &&
	       rn_psn_diff(r->ssn, r->credit_limit) > 0;
}

static bool is_blocked(const struct rn_tx *tx, const struct rn_hw_qpc *qpc,
		       const struct rn_hw_qpc_requester *r, const struct rn_wqe *wqe)
{
	uint32_t outstanding = rn_psn_ahead(r->next_psn, r->una_psn);
	uint32_t window = tx->params->max_outstanding_psns;

	if ((wqe->flags & RN_WQE_FENCE) && r->reads)
		return true;
	if (wqe->opcode == RN_WQE_NOP)
		return false;
	if (lacks_credit(tx, r, wqe) || outstanding >= window)
		return true;
	if (wqe->opcode != RN_WQE_RDMA_READ)
		return false;

	uint32_t psns =
		rn_transport_packets((uint32_t)wqe->total_bytes, rn_transport_mtu_log2(qpc));

	return r->reads >= qpc->max_rd_atomic || (outstanding && outstanding + psns > window);
}

static void fill_entry(struct rn_tx *tx, const struct rn_hw_qpc *qpc, struct rn_hw_qpc_requester *r,
		       struct rn_tx_entry *entry, const struct rn_wqe *wqe)
{
	entry->wqe_idx = (uint16_t)r->sq_next;
	entry->wqebbs = wqe && wqe->wqebbs ? wqe->wqebbs : 1;
	entry->first_psn = r->next_psn;
	if (!wqe)
		return;
	entry->opcode = wqe->opcode;
	entry->flags = wqe->flags;
	entry->bytes = (uint32_t)wqe->total_bytes;
	if (entry->status != RN_WC_SUCCESS || wqe->opcode == RN_WQE_NOP)
		return;
	entry->psns = rn_transport_packets(entry->bytes, rn_transport_mtu_log2(qpc));
	r->ssn = rn_psn_add(r->ssn, 1);
	entry->ssn = r->ssn;
	if (wqe->opcode != RN_WQE_RDMA_READ)
		return;
	r->reads++;

	struct rn_tx_sge_list *list = &tx->sge_list[entry->sge_list - 1];

	for (unsigned i = 0; i < wqe->sge_count && i < RN_WQE_MAX_SGE; i++)
		list->sge[i] = wqe->sge[i];
	list->count = wqe->sge_count < RN_WQE_MAX_SGE ? wqe->sge_count : RN_WQE_MAX_SGE;
}

static enum rn_tx_check begin_wqe(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint32_t qpn = tx->turn.work.qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];
	const struct rn_wqe *wqe = wqe_of(tx);
	uint8_t fault = fault_of(qpc, wqe);
	bool is_read = !fault && wqe->opcode == RN_WQE_RDMA_READ;

	if (qpc->state == RN_QPS_SQD || (!fault && is_blocked(tx, qpc, r, wqe)))
		return RN_CHECK_PARK;
	if (!rn_tx_can_add(tx, is_read)) {
		rn_tx_wait_for_entry(tx, qpn);
		return RN_CHECK_PARK;
	}

	uint32_t ref = rn_tx_entry_add(tx, qpn, is_read);
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);

	entry->status = fault;
	fill_entry(tx, qpc, r, entry, wqe);
	if (!fault && wqe->opcode == RN_WQE_NOP) {
		r->sq_next = (uint16_t)(r->sq_next + entry->wqebbs);
		tx->turn.next = (uint16_t)r->sq_next;
		return RN_CHECK_END;
	}
	flow->send_entry = ref;
	return fault ? RN_CHECK_PARK : RN_CHECK_GO;
}

/* A WQE that was begun before: the one fetched now must be the same. */
static enum rn_tx_check go_on(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	struct rn_tx_flow *flow = &tx->flow[tx->turn.work.qpn];
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, flow->send_entry);
	const struct rn_wqe *wqe = wqe_of(tx);

	if (entry->status != RN_WC_SUCCESS)
		return RN_CHECK_PARK;
	if (!wqe || !wqe->valid || wqe->opcode != entry->opcode ||
	    wqe->total_bytes != entry->bytes || wqe->wqebbs != entry->wqebbs) {
		entry->status = RN_WC_LOC_QP_OP_ERR;
		return RN_CHECK_PARK;
	}
	if (!entry->psns) { /* NOP, passed by a set-back */
		r->sq_next = (uint16_t)(r->sq_next + entry->wqebbs);
		tx->turn.next = (uint16_t)r->sq_next;
		flow->send_entry = entry->next;
		return RN_CHECK_END;
	}
	return RN_CHECK_GO;
}

/* The send queue is in error: this WQE completes unsent, behind the outstanding ones. */
static enum rn_tx_check flush_wqe(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	const struct rn_wqe *wqe = wqe_of(tx);
	struct rn_tx_entry flushed = {
		.qpn = tx->turn.work.qpn,
		.wqe_idx = (uint16_t)r->sq_next,
		.opcode = wqe ? wqe->opcode : RN_WQE_NOP,
	};

	rn_tx_enter_error(tx, qpc, false);
	if (tx->flow[flushed.qpn].out_head)
		return RN_CHECK_PARK;
	rn_tx_complete(tx, qpc, &flushed, RN_WC_WR_FLUSH_ERR);
	/* What cannot be read cannot be counted: the rest of the queue goes with it. */
	if (!wqe)
		r->sq_next = tx->turn.work.pi;
	else
		r->sq_next = (uint16_t)(r->sq_next + (wqe->wqebbs ? wqe->wqebbs : 1));
	tx->turn.next = (uint16_t)r->sq_next;
	return RN_CHECK_END;
}

enum rn_tx_check rn_tx_turn_check(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	struct rn_tx_turn *turn = &tx->turn;
	const struct rn_tx_flow *flow = &tx->flow[turn->work.qpn];
	const struct rn_wqe *wqe = wqe_of(tx);

	turn->next = turn->work.pi;
	if (qpc->state < RN_QPS_RTS || qpc->service != RN_QPT_RC ||
	    (!r->ready && !rn_tx_in_error(qpc, r))) {
		tx->count->bad_work++;
		return RN_CHECK_END;
	}
	turn->next = (uint16_t)r->sq_next;
	if (turn->next == turn->work.pi || (wqe && wqe->wqe_idx != turn->next))
		return RN_CHECK_END;
	if (rn_tx_in_error(qpc, r))
		return flush_wqe(tx, qpc);
	if (rn_tx_is_waiting(flow))
		return RN_CHECK_PARK;
	return flow->send_entry ? go_on(tx, qpc) : begin_wqe(tx, qpc);
}
