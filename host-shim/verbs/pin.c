/*
 * Pinning: classify, ask the driver for frames, exchange the backing, remember. Order of use is the protocol's:
 * PIN, exchange, (driver's object); then (object gone), exchange back what nobody needs, UNPIN.
 *
 * Pages that cannot be brought back for want of memory stay in their frames, which then stay pinned: the
 * program's memory is right in any case. So do pages that cannot be brought back because other threads may write to them; and
 * where that is so when they are pinned, they stay where they are.
 */
#include "verbs/pin.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs/conn.h"
#include "verbs/maps.h"
#include "verbs/pin_all.h"
#include "verbs/pin_room.h"
#include "verbs/pin_table.h"
#include "verbs/raw.h"
#include "verbs/swap.h"
#include "verbs/touch.h"

/* Pages of one request: the answer's runs, one a page at worst, fit into a message. */
#define PIECE_PAGES 1024u
#define BITMAP_BYTES (PIECE_PAGES / 8)

struct rn_pin {
	struct rn_conn *conn;
	pthread_mutex_t lock;
	struct rn_pin_table table;
	struct rn_maps_arena arena;
	struct rn_pin_room room;
};

/* A part of a range that one request covers. */
struct piece {
	uint64_t va;
	unsigned pages;
	unsigned flags;
	bool stays;			 /* private pages cannot be exchanged now */
	uint8_t kind[PIECE_PAGES];	 /* enum rn_mem_kind */
	uint8_t protection[PIECE_PAGES]; /* PROT_* */
	uint64_t offset[PIECE_PAGES];
	uint64_t moved[PIECE_PAGES]; /* arena offsets of pages that are not where they were pinned */
	unsigned runs;
	struct rn_uapi_run run[PIECE_PAGES];
};

struct rn_pin *rn_pin_new(struct rn_conn *conn)
{
	struct rn_pin *pin = calloc(1, sizeof(*pin));

	if (!pin)
		return NULL;
	pin->conn = conn;
	rn_pin_room_init(&pin->room);
	pthread_mutex_init(&pin->lock, NULL);
	if (!rn_maps_identify(conn->arena_fd, &pin->arena)) {
		free(pin);
		return NULL;
	}
	return pin;
}

static uint64_t page_va(const struct piece *piece, unsigned index)
{
	return piece->va + (uint64_t)index * RN_PAGE_BYTES;
}

static bool bit(const uint8_t *map, unsigned index)
{
	return map[index / 8] >> (index % 8) & 1;
}

/* ---- PIN ---- */

/* May the NIC do with page @index what it is pinned for? As for a program, protection decides. */
static bool is_allowed(const struct piece *piece, unsigned index)
{
	const int needed = piece->flags & RN_PIN_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
	const uint8_t kind = piece->kind[index];

	if (kind == RN_MEM_ARENA)
		return (piece->protection[index] & needed) == needed;
	return kind > RN_MEM_NO_ACCESS &&
	       (kind != RN_MEM_READ_ONLY || !(piece->flags & RN_PIN_WRITE));
}

/* Pages that stay must be there: others are copied, which shows it. */
static bool is_touched(const struct piece *piece, unsigned index)
{
	return piece->kind[index] == RN_MEM_READ_ONLY || piece->kind[index] == RN_MEM_OTHER;
}

static int check_kinds(const struct piece *piece)
{
	unsigned at = 0;

	for (unsigned i = 0; i < piece->pages; i++)
		if (!is_allowed(piece, i))
			return EFAULT;
	while (at < piece->pages) {
		unsigned n = 0;

		while (at + n < piece->pages && is_touched(piece, at + n))
			n++;
		if (n && rn_touch_pages(page_va(piece, at), n, piece->flags & RN_PIN_WRITE))
			return EFAULT;
		at += n ? n : 1;
	}
	return 0;
}

static int classify(struct rn_pin *pin, struct piece *piece)
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
static bool is_swappable(const struct rn_pin *pin, const struct piece *piece, unsigned index)
{
	if (piece->kind[index] == RN_MEM_PRIVATE)
		return !piece->stays;
	return piece->kind[index] == RN_MEM_ARENA &&
	       rn_pin_table_find(&pin->table, page_va(piece, index)) == piece->offset[index];
}

