#include "preload/tsc/find.h"

#include <string.h>

#include "preload/tsc/flow.h"
#include "preload/tsc/raw.h"

#define JUMP_BYTES 5
#define JUMP_ROOM_BYTES 6 /* of the longest jump */
#define BLOCK_BYTES 512
#define SHORT_REACH 160 /* of a jump with a distance of one byte into a window, and more */

struct search {
	uintptr_t start, end;
	const struct rn_elf *elf;
	struct rn_tsc_found *found;
	/* What was decoded last. */
	struct rn_flow flow;
	uintptr_t flow_start;
	bool has_flow, is_whole;
};

static const uint8_t *code_at(uintptr_t at)
{
	return (const uint8_t *)at;
}

/* --- bytes that may be such an instruction --- */

static bool looks_like(const uint8_t *code, size_t bytes)
{
	return bytes >= 2 && code[0] == 0x0f &&
	       (code[1] == 0x31 || (code[1] == 0x01 && bytes >= 3 && code[2] == 0xf9));
}

/* For the compiler to do many at once. */
static bool may_have(const uint8_t *code)
{
	unsigned hits = 0;

	for (unsigned i = 0; i < BLOCK_BYTES; i++)
		hits |= (code[i] == 0x0f) & ((code[i + 1] == 0x31) | (code[i + 1] == 0x01));
	return hits;
}

/* The first at or behind @at; 0 none. */
static uintptr_t next_candidate(uintptr_t at, uintptr_t end)
{
	while (at < end) {
		if (end - at > BLOCK_BYTES && !may_have(code_at(at))) {
			at += BLOCK_BYTES;
			continue;
		}
		for (unsigned i = 0; i < BLOCK_BYTES && at < end; i++, at++)
			if (looks_like(code_at(at), end - at))
				return at;
	}
	return 0;
}

/* --- sites --- */

static bool add_site(struct rn_tsc_found *found, const struct rn_tsc_site *site)
{
	if (found->sites == found->room) {
		const size_t room = found->room ? 4 * found->room : 64;
		struct rn_tsc_site *more = rn_raw_alloc(room * sizeof(*more));

		if (!more)
			return false;
		for (size_t i = 0; i < found->sites; i++)
			more[i] = found->site[i];
		rn_raw_free(found->site, found->room * sizeof(*found->site));
		found->site = more;
		found->room = room;
	}
	found->site[found->sites++] = *site;
	return true;
}

void rn_tsc_found_fini(struct rn_tsc_found *found)
{
	rn_raw_free(found->site, found->room * sizeof(*found->site));
	*found = (struct rn_tsc_found){0};
}

static bool may_move(const struct rn_insn *insn)
{
	return insn->kind != RN_INSN_BAD && insn->kind != RN_INSN_FIXED && !insn->counter;
}

/* Whole instructions behind the one at @offset that can be moved and that nothing enters. */
static uint8_t window_of(const struct rn_flow *flow, size_t offset, uint8_t bytes)
{
	size_t at = offset + bytes;
	struct rn_insn insn = {0};

	while (at - offset < JUMP_BYTES) {
		if (insn.ends || at >= flow->bytes || !(flow->marks[at] & RN_FLOW_LENGTH) ||
		    (flow->marks[at] & RN_FLOW_TARGET))
			return 0;
		rn_insn_decode(flow->code + at, flow->bytes - at, &insn);
		/* A call's return address is that of the instruction behind it. */
		if (!may_move(&insn) ||
		    (insn.kind == RN_INSN_CALL && at + insn.bytes - offset < JUMP_BYTES))
			return 0;
		at += insn.bytes;
	}
	return (uint8_t)(at - offset);
}

/* --- one function --- */

static void drop_flow(struct search *search)
{
	if (search->has_flow)
		rn_flow_fini(&search->flow);
	search->has_flow = false;
}

static bool make_flow(struct search *search, uintptr_t start, uintptr_t end)
{
	drop_flow(search);
	search->flow_start = start;
	search->has_flow = rn_flow_init(&search->flow, code_at(start), end - start);
	return search->has_flow;
}

static bool is_reached(const struct search *search, uintptr_t at)
{
	return search->has_flow && at >= search->flow_start &&
	       at - search->flow_start < search->flow.bytes &&
	       (search->flow.marks[at - search->flow_start] & RN_FLOW_LENGTH);
}

