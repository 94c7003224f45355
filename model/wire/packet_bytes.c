/*
 * Between a packet and its bytes: Ethernet, IPv4 or IPv6, UDP port 4791, BTH, extended headers,
 * payload, pad, ICRC. The UDP checksum is 0 for both IP versions (RoCEv2 relies on the ICRC).
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/pause.h"

#define ETHERNET_BYTES 14
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define BTH_BYTES 12u
#define ICRC_BYTES 4u
#define ROCE_PORT 4791
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_UDP 17
#define QPN_MASK 0xffffffu

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static uint32_t ip_header_bytes(const struct rn_packet *packet)
{
	return packet->ipv6 ? IPV6_BYTES : IPV4_BYTES;
}

uint32_t rn_packet_frame_bytes(const struct rn_packet *packet)
{
	if (packet->is_pause)
		return RN_LINE_MIN_FRAME_BYTES;
	return ETHERNET_BYTES + ip_header_bytes(packet) + UDP_BYTES +
	       rn_opcode_info(packet->opcode)->header_bytes + packet->payload_bytes + packet->pad +
	       ICRC_BYTES;
}

static uint16_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_BYTES; i += 2)
		sum += rn_get_be16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put_ipv4(const struct rn_packet *packet, uint8_t *ip, uint32_t ip_bytes)
{
	ip[0] = 0x45;
	ip[1] = packet->tclass;
	rn_put_be16(ip + 2, (uint16_t)ip_bytes);
	rn_put_be16(ip + 4, packet->ip_id);
	rn_put_be16(ip + 6, packet->dont_fragment ? 0x4000 : 0);
	ip[8] = packet->hop_limit;
	ip[9] = PROTOCOL_UDP;
	rn_put_be16(ip + 10, 0);
	memcpy(ip + 12, packet->sgid + 12, 4);
	memcpy(ip + 16, packet->dgid + 12, 4);
	rn_put_be16(ip + 10, ipv4_checksum(ip));
}

static void put_ipv6(const struct rn_packet *packet, uint8_t *ip, uint32_t ip_bytes)
{
	rn_put_be32(ip, 6u << 28 | (uint32_t)packet->tclass << 20 | (packet->flow_label & 0xfffff));
	rn_put_be16(ip + 4, (uint16_t)(ip_bytes - IPV6_BYTES));
	ip[6] = PROTOCOL_UDP;
	ip[7] = packet->hop_limit;
	memcpy(ip + 8, packet->sgid, 16);
	memcpy(ip + 24, packet->dgid, 16);
}

static void put_bth(const struct rn_packet *packet, uint8_t *bth)
{
	bth[0] = packet->opcode;
	bth[1] = (uint8_t)(packet->se << 7 | packet->migreq << 6 | packet->pad << 4 | packet->tver);
	rn_put_be16(bth + 2, packet->pkey);
	rn_put_be32(bth + 4, (uint32_t)packet->fecn << 31 | (uint32_t)packet->becn << 30 |
				     (packet->dqpn & QPN_MASK));
	rn_put_be32(bth + 8, (uint32_t)packet->ackreq << 31 | (packet->psn & QPN_MASK));
}

/* Extended headers in their order on the wire; returns the byte behind. */
static uint8_t *put_extended(const struct rn_packet *packet, uint32_t flags, uint8_t *to)
{
	if (flags & RN_OP_DETH) {
		rn_put_be32(to, packet->deth_qkey);
		rn_put_be32(to + 4, packet->deth_sqpn & QPN_MASK);
		to += 8;
	}
	if (flags & RN_OP_RETH) {
		rn_put_be64(to, packet->reth_va);
		rn_put_be32(to + 8, packet->reth_rkey);
		rn_put_be32(to + 12, packet->reth_bytes);
		to += 16;
	}
	if (flags & RN_OP_ATOMIC) {
		rn_put_be64(to, packet->reth_va);
		rn_put_be32(to + 8, packet->reth_rkey);
		rn_put_be64(to + 12, packet->atomic_swap);
		rn_put_be64(to + 20, packet->atomic_compare);
		to += 28;
	}
	if (flags & RN_OP_AETH) {
		rn_put_be32(to,
			    (uint32_t)packet->aeth_syndrome << 24 | (packet->aeth_msn & QPN_MASK));
		to += 4;
	}
	if (flags & RN_OP_ATOMIC_ACK) {
		rn_put_be64(to, packet->atomic_original);
		to += 8;
	}
	if (flags & RN_OP_IMM) {
		memcpy(to, &packet->imm_be, 4);
		to += 4;
	}
	if (flags & RN_OP_IETH) {
		rn_put_be32(to, packet->ieth_rkey);
		to += 4;
	}
	return to;
}

