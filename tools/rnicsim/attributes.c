#include "attributes.h"

#include "base/bits.h"
#include "driver/address.h"

/* enum ibv_mtu: 1 for 256 bytes to 5 for 4096. */
static uint32_t mtu_code(uint32_t bytes)
{
	uint32_t log2 = rn_log2_ceil(bytes);

	return log2 <= 8 ? 1 : log2 >= 12 ? 5 : log2 - 7;
}

/* active_speed of ibv_query_port(3) for four lanes that make up @mbps; what is nearest from below. */
static uint32_t speed_code(uint64_t mbps)
{
	if (mbps >= 400000)
		return 128; /* NDR */
	if (mbps >= 200000)
		return 64; /* HDR */
	if (mbps >= 100000)
		return 32; /* EDR */
	if (mbps >= 56000)
		return 16; /* FDR */
	if (mbps >= 40000)
		return 4; /* QDR */
	return 1;
}

void rn_attributes_fill(const struct rn_scenario *scenario, unsigned host,
			struct rn_uapi_device *device, struct rn_uapi_port *port)
{
	const struct rn_scenario_host *from = &scenario->host[host];
	const struct rn_device_params *params = &from->device;

	rn_address_default_device(device, host);
	device->vendor_id = params->vendor_id;
	device->vendor_part_id = params->vendor_part_id;
	device->hw_ver = params->hw_ver;
	device->max_qp = 1u << params->log_max_qp;
	device->max_cq = 1u << params->log_max_cq;
	device->max_cqe = (1u << params->log_max_cqes) - 1;
	device->max_mr = 1u << params->log_max_mr;
	device->max_pd = params->max_pd;
	device->max_qp_wr = 1u << rn_min_u64(params->log_max_sq_wqebbs, params->log_max_rq_wqes);
	device->max_sq_wqebbs = 1u << params->log_max_sq_wqebbs;
	device->max_sge = params->max_sge;
	device->max_sge_rd = params->max_sge;
	device->max_recv_sge = params->max_sge;
	device->max_inline_data = params->max_inline_bytes;
	device->max_qp_rd_atom = params->max_rd_atomic;
	device->max_qp_init_rd_atom = params->max_rd_atomic;
	device->max_res_rd_atom = params->max_rd_atomic * device->max_qp;
	device->blueflame_bytes = params->blueflame_max_bytes;
	device->num_comp_vectors = params->comp_vectors;
	device->local_ca_ack_delay = params->local_ca_ack_delay;
	device->core_khz = (uint32_t)(from->nic.nic.core_hz / 1000);
	device->allow_no_grh = params->allow_no_grh;
	rn_address_default_port(port, host);
	port->max_mtu = mtu_code(params->max_mtu_bytes);
	port->active_mtu = mtu_code(params->active_mtu_bytes);
	port->active_speed = speed_code(scenario->fabric.link_mbps);
}
