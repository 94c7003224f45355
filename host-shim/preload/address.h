/*
 * Socket addresses of the simulated hosts. Programs see host n as 10.0.0.(n+1), and localhost as what a
 * single machine would be: their own host, or whichever host of the run listens there. The kernel sees loopback
 * addresses 127.a.b.(n+1) with a.b the run's own, so that runs side by side do not meet.
 *
 * The run's network is in the environment: RNICSIM_NET=a.b.hosts, the host's number in RNICSIM_HOST.
 */
#ifndef RN_PRELOAD_ADDRESS_H
#define RN_PRELOAD_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#ifndef RN_EXPORT
#define RN_EXPORT __attribute__((visibility("default")))
#endif

union rn_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage storage;
};

/** Whether this process belongs to a run. */
bool rn_address_is_active(void);

unsigned rn_address_own_host(void);
unsigned rn_address_hosts(void);

/** What a program means by @host_order (IPv4). */
enum rn_address_kind {
	RN_ADDRESS_FOREIGN, /* not of the simulated network: left alone */
	RN_ADDRESS_ANY,	    /* 0.0.0.0 or :: */
	RN_ADDRESS_LOOPBACK,
	RN_ADDRESS_HOST,   /* a simulated host: *host */
	RN_ADDRESS_NOBODY, /* in 10.0.0.0/24, but no host of the run */
};

/** Kind of an IPv4 or IPv6 socket address; FOREIGN for any other family or a short one. */
enum rn_address_kind rn_address_kind(const struct sockaddr *address, socklen_t bytes,
				     unsigned *host);

/** Copy @address with the kernel's loopback address of @host in it; the family and port stay. */
void rn_address_to_kernel(const struct sockaddr *address, socklen_t bytes, unsigned host,
			  union rn_address *out);

/** Rewrite a kernel address of this run in place into the one programs see. @bytes: valid bytes. */
void rn_address_to_program(struct sockaddr *address, socklen_t bytes);

/** IPv4 address of @host as programs see it, network byte order. */
in_addr_t rn_address_of_host(unsigned host);

/** Its link-local IPv6 address, which follows from its MAC address. */
struct in6_addr rn_address_ipv6_of_host(unsigned host);

/** The host of this run whose kernel address listens on TCP @port (host order); own host first. False: nobody. */
bool rn_address_find_listener(unsigned port, unsigned *host);

#endif