/* IP header to the last extended header; returns their bytes. */
static uint32_t put_headers(const struct rn_packet *packet, uint8_t *ip)
{
	uint32_t ip_bytes = rn_packet_frame_bytes(packet) - ETHERNET_BYTES;
	uint8_t *udp = ip + ip_header_bytes(packet);

	if (packet->ipv6)
		put_ipv6(packet, ip, ip_bytes);
	else
		put_ipv4(packet, ip, ip_bytes);
	rn_put_be16(udp, packet->udp_sport);
	rn_put_be16(udp + 2, ROCE_PORT);
	rn_put_be16(udp + 4, (uint16_t)(ip_bytes - ip_header_bytes(packet)));
	rn_put_be16(udp + 6, 0);
	put_bth(packet, udp + UDP_BYTES);
	return (uint32_t)(put_extended(packet, rn_opcode_info(packet->opcode)->flags,
				       udp + UDP_BYTES + BTH_BYTES) -
			  ip);
}

static const uint8_t *payload_of(struct rn_packets *packets, const struct rn_packet *packet)
{
	if (packet->payload_buf == RN_BUFFER_NONE)
		return NULL;
	return rn_buffer_data(rn_packets_buffers(packets), packet->payload_buf) +
	       packet->payload_off;
}

static void compute_icrc(struct rn_packets *packets, struct rn_packet *packet, const uint8_t *ip,
			 uint32_t ip_bytes)
{
	if (packet->icrc_known)
		return;
	packet->icrc = rn_icrc(ip, ip_bytes, payload_of(packets, packet), packet->payload_bytes,
			       packet->pad);
	packet->icrc_known = 1;
}

uint32_t rn_packet_icrc(struct rn_packets *packets, uint32_t idx)
{
	struct rn_packet *packet = rn_packet_at(packets, idx);
	uint8_t ip[128];

	if (!packet->icrc_known)
		compute_icrc(packets, packet, ip, put_headers(packet, ip));
	return packet->icrc;
}

bool rn_packet_icrc_fits(struct rn_packets *packets, uint32_t idx)
{
	const struct rn_packet *packet = rn_packet_at(packets, idx);
	uint8_t ip[128];
	uint32_t ip_bytes = put_headers(packet, ip);
	uint32_t icrc = rn_icrc(ip, ip_bytes, payload_of(packets, packet), packet->payload_bytes,
				packet->pad);

	return packet->icrc_known && !packet->corrupt && packet->icrc == icrc;
}

