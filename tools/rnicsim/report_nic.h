/*
 * One NIC as a report sees it: the names of its instances, when it had traffic, what limited it.
 */
#ifndef RN_RNICSIM_REPORT_NIC_H
#define RN_RNICSIM_REPORT_NIC_H

#include <stdint.h>

#include "report_limiter.h"
#include "simulator.h"

struct rn_report_nic {
	struct rn_stats *stats;
	unsigned host;
	char host_name[16]; /* "host0" */
	char name[24];	    /* "host0.nic0" */
	uint64_t first_ps;  /* first and last frame at its port; 0 when there was none */
	uint64_t last_ps;
	uint64_t active_ps; /* time with traffic, pauses left out */
	struct rn_limits limits;
	struct rn_limiter limiter;
};

/** View NIC 0 of host @host; @outcome's statistics are settled. */
void rn_report_nic_init(struct rn_report_nic *nic, const struct rn_outcome *outcome, unsigned host);

/** The NICs of all hosts, an array of scenario->hosts; settles the statistics. The caller free()s it. */
struct rn_report_nic *rn_report_nics(const struct rn_outcome *outcome);

/**
 * The limiter of the whole run; its idx is the host. Where a NIC discarded frames because it could not take them in
 * fast enough, that NIC's limiter is the run's, if it has one: what its peers send again does not count.
 */
struct rn_limiter rn_report_limiter(const struct rn_report_nic *nics, unsigned count);

/** A counter of unit @unit of the NIC, or with @unit NULL the sum of that name in all units; 0 when there is none. */
uint64_t rn_report_nic_value(const struct rn_report_nic *nic, const char *unit,
			     const char *counter);

/** Frames that all NICs have sent. */
uint64_t rn_report_packets(const struct rn_report_nic *nics, unsigned count);

/** Bytes of frames sent (@sent) or received, without FCS. */
uint64_t rn_report_nic_bytes(const struct rn_report_nic *nic, bool sent);

#endif
