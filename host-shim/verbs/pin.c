/*
 * Pinning: classify, ask the driver for frames, exchange the backing, remember. Order of use is the protocol's:
 * PIN, exchange, (driver's object); then (object gone), exchange back what nobody needs, UNPIN.
 *
 * Pages that cannot be brought back for want of memory stay in their frames, which then stay pinned: the
 * program's memory is right in any case. So do pages that cannot be brought back because other threads may write to them; and
 * where that is so when they are pinned, they stay where they are.
 */
#include "verbs/pin_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs/conn.h"
#include "verbs/pin_all.h"
#include "verbs/raw.h"
#include "verbs/swap.h"
#include "verbs/touch.h"

struct rn_pin *rn_pin_new(struct rn_conn *conn)
{
	struct rn_pin *pin = calloc(1, sizeof(*pin));

	if (!pin)
		return NULL;
	pin->conn = conn;
	rn_pin_room_init(&pin->room);
	pin->piece = rn_raw_mmap(NULL, sizeof(*pin->piece), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_mutex_init(&pin->lock, NULL);
	if (!pin->piece || !rn_maps_identify(conn->arena_fd, &pin->arena)) {
		rn_pin_free(pin);
		return NULL;
	}
	return pin;
}

/* ---- PIN ---- */

/* May the NIC do with page @index what it is pinned for? As for a program, protection decides. */
static bool is_allowed(const struct rn_pin_piece *piece, unsigned index)
{
	const int needed = piece->flags & RN_PIN_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
	const uint8_t kind = piece->kind[index];

	if (kind == RN_MEM_ARENA)
		return (piece->protection[index] & needed) == needed;
	return kind > RN_MEM_NO_ACCESS &&
	       (kind != RN_MEM_READ_ONLY || !(piece->flags & RN_PIN_WRITE));
}

/* Pages that stay must be there: others are copied, which shows it. */
static bool is_touched(const struct rn_pin_piece *piece, unsigned index)
{
	return piece->kind[index] == RN_MEM_READ_ONLY || piece->kind[index] == RN_MEM_OTHER;
}

static int check_kinds(const struct rn_pin_piece *piece)
{
	unsigned at = 0;

	for (unsigned i = 0; i < piece->pages; i++)
		if (!is_allowed(piece, i))
			return EFAULT;
	while (at < piece->pages) {
		unsigned n = 0;

		while (at + n < piece->pages && is_touched(piece, at + n))
			n++;
		if (n && rn_touch_pages(rn_pin_page_va(piece, at), n, piece->flags & RN_PIN_WRITE))
			return EFAULT;
		at += n ? n : 1;
	}
	return 0;
}

static int classify(struct rn_pin *pin, struct rn_pin_piece *piece)
{
	if (piece->flags & RN_PIN_OWN) {
		memset(piece->kind, RN_MEM_PRIVATE, piece->pages);
		return 0;
	}
	/* Without /proc the slow way works. */
	if (!rn_maps_classify(piece->va, piece->pages, &pin->arena, piece->kind, piece->offset,
			      piece->protection))
		memset(piece->kind, RN_MEM_OTHER, piece->pages);
	return check_kinds(piece);
}

/* A page is offered for exchange when it is private, or still is what an earlier pin made of it. */
static bool is_swappable(const struct rn_pin *pin, const struct rn_pin_piece *piece, unsigned index)
{
	if (piece->kind[index] == RN_MEM_PRIVATE)
		return !piece->stays;
	return piece->kind[index] == RN_MEM_ARENA &&
	       rn_pin_table_find(&pin->table, rn_pin_page_va(piece, index)) == piece->offset[index];
}

static int request_frames(struct rn_pin *pin, struct rn_pin_piece *piece)
{
	_Alignas(8) uint8_t bytes[sizeof(struct rn_uapi_pin) + RN_PIN_BITMAP_BYTES] = {0};
	struct rn_uapi_pin *req = (void *)bytes;
	struct {
		struct rn_uapi_rsp rsp;
		struct rn_uapi_run run[RN_PIN_PIECE_PAGES];
	} rsp;
	int error;

	req->req.op = RN_UAPI_PIN;
	req->va = piece->va;
	req->pages = piece->pages;
	for (unsigned i = 0; i < piece->pages; i++)
		if (is_swappable(pin, piece, i))
			req->swap[i / 8] |= (uint8_t)(1u << (i % 8));
	error = rn_conn_call(pin->conn, req, sizeof(*req) + (piece->pages + 7) / 8, &rsp,
			     sizeof(rsp));
	if (error)
		return error;
	piece->runs = rsp.rsp.handle < RN_PIN_PIECE_PAGES ? rsp.rsp.handle : RN_PIN_PIECE_PAGES;
	memcpy(piece->run, rsp.run, piece->runs * sizeof(rsp.run[0]));
	return 0;
}

/* Parts of a run that have to be exchanged: all of a fresh one; of another only pages that have lost their mapping. */
static bool needs_swap(const struct rn_pin_piece *piece, const struct rn_uapi_run *run,
		       unsigned index)
{
	return run->arena_offset != UINT64_MAX && piece->kind[index] == RN_MEM_PRIVATE;
}

/*
 * The C library grows a large block with mremap, which would extend a single mapping into frames that belong to
 * somebody else. A different read-ahead hint on the last page makes it two mappings, for which mremap
 * fails and the C library copies.
 */
static void forbid_growth(uint64_t va, unsigned pages)
{
	if (pages > 1)
		rn_raw_madvise((void *)(uintptr_t)(va + (uint64_t)(pages - 1) * RN_PAGE_BYTES),
			       RN_PAGE_BYTES, MADV_RANDOM);
}

/* Exchange [first, first + pages) of the piece for frames from @offset on. */
static int swap_part(struct rn_pin *pin, const struct rn_pin_piece *piece, unsigned first,
		     unsigned pages, uint64_t offset)
{
	const uint64_t va = rn_pin_page_va(piece, first);
	int error;

	if (offset % RN_PAGE_BYTES || offset > pin->conn->arena_bytes ||
	    (uint64_t)pages * RN_PAGE_BYTES > pin->conn->arena_bytes - offset)
		return EIO;
	error = rn_swap_in(va, pages, pin->conn->arena_fd, offset, piece->flags & RN_PIN_OWN);
	if (error)
		return error;
	rn_pin_room_take(&pin->room);
	rn_pin_table_set(&pin->table, va, offset, pages);
	if (piece->runs == 1)
		forbid_growth(va, pages);
	return 0;
}

static int swap_run(struct rn_pin *pin, const struct rn_pin_piece *piece, unsigned first,
		    const struct rn_uapi_run *run)
{
	unsigned at = 0;

	while (at < run->pages) {
		unsigned n = 0;
		int error;

		while (at + n < run->pages && needs_swap(piece, run, first + at + n))
			n++;
		if (n == 0) {
			at++;
			continue;
		}
		error = swap_part(pin, piece, first + at, n,
				  run->arena_offset + (uint64_t)at * RN_PAGE_BYTES);
		if (error)
			return error;
		at += n;
	}
	return 0;
}

/* Runs of which something has to be exchanged. */
static unsigned count_exchanges(const struct rn_pin_piece *piece)
{
	unsigned count = 0, page = 0;

	for (unsigned i = 0; i < piece->runs; i++) {
		const unsigned end = page + piece->run[i].pages;

		while (page < end && page < piece->pages &&
		       !needs_swap(piece, &piece->run[i], page))
			page++;
		count += page < end && page < piece->pages;
		page = end;
	}
	return count;
}

static int swap_piece(struct rn_pin *pin, const struct rn_pin_piece *piece)
{
	unsigned first = 0;

	const unsigned exchanges = count_exchanges(piece);

	if (exchanges && !rn_pin_room_has(&pin->room, exchanges))
		return ENOMEM;
	if (!rn_pin_table_reserve(&pin->table, piece->va, piece->pages))
		return ENOMEM;
	for (unsigned i = 0; i < piece->runs; i++) {
		const struct rn_uapi_run *run = &piece->run[i];
		int error;

		if (run->pages > piece->pages - first)
			return EIO;
		error = swap_run(pin, piece, first, run);
		if (error)
			return error;
		first += run->pages;
	}
	return 0;
}

/* ---- ranges ---- */

static uint64_t hull(const void *addr, size_t bytes, uint64_t *va)
{
	const uint64_t start = (uint64_t)(uintptr_t)addr;
	const uint64_t mask = RN_PAGE_BYTES - 1;

	*va = start & ~mask;
	if (bytes == 0)
		return 0;
	return ((start + bytes - 1) | mask) - *va + 1;
}

static void set_piece(struct rn_pin_piece *piece, uint64_t va, uint64_t bytes)
{
	const uint64_t pages = bytes / RN_PAGE_BYTES;

	piece->va = va;
	piece->pages = (unsigned)(pages < RN_PIN_PIECE_PAGES ? pages : RN_PIN_PIECE_PAGES);
	piece->runs = 0;
}

static void unpin_hull(struct rn_pin *pin, struct rn_pin_piece *piece, uint64_t va, uint64_t bytes,
		       bool discard)
{
	while (bytes) {
		set_piece(piece, va, bytes);
		rn_pin_release(pin, piece, discard);
		va += (uint64_t)piece->pages * RN_PAGE_BYTES;
		bytes -= (uint64_t)piece->pages * RN_PAGE_BYTES;
	}
}

static int try_piece(struct rn_pin *pin, struct rn_pin_piece *piece)
{
	int error = classify(pin, piece);

	if (!error)
		error = request_frames(pin, piece);
	if (error)
		return error;
	error = swap_piece(pin, piece);
	if (error)
		rn_pin_release(pin, piece, false);
	return error;
}

static int pin_piece(struct rn_pin *pin, struct rn_pin_piece *piece)
{
	int error;

	piece->stays = !(piece->flags & RN_PIN_OWN) && !rn_swap_is_possible();
	error = try_piece(pin, piece);
	if (piece->stays || (error != EBUSY && error != ENOMEM))
		return error;
	/* Another thread has come meanwhile, or the process has as many mappings as it may have. */
	piece->stays = true;
	return try_piece(pin, piece);
}

int rn_pin_range(struct rn_pin *pin, const void *addr, size_t bytes, unsigned flags)
{
	uint64_t va, done = 0;
	const uint64_t total = hull(addr, bytes, &va);
	const int saved_errno = errno;
	struct rn_pin_piece *piece = pin->piece;
	int error = 0;

	if (va + total < va)
		return EFAULT;
	pthread_mutex_lock(&pin->lock);
	piece->flags = flags;
	while (done < total && !error) {
		set_piece(piece, va + done, total - done);
		error = pin_piece(pin, piece);
		if (!error)
			done += (uint64_t)piece->pages * RN_PAGE_BYTES;
	}
	if (error)
		unpin_hull(pin, piece, va, done, false);
	pthread_mutex_unlock(&pin->lock);
	errno = error ? error : saved_errno;
	return error;
}

static void unpin(struct rn_pin *pin, const void *addr, size_t bytes, bool discard)
{
	uint64_t va;
	const uint64_t total = hull(addr, bytes, &va);
	const int saved_errno = errno;

	pthread_mutex_lock(&pin->lock);
	unpin_hull(pin, pin->piece, va, total, discard);
	pthread_mutex_unlock(&pin->lock);
	errno = saved_errno;
}

void rn_unpin_range(struct rn_pin *pin, const void *addr, size_t bytes)
{
	unpin(pin, addr, bytes, false);
}

void rn_unpin_discard(struct rn_pin *pin, const void *addr, size_t bytes)
{
	unpin(pin, addr, bytes, true);
}

/* ---- all pages at once: disconnect, and the child after fork ---- */

void rn_pin_free(struct rn_pin *pin)
{
	if (!pin)
		return;
	if (pin->table.count)
		rn_pin_all_back(&pin->arena);
	rn_pin_table_fini(&pin->table);
	pthread_mutex_destroy(&pin->lock);
	if (pin->piece)
		rn_raw_munmap(pin->piece, sizeof(*pin->piece));
	free(pin);
}

void rn_pin_fork_prepare(struct rn_pin *pin)
{
	pthread_mutex_lock(&pin->lock);
}

void rn_pin_fork_parent(struct rn_pin *pin)
{
	pthread_mutex_unlock(&pin->lock);
}

void rn_pin_fork_child(struct rn_pin *pin)
{
	rn_pin_all_back(&pin->arena);
	rn_pin_table_abandon(&pin->table);
	pthread_mutex_init(&pin->lock, NULL);
}
