#include "fabric/connections.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"

#define LEAST_BUCKETS 64u

static uint64_t hash_end(const uint8_t gid[16], uint32_t qpn)
{
	uint64_t hash = rn_get_le64(gid) ^ rn_get_le64(gid + 8) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ qpn) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ hash >> 32;
}

/* The same for both directions. */
static uint64_t hash_ends(const struct rn_connection *c)
{
	return hash_end(c->gid[0], c->qpn[0]) + hash_end(c->gid[1], c->qpn[1]);
}

static bool is_end(const struct rn_connection *c, unsigned end, const uint8_t gid[16], uint32_t qpn)
{
	return c->qpn[end] == qpn && memcmp(c->gid[end], gid, 16) == 0;
}

static void enter(struct rn_connections *connections, uint32_t ordinal)
{
	const struct rn_connection *c = &connections->at[ordinal];
	uint64_t slot = hash_ends(c);

	while (connections->bucket[slot & (connections->buckets - 1)])
		slot++;
	connections->bucket[slot & (connections->buckets - 1)] = ordinal + 1;
}

static void grow(struct rn_connections *connections)
{
	free(connections->bucket);
	connections->buckets = connections->buckets ? 2 * connections->buckets : LEAST_BUCKETS;
	connections->bucket = rn_calloc(connections->buckets, sizeof(*connections->bucket));
	connections->at = rn_reallocarray(connections->at, connections->buckets / 2,
					  sizeof(*connections->at));
	for (uint32_t i = 0; i < connections->count; i++)
		enter(connections, i);
}

static uint32_t add(struct rn_connections *connections, const struct rn_connection *wanted)
{
	if (2 * connections->count == connections->buckets)
		grow(connections);
	connections->at[connections->count] = *wanted;
	enter(connections, connections->count);
	return connections->count++;
}

uint32_t rn_connections_find(struct rn_connections *connections, const struct rn_packet *packet,
			     unsigned *end)
{
	struct rn_connection wanted = {.qpn = {packet->src_qpn, packet->dqpn}};
	uint64_t slot;
	uint32_t found;

	memcpy(wanted.gid[0], packet->sgid, 16);
	memcpy(wanted.gid[1], packet->dgid, 16);
	slot = hash_ends(&wanted);
	for (; connections->buckets; slot++) {
		found = connections->bucket[slot & (connections->buckets - 1)];
		if (!found)
			break;
		for (unsigned e = 0; e < 2; e++)
			if (is_end(&connections->at[found - 1], e, wanted.gid[0], wanted.qpn[0]) &&
			    is_end(&connections->at[found - 1], 1 - e, wanted.gid[1],
				   wanted.qpn[1])) {
				*end = e;
				return found - 1;
			}
	}
	*end = 0;
	return add(connections, &wanted);
}

void rn_connections_fini(struct rn_connections *connections)
{
	free(connections->bucket);
	free(connections->at);
}
