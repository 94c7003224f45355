/*
 * Addresses of the simulated subnet, and what becomes of an address handle: host n has MAC
 * 02:00:00:00:00:(n+1), GID 0 ::ffff:10.0.0.(n+1) and GID 1 the EUI-64 link-local of the MAC.
 */
#ifndef RN_DRIVER_ADDRESS_H
#define RN_DRIVER_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/uapi.h"

/** MAC address of @host (0 .. 254). */
void rn_address_mac(uint32_t host, uint8_t mac[6]);

/** GID @index (0 or 1) of @host. */
void rn_address_gid(uint32_t host, uint32_t index, uint8_t gid[16]);

/** True for ::ffff:a.b.c.d, which goes out as IPv4. */
bool rn_address_is_ipv4(const uint8_t gid[16]);

/**
 * The standard resolver, the subnet's ARP and neighbour discovery: MAC of the host among @hosts that has @gid.
 * 0, or ENETUNREACH (not in the subnet), EHOSTUNREACH (no such host), EINVAL (not a unicast address).
 */
int rn_address_resolve(uint32_t hosts, const uint8_t gid[16], uint8_t mac[6]);

/**
 * UDP source port of a connection, 49152 .. 65535: the flow label folded, or, when that is 0, entropy of
 * the two QPNs (Linux rdma_flow_label_to_udp_sport, rdma_calc_flow_label).
 */
uint16_t rn_address_udp_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn);

/** Device attributes of the shipped personality; the caller changes what its configuration says. */
void rn_address_default_device(struct rn_uapi_device *device, uint32_t host);

/** An active 100 Gbit/s Ethernet port of @host with its two GIDs and MTU 4096. */
void rn_address_default_port(struct rn_uapi_port *port, uint32_t host);

#endif
