/*
 * The table of interfaces, and the C library's functions that list them. Addresses follow from the host's number as the
 * driver's do (docs/addresses.md).
 */
#include "preload/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "preload/address.h"
#include "preload/virtual.h"

#define UP (IFF_UP | IFF_RUNNING)
#define NIC_MTU_BYTES 9000 /* jumbo frames: packets of 4096 bytes and their headers fit */

static struct rn_interface table[RN_INTERFACES] = {
	{
		.name = "lo",
		.index = 1,
		.flags = UP | IFF_LOOPBACK,
		.type = ARPHRD_LOOPBACK,
		.mtu_bytes = 65536,
		.ipv4_prefix_bits = 8,
		.ipv6 = IN6ADDR_LOOPBACK_INIT,
		.ipv6_prefix_bits = 128,
	},
	{
		.name = "rnic0",
		.index = 2,
		.flags = UP | IFF_BROADCAST | IFF_MULTICAST,
		.type = ARPHRD_ETHER,
		.mtu_bytes = NIC_MTU_BYTES,
		.mac = {2},
		.mac_broadcast = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		.ipv4_prefix_bits = 24,
		.ipv6_prefix_bits = 64,
	},
};

static void fill_table(void)
{
	struct rn_interface *nic = &table[RN_INTERFACE_NIC];
	const unsigned host = rn_address_own_host();

	table[0].ipv4_be = htonl(INADDR_LOOPBACK);
	nic->mac[RN_MAC_BYTES - 1] = (uint8_t)(host + 1);
	nic->ipv4_be = rn_address_of_host(host);
	nic->ipv6 = rn_address_ipv6_of_host(host);
	for (unsigned i = 0; i < RN_INTERFACES; i++)
		table[i].ipv4_mask_be = htonl(~0u << (32 - table[i].ipv4_prefix_bits));
}

const struct rn_interface *rn_interfaces(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fill_table);
	return table;
}

const struct rn_interface *rn_interface_called(const char *name)
{
	const struct rn_interface *all = rn_interfaces();

	for (unsigned i = 0; i < RN_INTERFACES; i++)
		if (!strncmp(all[i].name, name, IFNAMSIZ))
			return &all[i];
	return NULL;
}

in_addr_t rn_interface_broadcast_be(const struct rn_interface *interface)
{
	return interface->ipv4_be | ~interface->ipv4_mask_be;
}

/* --- getifaddrs --- */

/* One entry with all that it points to. */
struct entry {
	struct ifaddrs head;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_ll link;
	} address, mask, broadcast;
	char name[IFNAMSIZ];
};

enum { LINK, IPV4, IPV6, KINDS };

static void set_link(struct entry *entry, const struct rn_interface *from)
{
	struct sockaddr_ll *link = &entry->address.link;

	*link = (struct sockaddr_ll){.sll_family = AF_PACKET,
				     .sll_ifindex = (int)from->index,
				     .sll_hatype = (unsigned short)from->type,
				     .sll_halen = RN_MAC_BYTES};
	entry->broadcast.link = *link;
	memcpy(link->sll_addr, from->mac, RN_MAC_BYTES);
	memcpy(entry->broadcast.link.sll_addr, from->mac_broadcast, RN_MAC_BYTES);
	entry->head.ifa_broadaddr = &entry->broadcast.any;
}

static void set_ipv4(struct entry *entry, const struct rn_interface *from)
{
	entry->address.v4 =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = from->ipv4_be};
	entry->mask.v4 =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = from->ipv4_mask_be};
	entry->broadcast.v4 = entry->address.v4;
	if (from->flags & IFF_BROADCAST)
		entry->broadcast.v4.sin_addr.s_addr = rn_interface_broadcast_be(from);
	entry->head.ifa_netmask = &entry->mask.any;
	entry->head.ifa_broadaddr = &entry->broadcast.any;
}

static void set_ipv6(struct entry *entry, const struct rn_interface *from)
{
	struct in6_addr *mask = &entry->mask.v6.sin6_addr;

	entry->address.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = from->ipv6};
	if (IN6_IS_ADDR_LINKLOCAL(&from->ipv6))
		entry->address.v6.sin6_scope_id = from->index;
	entry->mask.v6.sin6_family = AF_INET6;
	memset(mask, 0xff, from->ipv6_prefix_bits / 8);
	entry->head.ifa_netmask = &entry->mask.any;
}

static void (*const set[KINDS])(struct entry *entry, const struct rn_interface *from) = {
	[LINK] = set_link,
	[IPV4] = set_ipv4,
	[IPV6] = set_ipv6,
};

/* One block, as the C library's: its own freeifaddrs() frees it. Links first, then addresses, as Linux lists them. */
RN_EXPORT int getifaddrs(struct ifaddrs **list)
{
	struct entry *entries;

	if (!rn_address_is_active())
		return RN_REAL(getifaddrs)(list);
	entries = calloc((size_t)KINDS * RN_INTERFACES, sizeof(*entries));
	if (!entries)
		return -1;
	for (unsigned n = 0; n < KINDS * RN_INTERFACES; n++) {
		struct entry *entry = &entries[n];
		const struct rn_interface *from = &rn_interfaces()[n % RN_INTERFACES];

		strcpy(entry->name, from->name);
		entry->head.ifa_name = entry->name;
		entry->head.ifa_flags = from->flags;
		entry->head.ifa_addr = &entry->address.any;
		set[n / RN_INTERFACES](entry, from);
		if (n + 1 < KINDS * RN_INTERFACES)
			entry->head.ifa_next = &entries[n + 1].head;
	}
	*list = &entries->head;
	return 0;
}

/* --- names and indexes --- */

RN_EXPORT unsigned if_nametoindex(const char *name)
{
	const struct rn_interface *found;

	if (!rn_address_is_active())
		return RN_REAL(if_nametoindex)(name);
	found = rn_interface_called(name);
	if (!found)
		errno = ENODEV;
	return found ? found->index : 0;
}

RN_EXPORT char *if_indextoname(unsigned index, char name[IF_NAMESIZE])
{
	if (!rn_address_is_active())
		return RN_REAL(if_indextoname)(index, name);
	if (index < 1 || index > RN_INTERFACES) {
		errno = ENXIO;
		return NULL;
	}
	return strcpy(name, rn_interfaces()[index - 1].name);
}

/* Two allocations each, as the C library's if_freenameindex() frees them. */
RN_EXPORT struct if_nameindex *if_nameindex(void)
{
	struct if_nameindex *list;

	if (!rn_address_is_active())
		return RN_REAL(if_nameindex)();
	list = calloc(RN_INTERFACES + 1, sizeof(*list));
	for (unsigned i = 0; list && i < RN_INTERFACES; i++) {
		list[i].if_index = rn_interfaces()[i].index;
		list[i].if_name = strdup(rn_interfaces()[i].name);
	}
	if (!list)
		errno = ENOBUFS;
	return list;
}
