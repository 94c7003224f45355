/*
 * Transport tx: the response sender. ACKs, NAKs and READ executions wait in a pool of jobs, a list a QP
 * in PSN order; QPs take turns of a few packets. An ACK not yet begun is replaced by a later one of its QP.
 */
#include "base/bits.h"
#include "base/mem.h"
#include "nic/transport/header.h"
#include "nic/transport/tables.h"
#include "nic/transport/tx.h"
#include "wire/opcode.h"
#include "wire/psn.h"

void rn_tx_reply_init(struct rn_tx *tx)
{
	uint32_t jobs = tx->params->reply_jobs;

	tx->job = rn_calloc(jobs, sizeof(*tx->job));
	for (uint32_t i = 0; i < jobs; i++)
		tx->job[i].next = i + 2 > jobs ? RN_NONE : i + 2;
	tx->job_free = 1;
	tx->delay = rn_calloc(jobs, sizeof(*tx->delay));
}

static void make_runnable(struct rn_tx *tx, uint32_t qpn)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];

	flow->delayed = false;
	if (flow->replying)
		return;
	flow->replying = true;
	flow->reply_next = RN_NONE;
	if (tx->reply_tail)
		tx->flow[tx->reply_tail - 1].reply_next = qpn + 1;
	else
		tx->reply_head = qpn + 1;
	if (!tx->reply_tail)
		tx->reply_quantum_left = tx->params->reply_quantum_packets;
	tx->reply_tail = qpn + 1;
}

/* The queue pair at the head has had its share or has nothing left. */
static void rotate(struct rn_tx *tx)
{
	uint32_t qpn = tx->reply_head - 1;
	struct rn_tx_flow *flow = &tx->flow[qpn];

	tx->reply_head = flow->reply_next;
	if (!tx->reply_head)
		tx->reply_tail = RN_NONE;
	flow->replying = false;
	tx->reply_quantum_left = tx->params->reply_quantum_packets;
	if (flow->job_head)
		make_runnable(tx, qpn);
}

/* An ACK that may wait for a later one; false when there is no room to remember it. */
static bool delay(struct rn_tx *tx, uint32_t qpn)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];
	uint32_t size = tx->params->reply_jobs;

	if (!tx->params->ack_delay_ps || tx->delay_used == size)
		return false;
	flow->delayed = true;
	flow->delay_due_ps = rn_sim_now_ps(tx->env->sim) + tx->params->ack_delay_ps;
	tx->delay[(tx->delay_head + tx->delay_used++) % size] =
		(struct rn_tx_delay){.qpn = qpn, .due_ps = flow->delay_due_ps};
	return true;
}

static void end_delays(struct rn_tx *tx)
{
	while (tx->delay_used) {
		const struct rn_tx_delay *first = &tx->delay[tx->delay_head];
		struct rn_tx_flow *flow = &tx->flow[first->qpn];

		if (first->due_ps > rn_sim_now_ps(tx->env->sim)) {
			rn_block_wake_at(&tx->block, first->due_ps);
			return;
		}
		if (flow->delayed && flow->delay_due_ps == first->due_ps)
			make_runnable(tx, first->qpn);
		tx->delay_head = (tx->delay_head + 1) % tx->params->reply_jobs;
		tx->delay_used--;
	}
}

static void add_job(struct rn_tx *tx, const struct rn_reply *reply)
{
	struct rn_tx_flow *flow = &tx->flow[reply->qpn];
	uint32_t ref = tx->job_free;
	struct rn_tx_job *job = &tx->job[ref - 1];
	bool is_first = !flow->job_head;

	tx->job_free = job->next;
	*job = (struct rn_tx_job){.reply = *reply};
	if (is_first)
		flow->job_head = ref;
	else
		tx->job[flow->job_tail - 1].next = ref;
	flow->job_tail = ref;
	if (is_first && reply->kind == RN_REPLY_ACK && delay(tx, reply->qpn))
		return;
	make_runnable(tx, reply->qpn);
}

