/*
 * Transport tx: turns. A work item lets its QP send up to a quantum of packets of one WQE:
 *
 *   NONE    a work item is taken
 *   START   its context is wanted; may the WQE begin or go on (turn_check.c)?
 *   BUILD   the next packet gets its header, PSN and slot
 *   GATHER  its payload's DMA reads are issued, one a cycle; then BUILD again, or the turn ends
 *
 * Between packets other operations may come in; one that sets the QP back changes its epoch, and the
 * turn ends.
 */
#include "base/bits.h"
#include "nic/transport/header.h"
#include "nic/transport/tx.h"
#include "sim/stamp.h"
#include "wire/psn.h"

static const struct rn_wqe *wqe_of(const struct rn_tx *tx)
{
	return &tx->ports.sq_slots->slot[tx->turn.work.slot];
}

static void end_turn(struct rn_tx *tx)
{
	struct rn_tx_turn *turn = &tx->turn;

	if (turn->work.status == RN_WORK_OK)
		rn_outbox_put(&tx->frees, &(struct rn_slot_free){.slot = turn->work.slot});
	rn_tx_put_turn(tx, turn->work.qpn, turn->kind, turn->next);
	turn->state = RN_TURN_STATE_NONE;
	tx->busy = true;
	tx->freed = true;
}

/* END may wait for the gather; PARK is decided between packets only, so no wake-up is missed. */
static void finish(struct rn_tx *tx, enum rn_turn_kind kind, uint16_t next)
{
	struct rn_tx_turn *turn = &tx->turn;

	turn->kind = (uint8_t)kind;
	turn->next = next;
	turn->last = true;
	if (kind == RN_TURN_PARK) {
		RN_ASSERT(turn->state != RN_TURN_STATE_GATHER);
		tx->flow[turn->work.qpn].parked = true;
		tx->count->turns_parked++;
	}
	if (turn->state != RN_TURN_STATE_GATHER)
		end_turn(tx);
}

static uint16_t next_known(const struct rn_tx *tx)
{
	const struct rn_work *work = &tx->turn.work;

	return work->status == RN_WORK_OK ? wqe_of(tx)->wqe_idx : work->pi;
}

void rn_tx_turn_abandon(struct rn_tx *tx, uint32_t qpn)
{
	struct rn_tx_turn *turn = &tx->turn;

	if (turn->work.qpn != qpn)
		return;
	if (turn->state != RN_TURN_STATE_START && turn->state != RN_TURN_STATE_BUILD)
		return;
	finish(tx, tx->flow[qpn].dying ? RN_TURN_END : RN_TURN_PARK, next_known(tx));
}

void rn_tx_turn_drop(struct rn_tx *tx)
{
	tx->count->bad_work++;
	finish(tx, RN_TURN_END, tx->turn.work.pi);
}

static void take_work(struct rn_tx *tx)
{
	struct rn_tx_turn *turn = &tx->turn;

	/* Room for the answer of an item that is refused at once. */
	if (tx->turns.count || tx->frees.count || !rn_fifo_pop(tx->ports.work, &turn->work))
		return;
	tx->busy = true;
	turn->state = RN_TURN_STATE_START;
	turn->last = false;
	turn->packets = 0;
	tx->count->turns++;
	if (turn->work.status == RN_WORK_EMPTY)
		finish(tx, RN_TURN_END, turn->work.pi);
	else if (turn->work.qpn >= tx->params->max_qps || turn->work.status == RN_WORK_BAD_QP)
		rn_tx_turn_drop(tx);
	else if (tx->flow[turn->work.qpn].dying || tx->flow[turn->work.qpn].paused)
		rn_tx_turn_abandon(tx, turn->work.qpn);
	else
		tx->freed = true;
}

/* The part of the message that the gather has come to; zero-length segments are passed over. */
static const struct rn_sge *next_sge(struct rn_tx_turn *turn, const struct rn_wqe *wqe)
{
	while (turn->sge < wqe->sge_count && turn->sge_off == wqe->sge[turn->sge].bytes) {
		turn->sge++;
		turn->sge_off = 0;
	}
	return turn->sge < wqe->sge_count ? &wqe->sge[turn->sge] : NULL;
}

static void end_gather(struct rn_tx *tx)
{
	struct rn_tx_turn *turn = &tx->turn;

	rn_tx_slot_close(tx, &tx->requests.slot[turn->slot]);
	turn->state = RN_TURN_STATE_BUILD;
	if (turn->last)
		end_turn(tx);
}