static int request_frames(struct rn_pin *pin, struct piece *piece)
{
	_Alignas(8) uint8_t bytes[sizeof(struct rn_uapi_pin) + BITMAP_BYTES] = {0};
	struct rn_uapi_pin *req = (void *)bytes;
	struct {
		struct rn_uapi_rsp rsp;
		struct rn_uapi_run run[PIECE_PAGES];
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
	piece->runs = rsp.rsp.handle < PIECE_PAGES ? rsp.rsp.handle : PIECE_PAGES;
	memcpy(piece->run, rsp.run, piece->runs * sizeof(rsp.run[0]));
	return 0;
}

static int release_frames(struct rn_pin *pin, uint64_t va, unsigned pages)
{
	struct rn_uapi_unpin req = {.req.op = RN_UAPI_UNPIN, .va = va, .pages = pages, .commit = 1};
	struct {
		struct rn_uapi_rsp head;
		uint8_t last[BITMAP_BYTES];
	} rsp;

	return rn_conn_call(pin->conn, &req, sizeof(req), &rsp, sizeof(rsp));
}

/* Parts of a run that have to be exchanged: all of a fresh one; of another only pages that have lost their mapping. */
static bool needs_swap(const struct piece *piece, const struct rn_uapi_run *run, unsigned index)
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
static int swap_part(struct rn_pin *pin, const struct piece *piece, unsigned first, unsigned pages,
		     uint64_t offset)
{
	const uint64_t va = page_va(piece, first);
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

static int swap_run(struct rn_pin *pin, const struct piece *piece, unsigned first,
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
static unsigned count_exchanges(const struct piece *piece)
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

static int swap_piece(struct rn_pin *pin, const struct piece *piece)
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

/* ---- UNPIN ---- */

static int ask_last(struct rn_pin *pin, uint64_t va, unsigned pages, uint8_t last[BITMAP_BYTES])
{
	struct rn_uapi_unpin req = {.req.op = RN_UAPI_UNPIN, .va = va, .pages = pages};
	struct {
		struct rn_uapi_rsp head;
		uint8_t last[BITMAP_BYTES];
	} rsp;
	const int error = rn_conn_call(pin->conn, &req, sizeof(req), &rsp, sizeof(rsp));

	memcpy(last, rsp.last, BITMAP_BYTES);
	return error;
}

/* Is the page still the mapping that pinning made? (The program may have unmapped or replaced it.) */
static bool is_still_ours(const struct rn_pin *pin, const struct piece *piece, unsigned index)
{
	const uint64_t offset = rn_pin_table_find(&pin->table, page_va(piece, index));

	return offset != UINT64_MAX && piece->kind[index] == RN_MEM_ARENA &&
	       piece->offset[index] == offset;
}

/* Pages from @at on that come back together: theirs, mapped with one protection. */
static unsigned back_together(const struct rn_pin *pin, const struct piece *piece, unsigned at,
			      const uint8_t last[BITMAP_BYTES])
{
	unsigned n = 0;

	while (at + n < piece->pages && bit(last, at + n) && is_still_ours(pin, piece, at + n) &&
	       piece->protection[at + n] == piece->protection[at])
		n++;
	return n;
}

/* Bring back the pages whose bit is set in @last; a page that stays for want of memory loses its bit. */
static void copy_back(struct rn_pin *pin, const struct piece *piece, uint8_t last[BITMAP_BYTES])
{
	unsigned at = 0;

	while (at < piece->pages) {
		const unsigned n = back_together(pin, piece, at, last);

		if (n && rn_pin_back(page_va(piece, at), n, piece->protection[at]))
			for (unsigned i = at; i < at + n; i++)
				last[i / 8] &= (uint8_t) ~(1u << (i % 8));
		at += n ? n : 1;
	}
}

/*
 * Pages that the program has moved away (mremap) still are its memory, and come back where they are now; those that it has
 * unmapped are nowhere. When one of them has to stay, all keep their frames.
 */
static void copy_moved_back(struct rn_pin *pin, struct piece *piece, uint8_t last[BITMAP_BYTES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < piece->pages; i++) {
		const uint64_t offset = rn_pin_table_find(&pin->table, page_va(piece, i));

		if (bit(last, i) && offset != UINT64_MAX && !is_still_ours(pin, piece, i))
			piece->moved[count++] = offset;
	}
	if (!count || rn_pin_moved_back(&pin->arena, piece->moved, count))
		return;
	for (unsigned i = 0; i < piece->pages; i++)
		if (!is_still_ours(pin, piece, i))
			last[i / 8] &= (uint8_t) ~(1u << (i % 8));
}

/* Release the whole piece, save pages that had to stay in their frames (@keep): these stay pinned. */
static void release_except(struct rn_pin *pin, const struct piece *piece, const bool *keep)
{
	unsigned at = 0;

	while (at < piece->pages) {
		unsigned n = 0;

		while (at + n < piece->pages && !keep[at + n])
			n++;
		if (n)
			release_frames(pin, page_va(piece, at), n);
		at += n ? n : 1;
	}
}

static void unpin_piece(struct rn_pin *pin, struct piece *piece, bool discard)
{
	uint8_t wanted[BITMAP_BYTES], last[BITMAP_BYTES];
	bool keep[PIECE_PAGES];

	if (ask_last(pin, piece->va, piece->pages, wanted)) {
		if (!rn_conn_is_dead(pin->conn))
			return; /* something on the NIC still refers to them */
		memset(wanted, 0xff, sizeof(wanted));
	}
	memcpy(last, wanted, sizeof(last));
	if (!discard) {
		rn_maps_classify(piece->va, piece->pages, &pin->arena, piece->kind, piece->offset,
				 piece->protection);
		copy_moved_back(pin, piece, last);
		copy_back(pin, piece, last);
	}
	for (unsigned i = 0; i < piece->pages; i++) {
		keep[i] = bit(wanted, i) && !bit(last, i);
		if (bit(last, i))
			rn_pin_table_clear(&pin->table, page_va(piece, i), 1);
	}
	release_except(pin, piece, keep);
}

/* ---- ranges ---- */

static struct piece *piece_new(void)
{
	return rn_raw_mmap(NULL, sizeof(struct piece), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void piece_free(struct piece *piece)
{
	rn_raw_munmap(piece, sizeof(*piece));
}

static uint64_t hull(const void *addr, size_t bytes, uint64_t *va)
{
	const uint64_t start = (uint64_t)(uintptr_t)addr;
	const uint64_t mask = RN_PAGE_BYTES - 1;

	*va = start & ~mask;
	if (bytes == 0)
		return 0;
	return ((start + bytes - 1) | mask) - *va + 1;
}

static void set_piece(struct piece *piece, uint64_t va, uint64_t bytes)
{
	const uint64_t pages = bytes / RN_PAGE_BYTES;

	piece->va = va;
	piece->pages = (unsigned)(pages < PIECE_PAGES ? pages : PIECE_PAGES);
	piece->runs = 0;
}

static void unpin_hull(struct rn_pin *pin, struct piece *piece, uint64_t va, uint64_t bytes,
		       bool discard)
{
	while (bytes) {
		set_piece(piece, va, bytes);
		unpin_piece(pin, piece, discard);
		va += (uint64_t)piece->pages * RN_PAGE_BYTES;
		bytes -= (uint64_t)piece->pages * RN_PAGE_BYTES;
	}
}

static int try_piece(struct rn_pin *pin, struct piece *piece)
{
	int error = classify(pin, piece);

	if (!error)
		error = request_frames(pin, piece);
	if (error)
		return error;
	error = swap_piece(pin, piece);
	if (error)
		unpin_piece(pin, piece, false);
	return error;
}

static int pin_piece(struct rn_pin *pin, struct piece *piece)
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
	struct piece *piece;
	int error = 0;

	if (va + total < va)
		return EFAULT;
	piece = piece_new();
	if (!piece)
		return ENOMEM;
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
	piece_free(piece);
	errno = error ? error : saved_errno;
	return error;
}

static void unpin(struct rn_pin *pin, const void *addr, size_t bytes, bool discard)
{
	uint64_t va;
	const uint64_t total = hull(addr, bytes, &va);
	const int saved_errno = errno;
	struct piece *piece = piece_new();

	if (!piece)
		return; /* the pages stay where they are */
	pthread_mutex_lock(&pin->lock);
	unpin_hull(pin, piece, va, total, discard);
	pthread_mutex_unlock(&pin->lock);
	piece_free(piece);
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
