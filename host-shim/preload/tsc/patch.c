/*
 * A trampoline: leave the red zone, call the entry, come back, the moved instructions, jump to what follows them.
 *
 * The first eight bytes of an arena are the entry's address.
 */
#include "preload/tsc/patch.h"

#include <errno.h>
#include <string.h>

#include "preload/tsc/flow.h"
#include "preload/tsc/maps.h"
#include "preload/tsc/raw.h"

#define PAGE_BYTES 4096u
#define REACH_BYTES                                                                                \
	((uintptr_t)0x70000000) /* of a jump, less what operands may lie behind an object */
#define LOWEST ((uintptr_t)0x10000)
#define ARENAS_MAX 4096

static struct {
	uintptr_t start, end;
} made[ARENAS_MAX];
static unsigned made_count;

static uintptr_t page_down(uintptr_t at)
{
	return at & ~(uintptr_t)(PAGE_BYTES - 1);
}

/* --- room --- */

/* A page on each side keeps it apart from what the program maps. */
static uint8_t *map_at(uintptr_t at, size_t bytes)
{
	const long got = rn_raw_call(SYS_mmap, (long)at, (long)(bytes + 2 * PAGE_BYTES), PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got != (long)at || rn_raw_call(SYS_mprotect, (long)(at + PAGE_BYTES), (long)bytes,
					   PROT_READ | PROT_WRITE, 0, 0, 0))
		return NULL;
	return (uint8_t *)(at + PAGE_BYTES);
}

/* The nearest gap below the code: what grows (the heap, the system's mappings) does so elsewhere. Else one above. */
static uintptr_t find_gap(struct rn_maps *maps, uintptr_t start, uintptr_t end, size_t bytes)
{
	uintptr_t below = 0, free_from = LOWEST;
	struct rn_map map;

	while (rn_maps_next(maps, &map)) {
		if (map.start >= free_from + bytes) {
			if (map.start <= start && start - map.start < REACH_BYTES)
				below = map.start - bytes;
			else if (!below && free_from >= end && free_from - end < REACH_BYTES)
				return free_from;
		}
		free_from = map.end;
		if (below && map.start > start)
			break;
	}
	return below;
}

bool rn_tsc_arena_make(struct rn_tsc_arena *arena, uintptr_t start, uintptr_t end, size_t sites,
		       void (*entry)(void))
{
	struct rn_maps maps;
	uintptr_t at;

	arena->bytes = page_down((sites + 1) * RN_TRAMPOLINE_BYTES + PAGE_BYTES - 1);
	if (!rn_maps_read(&maps))
		return false;
	at = find_gap(&maps, start, end, arena->bytes + 2 * PAGE_BYTES);
	rn_maps_fini(&maps);
	arena->at = at ? map_at(at, arena->bytes) : NULL;
	if (!arena->at || made_count == ARENAS_MAX)
		return false;
	made[made_count].start = (uintptr_t)arena->at;
	made[made_count++].end = (uintptr_t)arena->at + arena->bytes;
	memcpy(arena->at, &entry, sizeof(entry));
	arena->used = RN_TRAMPOLINE_BYTES;
	return true;
}

void rn_tsc_arena_seal(struct rn_tsc_arena *arena)
{
	rn_raw_call(SYS_mprotect, (long)arena->at, (long)arena->bytes, PROT_READ | PROT_EXEC, 0, 0,
		    0);
}

bool rn_tsc_is_arena(uintptr_t at)
{
	for (unsigned i = 0; i < made_count; i++)
		if (at >= made[i].start && at < made[i].end)
			return true;
	return false;
}

/* --- a trampoline --- */

struct pen {
	uint8_t *at;
	bool has_failed;
};

static void put(struct pen *pen, const void *bytes, size_t count)
{
	memcpy(pen->at, bytes, count);
	pen->at += count;
}

/* A distance to @to, from behind it and @behind further bytes. */
static void put_distance(struct pen *pen, uintptr_t to, unsigned behind)
{
	const int64_t distance = (int64_t)(to - ((uintptr_t)pen->at + 4 + behind));
	const int32_t near = (int32_t)distance;

	pen->has_failed |= near != distance;
	put(pen, &near, sizeof(near));
}

static void put_jump(struct pen *pen, uintptr_t to)
{
	put(pen, "\xe9", 1);
	put_distance(pen, to, 0);
}

/* The return address is what it would have been: whoever unwinds the stack finds the program. */
static void put_call(struct pen *pen, uintptr_t to, uintptr_t back)
{
	const uint32_t low = (uint32_t)back, high = (uint32_t)(back >> 32);

	put(pen, "\x48\x8d\x64\x24\xf8", 5); /* lea -8(%rsp),%rsp */
	put(pen, "\xc7\x04\x24", 3);	     /* movl $low,(%rsp) */
	put(pen, &low, sizeof(low));
	put(pen, "\xc7\x44\x24\x04", 4); /* movl $high,4(%rsp) */
	put(pen, &high, sizeof(high));
	put_jump(pen, to);
}

