/*
 * Pipes of events; see outlet.h.
 */
#include "driver/outlet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

int rn_outlet_open(struct rn_outlet *outlet, int epoll_fd, void (*flush)(struct rn_outlet *outlet))
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	*outlet = (struct rn_outlet){
		.epoll_fd = epoll_fd,
		.fd = ends[0],
		.user_fd = ends[1],
		.flush = flush,
	};
	return 0;
}

void rn_outlet_close(struct rn_outlet *outlet)
{
	if (outlet->fd < 0)
		return;
	rn_outlet_watch(outlet, false);
	close(outlet->fd);
	close(outlet->user_fd);
	outlet->fd = -1;
	outlet->user_fd = -1;
}

bool rn_outlet_send(struct rn_outlet *outlet, const void *record, uint32_t bytes)
{
	/* A program that has shut its end down loses the record; waiting for room would be for ever. */
	return send(outlet->fd, record, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

void rn_outlet_watch(struct rn_outlet *outlet, bool on)
{
	struct epoll_event event = {.events = EPOLLOUT, .data.ptr = outlet};

	if (on == outlet->watched)
		return;
	if (!epoll_ctl(outlet->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, outlet->fd, &event))
		outlet->watched = on;
}

uint32_t rn_outlet_take_back(struct rn_outlet *outlet,
			     bool (*matches)(const void *record, uint32_t bytes, const void *arg),
			     const void *arg)
{
	struct kept {
		uint32_t bytes;
		_Alignas(8) uint8_t record[RN_OUTLET_RECORD_MAX];
	} *kept = NULL, one;
	uint32_t kept_count = 0, room = 0, taken = 0;
	ssize_t bytes;

	while ((bytes = recv(outlet->user_fd, one.record, sizeof(one.record), MSG_DONTWAIT)) > 0) {
		one.bytes = (uint32_t)bytes;
		if (matches(one.record, one.bytes, arg)) {
			taken++;
			continue;
		}
		if (kept_count == room) {
			room = room ? room * 2 : 16;
			kept = rn_reallocarray(kept, room, sizeof(*kept));
		}
		kept[kept_count++] = one;
	}
	/* They fitted before, and only this side sends. */
	for (uint32_t n = 0; n < kept_count; n++)
		(void)rn_outlet_send(outlet, kept[n].record, kept[n].bytes);
	free(kept);
	return taken;
}
