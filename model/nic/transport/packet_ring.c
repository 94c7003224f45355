/*
 * Transport tx: packet slots. A packet waits in its slot for its payload and leaves in order; one whose QP
 * was set back or has gone meanwhile is dropped unsent. Requests and responses have a ring each, and share
 * the way to the MAC in turn.
 */
#include "base/mem.h"
#include "nic/transport/tables.h"
#include "nic/transport/tx.h"
#include "sim/stamp.h"
#include "wire/opcode.h"

void rn_tx_ring_init(struct rn_tx_ring *ring, uint32_t count)
{
	ring->slot = rn_calloc(count, sizeof(*ring->slot));
	ring->count = count;
}

uint32_t rn_tx_ring_add(struct rn_tx *tx, struct rn_tx_ring *ring, uint32_t qpn, uint32_t epoch,
			uint32_t packet)
{
	uint32_t idx = ring->head + ring->used;

	RN_ASSERT(ring->used < ring->count);
	if (idx >= ring->count)
		idx -= ring->count;
	ring->used++;
	ring->slot[idx] = (struct rn_tx_slot){
		.packet = packet,
		.qpn = qpn,
		.epoch = epoch,
		.open = true,
	};
	tx->flow[qpn].inflight++;
	return idx;
}

/* The payload is complete: the packet may leave after the pipeline's time. */
static void make_ready(struct rn_tx *tx, struct rn_tx_slot *slot)
{
	slot->ready_ps = rn_block_edge_in_ps(&tx->block, tx->params->tx_pipeline_cycles);
	if (slot->stamp)
		rn_stamps_record(tx->env->stamps, &(struct rn_stamp){
							  .at_ps = rn_sim_now_ps(tx->env->sim),
							  .host = tx->env->host,
							  .qpn = slot->qpn,
							  .wqe_idx = slot->wqe_idx,
							  .stage = RN_STAMP_DMA,
						  });
}

void rn_tx_slot_close(struct rn_tx *tx, struct rn_tx_slot *slot)
{
	slot->open = false;
	if (!slot->pending)
		make_ready(tx, slot);
}

static void take_reads(struct rn_tx *tx, struct rn_fifo *answers, struct rn_tx_ring *ring)
{
	struct rn_dma_rsp rsp;

	while (rn_fifo_pop(answers, &rsp)) {
		struct rn_tx_slot *slot = &ring->slot[rsp.token % ring->count];

		RN_ASSERT(rsp.token < ring->count && slot->pending);
		if (rsp.status != RN_DMA_OK)
			slot->status = rsp.status;
		tx->busy = true;
		if (!--slot->pending && !slot->open)
			make_ready(tx, slot);
	}
}

void rn_tx_take_reads(struct rn_tx *tx)
{
	take_reads(tx, tx->ports.tx_dma_rsp, &tx->requests);
	take_reads(tx, tx->ports.resp_dma_rsp, &tx->replies);
}

static void count_packet(struct rn_transport_counters *count, const struct rn_packet *packet)
{
	uint32_t flags = rn_opcode_info(packet->opcode)->flags;

	count->tx_payload_bytes += packet->payload_bytes;
	if (flags & RN_OP_SEND)
		count->tx_send_packets++;
	else if (flags & RN_OP_WRITE)
		count->tx_write_packets++;
	else if (packet->opcode == RN_BTH_READ_REQUEST)
		count->tx_read_requests++;
	else if (flags & RN_OP_READ)
		count->tx_read_response_packets++;
	else if ((packet->aeth_syndrome & RN_AETH_KIND_MASK) == RN_AETH_ACK)
		count->tx_ack_packets++;
	else
		count->tx_nak_packets++;
}

static void free_slot(struct rn_tx *tx, struct rn_tx_ring *ring)
{
	struct rn_tx_slot *slot = &ring->slot[ring->head];

	tx->flow[slot->qpn].inflight--;
	ring->head = ring->head + 1 == ring->count ? 0 : ring->head + 1;
	ring->used--;
	tx->freed = true;
	tx->busy = true;
}

static void send(struct rn_tx *tx, struct rn_tx_ring *ring)
{
	struct rn_tx_slot *slot = &ring->slot[ring->head];
	struct rn_packet *packet = rn_packet_at(tx->env->packets, slot->packet);
	struct rn_tx_flow *flow = &tx->flow[slot->qpn];

	packet->ip_id = tx->ip_id++;
	count_packet(tx->count, packet);
	rn_fifo_push(tx->ports.tx_frame, &(struct rn_frame){
						 .packet = slot->packet,
						 .bytes = rn_packet_frame_bytes(packet),
					 });
	if (ring == &tx->requests && flow->timer == RN_TIMER_OFF && flow->expiry_ps)
		rn_tx_timer_set(tx, slot->qpn, RN_TIMER_ACK,
				rn_sim_now_ps(tx->env->sim) + flow->expiry_ps);
	free_slot(tx, ring);
}

/* Payload that could not be read ends the QP's sending here, in order. */
static void fail(struct rn_tx *tx, struct rn_tx_slot *slot)
{
	struct rn_tx_flow *flow = &tx->flow[slot->qpn];

	flow->epoch++;
	flow->fail_psn = rn_packet_at(tx->env->packets, slot->packet)->psn;
	rn_tx_add_todo(tx, slot->qpn, RN_TODO_PAYLOAD);
}

/* Drop what must not leave; true when the ring's oldest packet can. */
static bool head_is_ready(struct rn_tx *tx, struct rn_tx_ring *ring)
{
	while (ring->used) {
		struct rn_tx_slot *slot = &ring->slot[ring->head];
		bool is_reply = ring == &tx->replies;
		const struct rn_tx_flow *flow = &tx->flow[slot->qpn];

		if (slot->open || slot->pending)
			return false;
		if (slot->epoch == (is_reply ? flow->reply_epoch : flow->epoch)) {
			if (slot->status != RN_DMA_OK && !is_reply)
				fail(tx, slot);
			else if (slot->status == RN_DMA_OK || rn_tx_reply_failed(tx, slot))
				break;
			else
				return false;
		}
		if (slot->epoch != (is_reply ? flow->reply_epoch : flow->epoch)) {
			rn_packet_put(tx->env->packets, slot->packet);
			free_slot(tx, ring);
		}
	}
	if (!ring->used)
		return false;

	uint64_t ready_ps = ring->slot[ring->head].ready_ps;

	if (ready_ps <= rn_sim_now_ps(tx->env->sim))
		return true;
	rn_block_wake_at(&tx->block, ready_ps);
	return false;
}

void rn_tx_emit(struct rn_tx *tx)
{
	if (!tx->requests.used && !tx->replies.used)
		return;

	bool request = head_is_ready(tx, &tx->requests);
	bool reply = head_is_ready(tx, &tx->replies);

	if (!request && !reply)
		return;
	if (!rn_fifo_can_push(tx->ports.tx_frame)) {
		tx->stall = RN_STALL_OUTPUT;
		return;
	}
	bool take_reply = reply && (tx->emit_replies_next || !request);

	send(tx, take_reply ? &tx->replies : &tx->requests);
	tx->emit_replies_next = !take_reply;
	/* The one behind it arms its own wake when it is not ready yet. */
	request = head_is_ready(tx, &tx->requests);
	reply = head_is_ready(tx, &tx->replies);
	if (request || reply)
		rn_block_wake_next(&tx->block);
}
