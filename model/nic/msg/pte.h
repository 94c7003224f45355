/*
 * Ports of the PTE cache: key check (MPT) and virtual-to-physical translation (MTT).
 * One page a response; responses may be out of order by id.
 */
#ifndef RN_NIC_MSG_PTE_H
#define RN_NIC_MSG_PTE_H

#include <stdint.h>

enum rn_pte_client {
	RN_PTE_CLIENT_DMA, /* translations for DMA */
	RN_PTE_CLIENT_RX, /* checks of a RETH before the first byte moves; no translation is held */
	RN_PTE_CLIENT_COUNT
};

struct rn_pte_req {
	uint16_t id;
	uint8_t access; /* RN_ACCESS_* all demanded; 0: local read */
	uint8_t check_only; /* 1: check key, PD, access and [va, va+length); no MTT lookup, nothing to release */
	uint32_t key;
	uint32_t pd;
	uint32_t length; /* bytes, 1 .. 2^31, all must lie in the region */
	uint64_t va;
};

enum rn_pte_status {
	RN_PTE_OK,
	RN_PTE_BAD_KEY, /* no such key, or its variant byte differs */
	RN_PTE_BAD_PD,
	RN_PTE_BAD_ACCESS,
	RN_PTE_BAD_BOUNDS,
	RN_PTE_ABORT, /* a table entry could not be read, or is not present */
};

struct rn_pte_rsp {
	uint16_t id;
	uint8_t status; /* enum rn_pte_status */
	uint8_t hit;	/* bit 0 MPT hit, bit 1 MTT hit */
	uint8_t epoch;	/* goes back in the release */
	uint8_t reserved[3];
	uint32_t bytes; /* from va to the end of its page, at most length */
	uint64_t pa;
};

/* Every successful translation is released when its DMA is through; invalidation waits for it. */
struct rn_pte_release {
	uint8_t epoch;
};

/* From the command unit. The answer comes when the entry is gone from the cache and every
 * translation handed out before has been released. */
struct rn_pte_inval {
	uint32_t token;
	uint32_t key;	    /* drop this MPT entry and its MTT entries; by index (31:8) */
	uint64_t mtt_index; /* first MTT entry of the region */
	uint64_t mtt_count;
};

struct rn_pte_inval_done {
	uint32_t token;
};

#endif
