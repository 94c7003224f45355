/*
 * Which executable memory there is, and what has been done with each piece: rewritten, or where that cannot be, said so
 * in the time page.
 */
#include "preload/tsc/objects.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/tsc/counter.h"
#include "preload/tsc/find.h"
#include "preload/tsc/generated.h"
#include "preload/tsc/patch.h"
#include "preload/tsc/raw.h"
#include "preload/tsc/sites.h"

#define ROOM_BYTES ((size_t)4 << 20)

struct known {
	struct rn_map map;
	uintptr_t first_site; /* 0: none */
	bool is_seen;
};

static struct known *known;
static size_t known_count;
static struct rn_tsc_tally tally;
static atomic_flag is_looking = ATOMIC_FLAG_INIT;

const struct rn_tsc_tally *rn_tsc_tally(void)
{
	return &tally;
}

void rn_tsc_note(unsigned unseen)
{
	tally.unseen |= unseen;
}

void rn_tsc_count_site(bool is_jump)
{
	if (is_jump)
		tally.jumps++;
	else
		tally.illegals++;
}

/* --- one piece --- */

/* Nobody executes it yet, or nobody else is there. */
static bool is_at_rest(bool is_fresh)
{
	struct stat status;

	if (is_fresh)
		return true;
	/* A link for each thread, and two. */
	return !rn_raw_call(SYS_stat, (long)"/proc/self/task", (long)&status, 0, 0, 0, 0) &&
	       status.st_nlink <= 3;
}

static bool write_site(const struct rn_tsc_site *site, struct rn_tsc_arena *arena)
{
	const uint8_t *trampoline = arena ? rn_tsc_trampoline(arena, site) : NULL;

	if (!rn_tsc_sites_add(site->at, site->bytes))
		return false;
	rn_tsc_write_ud2(site);
	if (trampoline)
		rn_tsc_write_jump(site, trampoline);
	rn_tsc_count_site(trampoline);
	return true;
}

static bool rewrite(const struct rn_map *map, const struct rn_tsc_found *found, bool is_fresh)
{
	struct rn_tsc_arena arena;
	const bool has_arena =
		is_at_rest(is_fresh) &&
		rn_tsc_arena_make(&arena, map->start, map->end, found->sites, rn_tsc_entry);
	bool is_done = rn_tsc_open_code(map->start, map->end, map->prot);

	for (size_t i = 0; is_done && i < found->sites; i++)
		is_done = write_site(&found->site[i], has_arena ? &arena : NULL);
	rn_tsc_close_code(map->start, map->end, map->prot);
	if (has_arena)
		rn_tsc_arena_seal(&arena);
	return is_done;
}

/* Who generates code may write it anew, in part, and has to find there what it wrote: single instructions change. */
static void keep_single(struct rn_tsc_found *found)
{
	for (size_t i = 0; i < found->sites; i++)
		found->site[i].window = 0;
}

static void treat_found(const struct rn_map *map, const struct rn_elf *elf, struct known *piece,
			bool is_fresh)
{
	struct rn_tsc_found found;

	if (!rn_tsc_find(map->start, map->end, elf, &found) || found.undecided)
		rn_tsc_note(RN_TSC_UNDECODED);
	if (!elf)
		keep_single(&found);
	if (found.sites) {
		piece->first_site = found.site[0].at;
		if (!rewrite(map, &found, is_fresh))
			rn_tsc_note(RN_TSC_REFUSED);
	}
	rn_tsc_found_fini(&found);
}

static void treat_file(const struct rn_map *map, struct known *piece, bool is_fresh)
{
	struct rn_elf elf;

	if (!rn_tsc_may_have(map->start, map->end))
		return;
	if (!rn_elf_open(&elf, map)) {
		rn_tsc_note(RN_TSC_UNDECODED);
		return;
	}
	treat_found(map, &elf, piece, is_fresh);
	rn_elf_close(&elf);
}

static void treat(const struct rn_map *map, struct known *piece, bool is_fresh)
{
	if (!(map->prot & PROT_READ))
		rn_tsc_note(RN_TSC_UNDECODED);
	else if (map->is_shared || (map->prot & PROT_WRITE))
		rn_tsc_note(RN_TSC_GENERATED);
	else if (map->inode)
		treat_file(map, piece, is_fresh);
	else if (rn_tsc_may_have(map->start, map->end))
		treat_found(map, NULL, piece, is_fresh);
}

/* --- all of them --- */

static bool is_same(const struct rn_map *a, const struct rn_map *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->device == b->device && a->inode == b->inode && a->prot == b->prot &&
	       a->is_shared == b->is_shared;
}

