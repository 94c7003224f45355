/*
 * Transport tx: send WQEs without completion. A pool on the chip, one list a QP in order of posting;
 * the oldest completes when it is acknowledged and its READ data has been written, or has failed.
 */
#include "base/mem.h"
#include "nic/transport/tables.h"
#include "nic/transport/tx.h"
#include "sim/stamp.h"
#include "wire/psn.h"

void rn_tx_outstanding_init(struct rn_tx *tx)
{
	uint32_t entries = tx->params->outstanding_wqes;
	uint32_t lists = tx->params->outstanding_reads;

	tx->entry = rn_calloc(entries, sizeof(*tx->entry));
	tx->sge_list = rn_calloc(lists, sizeof(*tx->sge_list));
	for (uint32_t i = 0; i < entries; i++)
		tx->entry[i].next = i + 2 > entries ? RN_NONE : i + 2;
	for (uint32_t i = 0; i < lists; i++)
		tx->sge_list[i].next = i + 2 > lists ? RN_NONE : i + 2;
	tx->entry_free = 1;
	tx->sge_list_free = 1;
}

bool rn_tx_can_add(const struct rn_tx *tx, bool with_sges)
{
	return tx->entry_free && (!with_sges || tx->sge_list_free);
}

uint32_t rn_tx_entry_add(struct rn_tx *tx, uint32_t qpn, bool with_sges)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];
	uint32_t ref = tx->entry_free;
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);

	RN_ASSERT(rn_tx_can_add(tx, with_sges));
	tx->entry_free = entry->next;
	*entry = (struct rn_tx_entry){.qpn = qpn, .generation = entry->generation};
	if (with_sges) {
		entry->sge_list = tx->sge_list_free;
		tx->sge_list_free = tx->sge_list[entry->sge_list - 1].next;
	}
	if (flow->out_tail)
		rn_tx_entry_at(tx, flow->out_tail)->next = ref;
	else
		flow->out_head = ref;
	flow->out_tail = ref;
	return ref;
}

static void remove_head(struct rn_tx *tx, struct rn_tx_flow *flow)
{
	uint32_t ref = flow->out_head;
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);

	flow->out_head = entry->next;
	if (!flow->out_head)
		flow->out_tail = RN_NONE;
	if (entry->sge_list) {
		tx->sge_list[entry->sge_list - 1].next = tx->sge_list_free;
		tx->sge_list_free = entry->sge_list;
	}
	/* Data writes still under way must not find another WQE here. */
	entry->generation++;
	entry->next = tx->entry_free;
	tx->entry_free = ref;
}

void rn_tx_wait_for_entry(struct rn_tx *tx, uint32_t qpn)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];

	if (flow->waiter)
		return;
	flow->waiter = true;
	flow->waiter_next = RN_NONE;
	if (tx->waiter_tail)
		tx->flow[tx->waiter_tail - 1].waiter_next = qpn + 1;
	else
		tx->waiter_head = qpn + 1;
	tx->waiter_tail = qpn + 1;
}

/*
 * One an operation is enough: the turn it brings is an operation too. A waiter needs its context
 * for sq_next only, and ACTIVATE must name it: it is a thing to do.
 */
void rn_tx_serve_waiters(struct rn_tx *tx)
{
	while (tx->waiter_head && rn_tx_can_add(tx, true)) {
		uint32_t qpn = tx->waiter_head - 1;
		struct rn_tx_flow *flow = &tx->flow[qpn];

		tx->waiter_head = flow->waiter_next;
		if (!tx->waiter_head)
			tx->waiter_tail = RN_NONE;
		flow->waiter = false;
		if (!flow->parked)
			continue;
		rn_tx_add_todo(tx, qpn, RN_TODO_ACTIVATE);
		return;
	}
}

uint32_t rn_tx_entry_of_psn(struct rn_tx *tx, uint32_t qpn, uint32_t psn)
{
	uint32_t ref = tx->flow[qpn].out_head;

	while (ref) {
		const struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);

		if (rn_psn_ahead(psn, entry->first_psn) < entry->psns)
			return ref;
		ref = entry->next;
	}
	return RN_NONE;
}

void rn_tx_complete(struct rn_tx *tx, const struct rn_hw_qpc *qpc, const struct rn_tx_entry *entry,
		    uint8_t status)
{
	bool is_error = status != RN_WC_SUCCESS;

	if (!is_error && !(entry->flags & RN_WQE_SIGNALED))
		return;
	tx->count->req_cqe_error += is_error;
	tx->count->req_cqe_flush_error += status == RN_WC_WR_FLUSH_ERR;
	rn_outbox_put(&tx->completions,
		      &(struct rn_completion){
			      .cqn = qpc->send_cqn,
			      .qpn = entry->qpn,
			      .byte_len = entry->bytes,
			      .wqe_idx = entry->wqe_idx,
			      .opcode = is_error ? RN_CQE_REQ_ERR : RN_CQE_REQ,
			      .status = status,
			      .vendor_syndrome = rn_vendor_syndrome(status, false),
			      .req_opcode = entry->opcode,
		      });
}

