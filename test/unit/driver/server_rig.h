/*
 * A server over the fake NIC, and clients that speak to it through real sockets and shared memory.
 */
#ifndef RN_TEST_DRIVER_SERVER_RIG_H
#define RN_TEST_DRIVER_SERVER_RIG_H

#include <sys/types.h>

#include "bar/channel.h"
#include "driver/server.h"
#include "rig.h"

extern struct rig rig;
extern struct rn_server *server;
extern char server_path[64];

struct peer {
	int fd, channel_fd, arena_fd, wake_fd;
	struct rn_channel *channel;
	struct rn_uapi_attach_rsp attach;
};

void server_rig_set_up(void);
void server_rig_tear_down(void); /* nothing may be left of any client */

/** Another server on the same path; its errno. */
int server_rig_listen(struct rn_server **made);

/** Look at sockets and rings once, then run until nothing is due. */
void server_rig_pump(void);

/** A connection that has not said anything. */
int server_rig_plug_in(void);
/** The answer to what was sent; 0 when the server has hung up. */
ssize_t server_rig_get_answer(int fd, void *data, size_t bytes, int *fds);
/** Send a request; the answer's errno, -1 when the server has hung up. */
int server_rig_call(int fd, const void *request, size_t bytes);
/** Connect and attach. */
void server_rig_join(struct peer *peer, uint32_t version, uint32_t host);
void server_rig_quit(struct peer *peer);
void server_rig_wait_for_clients(uint32_t count);
bool server_rig_has_hung_up(int fd);

#endif