static void gather(struct rn_tx *tx)
{
	struct rn_tx_turn *turn = &tx->turn;
	struct rn_tx_slot *slot = &tx->requests.slot[turn->slot];
	const struct rn_sge *sge = next_sge(turn, wqe_of(tx));

	if (!sge || slot->epoch != tx->flow[slot->qpn].epoch) {
		slot->status = sge ? RN_DMA_OK : RN_DMA_PROTECTION;
		end_gather(tx);
		return;
	}
	if (!rn_fifo_can_push(tx->ports.tx_dma_req)) {
		tx->stall = RN_STALL_OUTPUT;
		return;
	}

	uint32_t bytes = (uint32_t)rn_min_u64(turn->left_bytes, sge->bytes - turn->sge_off);

	const struct rn_packet *packet = rn_packet_at(tx->env->packets, slot->packet);
	bool first = packet->first_of_wqe && !turn->buf_off;

	rn_fifo_push(tx->ports.tx_dma_req, &(struct rn_dma_req){
						   .op = RN_DMA_READ,
						   .token = (uint16_t)turn->slot,
						   .buf = packet->payload_buf,
						   .buf_off = turn->buf_off,
						   .len = bytes,
						   .key = sge->lkey,
						   .pd = turn->pd,
						   .addr = sge->va + turn->sge_off,
						   .trace = first ? RN_DMA_TRACE_TRANSLATION : 0,
						   .trace_qpn = slot->qpn,
						   .trace_wqe = packet->wqe_idx,
					   });
	slot->pending++;
	turn->sge_off += bytes;
	turn->buf_off = (uint16_t)(turn->buf_off + bytes);
	turn->left_bytes -= bytes;
	turn->gathered_bytes += bytes;
	tx->busy = true;
	if (turn->left_bytes)
		rn_block_wake_next(&tx->block);
	else
		end_gather(tx);
}

void rn_tx_turn_step(struct rn_tx *tx)
{
	struct rn_tx_turn *turn = &tx->turn;

	if (turn->state == RN_TURN_STATE_GATHER)
		gather(tx);
	if (turn->state == RN_TURN_STATE_NONE)
		take_work(tx);
	if (turn->state != RN_TURN_STATE_BUILD)
		return;
	if (rn_tx_ring_is_full(&tx->requests))
		tx->stall = RN_STALL_BUFFER;
	else if (tx->cycle < turn->next_cycle)
		rn_block_wake_in(&tx->block, turn->next_cycle - tx->cycle);
	else
		tx->freed = true;
}

bool rn_tx_turn_wants_context(const struct rn_tx *tx, uint64_t cycle)
{
	const struct rn_tx_turn *turn = &tx->turn;

	if (rn_tx_ring_is_full(&tx->requests))
		return false;
	if (turn->state == RN_TURN_STATE_START)
		return true;
	return turn->state == RN_TURN_STATE_BUILD && cycle >= turn->next_cycle;
}

/* Find the segment in which byte @offset of the message lies. */
static void seek(struct rn_tx_turn *turn, const struct rn_wqe *wqe, uint64_t offset)
{
	if (turn->packets && turn->gathered_bytes == offset)
		return;
	turn->sge = 0;
	turn->gathered_bytes = offset;
	while (turn->sge < wqe->sge_count && offset >= wqe->sge[turn->sge].bytes)
		offset -= wqe->sge[turn->sge++].bytes;
	turn->sge_off = (uint32_t)offset;
}

/* Where the payload comes from: the WQE itself, or reads into a buffer. */
static void begin_gather(struct rn_tx *tx, const struct rn_hw_qpc *qpc, struct rn_packet *packet,
			 uint64_t offset)
{
	const struct rn_wqe *wqe = wqe_of(tx);
	struct rn_tx_turn *turn = &tx->turn;

	turn->state = RN_TURN_STATE_GATHER;
	if (!packet->payload_bytes) {
		end_gather(tx);
		return;
	}
	if (wqe->inline_buf != RN_BUFFER_NONE) {
		rn_buffer_hold(tx->env->buffers, wqe->inline_buf);
		packet->payload_buf = wqe->inline_buf;
		packet->payload_off = (uint16_t)offset;
		end_gather(tx);
		return;
	}
	packet->payload_buf = rn_buffer_get(tx->env->buffers);
	turn->pd = qpc->pd;
	turn->left_bytes = packet->payload_bytes;
	turn->buf_off = 0;
	seek(turn, wqe, offset);
}

/* Move on behind a packet that takes @psns PSNs. True when it ends its WQE. */
static bool advance(struct rn_tx *tx, struct rn_hw_qpc_requester *r,
		    const struct rn_tx_entry *entry, uint32_t psns)
{
	struct rn_tx_flow *flow = &tx->flow[entry->qpn];

	if (rn_psn_diff(r->next_psn, r->max_psn) < 0)
		tx->count->tx_retransmitted_packets++;
	r->next_psn = rn_psn_add(r->next_psn, psns);
	if (rn_psn_diff(r->next_psn, r->max_psn) > 0 || r->max_psn == r->una_psn)
		r->max_psn = r->next_psn;
	if (r->next_psn != rn_psn_add(entry->first_psn, entry->psns))
		return false;
	r->sq_next = (uint16_t)(r->sq_next + entry->wqebbs);
	flow->send_entry = entry->next;
	return true;
}