bool rn_tx_is_drained(const struct rn_tx_flow *flow)
{
	return !flow->out_head;
}

void rn_tx_check_drained(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);

	if (qpc->state != RN_QPS_SQD || r->drained || !rn_tx_is_drained(&tx->flow[tx->op_qpn]))
		return;
	r->drained = 1;
	if (qpc->sqd_notify)
		rn_tx_put_event(tx, tx->op_qpn, RN_QP_EVENT_SQ_DRAINED);
}

/*
 * How the oldest WQE ends now; false when it does not yet. Behind an error nothing succeeds, acknowledged or not:
 * a READ whose data cannot be placed fails long after the ACK of what was posted behind it.
 */
static bool outcome(const struct rn_hw_qpc *qpc, const struct rn_hw_qpc_requester *r,
		    const struct rn_tx_entry *entry, uint8_t *status)
{
	uint32_t end = rn_psn_add(entry->first_psn, entry->psns);

	if (entry->writes)
		return false;
	*status = entry->status;
	if (entry->status != RN_WC_SUCCESS)
		return true;
	if (rn_tx_in_error(qpc, r)) {
		*status = RN_WC_WR_FLUSH_ERR;
		return true;
	}
	return rn_psn_diff(r->una_psn, end) >= 0;
}

static void stamp_ack(const struct rn_tx *tx, const struct rn_tx_entry *entry)
{
	rn_stamps_record(tx->env->stamps, &(struct rn_stamp){
						  .at_ps = rn_sim_now_ps(tx->env->sim),
						  .host = tx->env->host,
						  .qpn = entry->qpn,
						  .wqe_idx = entry->wqe_idx,
						  .stage = RN_STAMP_ACK,
					  });
}

/* A NOP behind retransmitted packets has its turn still to come; now that it is complete it has none. */
static void pass_over(struct rn_tx *tx, struct rn_hw_qpc_requester *r,
		      const struct rn_tx_entry *entry)
{
	struct rn_tx_flow *flow = &tx->flow[entry->qpn];

	r->sq_next = (uint16_t)(entry->wqe_idx + entry->wqebbs);
	flow->send_entry = entry->next;
	flow->epoch++;
}

bool rn_tx_retire(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_tx_flow *flow = &tx->flow[tx->op_qpn];
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint8_t status;

	if (!flow->out_head)
		return true;
	if (tx->completions.count)
		return false;

	struct rn_tx_entry *entry = rn_tx_entry_at(tx, flow->out_head);

	if (!outcome(qpc, r, entry, &status))
		return true;
	stamp_ack(tx, entry);
	rn_tx_complete(tx, qpc, entry, status);
	if (entry->sge_list)
		r->reads--;
	if (status != RN_WC_SUCCESS)
		rn_tx_enter_error(tx, qpc, true);
	if (flow->send_entry == flow->out_head)
		pass_over(tx, r, entry);
	remove_head(tx, flow);
	tx->busy = true;
	/* It may have waited for a READ to end, or for its last elder before a flush. */
	if (flow->parked && !rn_tx_is_waiting(flow))
		rn_tx_activate(tx, qpc);
	if (flow->out_head)
		return false;
	rn_tx_check_drained(tx, qpc);
	return true;
}

void rn_tx_enter_error(struct rn_tx *tx, struct rn_hw_qpc *qpc, bool tell)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint32_t qpn = tx->op_qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];

	if (r->error)
		return;
	r->error = 1;
	flow->epoch++;
	rn_tx_timer_stop(tx, qpn);
	if (flow->out_tail) {
		const struct rn_tx_entry *tail = rn_tx_entry_at(tx, flow->out_tail);

		r->sq_next = (uint16_t)(tail->wqe_idx + tail->wqebbs);
	}
	flow->send_entry = RN_NONE;
	r->next_psn = r->max_psn;
	rn_outbox_put(&tx->forgets, &(struct rn_wqe_forget){.qpn = qpn});
	rn_tx_activate(tx, qpc);
	if (tell)
		rn_outbox_put(&tx->feedback, &(struct rn_feedback){
						     .qpn = qpn,
						     .kind = RN_FEEDBACK_REQUESTER_ERROR,
					     });
}

void rn_tx_forget(struct rn_tx *tx, uint32_t qpn)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];

	while (flow->out_head)
		remove_head(tx, flow);
	flow->send_entry = RN_NONE;
	flow->todo = 0;
	flow->expiry_ps = 0;
	flow->parked = false;
	flow->dying = false;
}
