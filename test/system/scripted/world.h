/*
 * A whole simulated fabric in simulated time: NICs, drivers, one scripted process a host. What tests of
 * the system, of timing, and benchmarks start from. What fails here ends the process with a message.
 *
 *	struct world w;
 *	struct world_link link;
 *
 *	world_init(&w, 2, (const char *const[]){"hosts.*.nic.dma.tags=4", NULL});
 *	world_start(&w, &(struct world_options){.capture = true});
 *	world_connect(&w, 1 << 20, &RN_SCRIPTED_PATH, &link);
 *	...
 *	world_fini(&w);
 *
 * With RN_UNIT_MODE=rtl or lockstep in the environment, every unit whose geometry is Verilated is that; a difference
 * ends the process with status 71. RN_PLUSARG="+name=value" is for their $value$plusargs, RN_DIVERGENCE_FST the path
 * of the waveform.
 */
#ifndef RN_TEST_SYSTEM_WORLD_H
#define RN_TEST_SYSTEM_WORLD_H

#include "scripted/flow.h"
#include "scripted/scripted.h"
#include "system/system.h"
#include "systemc/cosim/cosim.h"

#define WORLD_HOSTS_MAX 8
#define WORLD_US UINT64_C(1000000) /* picoseconds */
#define WORLD_MS UINT64_C(1000000000)

struct world_options {
	uint64_t permute_seed; /* order of same-time wakes; 0: as built */
	uint64_t arena_bytes; /* frames of a process, a multiple of 64 MiB; 0: the driver's default */
	bool stamps;
	bool capture; /* whole frames to world_path(w, "pcap") */
	bool tlps;    /* TLP log with hashes to world_path(w, "tlp.csv") */
	bool lookups; /* cache lookups to world_path(w, "lookup.csv") */
};

struct world {
	struct rn_scenario *scenario; /* may be changed between world_init() and world_start() */
	struct rn_system *system;     /* NULL after world_end() */
	struct rn_cosim *cosim;
	struct rn_sim *sim;
	struct rn_config *config; /* what the scenario was read from */
	struct rn_diag *diag;
	unsigned hosts;
	unsigned ready; /* drivers that are up */
	struct rn_driver *driver[WORLD_HOSTS_MAX];
	struct rn_scripted
		*host[WORLD_HOSTS_MAX]; /* its process; NULL once the test has freed or killed it */
	char folder[64];		/* of captures and logs; removed by world_fini() */
	char path[4][96];		/* answers of world_path() */
};

/**
 * A scenario of @hosts hosts (2: back to back, else on a switch) with every default, and over it the settings
 * @set: "key.path=value" as of rnicsim --set, NULL-terminated; NULL none.
 */
void world_init(struct world *world, unsigned hosts, const char *const *set);

/** The same from YAML @text, which may name what is shipped in configs/. */
void world_init_yaml(struct world *world, const char *text, const char *const *set);

/** Build it, bring the NICs up, attach a process to each; statistics start from zero. @options may be NULL. */
void world_start(struct world *world, const struct world_options *options);

/**
 * Free processes, drivers and system; captures and logs are complete then. Checks that the processes' objects and
 * the packets and buffers in flight are gone.
 */
void world_end(struct world *world);

/** world_end() if that was not called, then everything else; with RN_KEEP set in the environment captures and logs stay. */
void world_fini(struct world *world);

/** Path of a file of the run: "pcap", "tlp.csv", "lookup.csv". Valid until world_fini(). */
const char *world_path(struct world *world, const char *what);

/* A connection with a CQ and a buffer a side. */
struct world_link {
	struct rn_scripted *host[2];
	struct rn_scripted_cq *cq[2];
	struct rn_scripted_qp *qp[2];
	struct rn_scripted_buffer buffer[2];
	uint32_t key[2]; /* over the whole buffer: local write, remote write and read */
};

/** Connect the processes of hosts 0 and 1 with buffers of @bytes each. */
void world_connect(struct world *world, uint64_t bytes, const struct rn_scripted_path *path,
		   struct world_link *link);

/** The same between any two hosts, or of one with itself; QPs as @spec says (NULL: defaults; its CQs are ignored). */
void world_connect_hosts(struct world *world, const unsigned host[2], uint64_t bytes,
			 const struct rn_scripted_path *path,
			 const struct rn_scripted_qp_spec *spec, struct world_link *link);

/** A work request of side 0: its buffer's start, the peer's buffer's start, signaled. */
struct rn_scripted_wr world_wr(const struct world_link *link, uint8_t opcode, uint32_t bytes);

/** Post receives of @bytes each at the start of side 1's buffer, wr_id 0 and up. */
void world_post_recv(struct world_link *link, uint32_t count, uint32_t bytes);

/** Post one message from side 0, signaled, ring, and wait: its status, or 255 when none came within 10 s. */
uint8_t world_transfer(struct world_link *link, const struct rn_scripted_wr *wr);

/**
 * A flow of side 0 on @link with its own bytes for each of @depth messages: change what is wanted, then
 * rn_scripted_flow_start().
 */
struct rn_scripted_flow_spec world_flow(const struct world_link *link, uint8_t opcode,
					uint32_t bytes, uint32_t depth, uint64_t count);

/** Scripted fault: one frame of @class that host @host sends on any connection, by PSN offset and transmission. */
unsigned world_fault(struct world *world, enum rn_fault_action action, enum rn_fault_class class,
		     uint32_t host, uint32_t psn_offset, uint32_t transmission);
/** Any other; a rule added later counts PSN offsets from the start all the same. */
unsigned world_fault_add(struct world *world, const struct rn_fault *fault);
/** How often it acted. */
uint64_t world_fault_done(struct world *world, unsigned fault);

/** A counter, e.g. world_counter(w, "host0.nic0.mac", "tx_packets_phy"). */
uint64_t world_counter(struct world *world, const char *instance, const char *counter);

/** Sum of a counter over all instances of a host's NIC. */
uint64_t world_nic_counter(struct world *world, unsigned host, const char *counter);

/** Time of a stage of a WQE (stamps on): the @count-th of its kind (0: first); RN_TIME_NEVER when there is none. */
uint64_t world_stamp(struct world *world, unsigned host, const struct rn_scripted_qp *qp,
		     uint32_t wqe_idx, enum rn_stamp_stage stage, unsigned count);

#endif
