/*
 * MAC, sending half. Frames follow each other on the line without a bubble. A pause of the peer holds them back from
 * the next one on; pause frames of this port go before them, whatever the peer says.
 */
#include <string.h>

#include "nic/mac/internal.h"
#include "sim/stamp.h"

static void stamp(struct rn_mac *mac, const struct rn_packet *packet, uint64_t start_ps)
{
	struct rn_stamp stamp = {.at_ps = start_ps,
				 .host = mac->env->host,
				 .qpn = packet->src_qpn,
				 .wqe_idx = packet->wqe_idx};

	if (!packet->is_request || !mac->env->stamps)
		return;
	if (packet->first_of_wqe) {
		stamp.stage = RN_STAMP_FIRST_PACKET;
		rn_stamps_record(mac->env->stamps, &stamp);
	}
	if (packet->last_of_wqe) {
		stamp.stage = RN_STAMP_LAST_PACKET;
		rn_stamps_record(mac->env->stamps, &stamp);
	}
}

/* --- what holds the port back --- */

static void count_paused(struct rn_mac *mac, uint64_t until_ps)
{
	mac->count.rx_prio3_pause_duration += until_ps - mac->sender.paused_since_ps;
	mac->sender.paused_since_ps = until_ps;
}

static void end_pause(struct rn_mac *mac, uint64_t now_ps)
{
	struct mac_tx_side *tx = &mac->sender;

	if (!tx->is_paused || tx->paused_until_ps > now_ps)
		return;
	count_paused(mac, tx->paused_until_ps);
	tx->is_paused = false;
}

static void hold_back(struct rn_mac *mac, uint32_t quanta, uint64_t now_ps)
{
	struct mac_tx_side *tx = &mac->sender;

	if (tx->is_paused)
		count_paused(mac, now_ps);
	else if (quanta)
		mac->count.rx_prio3_pause_transition++;
	tx->is_paused = quanta;
	tx->paused_since_ps = now_ps;
	tx->paused_until_ps = now_ps + rn_pause_ps(&mac->cable, quanta);
}

static void take_messages(struct rn_mac *mac, uint64_t now_ps)
{
	struct mac_tx_side *tx = &mac->sender;
	struct mac_pause message;

	end_pause(mac, now_ps);
	while (rn_fifo_pop(&mac->pause, &message)) {
		if (message.from_peer) {
			hold_back(mac, message.quanta, now_ps);
			continue;
		}
		tx->is_holding = message.quanta;
		tx->is_due = true;
	}
	if (tx->is_holding && now_ps >= tx->again_ps)
		tx->is_due = true;
}

/* --- the line --- */

/* Put @frame on the line. Returns the time of its first bit. */
static uint64_t put(struct rn_mac *mac, const struct rn_frame *frame)
{
	struct rn_line *line = &mac->sender.line;
	uint64_t end_ps;
	uint64_t start_ps = rn_line_send(line, rn_sim_now_ps(mac->env->sim), frame->bytes, &end_ps);
	struct rn_packet *packet = rn_packet_at(mac->env->packets, frame->packet);

	packet->sent_ps = start_ps;
	stamp(mac, packet, start_ps);
	rn_mac_note_traffic(mac, frame->bytes);
	mac->count.tx_packets_phy++;
	mac->count.tx_bytes_phy += frame->bytes + RN_LINE_FCS_BYTES;
	mac->count.tx_busy_ps += line->free_ps - start_ps;
	rn_fifo_push_at(mac->ports.line_out, frame, start_ps);
	return start_ps;
}

static void put_pause(struct rn_mac *mac)
{
	struct mac_tx_side *tx = &mac->sender;
	uint32_t quanta = tx->is_holding ? mac->params.pause_quanta : 0;
	struct rn_frame frame = {
		.packet = rn_pause_new(mac->env->packets, mac->ports.identity->smac, quanta),
		.bytes = RN_LINE_MIN_FRAME_BYTES,
	};
	uint64_t start_ps;

	rn_packet_at(mac->env->packets, frame.packet)->src_host = mac->env->host;
	start_ps = put(mac, &frame);
	mac->count.tx_prio3_pause++;
	if (tx->holding_since_ps)
		mac->count.tx_prio3_pause_duration += start_ps - tx->holding_since_ps;
	tx->holding_since_ps = quanta ? start_ps : 0;
	tx->is_due = false;
	/* Again before the peer's time is up. */
	tx->again_ps = start_ps + rn_pause_ps(&mac->cable, quanta) / 2;
	if (quanta)
		rn_block_wake_at(&mac->tx, tx->again_ps);
}

/* What the sender of the frame would do to its own buffer. */
static bool is_own(const struct rn_mac *mac, const struct rn_frame *frame)
{
	const struct rn_packet *packet = rn_packet_at(mac->env->packets, frame->packet);

	return memcmp(packet->dmac, packet->smac, sizeof(packet->dmac)) == 0;
}

/* A frame that may go now, NULL when there is none. */
static const struct rn_frame *next_frame(struct rn_mac *mac, enum rn_stall *stall)
{
	const struct mac_tx_side *tx = &mac->sender;
	const struct rn_frame *frame = rn_fifo_peek(mac->ports.tx_frame);

	if (!frame)
		return NULL;
	/* No cable, no pause: what loops back waits here, for the message that ends it. */
	if (!tx->is_paused && !(tx->is_holding && is_own(mac, frame)))
		return frame;
	*stall = RN_STALL_CREDIT;
	if (tx->is_paused)
		rn_block_wake_at(&mac->tx, tx->paused_until_ps);
	return NULL;
}

/* The first edge whose cycle holds the end of the gap. */
static void wake_for_line(struct rn_mac *mac)
{
	uint64_t cycle = rn_clock_cycle_at(&mac->clock, mac->sender.line.free_ps + 1) - 1;

	rn_block_wake_at(&mac->tx, rn_clock_edge_ps(&mac->clock, cycle));
}

/* One frame, taken as soon as it can follow the one on the line without a bubble. Its fifo wakes for the next. */
void rn_mac_tx_tick(void *self, uint64_t cycle)
{
	struct rn_mac *mac = self;
	uint64_t next_edge_ps = rn_clock_edge_ps(&mac->clock, cycle + 1);
	enum rn_stall stall = RN_STALL_NONE;
	const struct rn_frame *frame;
	bool busy = false;

	take_messages(mac, rn_sim_now_ps(mac->env->sim));
	frame = next_frame(mac, &stall);
	if (!frame && !mac->sender.is_due) {
		rn_block_account(&mac->tx, 0, stall);
		return;
	}
	if (mac->sender.line.free_ps >= next_edge_ps) {
		stall = RN_STALL_CREDIT;
		wake_for_line(mac);
	} else if (!rn_fifo_can_push(mac->ports.line_out)) {
		stall = RN_STALL_OUTPUT;
	} else if (mac->sender.is_due) {
		put_pause(mac);
		busy = true;
		if (frame)
			rn_block_wake_next(&mac->tx);
	} else {
		put(mac, frame);
		rn_fifo_drop(mac->ports.tx_frame);
		busy = true;
	}
	rn_block_account(&mac->tx, busy, busy ? RN_STALL_NONE : stall);
}
