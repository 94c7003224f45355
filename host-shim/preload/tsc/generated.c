#include "preload/tsc/generated.h"

#include "preload/tsc/find.h"
#include "preload/tsc/flow.h"
#include "preload/tsc/objects.h"
#include "preload/tsc/patch.h"
#include "preload/tsc/raw.h"
#include "preload/tsc/sites.h"

#define RANGES_MAX 256
#define PAGE_BYTES ((uintptr_t)4096)
#define TRAP_PAGE_FAULT 14
#define FAULT_WRITE 0x02 /* bits of a page fault's error code */
#define FAULT_FETCH 0x10
#define TURNS_MAX 8 /* of one instruction that writes into its own page */

struct range {
	uintptr_t start, end;
};

static struct range ranges[RANGES_MAX];
static unsigned count;
static uintptr_t turning_at; /* the instruction whose write made a page writable last */
static unsigned turns;

static void protect(uintptr_t start, uintptr_t end, int prot)
{
	rn_raw_call(SYS_mprotect, (long)start, (long)(end - start), prot, 0, 0, 0);
}

static struct range *find(uintptr_t at)
{
	for (unsigned i = 0; i < count; i++)
		if (at >= ranges[i].start && at < ranges[i].end)
			return &ranges[i];
	return NULL;
}

bool rn_tsc_generated_part(uintptr_t at, uintptr_t end, uintptr_t *part_end)
{
	const struct range *range = find(at);

	*part_end = range && range->end < end ? range->end : end;
	for (unsigned i = 0; !range && i < count; i++)
		if (ranges[i].start > at && ranges[i].start < *part_end)
			*part_end = ranges[i].start;
	return range;
}

bool rn_tsc_generated_add(uintptr_t start, uintptr_t end)
{
	rn_tsc_generated_drop(start, end);
	if (count == RANGES_MAX)
		return false;
	ranges[count++] = (struct range){start, end};
	protect(start, end, PROT_READ | PROT_WRITE);
	return true;
}

/* What lies on both sides of it stays. */
void rn_tsc_generated_drop(uintptr_t start, uintptr_t end)
{
	for (unsigned i = count; i-- > 0;) {
		const struct range old = ranges[i];

		if (old.end <= start || old.start >= end)
			continue;
		ranges[i] = ranges[--count];
		if (old.start < start)
			ranges[count++] = (struct range){old.start, start};
		if (old.end > end && count < RANGES_MAX)
			ranges[count++] = (struct range){end, old.end};
		else if (old.end > end)
			rn_tsc_note(RN_TSC_GENERATED);
	}
}

/* --- code that begins to be executed --- */

void rn_tsc_generated_restore(uintptr_t start, uintptr_t end)
{
	for (uintptr_t at = start; at + 1 < end; at++) {
		uint8_t *code = (uint8_t *)at;
		const uint8_t bytes =
			code[0] == 0x0f && code[1] == 0x0b ? rn_tsc_sites_bytes(at) : 0;

		if (bytes)
			code[1] = bytes == 3 ? 0x01 : 0x31;
	}
}

void rn_tsc_generated_restore_in(uintptr_t start, uintptr_t end)
{
	for (unsigned i = 0; i < count; i++)
		if (ranges[i].end > start && ranges[i].start < end)
			rn_tsc_generated_restore(ranges[i].start > start ? ranges[i].start : start,
						 ranges[i].end < end ? ranges[i].end : end);
}

static void rewrite(const struct rn_flow *flow, const struct range *range, uintptr_t page)
{
	for (uintptr_t at = page; at < page + PAGE_BYTES; at++) {
		struct rn_tsc_site site = {.at = at};
		struct rn_insn insn;

		if (!(flow->marks[at - range->start] & RN_FLOW_LENGTH))
			continue;
		rn_insn_decode((const uint8_t *)at, range->end - at, &insn);
		site.bytes = insn.counter;
		if (!site.bytes)
			continue;
		if (rn_tsc_sites_add(site.at, site.bytes)) {
			rn_tsc_write_ud2(&site);
			rn_tsc_count_site(false);
		} else {
			rn_tsc_note(RN_TSC_REFUSED);
		}
	}
}

/* Bytes that may be a read, where flow has not come. */
static bool has_doubt(const struct rn_flow *flow, const struct range *range, uintptr_t page)
{
	uintptr_t at = page;

	while (rn_tsc_may_have(at, page + PAGE_BYTES)) {
		bool is_inside = false;

		while (!rn_tsc_looks_like(at, page + PAGE_BYTES))
			at++;
		for (uintptr_t back = 0; back < 15 && at - back >= range->start; back++)
			is_inside |=
				(flow->marks[at - back - range->start] & RN_FLOW_LENGTH) > back;
		if (!is_inside)
			return true;
		at++;
	}
	return false;
}

static void make_executable(const struct range *range, uintptr_t page, uintptr_t ip)
{
	struct rn_flow flow;

	protect(page, page + PAGE_BYTES, PROT_READ | PROT_WRITE);
	if (!rn_flow_init(&flow, (const uint8_t *)range->start, range->end - range->start)) {
		rn_tsc_note(RN_TSC_REFUSED);
		return;
	}
	flow.follows_calls = true;
	rn_flow_follow(&flow, ip - range->start);
	rewrite(&flow, range, page);
	if (has_doubt(&flow, range, page))
		rn_tsc_note(RN_TSC_GENERATED);
	rn_flow_fini(&flow);
	protect(page, page + PAGE_BYTES, PROT_READ | PROT_EXEC);
}

static void make_writable(uintptr_t page)
{
	protect(page, page + PAGE_BYTES, PROT_READ | PROT_WRITE);
	rn_tsc_generated_restore(page, page + PAGE_BYTES);
}

/* An instruction that writes into the page in which it stands can only be let go. */
static bool is_stuck(uintptr_t ip)
{
	turns = ip == turning_at ? turns + 1 : 0;
	turning_at = ip;
	return turns > TURNS_MAX;
}

static void let_go(const struct range *range)
{
	rn_tsc_note(RN_TSC_GENERATED);
	protect(range->start, range->end, PROT_READ | PROT_WRITE | PROT_EXEC);
	rn_tsc_generated_drop(range->start, range->end);
}

bool rn_tsc_generated_fault(const siginfo_t *info, const ucontext_t *context)
{
	const greg_t *regs = context->uc_mcontext.gregs;
	const uintptr_t at = (uintptr_t)info->si_addr, page = at & ~(PAGE_BYTES - 1);
	const uintptr_t ip = (uintptr_t)regs[REG_RIP];
	const struct range *range;

	if (info->si_code != SEGV_ACCERR || regs[REG_TRAPNO] != TRAP_PAGE_FAULT)
		return false;
	range = find(at);
	if (!range)
		return false;
	if (regs[REG_ERR] & FAULT_FETCH)
		make_executable(range, page, ip >= range->start && ip < range->end ? ip : at);
	else if (!(regs[REG_ERR] & FAULT_WRITE))
		return false;
	else if (is_stuck(ip))
		let_go(range);
	else
		make_writable(page);
	return true;
}
