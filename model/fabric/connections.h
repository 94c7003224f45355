/*
 * The connections that scripted faults speak of, numbered by their first frame on the fabric. Every frame is looked
 * up, so they are hashed by their two ends.
 */
#ifndef RN_FABRIC_CONNECTIONS_H
#define RN_FABRIC_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* An end is (address, QPN). */
struct rn_connection {
	uint8_t gid[2][16];
	uint32_t qpn[2];
	uint32_t first_psn[2];
	bool started[2]; /* end i has sent a request */
};

struct rn_connections {
	struct rn_connection *at; /* by ordinal */
	uint32_t count;
	uint32_t *bucket; /* ordinal + 1, 0: free; open addressing */
	uint32_t buckets; /* a power of two, at least twice @count; 0 before the first */
};

/** Ordinal of the connection of @packet, a new one if need be; *@end: which of its ends sends the packet. */
uint32_t rn_connections_find(struct rn_connections *connections, const struct rn_packet *packet,
			     unsigned *end);

void rn_connections_fini(struct rn_connections *connections);

#endif
