/* Lies on the control socket. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"

#define MANY 40

/* Less, or more, than a request says it is; or nothing. */
void act_half_messages(struct rn_rng *rng, uint32_t host)
{
	static char message[2 * RN_UAPI_MAX_BYTES];
	struct rn_uapi_req req = {.op = below(rng, 25), .bytes = nasty(rng), .handle = nasty(rng)};
	const bool attached = one_in(rng, 2);
	struct raw raw;

	if (!(attached ? raw_attach : raw_connect)(&raw, rng, host))
		return;
	memcpy(message, &req, sizeof(req));
	for (unsigned n = 0; n < 4; n++) {
		const uint32_t sizes[] = {1,
					  sizeof(req) - 1,
					  sizeof(req),
					  RN_UAPI_MAX_BYTES,
					  RN_UAPI_MAX_BYTES + 1,
					  sizeof(message),
					  below(rng, 200)};
		const uint32_t bytes = sizes[below(rng, 7)];

		if (one_in(rng, 2))
			memcpy(message + 4, &bytes, 4); /* the size is right at least */
		raw_send(&raw, message, bytes);
	}
	if (one_in(rng, 4))
		shutdown(raw.fd, one_in(rng, 2) ? SHUT_WR : SHUT_RD);
	if (attached && !one_in(rng, 3))
		raw_receive(&raw, message, sizeof(message), NULL);
	raw_close(&raw);
}

void act_wrong_attach(struct rn_rng *rng, uint32_t host)
{
	struct rn_uapi_attach request = {
		.req = {.op = RN_UAPI_ATTACH, .bytes = sizeof(request)},
		.version = one_in(rng, 2) ? RN_UAPI_VERSION : nasty(rng),
		.host = nasty(rng),
	};
	struct rn_uapi_attach_rsp rsp;
	int fds[3] = {-1, -1, -1};
	struct raw raw;

	if (!raw_connect(&raw, rng, host))
		return;
	if (one_in(rng, 4))
		mutate(rng, &request, sizeof(request), 0);
	/* Several times: only one may succeed. */
	for (unsigned n = 0; n < 3; n++)
		if (raw_send(&raw, &request, sizeof(request)))
			raw_receive(&raw, &rsp, sizeof(rsp), fds);
	for (unsigned n = 0; n < 3; n++)
		if (fds[n] >= 0)
			close(fds[n]);
	raw_close(&raw);
}

/* Every operation with every size and contents; sometimes it is gone before the answer. */
void act_garbage_requests(struct rn_rng *rng, uint32_t host)
{
	_Alignas(8) static char answer[RN_UAPI_MAX_BYTES];
	_Alignas(8) uint32_t request[128];
	struct raw raw;

	if (!raw_attach(&raw, rng, host))
		return;
	for (unsigned n = 0; n < 60 && !raw.gone; n++) {
		const uint32_t words = 4 + below(rng, 124);

		for (uint32_t at = 0; at < words; at++)
			request[at] = nasty(rng);
		request[0] = 1 + below(rng, 20);
		request[1] = words * 4;
		if (raw_send(&raw, request, words * 4) && !one_in(rng, 50))
			raw_receive(&raw, answer, sizeof(answer), NULL);
	}
	raw_close(&raw);
}

/* Requests without end whose answers nobody reads, until it is cut off or the socket is full. */
void act_unread_answers(struct rn_rng *rng, uint32_t host)
{
	struct rn_uapi_req req = {
		.op = one_in(rng, 2) ? RN_UAPI_QUERY_DEVICE : RN_UAPI_ALLOC_PD,
		.bytes = sizeof(req),
	};
	struct raw raw;

	if (!raw_attach(&raw, rng, host))
		return;
	for (unsigned n = 0; n < 2000; n++)
		if (send(raw.fd, &req, sizeof(req), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	raw_close(&raw);
}

/* Descriptors that nobody asked for must not pile up at the other end. */
void act_descriptors(struct rn_rng *rng, uint32_t host)
{
	struct rn_uapi_req req = {.op = RN_UAPI_QUERY_PORT, .bytes = sizeof(req)};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct iovec part = {&req, sizeof(req)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	struct rn_uapi_port rsp;
	int fds[8];
	struct raw raw;

	if (!raw_attach(&raw, rng, host))
		return;
	for (unsigned n = 0; n < 8; n++)
		fds[n] = n % 2 ? raw.arena_fd : raw.fd;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	for (unsigned n = 0; n < 20; n++)
		if (sendmsg(raw.fd, &message, MSG_NOSIGNAL) > 0)
			raw_receive(&raw, &rsp, sizeof(rsp), NULL);
	raw_close(&raw);
}

void act_many_connections(struct rn_rng *rng, uint32_t host)
{
	struct raw *raw = calloc(MANY, sizeof(*raw));
	bool open[MANY];

	for (unsigned n = 0; raw && n < MANY; n++)
		open[n] = (one_in(rng, 4) ? raw_attach : raw_connect)(&raw[n], rng, host);
	for (unsigned n = 0; raw && n < MANY; n++)
		if (open[n])
			raw_close(&raw[n]);
	free(raw);
}