/* Inside of an instruction that flow reaches: a constant or a distance. */
static bool is_inside(const struct search *search, uintptr_t at)
{
	for (uintptr_t back = 1; back < 15 && at - back >= search->flow_start; back++)
		if (is_reached(search, at - back) &&
		    (search->flow.marks[at - back - search->flow_start] & RN_FLOW_LENGTH) > back)
			return true;
	return false;
}

static bool take(struct search *search, uintptr_t at, const struct rn_function *function)
{
	const size_t offset = at - search->flow_start;
	struct rn_tsc_site site = {.at = at, .function = at, .function_end = at};
	struct rn_insn insn;

	rn_insn_decode(search->flow.code + offset, search->flow.bytes - offset, &insn);
	if (!insn.counter)
		return true;
	site.bytes = insn.counter;
	if (function) {
		site.function = function->start;
		site.function_end = function->end;
	}
	if (function && !search->flow.is_indirect)
		site.window = window_of(&search->flow, offset, site.bytes);
	return add_site(search->found, &site);
}

static bool follow_function(struct search *search, uintptr_t at, struct rn_function *function)
{
	if (!search->elf) {
		*function = (struct rn_function){search->start, search->end, false};
	} else if (!rn_elf_function(search->elf, at, function) || function->start < search->start ||
		   function->end > search->end) {
		return false;
	}
	if (!search->has_flow || search->is_whole || search->flow_start != function->start) {
		search->is_whole = false;
		if (!make_flow(search, function->start, function->end))
			return false;
		search->flow.follows_calls = !search->elf;
		rn_flow_follow(&search->flow, 0);
		if (search->elf && (search->flow.is_indirect || function->has_landing_pads))
			rn_flow_sweep(&search->flow);
	}
	return true;
}

/* --- what no function covers --- */

static void follow_start(void *arg, uintptr_t at)
{
	struct search *search = arg;

	if (at >= search->start && at < search->end)
		rn_flow_follow(&search->flow, at - search->start);
}

/* Everything that is called or jumped to from a known function. */
static bool follow_all(struct search *search)
{
	if (search->is_whole)
		return search->has_flow;
	search->is_whole = true;
	if (!make_flow(search, search->start, search->end))
		return false;
	search->flow.follows_calls = true;
	rn_elf_each_start(search->elf, follow_start, search);
	return true;
}

/* In code that only calls lead to, nobody says where a function ends: no window. */
static bool take_uncovered(struct search *search, uintptr_t at)
{
	if (search->elf && follow_all(search)) {
		if (is_reached(search, at))
			return take(search, at, NULL);
		if (is_inside(search, at))
			return true;
	}
	search->found->undecided++;
	return true;
}

static bool take_candidate(struct search *search, uintptr_t at)
{
	struct rn_function function;

	if (follow_function(search, at, &function)) {
		if (is_reached(search, at))
			return take(search, at, &function);
		if (is_inside(search, at))
			return true;
	}
	return take_uncovered(search, at);
}

/* --- who may enter a window from another function --- */

static bool is_part_indirect(const struct search *search, const struct rn_function *part)
{
	struct rn_flow flow;
	bool is_indirect;

	if (part->start < search->start || part->end > search->end ||
	    !rn_flow_init(&flow, code_at(part->start), part->end - part->start))
		return true;
	rn_flow_follow(&flow, 0);
	is_indirect = flow.is_indirect || part->has_landing_pads;
	rn_flow_fini(&flow);
	return is_indirect;
}

/* Whether an instruction of another function really begins at @at, as far as that is known. */
static bool is_instruction(const struct search *search, uintptr_t at)
{
	struct rn_function function;
	struct rn_flow flow;
	bool is_reached;

	if (!search->elf || !rn_elf_function(search->elf, at, &function) ||
	    function.start < search->start || function.end > search->end ||
	    !rn_flow_init(&flow, code_at(function.start), function.end - function.start))
		return true;
	rn_flow_follow(&flow, 0);
	rn_flow_sweep(&flow);
	is_reached = flow.marks[at - function.start] & RN_FLOW_LENGTH;
	rn_flow_fini(&flow);
	return is_reached;
}

/* The last site of the last function that begins before @to and ends behind it; NULL none. */
static struct rn_tsc_site *entered_site(const struct rn_tsc_found *found, uintptr_t to)
{
	size_t low = 0, high = found->sites;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (found->site[middle].function < to)
			low = middle + 1;
		else
			high = middle;
	}
	return low && to < found->site[low - 1].function_end ? &found->site[low - 1] : NULL;
}

