#include "report_nic.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "wire/line.h"

uint64_t rn_report_nic_value(const struct rn_report_nic *nic, const char *unit, const char *counter)
{
	char instance[64];
	uint64_t value;

	if (!unit)
		return rn_report_sum(nic->stats, nic->name, counter);
	snprintf(instance, sizeof(instance), "%s.%s", nic->name, unit);
	value = rn_stats_value(nic->stats, instance, counter);
	return value == UINT64_MAX ? 0 : value;
}

/* A MAC that does not say when it had traffic had it all the time. */
static void find_activity(struct rn_report_nic *nic, const struct rn_outcome *outcome)
{
	uint64_t frames = rn_report_nic_value(nic, "mac", "tx_packets_phy") +
			  rn_report_nic_value(nic, "mac", "rx_packets_phy");

	nic->first_ps = rn_report_nic_value(nic, "mac", "first_frame_ps");
	nic->last_ps = rn_report_nic_value(nic, "mac", "last_frame_ps");
	nic->active_ps = rn_report_nic_value(nic, "mac", "active_ps");
	if (frames && !nic->last_ps) {
		nic->first_ps = outcome->measured_from_ps;
		nic->last_ps = outcome->end_ps;
	}
	if (frames && !nic->active_ps)
		nic->active_ps = nic->last_ps - nic->first_ps;
}

void rn_report_nic_init(struct rn_report_nic *nic, const struct rn_outcome *outcome, unsigned host)
{
	const struct rn_scenario *scenario = rn_system_scenario(outcome->system);
	const struct rn_limits *limits = &nic->limits;

	nic->stats = rn_system_stats(outcome->system);
	nic->host = host;
	snprintf(nic->host_name, sizeof(nic->host_name), "host%u", host);
	snprintf(nic->name, sizeof(nic->name), "host%u.nic0", host);
	find_activity(nic, outcome);
	rn_limits_find(&nic->limits, &(struct rn_limits_env){
					     .stats = nic->stats,
					     .host = nic->host_name,
					     .nic = nic->name,
					     .active_ps = nic->active_ps,
					     .link_mbps = scenario->fabric.link_mbps,
					     .params = &scenario->host[host],
				     });
	nic->limiter = rn_limits_choose(&limits, 1);
}

struct rn_report_nic *rn_report_nics(const struct rn_outcome *outcome)
{
	unsigned hosts = rn_system_scenario(outcome->system)->hosts;
	struct rn_report_nic *nics = rn_calloc(hosts, sizeof(*nics));

	rn_stats_settle(rn_system_stats(outcome->system));
	for (unsigned i = 0; i < hosts; i++)
		rn_report_nic_init(&nics[i], outcome, i);
	return nics;
}

/* Among all NICs, or those that discarded frames. */
static struct rn_limiter choose(const struct rn_report_nic *nics, unsigned count, bool discards)
{
	static const struct rn_limits none;
	const struct rn_limits **limits = rn_calloc(count, sizeof(*limits));
	struct rn_limiter limiter;

	for (unsigned i = 0; i < count; i++) {
		bool is_in = !discards || rn_report_nic_value(&nics[i], "mac", "rx_discards_phy");

		limits[i] = is_in ? &nics[i].limits : &none;
	}
	limiter = rn_limits_choose(limits, count);
	free(limits);
	return limiter;
}

struct rn_limiter rn_report_limiter(const struct rn_report_nic *nics, unsigned count)
{
	struct rn_limiter limiter = choose(nics, count, true);

	if (limiter.kind == RN_LIMIT_SERIAL || limiter.kind == RN_LIMIT_WAIT)
		return limiter;
	return choose(nics, count, false);
}

uint64_t rn_report_packets(const struct rn_report_nic *nics, unsigned count)
{
	uint64_t packets = 0;

	for (unsigned i = 0; i < count; i++)
		packets += rn_report_nic_value(&nics[i], "mac", "tx_packets_phy");
	return packets;
}

uint64_t rn_report_nic_bytes(const struct rn_report_nic *nic, bool sent)
{
	uint64_t bytes = rn_report_nic_value(nic, "mac", sent ? "tx_bytes_phy" : "rx_bytes_phy");
	uint64_t frames =
		rn_report_nic_value(nic, "mac", sent ? "tx_packets_phy" : "rx_packets_phy");

	return bytes - frames * RN_LINE_FCS_BYTES;
}
