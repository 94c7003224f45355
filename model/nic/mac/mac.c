/*
 * MAC and port. Exact: line occupancy of every frame (preamble, minimum size, FCS, gap) at the exact
 * rate; pause frames, their times and thresholds. Approximated: PCS and PMA are a latency. Left out: FEC,
 * auto-negotiation, more classes than one.
 */
#include "nic/mac/mac.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "nic/mac/internal.h"
#include "sim/stats.h"

#define RN_PARAM_OWNER rn_mac_params
RN_PARAM_TABLE(rn_mac_param_table, "mac", RN_MAC_PARAMS);

#define PS_PER_S 1000000000000u
#define PAUSE_MESSAGES 8u /* on their way, beyond one each way a cycle */

/* A gap between frames longer than this, or than some frames of a slow line, is a pause. */
#define PAUSE_PS 100000000u
#define PAUSE_FRAMES 4u
#define LARGEST_FRAME_BYTES 4200u

#define MAC_ROW(field, unit, help) RN_COUNTER_ROW(struct mac_counters, field, unit, help)

static const struct rn_counter_desc mac_counter_descs[] = {RN_MAC_COUNTERS(MAC_ROW)};

/*
 * The port is active from a frame's edge to the end of its time on the line, and between frames that follow each
 * other within a pause. Both directions count by the edge at which they take a frame, so that their order does not
 * matter.
 */
void rn_mac_note_traffic(struct rn_mac *mac, uint32_t bytes)
{
	uint64_t now_ps = rn_sim_now_ps(mac->env->sim);
	uint64_t end_ps = now_ps + (uint64_t)rn_line_bytes(bytes) * 8 * PS_PER_S / mac->cable.bps;
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

const char *rn_mac_check(const struct rn_mac_params *params)
{
	return params->xon_bytes < params->xoff_bytes
		       ? NULL
		       : "mac.xon_bytes: legal is less than mac.xoff_bytes";
}

uint32_t rn_mac_line_frames(const struct rn_mac_params *params, const struct rn_cable *cable)
{
	return 2 + (uint32_t)(cable->bps / 8 / rn_line_bytes(0) / params->clock_hz);
}

static void make_pause_fifo(struct rn_mac *mac)
{
	char *name = rn_asprintf("%s.pause", mac->name);
	uint32_t latency = mac->params.rx_latency_cycles + mac->params.tx_latency_cycles;

	rn_fifo_init(&mac->pause, mac->env->sim, name, 2 * latency + PAUSE_MESSAGES,
		     sizeof(struct mac_pause), latency);
	rn_fifo_set_producer(&mac->pause, &mac->rx);
	rn_fifo_set_consumer(&mac->pause, &mac->tx);
	free(name);
}

static void make_halves(struct rn_mac *mac)
{
	const struct rn_nic_env *env = mac->env;
	const struct rn_mac_ports *ports = &mac->ports;

	rn_block_init(&mac->tx, env->sim, env->mac, mac->tx_name, rn_mac_tx_tick, mac);
	rn_block_init(&mac->rx, env->sim, env->mac, mac->rx_name, rn_mac_rx_tick, mac);
	rn_fifo_set_consumer(ports->tx_frame, &mac->tx);
	rn_fifo_set_producer(ports->line_out, &mac->tx);
	rn_fifo_set_consumer(ports->line_in, &mac->rx);
	rn_fifo_set_producer(ports->rx_frame, &mac->rx);
	rn_stats_add_block(env->stats, &mac->tx);
	rn_stats_add_block(env->stats, &mac->rx);
}

struct rn_mac *rn_mac_new(const struct rn_nic_env *env, const struct rn_mac_params *params,
			  const struct rn_mac_ports *ports)
{
	struct rn_mac *mac = rn_calloc(1, sizeof(*mac));

	mac->env = env;
	mac->ports = *ports;
	mac->params = *params;
	mac->cable = *ports->cable;
	mac->ports.cable = NULL;
	mac->clock = *env->mac;
	rn_line_init(&mac->sender.line, mac->cable.bps);
	mac->pause_ps = rn_max_u64(PAUSE_PS, PAUSE_FRAMES * LARGEST_FRAME_BYTES * 8 *
						     (PS_PER_S / mac->cable.bps));
	mac->name = rn_asprintf("%s.mac", env->name);
	mac->tx_name = rn_asprintf("%s.mac_tx", env->name);
	mac->rx_name = rn_asprintf("%s.mac_rx", env->name);
	make_halves(mac);
	make_pause_fifo(mac);
	rn_mac_rx_init(mac);
	rn_stats_add_counters(env->stats, mac->name, mac_counter_descs,
			      RN_ARRAY_LEN(mac_counter_descs), &mac->count);
	return mac;
}

void rn_mac_free(struct rn_mac *mac)
{
	if (!mac)
		return;
	rn_mac_rx_fini(mac);
	rn_fifo_fini(&mac->pause);
	free(mac->name);
	free(mac->tx_name);
	free(mac->rx_name);
	free(mac);
}

void rn_mac_count_discard(struct rn_mac *mac)
{
	mac->count.rx_discards_phy++;
}
