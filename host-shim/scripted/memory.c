/*
 * Memory of a scripted process: frames from the driver, mapped one behind the other, as the library maps
 * them into a program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "scripted/internal.h"

#define PAGE 4096u
#define PIECE_PAGES 1024u

static bool map_runs(struct rn_scripted *host, uint8_t *to, const struct rn_uapi_run *run,
		     uint32_t runs)
{
	for (uint32_t n = 0; n < runs; n++) {
		const uint64_t bytes = (uint64_t)run[n].pages * PAGE;

		if (mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 host->info.arena_fd, (off_t)run[n].arena_offset) == MAP_FAILED)
			return false;
		to += bytes;
	}
	return true;
}

static bool pin_piece(struct rn_scripted *host, uint64_t va, uint32_t pages, uint8_t *to)
{
	struct rn_uapi_pin *request = rn_calloc(1, sizeof(*request) + PIECE_PAGES / 8);
	struct {
		struct rn_uapi_rsp rsp;
		struct rn_uapi_run run[PIECE_PAGES];
	} *answer = rn_calloc(1, sizeof(*answer));
	bool ok;

	request->va = va;
	request->pages = pages;
	memset(request->swap, 0xff, PIECE_PAGES / 8);
	ok = !rn_scripted_call(host, RN_UAPI_PIN, request,
			       (uint32_t)sizeof(*request) + (pages + 7) / 8, answer,
			       sizeof(*answer)) &&
	     map_runs(host, to, answer->run, answer->rsp.handle);
	free(request);
	free(answer);
	return ok;
}

static int unpin(struct rn_scripted *host, uint64_t va, uint64_t pages)
{
	int error = 0;

	for (uint64_t n = 0; !error && n < pages; n += PIECE_PAGES) {
		struct rn_uapi_unpin request = {
			.va = va + n * PAGE,
			.pages = (uint32_t)rn_min_u64(pages - n, PIECE_PAGES),
			.commit = 1,
		};

		error = rn_scripted_call(host, RN_UAPI_UNPIN, &request, sizeof(request), NULL, 0);
	}
	return error;
}

bool rn_scripted_alloc(struct rn_scripted *host, uint64_t bytes, struct rn_scripted_buffer *buffer)
{
	const uint64_t pages = rn_div_ceil(bytes, PAGE);
	struct rn_scripted_map *map;
	uint8_t *data = mmap(NULL, pages * PAGE, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return false;
	for (uint64_t n = 0; n < pages; n += PIECE_PAGES) {
		if (pin_piece(host, host->next_va + n * PAGE,
			      (uint32_t)rn_min_u64(pages - n, PIECE_PAGES), data + n * PAGE))
			continue;
		(void)unpin(host, host->next_va, n);
		munmap(data, pages * PAGE);
		return false;
	}
	*buffer = (struct rn_scripted_buffer){data, host->next_va, pages * PAGE};
	host->next_va += (pages + 1) * PAGE;
	map = rn_calloc(1, sizeof(*map));
	map->buffer = *buffer;
	rn_list_init(&map->link);
	rn_list_add(&host->maps, &map->link);
	return true;
}

int rn_scripted_release(struct rn_scripted *host, struct rn_scripted_buffer *buffer)
{
	const int error = unpin(host, buffer->va, buffer->bytes / PAGE);
	struct rn_list *node;

	for (node = host->maps.next; !error && node != &host->maps; node = node->next) {
		struct rn_scripted_map *map = rn_list_entry(node, struct rn_scripted_map, link);

		if (map->buffer.va != buffer->va)
			continue;
		munmap(map->buffer.data, map->buffer.bytes);
		rn_list_remove(node);
		free(map);
		break;
	}
	return error;
}

int rn_scripted_reg_mr(struct rn_scripted *host, uint64_t va, uint64_t bytes, uint32_t access,
		       uint32_t *key)
{
	struct rn_uapi_reg_mr request = {
		.pd = host->pd,
		.access = access,
		.va = va,
		.length = bytes,
		.iova = va,
	};
	struct rn_uapi_reg_mr_rsp answer = {0};
	const int error = rn_scripted_call(host, RN_UAPI_REG_MR, &request, sizeof(request), &answer,
					   sizeof(answer));

	*key = answer.lkey;
	return error;
}

int rn_scripted_dereg_mr(struct rn_scripted *host, uint32_t key)
{
	struct rn_uapi_req request = {.handle = key >> 8};

	return rn_scripted_call(host, RN_UAPI_DEREG_MR, &request, sizeof(request), NULL, 0);
}

bool rn_scripted_alloc_mr(struct rn_scripted *host, uint64_t bytes,
			  struct rn_scripted_buffer *buffer, uint32_t *key)
{
	const uint32_t access =
		RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_WRITE | RN_ACCESS_REMOTE_READ;

	return rn_scripted_alloc(host, bytes, buffer) &&
	       !rn_scripted_reg_mr(host, buffer->va, buffer->bytes, access, key);
}

/* --- patterns: a multiplicative hash of the position, a word at a time --- */

static uint64_t word_at(uint64_t idx, uint64_t seed)
{
	uint64_t x = (idx + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ seed * UINT64_C(0xd6e8feb86659fd93);

	return x ^ x >> 29;
}

void rn_scripted_fill(void *data, uint64_t bytes, uint64_t seed)
{
	for (uint64_t n = 0; n < bytes; n += 8) {
		const uint64_t word = word_at(n / 8, seed);

		memcpy((uint8_t *)data + n, &word, rn_min_u64(8, bytes - n));
	}
}

bool rn_scripted_holds(const void *data, uint64_t bytes, uint64_t seed)
{
	for (uint64_t n = 0; n < bytes; n += 8) {
		const uint64_t word = word_at(n / 8, seed);

		if (memcmp((const uint8_t *)data + n, &word, rn_min_u64(8, bytes - n)))
			return false;
	}
	return true;
}