uint32_t rn_packet_encode(struct rn_packets *packets, uint32_t idx, uint8_t *to)
{
	struct rn_packet *packet = rn_packet_at(packets, idx);
	uint8_t *ip = to + ETHERNET_BYTES;
	uint32_t header_bytes;
	uint8_t *end;

	if (packet->is_pause)
		return rn_pause_encode(packet, to);
	memcpy(to, packet->dmac, 6);
	memcpy(to + 6, packet->smac, 6);
	rn_put_be16(to + 12, packet->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	header_bytes = put_headers(packet, ip);
	compute_icrc(packets, packet, ip, header_bytes);
	end = ip + header_bytes;
	if (packet->payload_bytes)
		memcpy(end, payload_of(packets, packet), packet->payload_bytes);
	end += packet->payload_bytes;
	memset(end, 0, packet->pad);
	end += packet->pad;
	rn_put_le32(end, packet->corrupt ? packet->icrc ^ 1 : packet->icrc);
	return (uint32_t)(end + ICRC_BYTES - to);
}

/* What of a frame has been parsed so far. */
struct cursor {
	const uint8_t *at;
	uint32_t left;
};

static const uint8_t *take(struct cursor *cursor, uint32_t bytes)
{
	const uint8_t *at = cursor->at;

	if (cursor->left < bytes)
		return NULL;
	cursor->at += bytes;
	cursor->left -= bytes;
	return at;
}

static enum rn_packet_parse get_ipv4(struct rn_packet *packet, struct cursor *cursor)
{
	const uint8_t *ip = take(cursor, IPV4_BYTES);
	uint32_t ip_bytes;

	if (!ip)
		return RN_PARSE_TRUNCATED;
	ip_bytes = rn_get_be16(ip + 2);
	if (ip[0] != 0x45 || ip[9] != PROTOCOL_UDP || rn_get_be16(ip + 6) & 0x3fff)
		return RN_PARSE_NOT_ROCE;
	if (ip_bytes < IPV4_BYTES || ip_bytes - IPV4_BYTES > cursor->left)
		return RN_PARSE_TRUNCATED;
	cursor->left = ip_bytes - IPV4_BYTES;
	packet->tclass = ip[1];
	packet->ip_id = rn_get_be16(ip + 4);
	packet->dont_fragment = ip[6] >> 6 & 1;
	packet->hop_limit = ip[8];
	memcpy(packet->sgid, mapped_prefix, sizeof(mapped_prefix));
	memcpy(packet->sgid + 12, ip + 12, 4);
	memcpy(packet->dgid, mapped_prefix, sizeof(mapped_prefix));
	memcpy(packet->dgid + 12, ip + 16, 4);
	return ipv4_checksum(ip) ? RN_PARSE_BAD_CHECKSUM : RN_PARSE_OK;
}

static enum rn_packet_parse get_ipv6(struct rn_packet *packet, struct cursor *cursor)
{
	const uint8_t *ip = take(cursor, IPV6_BYTES);
	uint32_t first;

	if (!ip)
		return RN_PARSE_TRUNCATED;
	if (ip[0] >> 4 != 6 || ip[6] != PROTOCOL_UDP)
		return RN_PARSE_NOT_ROCE;
	if (rn_get_be16(ip + 4) > cursor->left)
		return RN_PARSE_TRUNCATED;
	cursor->left = rn_get_be16(ip + 4);
	first = rn_get_be32(ip);
	packet->ipv6 = 1;
	packet->tclass = (uint8_t)(first >> 20);
	packet->flow_label = first & 0xfffff;
	packet->hop_limit = ip[7];
	memcpy(packet->sgid, ip + 8, 16);
	memcpy(packet->dgid, ip + 24, 16);
	return RN_PARSE_OK;
}

static enum rn_packet_parse get_udp(struct rn_packet *packet, struct cursor *cursor)
{
	const uint8_t *udp = take(cursor, UDP_BYTES);

	if (!udp)
		return RN_PARSE_TRUNCATED;
	if (rn_get_be16(udp + 2) != ROCE_PORT)
		return RN_PARSE_NOT_ROCE;
	if (rn_get_be16(udp + 4) != cursor->left + UDP_BYTES)
		return RN_PARSE_TRUNCATED;
	packet->udp_sport = rn_get_be16(udp);
	return RN_PARSE_OK;
}

static void get_bth(struct rn_packet *packet, const uint8_t *bth)
{
	uint32_t qp = rn_get_be32(bth + 4);
	uint32_t psn = rn_get_be32(bth + 8);

	packet->opcode = bth[0];
	packet->se = bth[1] >> 7;
	packet->migreq = bth[1] >> 6 & 1;
	packet->pad = bth[1] >> 4 & 3;
	packet->tver = bth[1] & 15;
	packet->pkey = rn_get_be16(bth + 2);
	packet->fecn = qp >> 31;
	packet->becn = qp >> 30 & 1;
	packet->dqpn = qp & QPN_MASK;
	packet->ackreq = psn >> 31;
	packet->psn = psn & QPN_MASK;
}

static void get_extended(struct rn_packet *packet, uint32_t flags, const uint8_t *from)
{
	if (flags & RN_OP_DETH) {
		packet->deth_qkey = rn_get_be32(from);
		packet->deth_sqpn = rn_get_be32(from + 4) & QPN_MASK;
		from += 8;
	}
	if (flags & (RN_OP_RETH | RN_OP_ATOMIC)) {
		packet->reth_va = rn_get_be64(from);
		packet->reth_rkey = rn_get_be32(from + 8);
		from += 12;
	}
	if (flags & RN_OP_RETH) {
		packet->reth_bytes = rn_get_be32(from);
		from += 4;
	}
	if (flags & RN_OP_ATOMIC) {
		packet->atomic_swap = rn_get_be64(from);
		packet->atomic_compare = rn_get_be64(from + 8);
		from += 16;
	}
	if (flags & RN_OP_AETH) {
		packet->aeth_syndrome = from[0];
		packet->aeth_msn = rn_get_be32(from) & QPN_MASK;
		from += 4;
	}
	if (flags & RN_OP_ATOMIC_ACK) {
		packet->atomic_original = rn_get_be64(from);
		from += 8;
	}
	if (flags & RN_OP_IMM) {
		memcpy(&packet->imm_be, from, 4);
		from += 4;
	}
	if (flags & RN_OP_IETH)
		packet->ieth_rkey = rn_get_be32(from);
}

/* BTH to ICRC; the cursor holds exactly the UDP payload. */
static enum rn_packet_parse get_transport(struct rn_packets *packets, struct rn_packet *packet,
					  struct cursor *cursor)
{
	const struct rn_opcode_info *info;
	const uint8_t *bth = cursor->at;
	uint32_t body;

	if (cursor->left < BTH_BYTES + ICRC_BYTES)
		return RN_PARSE_TRUNCATED;
	get_bth(packet, bth);
	info = rn_opcode_info(packet->opcode);
	if (!(info->flags & RN_OP_VALID))
		return RN_PARSE_BAD_OPCODE;
	if (cursor->left < info->header_bytes + ICRC_BYTES + packet->pad)
		return RN_PARSE_TRUNCATED;
	get_extended(packet, info->flags, bth + BTH_BYTES);
	body = cursor->left - info->header_bytes - ICRC_BYTES - packet->pad;
	if (body > RN_BUFFER_BYTES)
		return RN_PARSE_TRUNCATED;
	packet->payload_bytes = (uint16_t)body;
	if (body) {
		packet->payload_buf = rn_buffer_get(rn_packets_buffers(packets));
		memcpy(rn_buffer_data(rn_packets_buffers(packets), packet->payload_buf),
		       bth + info->header_bytes, body);
	}
	packet->icrc = rn_get_le32(bth + cursor->left - ICRC_BYTES);
	packet->icrc_known = 1;
	return RN_PARSE_OK;
}

static enum rn_packet_parse parse(struct rn_packets *packets, struct rn_packet *packet,
				  const uint8_t *frame, uint32_t bytes)
{
	struct cursor cursor = {.at = frame, .left = bytes};
	const uint8_t *ethernet = take(&cursor, ETHERNET_BYTES);
	enum rn_packet_parse result, rest;
	const uint8_t *ip = cursor.at;
	const uint8_t *transport;
	uint32_t header_bytes;

	if (!ethernet)
		return RN_PARSE_TRUNCATED;
	memcpy(packet->dmac, ethernet, 6);
	memcpy(packet->smac, ethernet + 6, 6);
	if (rn_get_be16(ethernet + 12) == ETHERTYPE_IPV4)
		result = get_ipv4(packet, &cursor);
	else if (rn_get_be16(ethernet + 12) == ETHERTYPE_IPV6)
		result = get_ipv6(packet, &cursor);
	else
		return RN_PARSE_NOT_ROCE;
	if (result != RN_PARSE_OK && result != RN_PARSE_BAD_CHECKSUM)
		return result;
	rest = get_udp(packet, &cursor);
	transport = cursor.at;
	if (rest == RN_PARSE_OK)
		rest = get_transport(packets, packet, &cursor);
	if (rest != RN_PARSE_OK || result != RN_PARSE_OK)
		return rest != RN_PARSE_OK ? rest : result;
	/* The CRC is over the bytes as they came: reserved bits are covered too. */
	header_bytes = (uint32_t)(transport - ip) + rn_opcode_info(packet->opcode)->header_bytes;
	if (rn_icrc(ip, header_bytes, ip + header_bytes, packet->payload_bytes + packet->pad, 0) !=
	    packet->icrc)
		return RN_PARSE_BAD_ICRC;
	return RN_PARSE_OK;
}

enum rn_packet_parse rn_packet_decode(struct rn_packets *packets, const uint8_t *frame,
				      uint32_t bytes, uint32_t *idx)
{
	enum rn_packet_parse result;

	*idx = rn_packet_get(packets);
	result = parse(packets, rn_packet_at(packets, *idx), frame, bytes);
	if (result == RN_PARSE_NOT_ROCE || result == RN_PARSE_TRUNCATED ||
	    result == RN_PARSE_BAD_OPCODE) {
		rn_packet_put(packets, *idx);
		*idx = RN_PACKET_NONE;
	} else if (result != RN_PARSE_OK) {
		rn_packet_at(packets, *idx)->corrupt = 1;
	}
	return result;
}
