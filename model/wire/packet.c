/*
 * The packet pool: chunks of packets that never move, a free list of indexes.
 */
#include "wire/packet.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

#define CHUNK_PACKETS 256

struct rn_packets {
	struct rn_buffers *buffers;
	struct rn_packet **chunk;
	uint32_t chunks;
	uint32_t *free_idx;
	uint32_t free_count;
};

struct rn_packets *rn_packets_new(struct rn_buffers *buffers)
{
	struct rn_packets *packets = rn_calloc(1, sizeof(*packets));

	packets->buffers = buffers;
	return packets;
}

void rn_packets_free(struct rn_packets *packets)
{
	if (!packets)
		return;
	for (uint32_t i = 0; i < packets->chunks; i++)
		free(packets->chunk[i]);
	free(packets->chunk);
	free(packets->free_idx);
	free(packets);
}

static void grow(struct rn_packets *packets)
{
	uint32_t base = packets->chunks * CHUNK_PACKETS;

	packets->chunk =
		rn_reallocarray(packets->chunk, packets->chunks + 1, sizeof(struct rn_packet *));
	packets->chunk[packets->chunks] = rn_calloc(CHUNK_PACKETS, sizeof(struct rn_packet));
	packets->chunks++;
	packets->free_idx = rn_reallocarray(
		packets->free_idx, (size_t)packets->chunks * CHUNK_PACKETS, sizeof(uint32_t));
	for (uint32_t i = CHUNK_PACKETS; i > 0; i--)
		packets->free_idx[packets->free_count++] = base + i - 1;
}

struct rn_packet *rn_packet_at(struct rn_packets *packets, uint32_t idx)
{
	RN_ASSERT(idx < packets->chunks * CHUNK_PACKETS);
	return &packets->chunk[idx / CHUNK_PACKETS][idx % CHUNK_PACKETS];
}

uint32_t rn_packet_get(struct rn_packets *packets)
{
	struct rn_packet *packet;
	uint32_t idx;

	if (!packets->free_count)
		grow(packets);
	idx = packets->free_idx[--packets->free_count];
	packet = rn_packet_at(packets, idx);
	memset(packet, 0, sizeof(*packet));
	packet->payload_buf = RN_BUFFER_NONE;
	packet->migreq = 1;
	packet->pkey = 0xffff;
	return idx;
}

uint32_t rn_packet_clone(struct rn_packets *packets, uint32_t idx)
{
	uint32_t copy = rn_packet_get(packets);
	struct rn_packet *packet = rn_packet_at(packets, copy);

	*packet = *rn_packet_at(packets, idx);
	if (packet->payload_buf != RN_BUFFER_NONE)
		rn_buffer_hold(packets->buffers, packet->payload_buf);
	return copy;
}

void rn_packet_put(struct rn_packets *packets, uint32_t idx)
{
	struct rn_packet *packet = rn_packet_at(packets, idx);

	rn_buffer_put(packets->buffers, packet->payload_buf);
	packet->payload_buf = RN_BUFFER_NONE;
	RN_ASSERT(packets->free_count < packets->chunks * CHUNK_PACKETS);
	packets->free_idx[packets->free_count++] = idx;
}

uint32_t rn_packets_in_use(const struct rn_packets *packets)
{
	return packets->chunks * CHUNK_PACKETS - packets->free_count;
}

struct rn_buffers *rn_packets_buffers(struct rn_packets *packets)
{
	return packets->buffers;
}
