/*
 * MAC, receiving half. Frames go to transport, or wait in the receive buffer until transport has room. On a
 * lossless link the buffer is measured in bytes: at xoff_bytes the peer is held back, from xon_bytes on it may go on,
 * and what arrives in between has the headroom of the link. Otherwise it is measured in frames, and one
 * that finds it full is lost.
 *
 * Transport must not wait for the line for ever, or two ports hold each other back for good. Should it do so, its
 * buffer does not move for pause_storm_ps: the peer is let go and what has no room is lost.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "nic/mac/internal.h"

#define FIRST_ROOM 64u

static struct mac_stored *at(const struct mac_store *store, uint64_t number)
{
	return &store->at[number & (store->room - 1)];
}

void rn_mac_rx_init(struct rn_mac *mac)
{
	struct mac_store *store = &mac->receiver.store;

	store->room = FIRST_ROOM;
	store->at = rn_calloc(store->room, sizeof(*store->at));
	store->limit_bytes = mac->cable.is_lossless
				     ? mac->params.xoff_bytes + rn_headroom_bytes(&mac->cable)
				     : UINT64_MAX;
	store->limit_frames = mac->cable.is_lossless ? UINT64_MAX : mac->params.rx_fifo_depth;
}

void rn_mac_rx_fini(struct rn_mac *mac)
{
	struct mac_store *store = &mac->receiver.store;

	/* Those in rx_frame belong to it. */
	for (uint64_t n = store->next; n != store->end; n++)
		rn_packet_put(mac->env->packets, at(store, n)->frame.packet);
	free(store->at);
}

static void grow(struct mac_store *store)
{
	struct mac_store bigger = *store;

	bigger.room *= 2;
	bigger.at = rn_calloc(bigger.room, sizeof(*bigger.at));
	for (uint64_t n = store->first; n != store->end; n++)
		*at(&bigger, n) = *at(store, n);
	free(store->at);
	*store = bigger;
}

/* What transport has taken by the last cycle has left the buffer. */
static void release(struct rn_mac *mac)
{
	struct mac_store *store = &mac->receiver.store;
	uint64_t now_ps = rn_sim_now_ps(mac->env->sim);
	uint64_t first = store->next - rn_fifo_held(mac->ports.rx_frame, now_ps);

	if (store->first == first)
		return;
	for (; store->first != first; store->first++)
		store->bytes -= at(store, store->first)->frame.bytes + RN_LINE_FCS_BYTES;
	mac->receiver.moved_ps = now_ps;
}

static void store_frame(struct rn_mac *mac, const struct rn_frame *frame, uint64_t cycle)
{
	struct mac_store *store = &mac->receiver.store;
	uint64_t bytes = store->bytes + frame->bytes + RN_LINE_FCS_BYTES;

	if (bytes > store->limit_bytes || store->end - store->first == store->limit_frames) {
		mac->count.rx_discards_phy++;
		rn_packet_put(mac->env->packets, frame->packet);
		return;
	}
	if (store->end - store->first == store->room)
		grow(store);
	if (store->end == store->first)
		mac->receiver.moved_ps = rn_sim_now_ps(mac->env->sim);
	*at(store, store->end++) = (struct mac_stored){
		.frame = *frame,
		.ready_ps = rn_clock_edge_ps(&mac->clock, cycle + mac->params.rx_latency_cycles),
	};
	store->bytes = bytes;
	if (bytes > mac->count.rx_buffer_high_bytes)
		mac->count.rx_buffer_high_bytes = bytes;
}

static void send(struct rn_mac *mac, bool from_peer, uint32_t quanta, uint64_t cycle)
{
	uint64_t latency = mac->params.rx_latency_cycles + mac->params.tx_latency_cycles;

	RN_ASSERT(rn_fifo_can_push(&mac->pause));
	rn_fifo_push_at(&mac->pause, &(struct mac_pause){.from_peer = from_peer, .quanta = quanta},
			rn_clock_edge_ps(&mac->clock, cycle + latency));
}

/* Every frame that has arrived; of several pauses the last one counts. */
static bool take_from_line(struct rn_mac *mac, uint64_t cycle)
{
	const struct rn_frame *frame;
	bool busy = false, is_paused = false;
	uint32_t quanta = 0;

	for (; (frame = rn_fifo_peek(mac->ports.line_in)); busy = true) {
		const struct rn_packet *packet = rn_packet_at(mac->env->packets, frame->packet);

		rn_mac_note_traffic(mac, frame->bytes);
		mac->count.rx_packets_phy++;
		mac->count.rx_bytes_phy += frame->bytes + RN_LINE_FCS_BYTES;
		if (packet->is_pause) {
			is_paused = true;
			quanta = packet->pause_quanta;
			mac->count.rx_prio3_pause++;
			rn_packet_put(mac->env->packets, frame->packet);
		} else {
			store_frame(mac, frame, cycle);
		}
		rn_fifo_drop(mac->ports.line_in);
	}
	if (is_paused && mac->cable.is_lossless)
		send(mac, true, quanta, cycle);
	return busy;
}

/* False when transport has no room for what waits. */
static bool pass_on(struct rn_mac *mac, bool *busy)
{
	struct mac_store *store = &mac->receiver.store;

	for (; store->next != store->end; store->next++) {
		const struct mac_stored *stored = at(store, store->next);

		if (!rn_fifo_can_push(mac->ports.rx_frame))
			return false;
		rn_fifo_push_at(mac->ports.rx_frame, &stored->frame, stored->ready_ps);
		*busy = true;
	}
	return true;
}

static void hold(struct rn_mac *mac, bool is_holding, uint64_t cycle)
{
	mac->receiver.is_holding = is_holding;
	send(mac, false, is_holding ? mac->params.pause_quanta : 0, cycle);
}

/* The thresholds. */
static void control(struct rn_mac *mac, uint64_t cycle)
{
	struct mac_rx_side *rx = &mac->receiver;
	uint64_t now_ps = rn_sim_now_ps(mac->env->sim);

	if (!mac->cable.is_lossless)
		return;
	if (rx->store.bytes <= mac->params.xon_bytes) {
		if (rx->is_holding)
			hold(mac, false, cycle);
		rx->is_storm = false;
	} else if (rx->store.bytes >= mac->params.xoff_bytes && !rx->is_holding && !rx->is_storm) {
		hold(mac, true, cycle);
	}
	if (rx->is_holding && now_ps - rx->moved_ps >= mac->params.pause_storm_ps) {
		mac->count.tx_pause_storm_error_events++;
		rx->is_storm = true;
		hold(mac, false, cycle);
	}
}

/* While the peer is held back, every frame that leaves wakes this half; or the time at which none has for too long. */
static void watch(struct rn_mac *mac)
{
	struct rn_fifo *fifo = mac->ports.rx_frame;

	if (!mac->receiver.is_holding)
		return;
	(void)rn_fifo_has_space(fifo, fifo->depth);
	rn_block_wake_at(&mac->rx, mac->receiver.moved_ps + mac->params.pause_storm_ps);
}

void rn_mac_rx_tick(void *self, uint64_t cycle)
{
	struct rn_mac *mac = self;
	bool busy, has_room;

	release(mac);
	busy = take_from_line(mac, cycle);
	has_room = pass_on(mac, &busy);
	control(mac, cycle);
	watch(mac);
	rn_block_account(&mac->rx, busy, has_room ? RN_STALL_NONE : RN_STALL_OUTPUT);
}
