/*
 * Rate and splitting rules of a PCIe link (base specification 1.0 - 5.0). Exact: time of every
 * byte as a fraction, so that nothing drifts. Approximated: ACK, flow-control and SKP traffic is
 * a constant part of the rate. Left out: link errors and replay, power states, generation 6 (flit
 * mode).
 */
#include "pcie/link.h"

#include "base/assert.h"
#include "base/bits.h"

#define RN_PARAM_OWNER rn_pcie_params
RN_PARAM_TABLE(rn_pcie_param_table, "pcie", RN_PCIE_PARAMS);

/* Picoseconds a byte takes on one lane, as a fraction: 8 bits over the rate times the line code. */
static const struct {
	uint32_t num;
	uint32_t den;
} lane_byte_ps[] = {
	[1] = {4000, 1},	 /* 2.5 GT/s, 8b/10b */
	[2] = {2000, 1},	 /* 5 GT/s */
	[3] = {130 * 1000, 128}, /* 8 GT/s, 128b/130b */
	[4] = {130 * 500, 128},	 [5] = {130 * 250, 128},
};

static const struct rn_counter_desc counter_descs[] = {
#define LINK_COUNTER(field, unit, help) RN_COUNTER_ROW(struct rn_link_counters, field, unit, help)
	RN_LINK_COUNTERS(LINK_COUNTER)
#undef LINK_COUNTER
};

void rn_link_init_rate(struct rn_link *link, uint64_t num, uint64_t den)
{
	RN_ASSERT(num && den);
	*link = (struct rn_link){.num = num, .den = den, .den_inverse = UINT64_MAX / den};
}

void rn_link_init(struct rn_link *link, const struct rn_pcie_params *params)
{
	RN_ASSERT(params->gen >= 1 && params->gen < RN_ARRAY_LEN(lane_byte_ps));
	rn_link_init_rate(link, UINT64_C(1000) * lane_byte_ps[params->gen].num,
			  (uint64_t)lane_byte_ps[params->gen].den * params->lanes *
				  (1000 - params->dllp_permille));
	link->propagation_ps = params->propagation_ps;
}

void rn_link_register(struct rn_link *link, struct rn_stats *stats, const char *instance)
{
	rn_stats_add_counters(stats, instance, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &link->counters);
}

uint32_t rn_link_write_tlps(const struct rn_pcie_params *params, uint32_t len)
{
	return len <= params->mps_bytes ? 1 : (len + params->mps_bytes - 1) / params->mps_bytes;
}

uint32_t rn_link_completion_bytes(const struct rn_pcie_params *params, uint64_t addr, uint32_t len)
{
	uint32_t past_rcb = (uint32_t)((addr + params->mps_bytes) % params->rcb_bytes);
	uint32_t most = params->mps_bytes - past_rcb;

	/* MPS below RCB: several completions a boundary. */
	if (params->mps_bytes <= past_rcb)
		most = params->mps_bytes;
	return len < most ? len : most;
}

uint32_t rn_link_completion_tlps(const struct rn_pcie_params *params, uint64_t addr, uint32_t len)
{
	uint32_t first = rn_link_completion_bytes(params, addr, len);

	return first == len ? 1 : 1 + rn_link_write_tlps(params, len - first);
}

bool rn_pcie_params_check(const struct rn_pcie_params *params, const char **why)
{
	*why = NULL;
	if (!rn_is_pow2(params->mps_bytes))
		*why = "mps_bytes is a power of two";
	else if (!rn_is_pow2(params->mrrs_bytes))
		*why = "mrrs_bytes is a power of two";
	else if (!rn_is_pow2(params->rcb_bytes) || params->rcb_bytes > params->mps_bytes)
		*why = "rcb_bytes is 64 or 128, and at most mps_bytes";
	return !*why;
}
