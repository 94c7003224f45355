/*
 * How a process begins: which of trap and rewriting are in force, and what it says of that in its time page.
 */
#include "preload/tsc/tsc.h"

#include "preload/own_signals.h"
#include "preload/tsc/counter.h"
#include "preload/tsc/objects.h"
#include "preload/virtual.h"

static bool is_active;
static bool rewrites;
static uint32_t force; /* enum rn_tsc_force bits */

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
	atomic_store(&page->tsc.unseen, tally->unseen);
}

static void look(bool is_fresh)
{
	rn_tsc_look_at_maps(is_fresh);
	rn_tsc_report();
}

void rn_tsc_look(void)
{
	if (rewrites)
		look(true);
}

static void start_trap(bool is_wanted)
{
	rn_own_signal_take(SIGSEGV, rn_tsc_on_fault);
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
	if (!rn_tsc_hook_loader(rn_tsc_look))
		rn_tsc_note(RN_TSC_UNHOOKED);
}

void rn_tsc_start(void)
{
	const uint32_t mode = rn_virtual_page()->tsc_mode;

	is_active = true;
	if (mode != RN_TSC_MODE_TRAP)
		start_rewriting();
	start_trap(mode != RN_TSC_MODE_REWRITE);
	rn_tsc_report();
}
