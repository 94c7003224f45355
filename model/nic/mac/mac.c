/*
 * MAC and port. Exact: line occupancy of every frame (preamble, minimum size, FCS, gap) at the exact
 * rate. Approximated: PCS and PMA are a latency. Left out: PFC, FEC, auto-negotiation.
 */
#include "nic/mac/mac.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "sim/stamp.h"
#include "sim/stats.h"
#include "wire/line.h"
#include "wire/packet.h"

#define RN_PARAM_OWNER rn_mac_params
RN_PARAM_TABLE(rn_mac_param_table, "mac", RN_MAC_PARAMS);

#define MAC_COUNTERS(X)                                                                            \
	X(tx_packets_phy, "packets", "frames sent on the line")                                    \
	X(rx_packets_phy, "packets", "frames received from the line")                              \
	X(tx_bytes_phy, "bytes", "bytes of frames sent, with FCS")                                 \
	X(rx_bytes_phy, "bytes", "bytes of frames received, with FCS")                             \
	X(rx_discards_phy, "packets", "frames discarded because the receive buffer was full")      \
	X(tx_busy_ps, "ps", "time in which the line carried frames, gaps included")                \
	X(first_frame_ps, "ps", "time of the first frame, sent or received")                       \
	X(last_frame_ps, "ps", "time of the last frame")                                           \
	X(active_ps, "ps", "time with traffic: from frame to frame, pauses left out")

/* A gap between frames longer than this, or than some frames of a slow line, is a pause. */
#define PAUSE_PS 100000000u
#define PAUSE_FRAMES 4u
#define LARGEST_FRAME_BYTES 4200u

struct mac_counters {
	MAC_COUNTERS(RN_COUNTER_FIELD)
};

#define MAC_ROW(field, unit, help) RN_COUNTER_ROW(struct mac_counters, field, unit, help)

static const struct rn_counter_desc mac_counter_descs[] = {MAC_COUNTERS(MAC_ROW)};

struct rn_mac {
	const struct rn_nic_env *env;
	struct rn_mac_ports ports;
	struct rn_line line;
	struct rn_clock clock;
	uint32_t rx_latency_cycles;
	uint64_t pause_ps;
	uint64_t active_until_ps;
	struct mac_counters count;
	char *name, *tx_name, *rx_name;
	struct rn_block tx, rx;
};

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

/*
 * The port is active from a frame's edge to the end of its time on the line, and between frames that follow each
 * other within a pause. Both directions count by the edge at which they take a frame, so that their order does not
 * matter.
 */
static void note_traffic(struct rn_mac *mac, uint32_t bytes)
{
	uint64_t now_ps = rn_sim_now_ps(mac->env->sim);
	uint64_t end_ps =
		now_ps + (uint64_t)rn_line_bytes(bytes) * 8 * 1000000000000u / mac->ports.link_bps;
	bool pause = !mac->count.first_frame_ps || now_ps > mac->active_until_ps + mac->pause_ps;

	if (!mac->count.first_frame_ps)
		mac->count.first_frame_ps = now_ps;
	if (pause)
		mac->count.active_ps += end_ps - now_ps;
	else if (end_ps > mac->active_until_ps)
		mac->count.active_ps += end_ps - mac->active_until_ps;
	if (pause || end_ps > mac->active_until_ps)
		mac->active_until_ps = end_ps;
	mac->count.last_frame_ps = now_ps;
}