static void put_moved(struct pen *pen, const uint8_t *code, const struct rn_insn *insn)
{
	const uintptr_t behind = (uintptr_t)code + insn->bytes;
	const uintptr_t to = behind + (uintptr_t)insn->distance;
	const uint8_t branch[] = {0x0f, (uint8_t)(0x80 | insn->condition)};

	switch (insn->kind) {
	case RN_INSN_JUMP:
		put_jump(pen, to);
		return;
	case RN_INSN_BRANCH:
		put(pen, branch, sizeof(branch));
		put_distance(pen, to, 0);
		return;
	case RN_INSN_CALL:
		put_call(pen, to, behind);
		return;
	case RN_INSN_RIP:
	case RN_INSN_INDIRECT:
		if (!insn->at)
			break;
		put(pen, code, insn->at);
		put_distance(pen, to, insn->bytes - insn->at - 4u);
		put(pen, code + insn->at + 4, insn->bytes - insn->at - 4u);
		return;
	default:
		break;
	}
	put(pen, code, insn->bytes);
}

static void put_window(struct pen *pen, const struct rn_tsc_site *site)
{
	const uint8_t *code = (const uint8_t *)site->at + site->bytes;
	const uint8_t *end = (const uint8_t *)site->at + site->window;
	struct rn_insn insn = {0};

	for (; code < end; code += insn.bytes) {
		rn_insn_decode(code, (size_t)(end - code), &insn);
		put_moved(pen, code, &insn);
	}
	if (!insn.ends)
		put_jump(pen, site->at + site->window);
}

const uint8_t *rn_tsc_trampoline(struct rn_tsc_arena *arena, const struct rn_tsc_site *site)
{
	struct pen pen = {.at = arena->at + arena->used};
	const uint8_t *trampoline = pen.at;

	if (!site->window || arena->bytes - arena->used < RN_TRAMPOLINE_BYTES)
		return NULL;
	put(&pen, "\x48\x8d\x64\x24\x80", 5); /* lea -128(%rsp),%rsp */
	put(&pen, "\xff\x15", 2);	      /* call *entry(%rip) */
	put_distance(&pen, (uintptr_t)arena->at, 0);
	put(&pen, "\x48\x8d\xa4\x24\x80\0\0\0", 8); /* lea 128(%rsp),%rsp */
	if (site->bytes == 3)
		put(&pen, "\xb9\0\0\0\0", 5); /* mov $0,%ecx: the processor's number */
	put_window(&pen, site);
	if (pen.has_failed ||
	    (int64_t)(int32_t)((int64_t)(uintptr_t)trampoline - (int64_t)site->at - 5) !=
		    (int64_t)(uintptr_t)trampoline - (int64_t)site->at - 5)
		return NULL;
	arena->used += RN_TRAMPOLINE_BYTES;
	return trampoline;
}

const uint8_t *rn_tsc_relay(struct rn_tsc_arena *arena)
{
	struct pen pen = {.at = arena->at + arena->used};
	const uint8_t *relay = pen.at;

	put(&pen, "\xff\x25", 2); /* jmp *entry(%rip) */
	put_distance(&pen, (uintptr_t)arena->at, 0);
	arena->used += RN_TRAMPOLINE_BYTES;
	return relay;
}

/* --- the program's code --- */

static bool protect(uintptr_t start, uintptr_t end, int prot)
{
	return !rn_raw_call(SYS_mprotect, (long)page_down(start),
			    (long)(page_down(end + PAGE_BYTES - 1) - page_down(start)), prot, 0, 0,
			    0);
}

bool rn_tsc_open_code(uintptr_t start, uintptr_t end, int prot)
{
	return protect(start, end, prot | PROT_READ | PROT_WRITE);
}

void rn_tsc_close_code(uintptr_t start, uintptr_t end, int prot)
{
	protect(start, end, prot);
}

/* rdtsc 0f 31, rdtscp 0f 01 f9, ud2 0f 0b. */
void rn_tsc_write_ud2(const struct rn_tsc_site *site)
{
	__atomic_store_n((uint8_t *)site->at + 1, 0x0b, __ATOMIC_SEQ_CST);
}

void rn_tsc_write_jump(const struct rn_tsc_site *site, const uint8_t *trampoline)
{
	struct pen pen = {.at = (uint8_t *)site->at};

	put_jump(&pen, (uintptr_t)trampoline);
	memset(pen.at, 0xcc, site->window - 5u); /* nobody comes here */
}
