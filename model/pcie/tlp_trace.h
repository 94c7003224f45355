/*
 * TLPs of a burst as lines of the TLP log.
 */
#ifndef RN_PCIE_TLP_TRACE_H
#define RN_PCIE_TLP_TRACE_H

#include "nic/msg/pcie.h"
#include "pcie/root_complex.h"
#include "pcie/tlp_log.h"

/** Where and when. */
struct rn_tlp_trace {
	const struct rn_root_complex_env *env;
	enum rn_tlp_direction direction;
	uint64_t first_bit_ps;
	uint64_t arrival_ps;
};

/** @len bytes at @offset of the burst @tlp. */
void rn_tlp_trace_memory(const struct rn_tlp_trace *trace, const struct rn_tlp *tlp,
			 uint32_t offset, uint32_t len);

/** An access to BAR0 or its completion; @data may be NULL. */
void rn_tlp_trace_mmio(const struct rn_tlp_trace *trace, const char *type, uint64_t offset,
		       uint32_t len, uint32_t tag, const void *data);

#endif