/* A frame is taken as soon as it can follow the one on the line without a bubble. Its fifo wakes for the next. */
static void tx_tick(void *self, uint64_t cycle)
{
	struct rn_mac *mac = self;
	uint64_t next_edge_ps = rn_clock_edge_ps(&mac->clock, cycle + 1);
	const struct rn_frame *frame = rn_fifo_peek(mac->ports.tx_frame);
	uint64_t start_ps, end_ps;
	struct rn_packet *packet;

	if (!frame) {
		rn_block_account(&mac->tx, 0, RN_STALL_NONE);
		return;
	}
	if (mac->line.free_ps >= next_edge_ps) {
		rn_block_account(&mac->tx, 0, RN_STALL_CREDIT);
		/* The first edge whose cycle holds the end of the gap. */
		rn_block_wake_at(
			&mac->tx,
			rn_clock_edge_ps(&mac->clock,
					 rn_clock_cycle_at(&mac->clock, mac->line.free_ps + 1) -
						 1));
		return;
	}
	if (!rn_fifo_can_push(mac->ports.line_out)) {
		rn_block_account(&mac->tx, 0, RN_STALL_OUTPUT);
		return;
	}
	start_ps = rn_line_send(&mac->line, rn_sim_now_ps(mac->env->sim), frame->bytes, &end_ps);
	packet = rn_packet_at(mac->env->packets, frame->packet);
	packet->sent_ps = start_ps;
	stamp(mac, packet, start_ps);
	note_traffic(mac, frame->bytes);
	mac->count.tx_packets_phy++;
	mac->count.tx_bytes_phy += frame->bytes + RN_LINE_FCS_BYTES;
	mac->count.tx_busy_ps += mac->line.free_ps - start_ps;
	rn_fifo_push_at(mac->ports.line_out, frame, start_ps);
	rn_fifo_drop(mac->ports.tx_frame);
	rn_block_account(&mac->tx, 1, RN_STALL_NONE);
}

static void rx_tick(void *self, uint64_t cycle)
{
	struct rn_mac *mac = self;
	const struct rn_frame *frame = rn_fifo_peek(mac->ports.line_in);

	if (!frame) {
		rn_block_account(&mac->rx, 0, RN_STALL_NONE);
		return;
	}
	if (!rn_fifo_can_push(mac->ports.rx_frame)) {
		rn_block_account(&mac->rx, 0, RN_STALL_OUTPUT);
		return;
	}
	note_traffic(mac, frame->bytes);
	mac->count.rx_packets_phy++;
	mac->count.rx_bytes_phy += frame->bytes + RN_LINE_FCS_BYTES;
	rn_fifo_push_at(mac->ports.rx_frame, frame,
			rn_clock_edge_ps(&mac->clock, cycle + mac->rx_latency_cycles));
	rn_fifo_drop(mac->ports.line_in);
	rn_block_account(&mac->rx, 1, RN_STALL_NONE);
}

struct rn_mac *rn_mac_new(const struct rn_nic_env *env, const struct rn_mac_params *params,
			  const struct rn_mac_ports *ports)
{
	struct rn_mac *mac = rn_calloc(1, sizeof(*mac));

	mac->env = env;
	mac->ports = *ports;
	mac->clock = *env->mac;
	mac->rx_latency_cycles = params->rx_latency_cycles;
	rn_line_init(&mac->line, ports->link_bps);
	mac->pause_ps = rn_max_u64(PAUSE_PS, PAUSE_FRAMES * LARGEST_FRAME_BYTES * 8 *
						     (1000000000000u / ports->link_bps));
	mac->name = rn_asprintf("%s.mac", env->name);
	mac->tx_name = rn_asprintf("%s.mac_tx", env->name);
	mac->rx_name = rn_asprintf("%s.mac_rx", env->name);
	rn_block_init(&mac->tx, env->sim, env->mac, mac->tx_name, tx_tick, mac);
	rn_block_init(&mac->rx, env->sim, env->mac, mac->rx_name, rx_tick, mac);
	rn_fifo_set_consumer(ports->tx_frame, &mac->tx);
	rn_fifo_set_producer(ports->line_out, &mac->tx);
	rn_fifo_set_consumer(ports->line_in, &mac->rx);
	rn_fifo_set_producer(ports->rx_frame, &mac->rx);
	rn_stats_add_block(env->stats, &mac->tx);
	rn_stats_add_block(env->stats, &mac->rx);
	rn_stats_add_counters(env->stats, mac->name, mac_counter_descs,
			      RN_ARRAY_LEN(mac_counter_descs), &mac->count);
	return mac;
}

void rn_mac_free(struct rn_mac *mac)
{
	if (!mac)
		return;
	free(mac->name);
	free(mac->tx_name);
	free(mac->rx_name);
	free(mac);
}

void rn_mac_count_discard(struct rn_mac *mac)
{
	mac->count.rx_discards_phy++;
}
