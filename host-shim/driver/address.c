/*
 * Addresses and default attributes; see address.h. Attribute values are the verbs API's.
 */
#include "driver/address.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "hw/gen/rnic_hw.h"

static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

void rn_address_mac(uint32_t host, uint8_t mac[6])
{
	memset(mac, 0, 6);
	mac[0] = 0x02;
	rn_put_be32(mac + 2, host + 1);
}

void rn_address_gid(uint32_t host, uint32_t index, uint8_t gid[16])
{
	uint8_t mac[6];

	memset(gid, 0, 16);
	if (index == 0) {
		memcpy(gid, ipv4_prefix, sizeof(ipv4_prefix));
		gid[12] = 10;
		gid[15] = (uint8_t)(host + 1);
		return;
	}
	/* RFC 4291, appendix A: the universal/local bit is inverted. */
	rn_address_mac(host, mac);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	memcpy(gid + 8, mac, 3);
	gid[8] ^= 0x02;
	gid[11] = 0xff;
	gid[12] = 0xfe;
	memcpy(gid + 13, mac + 3, 3);
}

bool rn_address_is_ipv4(const uint8_t gid[16])
{
	return !memcmp(gid, ipv4_prefix, sizeof(ipv4_prefix));
}

static bool is_unicast(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	if (rn_address_is_ipv4(gid))
		return gid[12] && (gid[12] & 0xf0) != 0xe0 && gid[12] != 0xff;
	return gid[0] != 0xff && memcmp(gid, zero, 16);
}

static bool is_in_subnet(const uint8_t gid[16])
{
	static const uint8_t link_local[8] = {0xfe, 0x80};

	if (rn_address_is_ipv4(gid))
		return gid[12] == 10 && !gid[13] && !gid[14];
	return !memcmp(gid, link_local, sizeof(link_local));
}

int rn_address_resolve(uint32_t hosts, const uint8_t gid[16], uint8_t mac[6])
{
	uint8_t own[16];

	if (!is_unicast(gid))
		return EINVAL;
	if (!is_in_subnet(gid))
		return ENETUNREACH;

	const uint32_t host = (uint32_t)gid[15] - 1;

	if (host >= hosts)
		return EHOSTUNREACH;
	rn_address_gid(host, !rn_address_is_ipv4(gid), own);
	if (memcmp(own, gid, 16))
		return EHOSTUNREACH;
	rn_address_mac(host, mac);
	return 0;
}

uint16_t rn_address_udp_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
	uint32_t label = flow_label & 0xfffff;

	if (!label) {
		uint64_t mix = (uint64_t)lqpn * rqpn;

		mix ^= mix >> 20;
		mix ^= mix >> 40;
		label = mix & 0xfffff;
	}
	return (uint16_t)(0xc000 | ((label & 0x3fff) ^ (label & 0xfc000) >> 14));
}

void rn_address_default_device(struct rn_uapi_device *device, uint32_t host)
{
	uint8_t gid[16];

	rn_address_gid(host, 1, gid);
	*device = (struct rn_uapi_device){
		.name = "rnicsim0",
		.fw_ver = "1.0.0",
		.board_id = "RNIC_GENERIC_100G",
		.max_mr_size = UINT64_C(1) << 40,
		.page_size_cap = 0xfffff000,
		.max_qp = 1 << 17,
		.max_qp_wr = 1 << 15,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_recv_sge = 32,
		.max_cq = 1 << 17,
		.max_cqe = 1 << 22,
		.max_mr = 1 << 18,
		.max_pd = 1 << 15,
		.max_ah = 1 << 16,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.max_res_rd_atom = 1 << 20,
		.max_inline_data = 928,
		.device_cap_flags =
			0x1c80, /* current QP state in modify, port active event, image GUID, RNR NAK */
		.num_comp_vectors = 4,
		.local_ca_ack_delay = 15,
		.max_sq_wqebbs = 1 << 15,
		.core_khz = 1000000,
		.allow_no_grh = 1,
		.blueflame_bytes = RN_UAR_BLUEFLAME_BYTES,
	};
	memcpy(&device->node_guid_be, gid + 8, 8);
	device->sys_image_guid_be = device->node_guid_be;
}

void rn_address_default_port(struct rn_uapi_port *port, uint32_t host)
{
	*port = (struct rn_uapi_port){
		.state = 4, /* IBV_PORT_ACTIVE */
		.max_mtu = 5,
		.active_mtu = 5,
		.gid_tbl_len = 16,
		.pkey_tbl_len = 1,
		.port_cap_flags = 0x04010000, /* CM, IP-based GIDs */
		.max_msg_sz = 0x80000000,
		.active_width = 2,  /* 4X */
		.active_speed = 32, /* EDR */
		.phys_state = 5,    /* LinkUp */
		.link_layer = 2,    /* Ethernet */
		.lid = host + 1,
		.gids = 2,
		.gid_type = {2, 2},
		.pkey = {0xffff},
	};
	rn_address_gid(host, 0, port->gid[0]);
	rn_address_gid(host, 1, port->gid[1]);
	rn_address_mac(host, port->mac);
}
