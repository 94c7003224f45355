/*
 * Names of the simulated hosts: host0, host1 ... stand for 10.0.0.1, 10.0.0.2 ..., in both directions; a program's own
 * machine is called host<n>, whichever way it asks.
 */
#include "preload/names.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "preload/address.h"
#include "preload/virtual.h"

#define ADDRESS_CHARS 16

/* "host12" of this run. */
static bool is_host_name(const char *name, unsigned *host)
{
	int used = 0;

	return name && rn_address_is_active() && sscanf(name, "host%2u%n", host, &used) == 1 &&
	       name[used] == '\0' && *host < rn_address_hosts();
}

static void print_address(unsigned host, char text[ADDRESS_CHARS])
{
	snprintf(text, ADDRESS_CHARS, "10.0.0.%u", host + 1);
}

/* --- name to address --- */

/* The name that was asked for, instead of the address that was looked up. */
static void name_canonically(struct addrinfo *first, const char *name)
{
	char *copy = first && first->ai_canonname ? strdup(name) : NULL;

	if (!copy)
		return;
	free(first->ai_canonname);
	first->ai_canonname = copy;
}

RN_EXPORT int getaddrinfo(const char *restrict name, const char *restrict service,
			  const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
	char text[ADDRESS_CHARS];
	unsigned host;
	int error;

	if (!is_host_name(name, &host) || (hints && hints->ai_flags & AI_NUMERICHOST))
		return RN_REAL(getaddrinfo)(name, service, hints, result);
	print_address(host, text);
	error = RN_REAL(getaddrinfo)(text, service, hints, result);
	if (!error)
		name_canonically(*result, name);
	return error;
}

/* Looked up as an address, whose text is the entry's name and longer than the host's. */
static struct hostent *with_name(struct hostent *entry, unsigned host)
{
	char name[RN_NAME_CHARS];

	rn_names_print(host, name);
	if (entry && strlen(name) <= strlen(entry->h_name))
		strcpy(entry->h_name, name);
	return entry;
}

RN_EXPORT struct hostent *gethostbyname(const char *name)
{
	char text[ADDRESS_CHARS];
	unsigned host;

	if (!is_host_name(name, &host))
		return RN_REAL(gethostbyname)(name);
	print_address(host, text);
	return with_name(RN_REAL(gethostbyname)(text), host);
}

RN_EXPORT struct hostent *gethostbyname2(const char *name, int family)
{
	char text[ADDRESS_CHARS];
	unsigned host;

	if (!is_host_name(name, &host))
		return RN_REAL(gethostbyname2)(name, family);
	print_address(host, text);
	return with_name(RN_REAL(gethostbyname2)(text, family), host);
}

RN_EXPORT int gethostbyname_r(const char *restrict name, struct hostent *restrict entry,
			      char *restrict buffer, size_t bytes, struct hostent **restrict result,
			      int *restrict error)
{
	char text[ADDRESS_CHARS];
	unsigned host;
	int code;

	if (!is_host_name(name, &host))
		return RN_REAL(gethostbyname_r)(name, entry, buffer, bytes, result, error);
	print_address(host, text);
	code = RN_REAL(gethostbyname_r)(text, entry, buffer, bytes, result, error);
	with_name(code ? NULL : *result, host);
	return code;
}

RN_EXPORT int gethostbyname2_r(const char *restrict name, int family,
			       struct hostent *restrict entry, char *restrict buffer, size_t bytes,
			       struct hostent **restrict result, int *restrict error)
{
	char text[ADDRESS_CHARS];
	unsigned host;
	int code;

	if (!is_host_name(name, &host))
		return RN_REAL(gethostbyname2_r)(name, family, entry, buffer, bytes, result, error);
	print_address(host, text);
	code = RN_REAL(gethostbyname2_r)(text, family, entry, buffer, bytes, result, error);
	with_name(code ? NULL : *result, host);
	return code;
}

/* --- address to name --- */

static bool is_simulated(const struct sockaddr *address, socklen_t bytes, unsigned *host)
{
	return rn_address_is_active() && rn_address_kind(address, bytes, host) == RN_ADDRESS_HOST;
}

RN_EXPORT int getnameinfo(const struct sockaddr *restrict address, socklen_t bytes,
			  char *restrict name, socklen_t name_bytes, char *restrict service,
			  socklen_t service_bytes, int flags)
{
	char text[RN_NAME_CHARS];
	unsigned host;

	if (!name || !name_bytes || flags & NI_NUMERICHOST || !is_simulated(address, bytes, &host))
		return RN_REAL(getnameinfo)(address, bytes, name, name_bytes, service,
					    service_bytes, flags);
	rn_names_print(host, text);
	if (strlen(text) >= name_bytes)
		return EAI_OVERFLOW;
	strcpy(name, text);
	if (!service || !service_bytes)
		return 0;
	return RN_REAL(getnameinfo)(address, bytes, NULL, 0, service, service_bytes, flags);
}

static bool is_simulated_address(const void *address, socklen_t bytes, int family, unsigned *host)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	if (family != AF_INET || bytes != sizeof(v4.sin_addr))
		return false;
	memcpy(&v4.sin_addr, address, sizeof(v4.sin_addr));
	return is_simulated((const struct sockaddr *)&v4, sizeof(v4), host);
}

RN_EXPORT struct hostent *gethostbyaddr(const void *address, socklen_t bytes, int family)
{
	char text[RN_NAME_CHARS];
	unsigned host;

	if (!is_simulated_address(address, bytes, family, &host))
		return RN_REAL(gethostbyaddr)(address, bytes, family);
	rn_names_print(host, text);
	return gethostbyname(text);
}

RN_EXPORT int gethostbyaddr_r(const void *restrict address, socklen_t bytes, int family,
			      struct hostent *restrict entry, char *restrict buffer, size_t room,
			      struct hostent **restrict result, int *restrict error)
{
	char text[RN_NAME_CHARS];
	unsigned host;

	if (!is_simulated_address(address, bytes, family, &host))
		return RN_REAL(gethostbyaddr_r)(address, bytes, family, entry, buffer, room, result,
						error);
	rn_names_print(host, text);
	return gethostbyname_r(text, entry, buffer, room, result, error);
}

/* --- the own name --- */

void rn_names_print(unsigned host, char name[RN_NAME_CHARS])
{
	snprintf(name, RN_NAME_CHARS, "host%u", host);
}

RN_EXPORT int gethostname(char *name, size_t bytes)
{
	char text[RN_NAME_CHARS];

	if (!rn_address_is_active())
		return RN_REAL(gethostname)(name, bytes);
	rn_names_print(rn_address_own_host(), text);
	strncpy(name, text, bytes);
	if (strlen(text) < bytes)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* Of programs that are built with checks. */
int __gethostname_chk(char *name, size_t bytes, size_t room);

RN_EXPORT int __gethostname_chk(char *name, size_t bytes, size_t room)
{
	if (bytes > room)
		return RN_REAL(__gethostname_chk)(name, bytes, room); /* ends the program */
	return gethostname(name, bytes);
}

int rn_names_fill(struct utsname *names)
{
	if (rn_address_is_active()) {
		memset(names->nodename, 0, sizeof(names->nodename));
		rn_names_print(rn_address_own_host(), names->nodename);
	}
	return 0;
}

RN_EXPORT int uname(struct utsname *names)
{
	const int result = RN_REAL(uname)(names);

	return result ? result : rn_names_fill(names);
}
