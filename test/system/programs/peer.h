/* Two peers of a test: a TCP connection for set-up and barriers, one device, one RC queue pair each.
 * Every failure prints what and where and ends the process with status 1. Nothing waits for ever. */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define CHECK(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			peer_fail(__FILE__, __LINE__, #cond, __VA_ARGS__);                         \
	} while (0)

struct peer_options {
	const char *server; /* host name of the server; NULL: be the server */
	unsigned port;
	unsigned gid_idx;
	unsigned mtu_bytes;
	unsigned wait_s;    /* longest wait for a completion or the other side */
	bool events;	    /* wait on a completion channel instead of polling */
	unsigned queue_wrs; /* depth of both work queues */
	unsigned sges;	    /* most scatter/gather entries of a work request */
	unsigned inline_bytes;
	unsigned rnr_timer; /* IBA code of min_rnr_timer */
	unsigned rnr_retry;
	unsigned retry_cnt;
	unsigned ack_timeout; /* IBA code */
	unsigned rd_atomic;
	uint32_t psn;
	int qp_access; /* ibv_access_flags of the queue pair */
};

/* What a peer tells the other one. */
struct peer_address {
	uint32_t qpn, psn, rkey, mtu_bytes;
	uint64_t va;
	union ibv_gid gid;
};

struct peer {
	struct peer_options options;
	bool is_server;
	int socket;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct peer_address remote;
};

extern const struct peer_options peer_defaults;

__attribute__((noreturn, format(printf, 4, 5))) void
peer_fail(const char *file, int line, const char *condition, const char *format, ...);

/* Opens the TCP connection and the first device. */
void peer_open(struct peer *peer, const struct peer_options *options);
void peer_close(struct peer *peer);

/* Makes CQs and a queue pair in INIT; sq_sig_all is 0. */
void peer_create_qp(struct peer *peer);
void peer_destroy_qp(struct peer *peer);

/* Exchanges addresses (with a buffer's va and rkey) and brings the queue pair to RTS. */
void peer_connect(struct peer *peer, const void *buffer, uint32_t rkey);
/* Exchanges addresses and leaves the queue pair in INIT. */
void peer_exchange(struct peer *peer, const void *buffer, uint32_t rkey);
void peer_to_rtr(struct peer *peer);
void peer_to_rts(struct peer *peer);
enum ibv_qp_state peer_qp_state(struct peer *peer);

/* Both sides have come this far. */
void peer_barrier(struct peer *peer);
void peer_write(struct peer *peer, const void *data, size_t bytes);
void peer_read(struct peer *peer, void *data, size_t bytes);

/* The next completion of a CQ, by polling or by events as the options say. */
void peer_wait(struct peer *peer, struct ibv_cq *cq, struct ibv_wc *wc);
/* No completion is there. */
void peer_expect_empty(struct ibv_cq *cq);

/* Parses "-p PORT -g GID -m MTU -e -t SECONDS" and the server's name; letters that are not its own
 * go to take(letter, argument), letters being those of getopt. */
void peer_parse(struct peer_options *options, int argc, char **argv, const char *letters,
		void (*take)(int letter, const char *argument), const char *usage);

#endif
