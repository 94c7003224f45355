/*
 * Unpinning: ask which pages nobody needs any more, bring those back, then let go of all.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs/conn.h"
#include "verbs/pin_all.h"
#include "verbs/pin_internal.h"

static int release_frames(struct rn_pin *pin, uint64_t va, unsigned pages)
{
	struct rn_uapi_unpin req = {.req.op = RN_UAPI_UNPIN, .va = va, .pages = pages, .commit = 1};
	struct {
		struct rn_uapi_rsp head;
		uint8_t last[RN_PIN_BITMAP_BYTES];
	} rsp;

	return rn_conn_call(pin->conn, &req, sizeof(req), &rsp, sizeof(rsp));
}

static int ask_last(struct rn_pin *pin, uint64_t va, unsigned pages,
		    uint8_t last[RN_PIN_BITMAP_BYTES])
{
	struct rn_uapi_unpin req = {.req.op = RN_UAPI_UNPIN, .va = va, .pages = pages};
	struct {
		struct rn_uapi_rsp head;
		uint8_t last[RN_PIN_BITMAP_BYTES];
	} rsp;
	const int error = rn_conn_call(pin->conn, &req, sizeof(req), &rsp, sizeof(rsp));

	memcpy(last, rsp.last, RN_PIN_BITMAP_BYTES);
	return error;
}

/* Is the page still the mapping that pinning made? (The program may have unmapped or replaced it.) */
static bool is_still_ours(const struct rn_pin *pin, const struct rn_pin_piece *piece,
			  unsigned index)
{
	const uint64_t offset = rn_pin_table_find(&pin->table, rn_pin_page_va(piece, index));

	return offset != UINT64_MAX && piece->kind[index] == RN_MEM_ARENA &&
	       piece->offset[index] == offset;
}

/* Pages from @at on that come back together: theirs, mapped with one protection. */
static unsigned back_together(const struct rn_pin *pin, const struct rn_pin_piece *piece,
			      unsigned at, const uint8_t last[RN_PIN_BITMAP_BYTES])
{
	unsigned n = 0;

	while (at + n < piece->pages && rn_pin_bit(last, at + n) &&
	       is_still_ours(pin, piece, at + n) &&
	       piece->protection[at + n] == piece->protection[at])
		n++;
	return n;
}

/* Bring back the pages whose bit is set in @last; a page that stays for want of memory loses its bit. */
static void copy_back(struct rn_pin *pin, const struct rn_pin_piece *piece,
		      uint8_t last[RN_PIN_BITMAP_BYTES])
{
	unsigned at = 0;

	while (at < piece->pages) {
		const unsigned n = back_together(pin, piece, at, last);

		if (n && rn_pin_back(rn_pin_page_va(piece, at), n, piece->protection[at]))
			for (unsigned i = at; i < at + n; i++)
				last[i / 8] &= (uint8_t) ~(1u << (i % 8));
		at += n ? n : 1;
	}
}

/*
 * Pages that the program has moved away (mremap) still are its memory, and come back where they are now; those that it has
 * unmapped are nowhere. When one of them has to stay, all keep their frames.
 */
static void copy_moved_back(struct rn_pin *pin, struct rn_pin_piece *piece,
			    uint8_t last[RN_PIN_BITMAP_BYTES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < piece->pages; i++) {
		const uint64_t offset = rn_pin_table_find(&pin->table, rn_pin_page_va(piece, i));

		if (rn_pin_bit(last, i) && offset != UINT64_MAX && !is_still_ours(pin, piece, i))
			piece->moved[count++] = offset;
	}
	if (!count || rn_pin_moved_back(&pin->arena, piece->moved, count))
		return;
	for (unsigned i = 0; i < piece->pages; i++)
		if (!is_still_ours(pin, piece, i))
			last[i / 8] &= (uint8_t) ~(1u << (i % 8));
}

/* Release the whole piece, save pages that had to stay in their frames (@keep): these stay pinned. */
static void release_except(struct rn_pin *pin, const struct rn_pin_piece *piece, const bool *keep)
{
	unsigned at = 0;

	while (at < piece->pages) {
		unsigned n = 0;

		while (at + n < piece->pages && !keep[at + n])
			n++;
		if (n)
			release_frames(pin, rn_pin_page_va(piece, at), n);
		at += n ? n : 1;
	}
}

void rn_pin_release(struct rn_pin *pin, struct rn_pin_piece *piece, bool discard)
{
	uint8_t wanted[RN_PIN_BITMAP_BYTES], last[RN_PIN_BITMAP_BYTES];
	bool keep[RN_PIN_PIECE_PAGES];

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
		keep[i] = rn_pin_bit(wanted, i) && !rn_pin_bit(last, i);
		if (rn_pin_bit(last, i))
			rn_pin_table_clear(&pin->table, rn_pin_page_va(piece, i), 1);
	}
	release_except(pin, piece, keep);
}
