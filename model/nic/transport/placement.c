/*
 * Transport rx: slots of requests in execution, a ring in order of arrival. Keys are checked and DMA writes
 * answered out of order; writes are issued, and what a request causes (completion, ACK, NAK, READ to be
 * served) leaves, in order. So a READ is served after the data of earlier WRITEs has entered the posted queue,
 * and an ACK says that the data has.
 */
#include "base/bits.h"
#include "base/mem.h"
#include "nic/transport/rx.h"
#include "wire/psn.h"

void rn_rx_slots_init(struct rn_rx *rx)
{
	rx->slot = rn_calloc(rx->params->rx_slots, sizeof(*rx->slot));
}

static uint32_t after(const struct rn_rx *rx, uint32_t idx)
{
	return idx + 1 == rx->params->rx_slots ? 0 : idx + 1;
}

struct rn_rx_slot *rn_rx_slot_add(struct rn_rx *rx, uint32_t qpn)
{
	uint32_t idx = (rx->slot_head + rx->slot_used) % rx->params->rx_slots;
	struct rn_rx_slot *slot = &rx->slot[idx];

	RN_ASSERT(!rn_rx_slots_are_full(rx));
	*slot = (struct rn_rx_slot){.qpn = qpn, .packet = RN_PACKET_NONE, .issued = true};
	rx->slot_used++;
	rx->slot_unissued++;
	rx->flow[qpn].inflight++;
	return slot;
}

void rn_rx_check_key(struct rn_rx *rx, struct rn_rx_slot *slot, uint8_t access, uint64_t va,
		     uint32_t bytes)
{
	rn_fifo_push(rx->ports.rx_pte_req, &(struct rn_pte_req){
						   .id = (uint16_t)(slot - rx->slot),
						   .access = access,
						   .check_only = 1,
						   .key = slot->rkey,
						   .pd = slot->pd,
						   .length = bytes,
						   .va = va,
					   });
	slot->key_check = RN_RX_CHECK_WAIT;
}

void rn_rx_take_answers(struct rn_rx *rx)
{
	struct rn_pte_rsp pte;
	struct rn_dma_rsp dma;

	while (rn_fifo_pop(rx->ports.rx_pte_rsp, &pte)) {
		RN_ASSERT(pte.id < rx->params->rx_slots);
		rx->slot[pte.id].key_check = RN_RX_CHECK_DONE;
		rx->slot[pte.id].key_status = pte.status;
		rx->busy = true;
	}
	while (rn_fifo_pop(rx->ports.rx_dma_rsp, &dma)) {
		RN_ASSERT(dma.token < rx->params->rx_slots && rx->slot[dma.token].pending);
		rx->slot[dma.token].pending--;
		if (dma.status != RN_DMA_OK)
			rx->slot[dma.token].dma_status = dma.status;
		rx->busy = true;
	}
}

/* Where the next bytes of @slot go; false when its receive WQE has no more room. */
static bool next_piece(const struct rn_rx *rx, struct rn_rx_slot *slot, struct rn_dma_req *req)
{
	if (slot->remote) {
		req->len = slot->left_bytes;
		req->key = slot->rkey;
		req->access = RN_ACCESS_REMOTE_WRITE;
		req->addr = slot->va;
		return true;
	}

	const struct rn_wqe *wqe = &rx->ports.rq_slots->slot[slot->rq_slot - 1];

	while (slot->sge < wqe->sge_count && slot->sge_off == wqe->sge[slot->sge].bytes) {
		slot->sge++;
		slot->sge_off = 0;
	}
	if (slot->sge == wqe->sge_count)
		return false;

	const struct rn_sge *sge = &wqe->sge[slot->sge];

	req->len = (uint32_t)rn_min_u64(slot->left_bytes, sge->bytes - slot->sge_off);
	req->key = sge->lkey;
	req->access = RN_ACCESS_LOCAL_WRITE;
	req->addr = sge->va + slot->sge_off;
	slot->sge_off += req->len;
	return true;
}

