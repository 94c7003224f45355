/*
 * What every block of a NIC gets at construction. All pointers are borrowed and outlive
 * the block. A block registers its own counters and rn_blocks with @stats under "@name.<unit>";
 * fifos between blocks belong to the NIC (nic/nic.h), which registers them.
 */
#ifndef RN_NIC_MSG_ENV_H
#define RN_NIC_MSG_ENV_H

#include <stdint.h>

struct rn_sim;
struct rn_clock;
struct rn_stats;
struct rn_stamps;
struct rn_buffers;
struct rn_packets;
struct rn_unit_builder;

struct rn_nic_env {
	struct rn_sim *sim;
	const struct rn_clock *core; /* clock of all blocks but the MAC's and the PCIe link's */
	const struct rn_clock *mac;
	struct rn_stats *stats;
	struct rn_stamps *stamps;
	struct rn_buffers *buffers;
	struct rn_packets *packets;
	const char *name; /* "host0.nic0" */
	uint32_t host;
	uint64_t seed;
	const struct rn_unit_builder *units; /* nic/unit.h; NULL: all C blocks */
};

#endif
