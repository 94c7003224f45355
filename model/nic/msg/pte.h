/*
 * Ports of the PTE cache: key check (MPT) and virtual-to-physical translation (MTT).
 * One page a response; responses may be out of order by id. Every successful translation is released when its
 * DMA is through; an invalidation waits for that. The messages come from messages.toml, as those of the RTL.
 */
#ifndef RN_NIC_MSG_PTE_H
#define RN_NIC_MSG_PTE_H

#include <stdint.h>

#include "nic/msg/gen/pte.h"

enum rn_pte_client {
	RN_PTE_CLIENT_DMA, /* translations for DMA */
	RN_PTE_CLIENT_RX, /* checks of a RETH before the first byte moves; no translation is held */
	RN_PTE_CLIENT_COUNT
};

#endif
