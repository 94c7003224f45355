/*
 * Log of every TLP on the PCIe links of a run: CSV, one line a TLP, sorted by the time of its
 * first bit, then host, direction and order on the link. Columns are explained in
 * docs/blocks/pcie.md.
 */
#ifndef RN_PCIE_TLP_LOG_H
#define RN_PCIE_TLP_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct rn_sim;

enum rn_tlp_direction {
	RN_TLP_UP,   /* NIC to root complex */
	RN_TLP_DOWN, /* root complex to NIC */
};

#define RN_TLP_LOG_NO_TAG UINT32_MAX

struct rn_tlp_record {
	uint64_t first_bit_ps;
	uint64_t arrival_ps; /* last bit usable at the receiver */
	uint32_t host;
	uint8_t direction; /* enum rn_tlp_direction */
	bool has_hash;
	const char *type;    /* "MWr", "MRd", "CplD", "Cpl", "MSI"; static */
	const char *channel; /* DMA channel, or "mmio"; static */
	const char *status;  /* "ok", "abort"; static */
	uint64_t addr;	     /* physical address, BAR offset, or MSI vector */
	uint32_t len;	     /* data bytes carried, of a MRd asked for */
	uint32_t tag;	     /* RN_TLP_LOG_NO_TAG: none */
	uint64_t hash;	     /* rn_tlp_log_hash() of the data carried */
};

struct rn_tlp_log;

/**
 * Write to @out (borrowed, flushed by _free); @with_hash: a hash of the data of each TLP that
 * carries some.
 */
struct rn_tlp_log *rn_tlp_log_new(struct rn_sim *sim, FILE *out, bool with_hash);

/** Write what is left and let go of the file. NULL is ignored. */
void rn_tlp_log_free(struct rn_tlp_log *log);

bool rn_tlp_log_has_hash(const struct rn_tlp_log *log);

/**
 * Hash of the data: h = 0xcbf29ce484222325 xor its length, then for each little-endian word of 8 bytes, the last padded
 * with zeros, h = (h xor word) * 0x9e3779b97f4a7c15 and h = h xor (h >> 32), in 64 bits. A byte at a time took half
 * of the run.
 */
uint64_t rn_tlp_log_hash(const void *data, uint32_t len);

/**
 * Add a TLP whose first bit is not before the present time. Of one host and direction: in order
 * on the link.
 */
void rn_tlp_log_add(struct rn_tlp_log *log, const struct rn_tlp_record *record);

#endif