static bool merge(struct rn_tx *tx, const struct rn_reply *reply)
{
	struct rn_tx_flow *flow = &tx->flow[reply->qpn];
	struct rn_tx_job *last = flow->job_tail ? &tx->job[flow->job_tail - 1] : NULL;

	if (!last || last->reply.kind != RN_REPLY_ACK || reply->kind != RN_REPLY_ACK)
		return false;
	rn_packet_put(tx->env->packets, last->reply.packet);
	last->reply.packet = reply->packet;
	tx->count->acks_merged++;
	return true;
}

void rn_tx_take_replies(struct rn_tx *tx)
{
	const struct rn_reply *reply;

	while (tx->job_free && (reply = rn_fifo_peek(tx->reply))) {
		tx->busy = true;
		if (tx->flow[reply->qpn].dying)
			rn_packet_put(tx->env->packets, reply->packet);
		else if (!merge(tx, reply))
			add_job(tx, reply);
		rn_fifo_drop(tx->reply);
	}
	end_delays(tx);
}

/* Takes the job off its QP's list; its packet has another owner. */
static void end_job(struct rn_tx *tx, uint32_t qpn)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];
	uint32_t ref = flow->job_head;

	flow->job_head = tx->job[ref - 1].next;
	if (!flow->job_head)
		flow->job_tail = RN_NONE;
	tx->job[ref - 1].next = tx->job_free;
	tx->job_free = ref;
	if (rn_fifo_peek(tx->reply))
		rn_block_wake_next(&tx->block);
}

void rn_tx_drop_jobs(struct rn_tx *tx, uint32_t qpn)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];

	flow->reply_epoch++;
	flow->delayed = false;
	while (flow->job_head) {
		rn_packet_put(tx->env->packets, tx->job[flow->job_head - 1].reply.packet);
		end_job(tx, qpn);
	}
}

static uint8_t read_opcode(const struct rn_tx_job *job, uint32_t packets)
{
	bool first = !job->sent_packets && !job->reply.continued;
	bool last = job->sent_packets + 1 == packets;

	if (first && last)
		return RN_BTH_READ_RESPONSE_ONLY;
	if (first)
		return RN_BTH_READ_RESPONSE_FIRST;
	return last ? RN_BTH_READ_RESPONSE_LAST : RN_BTH_READ_RESPONSE_MIDDLE;
}

/* Header of the next packet of a READ; the last one is the job's own. */
static uint32_t make_read_packet(struct rn_tx *tx, const struct rn_tx_job *job, uint32_t packets)
{
	uint32_t number = job->sent_packets;
	uint32_t idx = job->reply.packet;
	uint64_t offset = (uint64_t)number << job->reply.mtu_log2;

	if (number + 1 != packets)
		idx = rn_packet_clone(tx->env->packets, idx);

	struct rn_packet *packet = rn_packet_at(tx->env->packets, idx);

	packet->opcode = read_opcode(job, packets);
	packet->psn = rn_psn_add(packet->psn, number);
	packet->payload_bytes =
		(uint16_t)rn_min_u64(job->reply.bytes - offset, 1u << job->reply.mtu_log2);
	packet->pad = (uint8_t)(-packet->payload_bytes & 3);
	if (packet->payload_bytes)
		packet->payload_buf = rn_buffer_get(tx->env->buffers);
	return idx;
}