static bool is_inside(const struct rn_map *map, const void *at)
{
	return (uintptr_t)at >= map->start && (uintptr_t)at < map->end;
}

/* The system's own, this library's and its trampolines. */
static bool is_exempt(const struct rn_map *map)
{
	if (!strncmp(map->path, "[vdso]", 6) || !strncmp(map->path, "[vsyscall]", 10))
		return true;
	return is_inside(map, (const void *)(uintptr_t)rn_tsc_look_at_maps) ||
	       rn_tsc_is_arena(map->start);
}

/* A file that was unmapped and mapped again at the same place has its own bytes again. */
static bool is_still_rewritten(const struct known *piece)
{
	return !piece->first_site || !rn_tsc_looks_like(piece->first_site, piece->map.end);
}

static struct known *find_known(const struct rn_map *map)
{
	for (size_t i = 0; i < known_count; i++)
		if (is_same(&known[i].map, map))
			return &known[i];
	return NULL;
}

static struct known *add_known(const struct rn_map *map)
{
	if (!known)
		known = rn_raw_alloc(ROOM_BYTES);
	if (!known || (known_count + 1) * sizeof(*known) > ROOM_BYTES)
		return NULL;
	known[known_count] = (struct known){.map = *map};
	known[known_count].map.path = NULL;
	return &known[known_count++];
}

static void forget_unseen(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < known_count; i++)
		if (known[i].is_seen)
			known[kept++] = known[i];
	known_count = kept;
}

static void look_at(const struct rn_map *map, bool is_fresh)
{
	struct known *piece = find_known(map);

	if (piece) {
		piece->is_seen = true;
		if (is_still_rewritten(piece))
			return;
		piece->first_site = 0;
	} else {
		piece = add_known(map);
		if (!piece) {
			rn_tsc_note(RN_TSC_REFUSED);
			return;
		}
		piece->is_seen = true;
	}
	treat(map, piece, is_fresh);
}

/* What is watched elsewhere may lie side by side with what is not. */
static void look_at_parts(const struct rn_map *map, bool is_fresh)
{
	struct rn_map part = *map;

	while (part.start < map->end) {
		if (!rn_tsc_generated_part(part.start, map->end, &part.end))
			look_at(&part, is_fresh);
		part.offset += map->inode ? part.end - part.start : 0;
		part.start = part.end;
	}
}

static void look_at_all(bool is_fresh)
{
	struct rn_maps maps;
	struct rn_map map;

	if (!rn_maps_read(&maps)) {
		rn_tsc_note(RN_TSC_UNDECODED);
		return;
	}
	for (size_t i = 0; i < known_count; i++)
		known[i].is_seen = false;
	while (rn_maps_next(&maps, &map))
		if ((map.prot & PROT_EXEC) && !is_exempt(&map))
			look_at_parts(&map, is_fresh);
	forget_unseen();
	rn_maps_fini(&maps);
}

bool rn_tsc_is_anonymous(uintptr_t start, uintptr_t end)
{
	struct rn_maps maps;
	struct rn_map map;
	bool is_anonymous = rn_maps_read(&maps);

	while (is_anonymous && rn_maps_next(&maps, &map))
		if (map.end > start && map.start < end)
			is_anonymous = !map.is_shared && !map.inode && *map.path != '[' &&
				       !rn_tsc_is_arena(map.start);
	rn_maps_fini(&maps);
	return is_anonymous;
}

void rn_tsc_forget_generated(uintptr_t start, uintptr_t end)
{
	for (size_t i = known_count; i-- > 0;)
		if (!known[i].map.inode && known[i].map.end > start && known[i].map.start < end)
			known[i] = known[--known_count];
}

void rn_tsc_restore_generated(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < known_count; i++) {
		const struct rn_map *map = &known[i].map;

		if (map->inode || !known[i].first_site || map->end <= start || map->start >= end)
			continue;
		rn_tsc_generated_restore(map->start > start ? map->start : start,
					 map->end < end ? map->end : end);
	}
}

void rn_tsc_look_at_maps(bool is_fresh)
{
	uint64_t all = UINT64_MAX, old;

	/* A handler that maps code while this very thread looks would wait for itself. */
	rn_raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&old, _NSIG / 8, 0, 0);
	while (atomic_flag_test_and_set(&is_looking))
		rn_raw_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	look_at_all(is_fresh);
	atomic_flag_clear(&is_looking);
	rn_raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, _NSIG / 8, 0, 0);
}
