/*
 * Socket calls that carry an address, interposed: bind, connect, sendto, and what returns one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "preload/address.h"
#include "preload/descriptors.h"

/* The definitions behind this library. */
static struct {
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
	int (*accept)(int, struct sockaddr *, socklen_t *);
	int (*accept4)(int, struct sockaddr *, socklen_t *, int);
	int (*getpeername)(int, struct sockaddr *, socklen_t *);
	int (*getsockname)(int, struct sockaddr *, socklen_t *);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
} real;

static void find_real(void)
{
	*(void **)&real.bind = dlsym(RTLD_NEXT, "bind");
	*(void **)&real.connect = dlsym(RTLD_NEXT, "connect");
	*(void **)&real.sendto = dlsym(RTLD_NEXT, "sendto");
	*(void **)&real.accept = dlsym(RTLD_NEXT, "accept");
	*(void **)&real.accept4 = dlsym(RTLD_NEXT, "accept4");
	*(void **)&real.getpeername = dlsym(RTLD_NEXT, "getpeername");
	*(void **)&real.getsockname = dlsym(RTLD_NEXT, "getsockname");
	*(void **)&real.recvfrom = dlsym(RTLD_NEXT, "recvfrom");
}

/* True in a run; the real functions are there afterwards in any case. */
static bool is_active(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_real);
	return rn_address_is_active();
}

static unsigned port_of(const struct sockaddr *address)
{
	/* The port lies at the same place in both families. */
	return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static bool is_stream(int fd)
{
	socklen_t bytes = sizeof(int);
	int type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

RN_EXPORT int bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t bytes)
{
	const struct sockaddr *address = to.__sockaddr__;
	enum rn_address_kind kind = RN_ADDRESS_FOREIGN;
	union rn_address kernel;
	unsigned host;

	if (is_active())
		kind = rn_address_kind(address, bytes, &host);
	if (kind == RN_ADDRESS_FOREIGN)
		return real.bind(fd, address, bytes);
	if (kind == RN_ADDRESS_NOBODY ||
	    (kind == RN_ADDRESS_HOST && host != rn_address_own_host())) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	rn_address_to_kernel(address, bytes, rn_address_own_host(), &kernel);
	return real.bind(fd, &kernel.any, bytes);
}

/* Give an unbound socket its host's address, so that the peer sees who calls. */
static void bind_source(int fd, const struct sockaddr *address, socklen_t bytes)
{
	union rn_address local;
	socklen_t local_bytes = sizeof(local);

	if (real.getsockname(fd, &local.any, &local_bytes) != 0 || local.v4.sin_port != 0)
		return;
	rn_address_to_kernel(address, bytes, rn_address_own_host(), &local);
	local.v4.sin_port = 0;
	real.bind(fd, &local.any, bytes);
}

/* The kernel's address for a destination that a program names; false: leave it alone. */
static bool translate(int fd, const struct sockaddr *address, socklen_t bytes,
		      union rn_address *kernel)
{
	unsigned host = rn_address_own_host();

	switch (rn_address_kind(address, bytes, &host)) {
	case RN_ADDRESS_FOREIGN:
		return false;
	case RN_ADDRESS_ANY:
	case RN_ADDRESS_LOOPBACK:
		host = rn_address_own_host();
		if (is_stream(fd))
			rn_address_find_listener(port_of(address), &host);
		break;
	case RN_ADDRESS_HOST:
	case RN_ADDRESS_NOBODY:
		break;
	}
	rn_address_to_kernel(address, bytes, host, kernel);
	return true;
}

static int connect_really(int fd, const struct sockaddr *address, socklen_t bytes)
{
	union rn_address kernel;

	if (!is_active() || !translate(fd, address, bytes, &kernel))
		return rn_descriptor_connect(real.connect, fd, address, bytes);
	bind_source(fd, address, bytes);
	return rn_descriptor_connect(real.connect, fd, &kernel.any, bytes);
}

RN_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t bytes)
{
	const int result = connect_really(fd, to.__sockaddr__, bytes);

	rn_descriptor_done(result == 0 || errno == EINPROGRESS);
	return result;
}

RN_EXPORT ssize_t sendto(int fd, const void *data, size_t length, int flags,
			 __CONST_SOCKADDR_ARG to, socklen_t bytes)
{
	const struct sockaddr *address = to.__sockaddr__;
	union rn_address kernel;
	ssize_t sent;

	if (!rn_descriptor_before_write(fd, flags & MSG_DONTWAIT))
		return -1;
	if (!address || !is_active() || !translate(fd, address, bytes, &kernel)) {
		sent = real.sendto(fd, data, length, flags, address, bytes);
	} else {
		bind_source(fd, address, bytes);
		sent = real.sendto(fd, data, length, flags, &kernel.any, bytes);
	}
	rn_descriptor_done(sent >= 0);
	return sent;
}

static void show(struct sockaddr *address, const socklen_t *bytes, socklen_t room)
{
	if (address && bytes)
		rn_address_to_program(address, *bytes < room ? *bytes : room);
}

RN_EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t *bytes)
{
	struct sockaddr *address = from.__sockaddr__;
	socklen_t room = bytes ? *bytes : 0;
	bool active = is_active();
	int accepted;

	if (!rn_descriptor_before_read(fd, false))
		return -1;
	accepted = real.accept(fd, address, bytes);
	rn_descriptor_done(accepted >= 0);

	if (active && accepted >= 0)
		show(address, bytes, room);
	return accepted;
}

RN_EXPORT int accept4(int fd, __SOCKADDR_ARG from, socklen_t *bytes, int flags)
{
	struct sockaddr *address = from.__sockaddr__;
	socklen_t room = bytes ? *bytes : 0;
	bool active = is_active();
	int accepted;

	if (!rn_descriptor_before_read(fd, false))
		return -1;
	accepted = real.accept4(fd, address, bytes, flags);
	rn_descriptor_done(accepted >= 0);

	if (active && accepted >= 0)
		show(address, bytes, room);
	return accepted;
}

RN_EXPORT int getpeername(int fd, __SOCKADDR_ARG from, socklen_t *bytes)
{
	struct sockaddr *address = from.__sockaddr__;
	socklen_t room = bytes ? *bytes : 0;
	bool active = is_active();
	int result = real.getpeername(fd, address, bytes);

	if (active && result == 0)
		show(address, bytes, room);
	return result;
}

RN_EXPORT int getsockname(int fd, __SOCKADDR_ARG from, socklen_t *bytes)
{
	struct sockaddr *address = from.__sockaddr__;
	socklen_t room = bytes ? *bytes : 0;
	bool active = is_active();
	int result = real.getsockname(fd, address, bytes);

	if (active && result == 0)
		show(address, bytes, room);
	return result;
}

RN_EXPORT ssize_t recvfrom(int fd, void *data, size_t length, int flags, __SOCKADDR_ARG from,
			   socklen_t *bytes)
{
	struct sockaddr *address = from.__sockaddr__;
	socklen_t room = bytes ? *bytes : 0;
	bool active = is_active();
	ssize_t received;

	if (!rn_descriptor_before_read(fd, flags & MSG_DONTWAIT))
		return -1;
	received = real.recvfrom(fd, data, length, flags, address, bytes);
	rn_descriptor_done(received >= 0);

	if (active && received >= 0)
		show(address, bytes, room);
	return received;
}