static void send_read(struct rn_tx *tx, uint32_t qpn, struct rn_tx_job *job)
{
	struct rn_tx_flow *flow = &tx->flow[qpn];
	uint32_t packets = rn_transport_packets(job->reply.bytes, job->reply.mtu_log2);
	uint64_t offset = (uint64_t)job->sent_packets << job->reply.mtu_log2;
	uint32_t idx = make_read_packet(tx, job, packets);
	const struct rn_packet *packet = rn_packet_at(tx->env->packets, idx);
	uint32_t at = rn_tx_ring_add(tx, &tx->replies, qpn, flow->reply_epoch, idx);
	struct rn_tx_slot *slot = &tx->replies.slot[at];

	if (packet->payload_bytes) {
		rn_fifo_push(tx->ports.resp_dma_req, &(struct rn_dma_req){
							     .op = RN_DMA_READ,
							     .access = RN_ACCESS_REMOTE_READ,
							     .token = (uint16_t)at,
							     .buf = packet->payload_buf,
							     .len = packet->payload_bytes,
							     .key = job->reply.rkey,
							     .pd = job->reply.pd,
							     .addr = job->reply.va + offset,
						     });
		slot->pending++;
	}
	rn_tx_slot_close(tx, slot);
	if (++job->sent_packets != packets)
		return;
	if (job->reply.counted)
		rn_outbox_put(&tx->feedback, &(struct rn_feedback){
						     .qpn = qpn,
						     .kind = RN_FEEDBACK_READ_DONE,
					     });
	end_job(tx, qpn);
}

static void send_ack(struct rn_tx *tx, uint32_t qpn, const struct rn_tx_job *job)
{
	uint32_t at =
		rn_tx_ring_add(tx, &tx->replies, qpn, tx->flow[qpn].reply_epoch, job->reply.packet);

	end_job(tx, qpn);
	rn_tx_slot_close(tx, &tx->replies.slot[at]);
}

static bool can_send(struct rn_tx *tx, const struct rn_tx_job *job)
{
	if (rn_tx_ring_is_full(&tx->replies)) {
		tx->stall = RN_STALL_BUFFER;
		return false;
	}
	if (job->reply.kind != RN_REPLY_READ)
		return true;
	tx->stall = RN_STALL_OUTPUT;
	return !tx->feedback.count && rn_fifo_can_push(tx->ports.resp_dma_req);
}

void rn_tx_reply_step(struct rn_tx *tx)
{
	/* Lists may have been emptied under their QPs. */
	while (tx->reply_head && !tx->flow[tx->reply_head - 1].job_head)
		rotate(tx);
	if (!tx->reply_head)
		return;
	if (tx->cycle < tx->reply_cycle) {
		rn_block_wake_in(&tx->block, tx->reply_cycle - tx->cycle);
		return;
	}

	uint32_t qpn = tx->reply_head - 1;
	struct rn_tx_job *job = &tx->job[tx->flow[qpn].job_head - 1];

	if (!can_send(tx, job))
		return;
	if (job->reply.kind == RN_REPLY_READ)
		send_read(tx, qpn, job);
	else
		send_ack(tx, qpn, job);
	tx->busy = true;
	tx->reply_cycle = tx->cycle + tx->params->reply_packet_cycles;
	rn_occupy(&tx->occupancy, tx->cycle, tx->params->reply_packet_cycles);
	if (!tx->flow[qpn].job_head || !--tx->reply_quantum_left)
		rotate(tx);
	if (tx->reply_head)
		rn_block_wake_in(&tx->block, tx->params->reply_packet_cycles);
}

bool rn_tx_reply_failed(struct rn_tx *tx, struct rn_tx_slot *slot)
{
	struct rn_packet *packet = rn_packet_at(tx->env->packets, slot->packet);

	if (tx->feedback.count > RN_OUTBOX_MESSAGES / 2)
		return false;
	rn_tx_drop_jobs(tx, slot->qpn);
	slot->epoch = tx->flow[slot->qpn].reply_epoch;
	slot->status = RN_DMA_OK;
	rn_buffer_put(tx->env->buffers, packet->payload_buf);
	packet->payload_buf = RN_BUFFER_NONE;
	packet->payload_bytes = 0;
	packet->pad = 0;
	packet->opcode = RN_BTH_ACKNOWLEDGE;
	packet->aeth_syndrome = RN_AETH_NAK | RN_NAK_REMOTE_OPERATIONAL;
	packet->aeth_msn = rn_psn_add(packet->aeth_msn, RN_PSN_MASK);
	rn_outbox_put(&tx->feedback, &(struct rn_feedback){
					     .qpn = slot->qpn,
					     .kind = RN_FEEDBACK_REPLY_ERROR,
				     });
	return true;
}
