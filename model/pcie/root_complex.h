/*
 * Root complex: the host's end of the PCIe link. Serves the NIC's reads and writes on host
 * memory with its latency, turns host software's MMIO into TLPs, and delivers MSI-X to the driver
 * after the interrupt latency. The link itself (serialisation, credits) is pcie/link.h.
 */
#ifndef RN_PCIE_ROOT_COMPLEX_H
#define RN_PCIE_ROOT_COMPLEX_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/msg/pcie.h"
#include "pcie/host_memory.h"
#include "sim/param.h"

struct rn_buffers;
struct rn_sim;
struct rn_stamps;
struct rn_stats;
struct rn_tlp_log;

#define RN_ROOT_COMPLEX_PARAMS(X)                                                                  \
	X(u64, read_latency_ps, 300000, 0, 100000000, "ps",                                        \
	  "a read admitted to its data being read and its first completion ready")                 \
	X(u64, write_latency_ps, 200000, 0, 100000000, "ps",                                       \
	  "a write taken into the memory system to its bytes being visible")                       \
	X(u32, outstanding_reads, 64, 1, 4096, "", "reads served at once; others wait in line")    \
	X(u32, memory_gbps, 400, 1, 100000, "Gb/s", "memory bandwidth, for reads and writes each") \
	X(u64, interrupt_latency_ps, 1500000, 0, 1000000000, "ps",                                 \
	  "MSI-X write visible to the interrupt handler running")                                  \
	X(u64, mmio_latency_ps, 50000, 1, 100000000, "ps",                                         \
	  "CPU store or load to its TLP at the root port")                                         \
	X(u32, mmio_queue_entries, 64, 16, 4096, "", "MMIO accesses between CPU and root port")

RN_PARAM_STRUCT(rn_root_complex_params, RN_ROOT_COMPLEX_PARAMS);
extern const struct rn_param_table rn_root_complex_param_table;

/*
 * What a root complex is built from. Everything is borrowed and outlives it, but @params and
 * @pcie, which are copied.
 */
struct rn_root_complex_env {
	struct rn_sim *sim;
	struct rn_stats *stats;
	struct rn_stamps *stamps;      /* may be NULL */
	struct rn_buffers *buffers;    /* the pool that the NIC's TLPs point into */
	struct rn_host_memory *memory; /* of this host */
	struct rn_tlp_log *log;	       /* may be NULL */
	const char *name;	       /* "host0": the unit is "host0.root_complex" */
	const char *nic_name; /* "host0.nic0": the link is "host0.nic0.pcie_up" and "..._down" */
	uint32_t host;
	const struct rn_root_complex_params *params;
	const struct rn_pcie_params *pcie;
	const struct rn_pcie_ports *ports; /* the NIC's fifos; copied */
};

struct rn_root_complex;

/**
 * Build the root complex with both directions of the link, and connect it to the far side of
 * @env->ports: consumer of what the NIC sends, producer of what it gets.
 */
struct rn_root_complex *rn_root_complex_new(const struct rn_root_complex_env *env);
void rn_root_complex_free(struct rn_root_complex *rc);

/**
 * Post an MMIO write of @len (4 .. 64, not crossing a 64-byte line) bytes to the NIC's BAR0 at
 * simulated time @at_ps (not before now). Writes are delivered in order of posting. False when the
 * host's write queue is full: nothing was posted, try again later.
 */
bool rn_root_complex_mmio_write(struct rn_root_complex *rc, uint64_t at_ps, uint64_t offset,
				const void *data, uint32_t len);

/**
 * Read a BAR0 register; @done gets all ones when there is no such register. At most 16 at a time;
 * false when full.
 */
bool rn_root_complex_mmio_read(struct rn_root_complex *rc, uint64_t at_ps, uint64_t offset,
			       uint32_t len, void (*done)(void *arg, uint64_t value), void *arg);

/** Who gets MSI-X vectors; called at the simulated time at which the interrupt handler runs. */
void rn_root_complex_set_msi(struct rn_root_complex *rc, void (*fn)(void *arg, uint32_t vector),
			     void *arg);

/**
 * Who is told of DMA writes whose memory is not there: what the error report of the root port tells a driver (PCIe 4.0
 * 6.2: a posted request has no completion that could). @pa is the address of the first byte. NULL: nobody.
 */
void rn_root_complex_set_abort_hook(struct rn_root_complex *rc, void (*fn)(void *arg, uint64_t pa),
				    void *arg);

/**
 * Who is told of DMA writes that complete a message for software (RN_DMA_LAST), after the bytes
 * are visible: wakes waiting programs. @pa is the address of the last byte. May be NULL.
 */
void rn_root_complex_set_write_hook(struct rn_root_complex *rc, void (*fn)(void *arg, uint64_t pa),
				    void *arg);

/** The same for completions (CQEs). May be NULL. */
void rn_root_complex_set_completion_hook(struct rn_root_complex *rc,
					 void (*fn)(void *arg, uint64_t pa), void *arg);

/**
 * A time before which no CQE becomes visible in host memory, whatever happens from now on: those on their way become so in order,
 * and one that the NIC has not sent yet has to cross link and memory system. Exact for the former.
 */
uint64_t rn_root_complex_quiet_ps(struct rn_root_complex *rc);

struct rn_host_memory *rn_root_complex_memory(struct rn_root_complex *rc);

#endif
