/*
 * How a process begins: which of trap and rewriting are in force, and what it says of that in its time page.
 */
#include "preload/tsc/tsc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "preload/own_signals.h"
#include "preload/tsc/counter.h"
#include "preload/tsc/find.h"
#include "preload/tsc/generated.h"
#include "preload/tsc/objects.h"
#include "preload/virtual.h"

#define STACK_TOP ((uintptr_t)0x7ffffffff000) /* of a process, without randomisation */

#define OPENED_MAX 64

static bool is_active;
static bool rewrites;
static uint32_t force; /* enum rn_tsc_force bits */

static struct {
	uintptr_t start, end;
	size_t reads; /* what looked like one before */
} opened[OPENED_MAX];
static unsigned opened_count;

void rn_tsc_count_trap(void)
{
	struct rn_time_page *page = rn_virtual_page();

	if (page)
		atomic_fetch_add_explicit(&page->tsc.traps, 1, memory_order_relaxed);
}

void rn_tsc_report(void)
{
	const struct rn_tsc_tally *tally = rn_tsc_tally();
	struct rn_time_page *page = rn_virtual_page();

	if (!page || !is_active)
		return;
	atomic_store(&page->tsc.force, force);
	atomic_store(&page->tsc.jumps, tally->jumps);
	atomic_store(&page->tsc.illegals, tally->illegals);
	atomic_store(&page->tsc.unseen, tally->unseen | (opened_count ? RN_TSC_GENERATED : 0));
}

static void look(bool is_fresh)
{
	rn_tsc_look_at_maps(is_fresh);
	rn_tsc_report();
}

static void look_afresh(void)
{
	look(true);
}

/* --- what the program maps --- */

static uintptr_t page_up(uintptr_t at)
{
	return (at + 4095) & ~(uintptr_t)4095;
}

static bool is_both(int prot)
{
	return (prot & PROT_WRITE) && (prot & PROT_EXEC);
}

/* The trap sees what is written into memory that stays executable; without it pages are one or the other. */
static void take(uintptr_t start, uintptr_t end, int prot, bool is_anonymous)
{
	const bool watches = is_both(prot) && is_anonymous && !(force & RN_TSC_TRAP) &&
			     rn_tsc_generated_add(start, end);

	if (!(prot & PROT_EXEC) || watches)
		return;
	rn_tsc_forget_generated(start, end);
	look(true);
}

/* --- code of an object that a program changes: it opens the pages, writes, and closes them --- */

static bool open_object(uintptr_t start, uintptr_t end)
{
	if (opened_count == OPENED_MAX)
		return false;
	opened[opened_count].start = start;
	opened[opened_count].end = end;
	opened[opened_count++].reads = rn_tsc_count_like(start, end);
	return true;
}

static void close_objects(uintptr_t start, uintptr_t end)
{
	for (unsigned i = opened_count; i-- > 0;) {
		if (opened[i].start < start || opened[i].end > end)
			continue;
		if (rn_tsc_count_like(opened[i].start, opened[i].end) > opened[i].reads)
			rn_tsc_note(RN_TSC_UNDECODED);
		opened[i] = opened[--opened_count];
	}
}

void rn_tsc_mapped(void *at, size_t bytes, int prot, bool is_anonymous)
{
	const uintptr_t start = (uintptr_t)at, end = page_up(start + bytes);

	if (!rewrites)
		return;
	rn_tsc_generated_drop(start, end);
	take(start, end, prot, is_anonymous);
}

void rn_tsc_protected(void *at, size_t bytes, int prot)
{
	const uintptr_t start = (uintptr_t)at, end = page_up(start + bytes);
	bool is_anonymous;

	if (!rewrites)
		return;
	if (prot & PROT_WRITE) {
		rn_tsc_generated_restore_in(start, end);
		rn_tsc_restore_generated(start, end);
	}
	rn_tsc_generated_drop(start, end);
	if (!(prot & PROT_WRITE))
		close_objects(start, end);
	is_anonymous = is_both(prot) && rn_tsc_is_anonymous(start, end);
	if (!is_both(prot) || is_anonymous || !open_object(start, end))
		take(start, end, prot, is_anonymous);
	rn_tsc_report();
}

void rn_tsc_unmapped(void *at, size_t bytes)
{
	const uintptr_t start = (uintptr_t)at;

	if (rewrites)
		rn_tsc_generated_drop(start, page_up(start + bytes));
}

/* --- the start --- */

static bool on_fault(const siginfo_t *info, ucontext_t *context)
{
	return rn_tsc_on_fault(info, context) || rn_tsc_generated_fault(info, context);
}

static void start_trap(bool is_wanted)
{
	rn_own_signal_take(SIGSEGV, on_fault);
	if (!rn_tsc_trap_works())
		return;
	force |= RN_TSC_TRAP_WORKS;
	if (!is_wanted)
		return;
	force |= RN_TSC_TRAP;
	rn_tsc_use_trap();
}

static void start_rewriting(void)
{
	force |= RN_TSC_REWRITE;
	rn_own_signal_take(SIGILL, rn_tsc_on_illegal);
	rn_tsc_entry_init();
	look(false);
	rewrites = true;
	if (!rn_tsc_hook_loader(look_afresh))
		rn_tsc_note(RN_TSC_UNHOOKED);
}

/* The system puts the program's name at the very top of the stack, which it moves when it randomises. */
static bool has_fixed_addresses(void)
{
	const uintptr_t name = getauxval(AT_EXECFN);

	return name && name + strlen((const char *)name) + 1 + sizeof(uint64_t) == STACK_TOP;
}

static uint32_t mode_of(const struct rn_time_page *page)
{
	const char *name = getenv(RN_ENV_TSC);

	if (name && !strcmp(name, "auto"))
		return RN_TSC_MODE_AUTO;
	if (name && !strcmp(name, "trap"))
		return RN_TSC_MODE_TRAP;
	return name && !strcmp(name, "rewrite") ? RN_TSC_MODE_REWRITE : page->tsc_mode;
}

void rn_tsc_start(void)
{
	const uint32_t mode = mode_of(rn_virtual_page());

	is_active = true;
	if (has_fixed_addresses())
		force |= RN_TSC_FIXED_ADDRESSES;
	if (mode != RN_TSC_MODE_TRAP)
		start_rewriting();
	start_trap(mode != RN_TSC_MODE_REWRITE);
	rn_tsc_report();
}
