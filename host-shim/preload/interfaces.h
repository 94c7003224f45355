/*
 * Network interfaces as programs of a run see them: the loopback and the simulated NIC's. Those of the machine are not there.
 */
#ifndef RN_PRELOAD_INTERFACES_H
#define RN_PRELOAD_INTERFACES_H

#include <netinet/in.h>
#include <stdint.h>

#define RN_INTERFACES 2
#define RN_INTERFACE_NIC 1 /* index into the table */
#define RN_MAC_BYTES 6

struct rn_interface {
	const char *name;
	unsigned index;
	unsigned flags; /* IFF_* */
	unsigned type;	/* ARPHRD_* */
	unsigned mtu_bytes;
	uint8_t mac[RN_MAC_BYTES], mac_broadcast[RN_MAC_BYTES];
	in_addr_t ipv4_be, ipv4_mask_be;
	unsigned ipv4_prefix_bits;
	struct in6_addr ipv6;
	unsigned ipv6_prefix_bits;
};

/** The own host's, by their index. The process must be in a run. */
const struct rn_interface *rn_interfaces(void);

/** The one called @name, NULL when there is none. */
const struct rn_interface *rn_interface_called(const char *name);

/** Its broadcast address, network byte order. */
in_addr_t rn_interface_broadcast_be(const struct rn_interface *interface);

#endif
