#include "preload/address.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/uapi.h"

#define SIMULATED_NET 0x0a000000u /* 10.0.0.0/24 */
#define LOOPBACK_NET 0x7f000000u
#define TCP_LISTEN 0x0a
#define LOOKS 4

static struct {
	bool active;
	unsigned own, hosts;
	uint32_t kernel_net; /* 127.a.b.0 */
} run;

static void read_environment(void)
{
	const char *net = getenv(RN_ENV_NET);
	const char *host = getenv(RN_ENV_HOST);
	unsigned a, b, hosts;

	if (!net || !host || sscanf(net, "%u.%u.%u", &a, &b, &hosts) != 3 || a > 255 || b > 255 ||
	    hosts < 1 || hosts > 64)
		return;
	run.own = (unsigned)strtoul(host, NULL, 10);
	run.hosts = hosts;
	run.kernel_net = LOOPBACK_NET | a << 16 | b << 8;
	run.active = run.own < hosts;
}

bool rn_address_is_active(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (environ)
		pthread_once(&once, read_environment);
	return run.active;
}

unsigned rn_address_own_host(void)
{
	return run.own;
}

unsigned rn_address_hosts(void)
{
	return run.hosts;
}

in_addr_t rn_address_of_host(unsigned host)
{
	return htonl(SIMULATED_NET + host + 1);
}

/* fe80::ff:fe00:1 and so on: EUI-64 of 02:00:00:00:00:01. */
struct in6_addr rn_address_ipv6_of_host(unsigned host)
{
	struct in6_addr address = {.s6_addr = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe}};

	address.s6_addr[15] = (uint8_t)(host + 1);
	return address;
}

static bool is_link_local_of_run(const struct in6_addr *address)
{
	const struct in6_addr like = rn_address_ipv6_of_host(address->s6_addr[15] - 1u);

	return IN6_ARE_ADDR_EQUAL(address, &like);
}

/*
 * The IPv4 address in @address (also a mapped one; :: and ::1 count as 0.0.0.0 and 127.0.0.1, a host's link-local address as
 * its IPv4 address), host order.
 */
static bool get_ipv4(const struct sockaddr *address, socklen_t bytes, uint32_t *ipv4)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (bytes >= sizeof(*v4) && address->sa_family == AF_INET) {
		*ipv4 = ntohl(v4->sin_addr.s_addr);
		return true;
	}
	if (bytes < sizeof(*v6) || address->sa_family != AF_INET6)
		return false;
	if (IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
		*ipv4 = INADDR_ANY;
	else if (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr))
		*ipv4 = INADDR_LOOPBACK;
	else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		*ipv4 = ntohl(v6->sin6_addr.s6_addr32[3]);
	else if (is_link_local_of_run(&v6->sin6_addr))
		*ipv4 = SIMULATED_NET + v6->sin6_addr.s6_addr[15];
	else
		return false;
	return true;
}

static void set_ipv4(struct sockaddr *address, uint32_t ipv4)
{
	struct sockaddr_in *v4 = (void *)address;
	struct sockaddr_in6 *v6 = (void *)address;

	if (address->sa_family == AF_INET) {
		v4->sin_addr.s_addr = htonl(ipv4);
		return;
	}
	memset(&v6->sin6_addr, 0, sizeof(v6->sin6_addr));
	v6->sin6_addr.s6_addr32[2] = htonl(0xffff);
	v6->sin6_addr.s6_addr32[3] = htonl(ipv4);
}

enum rn_address_kind rn_address_kind(const struct sockaddr *address, socklen_t bytes,
				     unsigned *host)
{
	uint32_t ipv4;

	if (!address || !get_ipv4(address, bytes, &ipv4))
		return RN_ADDRESS_FOREIGN;
	if (ipv4 == INADDR_ANY)
		return RN_ADDRESS_ANY;
	if (ipv4 == INADDR_LOOPBACK)
		return RN_ADDRESS_LOOPBACK;
	if ((ipv4 & 0xffffff00u) != SIMULATED_NET)
		return RN_ADDRESS_FOREIGN;
	*host = (ipv4 & 0xff) - 1;
	return *host < run.hosts ? RN_ADDRESS_HOST : RN_ADDRESS_NOBODY;
}

void rn_address_to_kernel(const struct sockaddr *address, socklen_t bytes, unsigned host,
			  union rn_address *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out, address, bytes < sizeof(*out) ? bytes : sizeof(*out));
	set_ipv4(&out->any, run.kernel_net + host + 1);
}

void rn_address_to_program(struct sockaddr *address, socklen_t bytes)
{
	uint32_t ipv4;

	if (address && get_ipv4(address, bytes, &ipv4) && (ipv4 & 0xffffff00u) == run.kernel_net)
		set_ipv4(address, SIMULATED_NET + (ipv4 & 0xff));
}

/* Bit n of the result: host n listens on @port, by @path (/proc/net/tcp or tcp6). */
static uint64_t listeners_in(const char *path, unsigned port)
{
	FILE *file = fopen(path, "re");
	uint64_t hosts = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		char address[40];
		unsigned local_port, state;
		unsigned long ipv4;

		if (sscanf(line, " %*u: %39[0-9A-F]:%x %*s %x", address, &local_port, &state) !=
			    3 ||
		    state != TCP_LISTEN || local_port != port || strlen(address) < 8)
			continue;
		/* The last word is the IPv4 address as stored in memory. */
		ipv4 = ntohl((uint32_t)strtoul(address + strlen(address) - 8, NULL, 16));
		if ((ipv4 & 0xffffff00u) == run.kernel_net && (ipv4 & 0xff) - 1 < run.hosts)
			hosts |= 1ull << ((ipv4 & 0xff) - 1);
	}
	if (file)
		fclose(file);
	return hosts;
}

bool rn_address_find_listener(unsigned port, unsigned *host)
{
	uint64_t hosts = 0;

	/* The table is read in pieces; while sockets come and go a line can be missed. */
	for (unsigned i = 0; i < LOOKS && !hosts; i++)
		hosts = listeners_in("/proc/net/tcp", port) | listeners_in("/proc/net/tcp6", port);

	if (!hosts)
		return false;
	*host = hosts >> run.own & 1 ? run.own : (unsigned)__builtin_ctzll(hosts);
	return true;
}
