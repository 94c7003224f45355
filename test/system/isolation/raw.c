/* Connection of a hostile client, and its chance. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hostile.h"

/* --- chance --- */

uint32_t below(struct rn_rng *rng, uint32_t bound)
{
	return (uint32_t)rn_rng_below(rng, bound);
}

bool one_in(struct rn_rng *rng, uint32_t n)
{
	return below(rng, n) == 0;
}

uint32_t nasty(struct rn_rng *rng)
{
	switch (below(rng, 6)) {
	case 0:
		return below(rng, 4);
	case 1:
		return UINT32_MAX - below(rng, 4);
	case 2:
		return 1u << below(rng, 32);
	case 3:
		return (1u << below(rng, 32)) + below(rng, 3) - 1;
	case 4:
		return below(rng, 1024);
	default:
		return (uint32_t)rn_rng_next(rng);
	}
}

uint64_t nasty64(struct rn_rng *rng)
{
	return one_in(rng, 2) ? nasty(rng) : (uint64_t)nasty(rng) << 32 | nasty(rng);
}

uint32_t nearby(struct rn_rng *rng, uint32_t own)
{
	return own + below(rng, 129) - 64;
}

void mutate(struct rn_rng *rng, void *record, size_t bytes, size_t skip)
{
	const uint32_t words = (uint32_t)((bytes - skip) / 4);
	const uint32_t count = 1 + below(rng, 3);

	for (uint32_t n = 0; words && n < count; n++) {
		const uint32_t value = nasty(rng);

		memcpy((char *)record + skip + (size_t)below(rng, words) * 4, &value, 4);
	}
}

/* --- connection --- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

bool raw_connect(struct raw *raw, struct rn_rng *rng, uint32_t host)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv(RN_ENV_SOCKET);

	*raw = (struct raw){.rng = rng, .host = host};
	raw->channel_fd = raw->arena_fd = raw->wake_fd = -1;
	raw->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (raw->fd < 0 || !path || strlen(path) >= sizeof(address.sun_path))
		return false;
	strcpy(address.sun_path, path);
	if (connect(raw->fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return true;
	close_fd(&raw->fd);
	return false;
}

void raw_close(struct raw *raw)
{
	if (raw->channel)
		munmap(raw->channel, RN_CHANNEL_BYTES);
	raw->channel = NULL;
	close_fd(&raw->fd);
	close_fd(&raw->channel_fd);
	close_fd(&raw->arena_fd);
	close_fd(&raw->wake_fd);
}

bool raw_send(struct raw *raw, const void *data, size_t bytes)
{
	const struct timeval limit = {.tv_sec = LONGEST_ANSWER_MS / 1000};
	ssize_t sent;

	if (raw->gone)
		return false;
	setsockopt(raw->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	sent = send(raw->fd, data, bytes, MSG_NOSIGNAL);
	if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		fprintf(stderr, "hostile: the simulator does not read\n");
		exit(1);
	}
	raw->gone = sent < 0;
	return !raw->gone;
}

static void take_descriptors(struct msghdr *message, int fds[3])
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	unsigned count;

	if (!header || header->cmsg_type != SCM_RIGHTS)
		return;
	count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (unsigned n = 0; n < count; n++) {
		int fd;

		memcpy(&fd, CMSG_DATA(header) + n * sizeof(int), sizeof(fd));
		if (fds && n < 3)
			fds[n] = fd;
		else
			close(fd);
	}
}

ssize_t raw_receive(struct raw *raw, void *data, size_t bytes, int fds[3])
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))];
	struct iovec part = {data, bytes};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct pollfd poll_fd = {.fd = raw->fd, .events = POLLIN};
	ssize_t got;

	if (raw->gone)
		return 0;
	if (poll(&poll_fd, 1, LONGEST_ANSWER_MS) == 0) {
		fprintf(stderr, "hostile: no answer and no hang-up within %d ms\n",
			LONGEST_ANSWER_MS);
		exit(1);
	}
	got = recvmsg(raw->fd, &message, MSG_CMSG_CLOEXEC);
	if (got <= 0) {
		raw->gone = true;
		return 0;
	}
	take_descriptors(&message, fds);
	return got;
}

int raw_call(struct raw *raw, void *request, size_t bytes, void *answer, size_t answer_bytes)
{
	struct rn_uapi_req *req = request;
	struct rn_uapi_rsp rsp;

	req->bytes = (uint32_t)bytes;
	if (!answer) {
		answer = &rsp;
		answer_bytes = sizeof(rsp);
	}
	if (!raw_send(raw, request, bytes) || !raw_receive(raw, answer, answer_bytes, NULL))
		return -1;
	memcpy(&rsp, answer, sizeof(rsp));
	return rsp.error;
}

uint32_t raw_call_handle(struct raw *raw, uint32_t op, uint32_t handle)
{
	struct rn_uapi_req req = {.op = op, .handle = handle};
	struct rn_uapi_rsp rsp;

	return raw_call(raw, &req, sizeof(req), &rsp, sizeof(rsp)) ? 0 : rsp.handle;
}

bool raw_attach(struct raw *raw, struct rn_rng *rng, uint32_t host)
{
	struct rn_uapi_attach request = {
		.req = {.op = RN_UAPI_ATTACH, .bytes = sizeof(request)},
		.version = RN_UAPI_VERSION,
		.host = host,
		.pid = nasty(rng), /* the driver must not believe it */
	};
	struct rn_uapi_attach_rsp rsp = {.rsp.error = 0};
	int fds[3] = {-1, -1, -1};

	if (!raw_connect(raw, rng, host))
		return false;
	if (!raw_send(raw, &request, sizeof(request)) ||
	    !raw_receive(raw, &rsp, sizeof(rsp), fds) || rsp.rsp.error) {
		raw_close(raw);
		return false;
	}
	raw->channel_fd = fds[0];
	raw->arena_fd = fds[1];
	raw->wake_fd = fds[2];
	raw->arena_bytes = rsp.arena_bytes;
	raw->hosts = rsp.hosts;
	raw->uar_pages = rsp.uar_pages;
	raw->channel = mmap(NULL, RN_CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    raw->channel_fd, 0);
	if (raw->channel == MAP_FAILED) {
		raw->channel = NULL;
		raw_close(raw);
	}
	return raw->channel != NULL;
}

