/*
 * A RoCEv2 frame inside the simulator: decoded headers plus the payload by reference. Real bytes
 * (with ICRC, checksums and lengths) are made when somebody looks: capture, corruption, replay.
 */
#ifndef RN_WIRE_PACKET_H
#define RN_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/buffer.h"

#define RN_PACKET_NONE UINT32_MAX
#define RN_PACKET_MAX_BYTES 4400 /* largest frame without FCS */

struct rn_packet {
	/* Link and network layer. */
	uint8_t dmac[6], smac[6];
	uint8_t sgid[16], dgid[16]; /* IPv4 addresses as ::ffff:a.b.c.d */
	uint8_t ipv6;
	uint8_t tclass; /* whole TOS / traffic-class byte */
	uint8_t hop_limit;
	uint8_t dont_fragment;
	uint16_t ip_id; /* IPv4 only */
	uint16_t udp_sport;
	uint32_t flow_label;
	/* BTH. */
	uint8_t opcode; /* whole byte: service and operation */
	uint8_t se, migreq, pad, tver;
	uint8_t fecn, becn, ackreq;
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	/* Extended headers; which are present follows from the opcode (wire/opcode.h). */
	uint64_t reth_va;
	uint32_t reth_rkey;
	uint32_t reth_bytes;
	uint8_t aeth_syndrome;
	uint32_t aeth_msn;
	uint32_t imm_be;
	uint32_t ieth_rkey;
	uint32_t deth_qkey, deth_sqpn;
	uint64_t atomic_swap, atomic_compare, atomic_original;
	/* Payload: bytes without pad. */
	uint32_t payload_buf; /* rn_buffers index, one reference; RN_BUFFER_NONE when empty */
	uint16_t payload_off;
	uint16_t payload_bytes;
	/* ICRC, computed at most once; a received frame has it when it came as bytes. */
	uint8_t icrc_known;
	uint8_t corrupt; /* 1: some bit was damaged on the wire; the ICRC does not fit */
	uint32_t icrc;
	/* A pause frame: addresses and these alone (wire/pause.h). */
	uint8_t is_pause;
	uint16_t pause_quanta;
	/* Simulation only, not on the wire. */
	uint32_t src_host;
	uint32_t src_qpn;
	uint16_t wqe_idx;
	uint8_t last_of_wqe, first_of_wqe;
	uint8_t is_request;
	uint64_t sent_ps; /* first bit at the egress of its NIC */
};

struct rn_packets; /* pool */

struct rn_packets *rn_packets_new(struct rn_buffers *buffers);
void rn_packets_free(struct rn_packets *packets);
/** A zeroed packet with payload_buf RN_BUFFER_NONE, migreq 1, pkey 0xffff; one owner. */
uint32_t rn_packet_get(struct rn_packets *packets);
/** Copy of a packet (payload shared by reference). */
uint32_t rn_packet_clone(struct rn_packets *packets, uint32_t idx);
/** Give it back, with its payload reference. */
void rn_packet_put(struct rn_packets *packets, uint32_t idx);
/** Stable pointer while it is held. */
struct rn_packet *rn_packet_at(struct rn_packets *packets, uint32_t idx);
uint32_t rn_packets_in_use(const struct rn_packets *packets);
struct rn_buffers *rn_packets_buffers(struct rn_packets *packets);

/** Bytes of the Ethernet frame (no preamble, no FCS, no padding to the minimum size), ICRC included. */
uint32_t rn_packet_frame_bytes(const struct rn_packet *packet);

/** Serialise into @to (RN_PACKET_MAX_BYTES); returns the frame's bytes. Computes the ICRC once. */
uint32_t rn_packet_encode(struct rn_packets *packets, uint32_t idx, uint8_t *to);

enum rn_packet_parse {
	RN_PARSE_OK,
	RN_PARSE_NOT_ROCE,  /* not Ethernet/IP/UDP 4791 */
	RN_PARSE_TRUNCATED, /* lengths do not fit */
	RN_PARSE_BAD_OPCODE,
	RN_PARSE_BAD_CHECKSUM, /* IPv4 header checksum */
	RN_PARSE_BAD_ICRC,
};

/** Parse @bytes of a frame into a fresh packet (@idx is set unless NOT_ROCE, TRUNCATED or BAD_OPCODE). */
enum rn_packet_parse rn_packet_decode(struct rn_packets *packets, const uint8_t *frame,
				      uint32_t bytes, uint32_t *idx);

/** The ICRC as stored (little-endian value); computed on first use. */
uint32_t rn_packet_icrc(struct rn_packets *packets, uint32_t idx);

/** Whether the ICRC that the frame carries fits its headers and payload, computed anew from these. */
bool rn_packet_icrc_fits(struct rn_packets *packets, uint32_t idx);

#endif
