#include "nic/wqe_fetch/cache.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "sim/buffer.h"

struct rn_wqe_cache {
	struct rn_buffers *buffers;
	uint32_t sets;
	uint32_t ways;
	uint64_t uses;
	struct rn_wqe_line *line; /* sets * ways */
};

struct rn_wqe_cache *rn_wqe_cache_new(struct rn_buffers *buffers, uint32_t sets, uint32_t ways)
{
	struct rn_wqe_cache *cache = rn_calloc(1, sizeof(*cache));

	cache->buffers = buffers;
	cache->sets = sets;
	cache->ways = ways;
	cache->line = rn_calloc((size_t)sets * ways, sizeof(struct rn_wqe_line));
	for (size_t i = 0; i < (size_t)sets * ways; i++)
		cache->line[i].buf = RN_BUFFER_NONE;
	return cache;
}

static void drop_entries(struct rn_wqe_cache *cache, struct rn_wqe_line *line)
{
	rn_buffer_put(cache->buffers, line->buf);
	line->buf = RN_BUFFER_NONE;
	line->count = 0;
}

void rn_wqe_cache_free(struct rn_wqe_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < (size_t)cache->sets * cache->ways; i++)
		drop_entries(cache, &cache->line[i]);
	free(cache->line);
	free(cache);
}

static struct rn_wqe_line *set_of(struct rn_wqe_cache *cache, uint32_t qpn)
{
	return &cache->line[(size_t)(qpn % cache->sets) * cache->ways];
}

struct rn_wqe_line *rn_wqe_cache_find(struct rn_wqe_cache *cache, uint32_t qpn)
{
	struct rn_wqe_line *set = set_of(cache, qpn);

	for (uint32_t way = 0; way < cache->ways; way++)
		if (set[way].used && set[way].qpn == qpn) {
			set[way].used = ++cache->uses;
			return &set[way];
		}
	return NULL;
}

struct rn_wqe_line *rn_wqe_cache_claim(struct rn_wqe_cache *cache, uint32_t qpn)
{
	struct rn_wqe_line *line = rn_wqe_cache_find(cache, qpn);

	if (!line) {
		struct rn_wqe_line *set = set_of(cache, qpn);

		line = set;
		for (uint32_t way = 1; way < cache->ways; way++)
			if (set[way].used < line->used)
				line = &set[way];
	}
	drop_entries(cache, line);
	line->used = ++cache->uses;
	line->qpn = qpn;
	return line;
}

void rn_wqe_cache_fill(struct rn_wqe_line *line, uint32_t buf, uint16_t first, uint16_t count)
{
	RN_ASSERT(line->buf == RN_BUFFER_NONE && count);
	line->buf = buf;
	line->first = first;
	line->count = count;
	line->skip = 0;
}

bool rn_wqe_cache_seek(struct rn_wqe_cache *cache, struct rn_wqe_line *line, uint16_t idx)
{
	uint16_t ahead = idx - line->first;

	if (ahead >= line->count) {
		drop_entries(cache, line);
		return false;
	}
	line->first = idx;
	line->skip += ahead;
	line->count -= ahead;
	return true;
}

void rn_wqe_cache_drop(struct rn_wqe_cache *cache, uint32_t qpn)
{
	struct rn_wqe_line *line = rn_wqe_cache_find(cache, qpn);

	if (!line)
		return;
	drop_entries(cache, line);
	line->used = 0;
}
