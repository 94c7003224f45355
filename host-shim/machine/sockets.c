/*
 * The loopback network: each run has one of 127.a.b.0, whose hosts' programs meet there over TCP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "machine/internal.h"

#define FIRST                                                                                      \
	UINT32_C(                                                                                  \
		0x7ffe0001) /* 127.254.0.1, 127.254.0.2: two hosts of a network that runs take last */
#define WAIT_MS 5000

static struct sockaddr_in address(uint32_t ip)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
}

void rn_probe_loopback(struct rn_machine_finding *finding)
{
	struct sockaddr_in at = address(FIRST);
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		rn_machine_refuse(finding, "socket", errno);
	else if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0)
		rn_machine_refuse(finding, "bind to 127.254.0.1", errno);
	else
		finding->works = true;
	if (fd >= 0)
		close(fd);
}

static bool meet(struct rn_machine_finding *finding, int server, int client)
{
	struct sockaddr_in at = address(FIRST), from = address(FIRST + 1);
	socklen_t bytes = sizeof(at);
	struct pollfd ready = {.fd = server, .events = POLLIN};

	if (bind(server, (const struct sockaddr *)&at, sizeof(at)) != 0 || listen(server, 1) != 0 ||
	    getsockname(server, (struct sockaddr *)&at, &bytes) != 0)
		return rn_machine_refuse(finding, "listen on 127.254.0.1", errno);
	if (bind(client, (const struct sockaddr *)&from, sizeof(from)) != 0)
		return rn_machine_refuse(finding, "bind to 127.254.0.2", errno);
	if (connect(client, (const struct sockaddr *)&at, sizeof(at)) != 0)
		return rn_machine_refuse(finding, "connect to 127.254.0.1", errno);
	if (poll(&ready, 1, WAIT_MS) != 1)
		return rn_machine_refuse(finding, "a connection to 127.254.0.1 does not arrive", 0);
	return true;
}

void rn_probe_ports(struct rn_machine_finding *finding)
{
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (server < 0 || client < 0)
		rn_machine_refuse(finding, "socket", errno);
	else
		finding->works = meet(finding, server, client);
	if (server >= 0)
		close(server);
	if (client >= 0)
		close(client);
}
