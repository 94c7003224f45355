#include "sim/buffer.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

#define CHUNK_BUFFERS 256

struct rn_buffers {
	uint8_t **chunks; /* CHUNK_BUFFERS buffers each; never moved */
	uint32_t *refs;	  /* per buffer */
	uint32_t *unused; /* a stack: the one used last is the one still in the cache */
	uint32_t count;
	uint32_t unused_count;
};

struct rn_buffers *rn_buffers_new(void)
{
	return rn_calloc(1, sizeof(struct rn_buffers));
}

void rn_buffers_free(struct rn_buffers *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->count / CHUNK_BUFFERS; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	free(pool->refs);
	free(pool->unused);
	free(pool);
}

static void grow(struct rn_buffers *pool)
{
	uint32_t count = pool->count + CHUNK_BUFFERS;

	RN_ASSERT(count < RN_BUFFER_NONE - CHUNK_BUFFERS);
	pool->chunks = rn_reallocarray(pool->chunks, count / CHUNK_BUFFERS, sizeof(uint8_t *));
	pool->chunks[count / CHUNK_BUFFERS - 1] = rn_calloc(CHUNK_BUFFERS, RN_BUFFER_BYTES);
	pool->refs = rn_reallocarray(pool->refs, count, sizeof(uint32_t));
	pool->unused = rn_reallocarray(pool->unused, count, sizeof(uint32_t));
	for (uint32_t idx = count; idx-- > pool->count;) {
		pool->refs[idx] = 0;
		pool->unused[pool->unused_count++] = idx;
	}
	pool->count = count;
}

uint32_t rn_buffer_get(struct rn_buffers *pool)
{
	if (!pool->unused_count)
		grow(pool);

	uint32_t idx = pool->unused[--pool->unused_count];

	pool->refs[idx] = 1;
	return idx;
}

void rn_buffer_hold(struct rn_buffers *pool, uint32_t idx)
{
	RN_ASSERT(idx < pool->count && pool->refs[idx]);
	pool->refs[idx]++;
}

void rn_buffer_put(struct rn_buffers *pool, uint32_t idx)
{
	if (idx == RN_BUFFER_NONE)
		return;
	RN_ASSERT(idx < pool->count && pool->refs[idx]);
	if (!--pool->refs[idx])
		pool->unused[pool->unused_count++] = idx;
}

uint8_t *rn_buffer_data(struct rn_buffers *pool, uint32_t idx)
{
	RN_ASSERT(idx < pool->count && pool->refs[idx]);
	return pool->chunks[idx / CHUNK_BUFFERS] + (size_t)(idx % CHUNK_BUFFERS) * RN_BUFFER_BYTES;
}

uint32_t rn_buffers_in_use(const struct rn_buffers *pool)
{
	return pool->count - pool->unused_count;
}
