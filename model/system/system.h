/*
 * The modelled world: NICs, each behind its PCIe link on a root complex with host memory, and the fabric
 * between them. Software (driver, programs, scripted hosts) attaches to the root complexes.
 */
#ifndef RN_SYSTEM_SYSTEM_H
#define RN_SYSTEM_SYSTEM_H

#include <stdio.h>

#include "system/scenario.h"
#include "sim/stamp.h"
#include "sim/stats.h"

struct rn_tlp_log;

struct rn_system_options {
	uint64_t permute_seed;		     /* order of same-time wakes; 0: as built */
	bool stamps;			     /* record the stages of every WQE */
	const char *pcap_path;		     /* NULL: no capture */
	uint32_t pcap_snap;		     /* bytes kept of a frame; 0 all */
	const char *tlp_path;		     /* log of PCIe TLPs; NULL none */
	const char *lookup_path;	     /* log of cache lookups; NULL none */
	const struct rn_unit_builder *units; /* nic/unit.h; borrowed; NULL: all C blocks */
};

struct rn_system;

/** Build it all. NULL and *@error (the caller free()s it) when a file cannot be written. @scenario is borrowed. */
struct rn_system *rn_system_new(const struct rn_scenario *scenario,
				const struct rn_system_options *options, char **error);

/**
 * Tear down; writes captures and logs out. Returns 0 or an errno of the first file that could not be written, with *@message as
 * rn_output_close().
 */
int rn_system_free(struct rn_system *system, char **message);

struct rn_sim *rn_system_sim(struct rn_system *system);
struct rn_stats *rn_system_stats(struct rn_system *system);
struct rn_stamps *rn_system_stamps(struct rn_system *system);
struct rn_packets *rn_system_packets(struct rn_system *system);
struct rn_buffers *rn_system_buffers(struct rn_system *system);
struct rn_fabric *rn_system_fabric(struct rn_system *system);
struct rn_root_complex *rn_system_root_complex(struct rn_system *system, unsigned host);
const struct rn_scenario *rn_system_scenario(const struct rn_system *system);
/** Frames captured so far. */
uint64_t rn_system_captured(const struct rn_system *system);

/** MAC address of host @host: 02:00:00:00:00:(host+1). */
void rn_system_mac(unsigned host, uint8_t mac[6]);

#endif
