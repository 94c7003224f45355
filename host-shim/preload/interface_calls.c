/*
 * ioctl() and setsockopt() where they are about network interfaces.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "preload/address.h"
#include "preload/interfaces.h"
#include "preload/virtual.h"

#define QUEUE_PACKETS 1000 /* what Linux gives an Ethernet device */

static int fail(int error)
{
	errno = error;
	return -1;
}

static void set_ipv4(struct sockaddr *out, in_addr_t ipv4_be)
{
	const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = ipv4_be};

	memcpy(out, &address, sizeof(address));
}

/* SIOCGIFCONF: without room it says how much is needed. */
static int list_all(struct ifconf *list)
{
	const int room = list->ifc_len / (int)sizeof(struct ifreq);
	int n = 0;

	if (!list->ifc_req) {
		list->ifc_len = RN_INTERFACES * (int)sizeof(struct ifreq);
		return 0;
	}
	for (; n < RN_INTERFACES && n < room; n++) {
		struct ifreq *one = &list->ifc_req[n];

		memset(one, 0, sizeof(*one));
		strcpy(one->ifr_name, rn_interfaces()[n].name);
		set_ipv4(&one->ifr_addr, rn_interfaces()[n].ipv4_be);
	}
	list->ifc_len = n * (int)sizeof(struct ifreq);
	return 0;
}

static int name_of(struct ifreq *request)
{
	return if_indextoname((unsigned)request->ifr_ifindex, request->ifr_name) ? 0 : fail(ENODEV);
}

/* ETHTOOL: who drives it, and that the link is up. */
static int tell_ethernet(const struct rn_interface *interface, void *data)
{
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO, .driver = "rnicsim"};
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK, .data = 1};
	uint32_t command;

	memcpy(&command, data, sizeof(command));
	if (command == ETHTOOL_GLINK)
		memcpy(data, &link, sizeof(link));
	else if (command == ETHTOOL_GDRVINFO && !(interface->flags & IFF_LOOPBACK))
		memcpy(data, &driver, sizeof(driver));
	else
		return fail(EOPNOTSUPP);
	return 0;
}

static int tell(unsigned long request, struct ifreq *out)
{
	const struct rn_interface *interface = rn_interface_called(out->ifr_name);

	if (!interface)
		return fail(ENODEV);
	switch (request) {
	case SIOCGIFFLAGS:
		out->ifr_flags = (short)interface->flags;
		return 0;
	case SIOCGIFADDR:
		set_ipv4(&out->ifr_addr, interface->ipv4_be);
		return 0;
	case SIOCGIFDSTADDR:
		set_ipv4(&out->ifr_addr, interface->ipv4_be);
		return 0;
	case SIOCGIFBRDADDR:
		set_ipv4(&out->ifr_broadaddr, interface->flags & IFF_BROADCAST
						      ? rn_interface_broadcast_be(interface)
						      : 0);
		return 0;
	case SIOCGIFNETMASK:
		set_ipv4(&out->ifr_netmask, interface->ipv4_mask_be);
		return 0;
	case SIOCGIFHWADDR:
		memset(&out->ifr_hwaddr, 0, sizeof(out->ifr_hwaddr));
		out->ifr_hwaddr.sa_family = (sa_family_t)interface->type;
		memcpy(out->ifr_hwaddr.sa_data, interface->mac, RN_MAC_BYTES);
		return 0;
	case SIOCGIFMTU:
		out->ifr_mtu = (int)interface->mtu_bytes;
		return 0;
	case SIOCGIFMETRIC:
		out->ifr_metric = 0;
		return 0;
	case SIOCGIFTXQLEN:
		out->ifr_qlen = QUEUE_PACKETS;
		return 0;
	case SIOCGIFINDEX:
		out->ifr_ifindex = (int)interface->index;
		return 0;
	case SIOCETHTOOL:
		return tell_ethernet(interface, out->ifr_data);
	default:
		return fail(ENOTTY);
	}
}

static bool is_about_interface(unsigned long request)
{
	switch (request) {
	case SIOCGIFFLAGS:
	case SIOCGIFADDR:
	case SIOCGIFDSTADDR:
	case SIOCGIFBRDADDR:
	case SIOCGIFNETMASK:
	case SIOCGIFHWADDR:
	case SIOCGIFMTU:
	case SIOCGIFMETRIC:
	case SIOCGIFTXQLEN:
	case SIOCGIFINDEX:
	case SIOCETHTOOL:
		return true;
	default:
		return false;
	}
}

static bool is_socket(int fd)
{
	socklen_t bytes = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0;
}

RN_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *argument;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if ((request & ~0xffffUL) || (request >> 8 & 0xff) != SIOCGIFNAME >> 8 ||
	    !rn_address_is_active() || !argument || !is_socket(fd))
		return RN_REAL(ioctl)(fd, request, argument);
	if (request == SIOCGIFCONF)
		return list_all(argument);
	if (request == SIOCGIFNAME)
		return name_of(argument);
	return is_about_interface(request) ? tell(request, argument)
					   : RN_REAL(ioctl)(fd, request, argument);
}

/* For the kernel all hosts of the run are on the loopback. */
RN_EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	const char *nic = rn_address_is_active() ? rn_interfaces()[RN_INTERFACE_NIC].name : NULL;

	if (nic && level == SOL_SOCKET && name == SO_BINDTODEVICE && value &&
	    bytes >= strlen(nic) && !strncmp(value, nic, bytes))
		return RN_REAL(setsockopt)(fd, level, name, "lo", sizeof("lo"));
	return RN_REAL(setsockopt)(fd, level, name, value, bytes);
}
