/*
 * Names of the simulated hosts: host0, host1 ... resolve to 10.0.0.1, 10.0.0.2 ...; a program's own machine is
 * called host<n>.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/address.h"

/* "host12" of this run. */
static bool is_host_name(const char *name, unsigned *host)
{
	int used = 0;

	return name && rn_address_is_active() && sscanf(name, "host%2u%n", host, &used) == 1 &&
	       name[used] == '\0' && *host < rn_address_hosts();
}

static void print_address(unsigned host, char text[16])
{
	snprintf(text, 16, "10.0.0.%u", host + 1);
}

RN_EXPORT int getaddrinfo(const char *restrict name, const char *restrict service,
			  const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
	static int (*real)(const char *restrict, const char *restrict,
			   const struct addrinfo *restrict, struct addrinfo **restrict);
	char text[16];
	unsigned host;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (is_host_name(name, &host)) {
		print_address(host, text);
		return real(text, service, hints, result);
	}
	return real(name, service, hints, result);
}

RN_EXPORT struct hostent *gethostbyname(const char *name)
{
	static struct hostent *(*real)(const char *);
	char text[16];
	unsigned host;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "gethostbyname");
	if (is_host_name(name, &host)) {
		print_address(host, text);
		return real(text);
	}
	return real(name);
}

RN_EXPORT int gethostname(char *name, size_t bytes)
{
	static int (*real)(char *, size_t);
	int used;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "gethostname");
	if (!rn_address_is_active())
		return real(name, bytes);
	used = snprintf(name, bytes, "host%u", rn_address_own_host());
	if (used < 0 || (size_t)used >= bytes) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0;
}
