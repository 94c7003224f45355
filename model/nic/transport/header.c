#include "nic/transport/header.h"

#include <string.h>

static bool is_ipv4_mapped(const uint8_t *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

void rn_transport_fill_header(struct rn_packet *packet, const struct rn_hw_qpc *qpc,
			      const struct rn_nic_identity *identity, uint32_t host)
{
	memcpy(packet->dmac, qpc->dmac, sizeof(packet->dmac));
	memcpy(packet->smac, identity->smac, sizeof(packet->smac));
	memcpy(packet->dgid, qpc->dgid, sizeof(packet->dgid));
	memcpy(packet->sgid, identity->gid[qpc->sgid_idx & 15], sizeof(packet->sgid));
	packet->ipv6 = !is_ipv4_mapped(qpc->dgid);
	packet->tclass = qpc->tclass;
	packet->hop_limit = qpc->hop_limit;
	packet->flow_label = qpc->flow_label & 0xfffff;
	packet->dont_fragment = 1;
	packet->udp_sport = qpc->udp_sport;
	packet->pkey = qpc->pkey;
	packet->dqpn = qpc->dest_qpn & 0xffffff;
	packet->migreq = 1;
	packet->src_host = host;
	packet->src_qpn = qpc->qpn;
}

bool rn_transport_pkey_matches(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000);
}