/* One DMA write of the slot. */
static void place(struct rn_rx *rx, struct rn_rx_slot *slot, uint32_t idx)
{
	struct rn_dma_req req = {
		.op = RN_DMA_WRITE,
		.token = (uint16_t)idx,
		.buf = rn_packet_at(rx->env->packets, slot->packet)->payload_buf,
		.buf_off = slot->buf_off,
		.pd = slot->pd,
	};

	if (!next_piece(rx, slot, &req)) {
		slot->dma_status = RN_DMA_PROTECTION;
		slot->issued = true;
		return;
	}
	slot->left_bytes -= req.len;
	slot->buf_off = (uint16_t)(slot->buf_off + req.len);
	if (!slot->left_bytes) {
		slot->issued = true;
		req.flags = slot->last ? RN_DMA_LAST : 0;
	}
	slot->pending++;
	rn_fifo_push(rx->ports.rx_dma_req, &req);
}

void rn_rx_place(struct rn_rx *rx)
{
	while (rx->slot_unissued) {
		struct rn_rx_slot *slot = &rx->slot[rx->slot_issue];

		if (slot->key_check == RN_RX_CHECK_WAIT)
			return;
		/* Nothing of a QP that has failed, or will when this request's turn comes, reaches memory any more. */
		if (slot->key_status != RN_PTE_OK)
			rx->flow[slot->qpn].refused = true;
		if (!slot->issued && (rx->flow[slot->qpn].dead || rx->flow[slot->qpn].refused))
			slot->issued = true;
		if (!slot->issued) {
			if (!rn_fifo_can_push(rx->ports.rx_dma_req)) {
				rx->stall = RN_STALL_OUTPUT;
				return;
			}
			place(rx, slot, rx->slot_issue);
			rx->busy = true;
			if (!slot->issued || rx->slot_unissued > 1)
				rn_block_wake_next(&rx->block);
			if (!slot->issued)
				return;
			rx->slot_issue = after(rx, rx->slot_issue);
			rx->slot_unissued--;
			return;
		}
		rx->slot_issue = after(rx, rx->slot_issue);
		rx->slot_unissued--;
	}
}

/* The request turned out to fail after its check: the QP fails with it, and its peer is told. */
static void turn_into_failure(struct rn_rx *rx, struct rn_rx_slot *slot, uint8_t code,
			      uint8_t event)
{
	struct rn_rx_flow *flow = &rx->flow[slot->qpn];

	if (slot->replies) {
		rn_packet_put(rx->env->packets, slot->reply.packet);
		slot->replies = false;
	}
	slot->fatal = true;
	slot->event = event;
	flow->nak_due = true;
	flow->nak_code = code;
	flow->nak_psn = slot->psn;
	flow->nak_msn = slot->msn;
	if (code == RN_NAK_REMOTE_ACCESS)
		rx->count->resp_remote_access_errors++;
	else
		rx->count->resp_remote_operational_errors++;
}

static void fail_completion(struct rn_rx_slot *slot, uint8_t status)
{
	slot->completion.status = status;
	slot->completion.vendor_syndrome = rn_vendor_syndrome(status, true);
	slot->completion.opcode = RN_CQE_RECV_ERR;
}

/* Executed in vain: its receive WQE alone is answered, as flushed, and once. */
static void flush_slot(struct rn_rx *rx, struct rn_rx_slot *slot)
{
	const struct rn_rx_flow *flow = &rx->flow[slot->qpn];

	if (slot->replies)
		rn_packet_put(rx->env->packets, slot->reply.packet);
	slot->replies = false;
	slot->fatal = false;
	if (slot->completion.status == RN_WC_SUCCESS)
		fail_completion(slot, RN_WC_WR_FLUSH_ERR);
	if (flow->failed_receive && flow->failed_idx == slot->completion.wqe_idx)
		slot->completes = false;
}

/*
 * Memory of a remote key refused the request. The receive WQE that a WRITE with immediate consumes tells of it;
 * those behind it are flushed.
 */
static void fail_remote(struct rn_rx *rx, struct rn_rx_slot *slot, uint8_t code, uint8_t event)
{
	turn_into_failure(rx, slot, code, event);
	fail_completion(slot, RN_WC_LOC_ACCESS_ERR);
}