void raw_ring(struct raw *raw, uint32_t page, uint32_t offset, const void *data, uint32_t len)
{
	rn_channel_post(raw->channel, nasty64(raw->rng), page, offset, data, len);
	rn_channel_kick(raw->channel, raw->wake_fd);
}

/* Map the frames of each run in place of the pages. */
static bool map_runs(struct raw *raw, char *va, const struct rn_uapi_pin_rsp *rsp)
{
	for (uint32_t n = 0; n < rsp->rsp.handle; n++) {
		const size_t bytes = (size_t)rsp->run[n].pages * PAGE;

		if (rsp->run[n].arena_offset != UINT64_MAX &&
		    mmap(va, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, raw->arena_fd,
			 (off_t)rsp->run[n].arena_offset) == MAP_FAILED)
			return false;
		va += bytes;
	}
	return true;
}

bool raw_pin(struct raw *raw, void *va, uint32_t pages)
{
	_Alignas(8) static char answer[RN_UAPI_MAX_BYTES];
	_Alignas(8) char room[sizeof(struct rn_uapi_pin) + RN_UAPI_MAX_PAGES / 8];
	struct rn_uapi_pin *request = (struct rn_uapi_pin *)(void *)room;
	const size_t bytes = sizeof(*request) + (pages + 7) / 8;

	memset(room, 0xff, sizeof(room));
	*request = (struct rn_uapi_pin){.req.op = RN_UAPI_PIN, .va = (uintptr_t)va, .pages = pages};
	if (raw_call(raw, request, bytes, answer, sizeof(answer)))
		return false;
	return map_runs(raw, va, (struct rn_uapi_pin_rsp *)(void *)answer);
}