static void stamp(const struct rn_tx *tx, const struct rn_tx_entry *entry,
		  enum rn_stamp_stage stage)
{
	rn_stamps_record(tx->env->stamps, &(struct rn_stamp){
						  .at_ps = rn_sim_now_ps(tx->env->sim),
						  .host = tx->env->host,
						  .qpn = entry->qpn,
						  .wqe_idx = entry->wqe_idx,
						  .stage = (uint8_t)stage,
					  });
}

static void build(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	struct rn_tx_turn *turn = &tx->turn;
	uint32_t qpn = turn->work.qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];
	struct rn_tx_entry *entry = rn_tx_entry_at(tx, flow->send_entry);
	uint32_t number = rn_psn_ahead(r->next_psn, entry->first_psn);
	uint32_t idx = rn_packet_get(tx->env->packets);
	struct rn_packet *packet = rn_packet_at(tx->env->packets, idx);

	if (!number)
		stamp(tx, entry, RN_STAMP_CONTEXT);
	rn_transport_fill_header(packet, qpc, tx->ports.identity, tx->env->host);

	uint32_t psns = rn_tx_request_packet(tx, qpc, entry, wqe_of(tx), packet);
	uint64_t offset = (uint64_t)number << rn_transport_mtu_log2(qpc);

	flow->expiry_ps = rn_tx_expiry_ps(tx, qpc);
	turn->slot = rn_tx_ring_add(tx, &tx->requests, qpn, flow->epoch, idx);
	tx->requests.slot[turn->slot].stamp = packet->first_of_wqe;
	tx->requests.slot[turn->slot].wqe_idx = entry->wqe_idx;
	begin_gather(tx, qpc, packet, offset);
	turn->packets++;
	turn->next_cycle = tx->cycle + tx->params->tx_packet_cycles;
	rn_occupy(&tx->occupancy, tx->cycle, tx->params->tx_packet_cycles);
	if (advance(tx, r, entry, psns) || turn->packets == tx->params->quantum_packets)
		finish(tx, RN_TURN_END, (uint16_t)r->sq_next);
}

void rn_tx_turn_run(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_tx_turn *turn = &tx->turn;
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	struct rn_tx_flow *flow = &tx->flow[turn->work.qpn];

	if (turn->state == RN_TURN_STATE_START) {
		enum rn_tx_check check = rn_tx_turn_check(tx, qpc);

		if (check != RN_CHECK_GO) {
			finish(tx, check == RN_CHECK_PARK ? RN_TURN_PARK : RN_TURN_END, turn->next);
			return;
		}
		turn->state = RN_TURN_STATE_BUILD;
		turn->epoch = flow->epoch;
		/* The interval holds across turns too. */
		if (tx->cycle < turn->next_cycle)
			return;
	}
	if (turn->epoch != flow->epoch) {
		finish(tx, RN_TURN_END, (uint16_t)r->sq_next);
		return;
	}

	const struct rn_tx_entry *entry = rn_tx_entry_at(tx, flow->send_entry);
	bool closed = entry->opcode != RN_WQE_RDMA_READ &&
		      rn_psn_ahead(r->next_psn, r->una_psn) >= tx->params->max_outstanding_psns;

	if (entry->status != RN_WC_SUCCESS || closed)
		finish(tx, RN_TURN_PARK, (uint16_t)r->sq_next);
	else
		build(tx, qpc);
}

void rn_tx_payload_failed(struct rn_tx *tx, struct rn_hw_qpc *qpc)
{
	struct rn_hw_qpc_requester *r = rn_tx_requester(qpc);
	uint32_t qpn = tx->op_qpn;
	struct rn_tx_flow *flow = &tx->flow[qpn];
	uint32_t ref = rn_tx_entry_of_psn(tx, qpn, flow->fail_psn);

	if (!ref || rn_tx_in_error(qpc, r) ||
	    rn_psn_ahead(flow->fail_psn, r->una_psn) >= rn_psn_ahead(r->max_psn, r->una_psn))
		return;

	struct rn_tx_entry *entry = rn_tx_entry_at(tx, ref);

	tx->count->local_protection_errors++;
	if (entry->status == RN_WC_SUCCESS)
		entry->status = RN_WC_LOC_PROT_ERR;
	/* Nothing behind it was sent; nothing will be. */
	r->next_psn = flow->fail_psn;
	r->sq_next = entry->wqe_idx;
	flow->send_entry = ref;
}