/* Receive WQE in mid-message whose memory cannot be written. */
static void fail_receive(struct rn_rx *rx, struct rn_rx_slot *slot)
{
	struct rn_rx_flow *flow = &rx->flow[slot->qpn];

	turn_into_failure(rx, slot, RN_NAK_REMOTE_OPERATIONAL, 0);
	fail_completion(slot, RN_WC_LOC_PROT_ERR);
	slot->completes = true;
	flow->failed_receive = true;
	flow->failed_idx = slot->completion.wqe_idx;
}

static void judge(struct rn_rx *rx, struct rn_rx_slot *slot)
{
	slot->judged = true;
	if (slot->final)
		return;
	if (rx->flow[slot->qpn].dead) {
		flush_slot(rx, slot);
	} else if (slot->key_status != RN_PTE_OK ||
		   (slot->remote && slot->dma_status == RN_DMA_PROTECTION)) {
		fail_remote(rx, slot, RN_NAK_REMOTE_ACCESS, RN_QP_EVENT_ACCESS_ERR);
	} else if (slot->dma_status != RN_DMA_OK && slot->remote) {
		fail_remote(rx, slot, RN_NAK_REMOTE_OPERATIONAL, RN_QP_EVENT_FATAL);
	} else if (slot->dma_status != RN_DMA_OK) {
		fail_receive(rx, slot);
	}
}

static void reply(struct rn_rx *rx, const struct rn_rx_slot *slot)
{
	uint64_t cycles = slot->reply.kind == RN_REPLY_NAK ? rx->params->nak_generation_cycles
							   : rx->params->ack_generation_cycles;

	rn_fifo_push_at(rx->reply, &slot->reply, rn_block_edge_in_ps(&rx->block, cycles));
}

static void complete(struct rn_rx *rx, const struct rn_rx_slot *slot)
{
	rx->count->resp_cqe_error += slot->completion.status != RN_WC_SUCCESS;
	rx->count->resp_cqe_flush_error += slot->completion.status == RN_WC_WR_FLUSH_ERR;
	rn_outbox_put(&rx->completions, &slot->completion);
}

static void end_flow_slot(struct rn_rx *rx, const struct rn_rx_slot *slot)
{
	struct rn_rx_flow *flow = &rx->flow[slot->qpn];

	flow->inflight--;
	if (slot->fatal) {
		flow->dead = true;
		flow->tell = true;
		flow->event = slot->event;
		flow->todo |= RN_RX_TODO_FAIL;
	}
	rn_rx_add_todo(rx, slot->qpn, 0);
}

static bool is_placed(const struct rn_rx *rx, const struct rn_rx_slot *slot)
{
	/* The oldest has been issued when fewer are unissued than used. */
	return rx->slot_used > rx->slot_unissued && !slot->pending;
}

static bool can_leave(struct rn_rx *rx, const struct rn_rx_slot *slot)
{
	if (slot->replies && !rn_fifo_can_push(rx->reply)) {
		rx->stall = RN_STALL_OUTPUT;
		return false;
	}
	/* The boxes are filled by the engine too; both leave room for each other. */
	return rx->completions.count < 2 && rx->frees.count < 2;
}

void rn_rx_retire(struct rn_rx *rx)
{
	struct rn_rx_slot *slot = &rx->slot[rx->slot_head];

	if (!rx->slot_used || !is_placed(rx, slot))
		return;
	if (!slot->judged)
		judge(rx, slot);
	if (!can_leave(rx, slot))
		return;
	if (slot->replies)
		reply(rx, slot);
	if (slot->completes)
		complete(rx, slot);
	if (slot->rq_free)
		rn_rx_free_wqe(rx, slot->rq_slot - 1);
	if (slot->packet != RN_PACKET_NONE)
		rn_packet_put(rx->env->packets, slot->packet);
	end_flow_slot(rx, slot);
	rx->slot_head = after(rx, rx->slot_head);
	rx->slot_used--;
	rx->busy = true;
	rx->again = true;
	if (rx->slot_used && is_placed(rx, &rx->slot[rx->slot_head]))
		rn_block_wake_next(&rx->block);
}