/*
 * A jump at @at leads to @to, in the midst of a function that is not its own: into a window, or from a part of the
 * function that stands elsewhere (.cold) and may have the switch that leads into one.
 */
static void enter(const struct search *search, uintptr_t at, uintptr_t to)
{
	struct rn_tsc_site *site = entered_site(search->found, to);
	struct rn_function part;
	bool is_indirect;

	if (!site || (at >= site->function && at < site->function_end) ||
	    !is_instruction(search, at))
		return;
	is_indirect = !search->elf || !rn_elf_function(search->elf, at, &part) ||
		      is_part_indirect(search, &part);
	for (; site >= search->found->site && to < site->function_end; site--)
		if (is_indirect || (to > site->at && to < site->at + site->window))
			site->window = 0;
}

static bool is_short_jump(const uint8_t *code)
{
	return (code[0] & 0xf0) == 0x70 || (code[0] & 0xfc) == 0xe0 || code[0] == 0xeb;
}

/* Bytes before the distance of a jump or call at @code; 0: it is none, or a short one. */
static unsigned long_jump(const uint8_t *code)
{
	if ((code[0] & 0xfe) == 0xe8)
		return 1;
	return code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2 : 0;
}

/* All that looks like a jump, wherever it begins, and leads into one of the functions that have sites. */
static void look_at_opcode(const struct search *search, int opcode)
{
	const struct rn_tsc_found *found = search->found;
	const uintptr_t low = found->site[0].function;
	const uintptr_t bytes = found->site[found->sites - 1].function_end - low;
	const uint8_t *const end = code_at(search->end - JUMP_ROOM_BYTES);
	const uint8_t *code = code_at(search->start);

	while (code < end && (code = memchr(code, opcode, (size_t)(end - code)))) {
		const unsigned before = long_jump(code);
		int32_t distance;

		__builtin_memcpy(&distance, code + before, sizeof(distance));
		if (before &&
		    (uintptr_t)code + before + 4 + (uintptr_t)(intptr_t)distance - low < bytes)
			enter(search, (uintptr_t)code,
			      (uintptr_t)code + before + 4 + (uintptr_t)(intptr_t)distance);
		code++;
	}
}

static void look_at_long_jumps(const struct search *search)
{
	if (search->end - search->start <= JUMP_ROOM_BYTES)
		return;
	look_at_opcode(search, 0xe8);
	look_at_opcode(search, 0xe9);
	look_at_opcode(search, 0x0f);
}

/* The same for those whose distance is one byte: they begin near by. */
static void look_at_short_jumps(const struct search *search, const struct rn_tsc_site *site)
{
	uintptr_t at =
		site->at - search->start > SHORT_REACH ? site->at - SHORT_REACH : search->start;

	for (; at + 2 <= search->end && at < site->at + SHORT_REACH; at++) {
		const uint8_t *code = code_at(at);
		const uintptr_t to = at + 2 + (uintptr_t)(intptr_t)(int8_t)code[1];

		if (is_short_jump(code) && to > site->function && to < site->function_end)
			enter(search, at, to);
	}
}

static bool has_windows(const struct rn_tsc_found *found)
{
	for (size_t i = 0; i < found->sites; i++)
		if (found->site[i].window)
			return true;
	return false;
}

size_t rn_tsc_count_like(uintptr_t start, uintptr_t end)
{
	size_t count = 0;

	for (uintptr_t at = next_candidate(start, end); at; at = next_candidate(at + 1, end))
		count++;
	return count;
}

bool rn_tsc_looks_like(uintptr_t at, uintptr_t end)
{
	return looks_like(code_at(at), end - at);
}

bool rn_tsc_may_have(uintptr_t start, uintptr_t end)
{
	return next_candidate(start, end);
}

bool rn_tsc_find(uintptr_t start, uintptr_t end, const struct rn_elf *elf,
		 struct rn_tsc_found *found)
{
	struct search search = {.start = start, .end = end, .elf = elf, .found = found};
	bool goes_on = true;

	*found = (struct rn_tsc_found){0};
	for (uintptr_t at = next_candidate(start, end); at && goes_on;
	     at = next_candidate(at + 1, end))
		goes_on = take_candidate(&search, at);
	drop_flow(&search);
	if (!has_windows(found))
		return goes_on;
	look_at_long_jumps(&search);
	for (size_t i = 0; i < found->sites; i++)
		if (found->site[i].window)
			look_at_short_jumps(&search, &found->site[i]);
	return goes_on;
}
