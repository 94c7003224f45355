/*
 * Packet headers from a QP context.
 */
#ifndef RN_NIC_TRANSPORT_HEADER_H
#define RN_NIC_TRANSPORT_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"
#include "nic/msg/env.h"
#include "nic/msg/identity.h"
#include "wire/packet.h"

/** Link, network and BTH fields of a packet of the QP @qpc, but opcode and PSN. */
void rn_transport_fill_header(struct rn_packet *packet, const struct rn_hw_qpc *qpc,
			      const struct rn_nic_identity *identity, uint32_t host);

/** P_Keys match: same 15 bits, and at least one of the two is a full member (IBA volume 1, 10.9.3). */
bool rn_transport_pkey_matches(uint16_t a, uint16_t b);

/** log2 of the path MTU, whatever the context holds: 8 .. 12. */
static inline unsigned rn_transport_mtu_log2(const struct rn_hw_qpc *qpc)
{
	return qpc->mtu_log2 < 8 ? 8 : qpc->mtu_log2 > 12 ? 12 : qpc->mtu_log2;
}

/** Packets of a message of @bytes: at least one. */
static inline uint32_t rn_transport_packets(uint32_t bytes, unsigned mtu_log2)
{
	return bytes ? (uint32_t)(((uint64_t)bytes + (1u << mtu_log2) - 1) >> mtu_log2) : 1;
}

#endif
