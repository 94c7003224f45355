/*
 * The loader calls an empty function of its own whenever its list of objects has changed (<link.h>: r_brk, for
 * debuggers): after it has mapped them, before it runs their constructors. Here that function gets a body.
 */
#include <link.h>
#include <sys/mman.h>

#include "preload/tsc/flow.h"
#include "preload/tsc/objects.h"
#include "preload/tsc/patch.h"

#define FUNCTION_BYTES 16 /* how functions are aligned */
#define JUMP_BYTES 5

static void (*tell)(void);

static void on_change(void)
{
	if (_r_debug.r_state == RT_CONSISTENT)
		tell();
}

/* It returns at once, and what is behind that to the next function is filling. */
static bool is_empty(const uint8_t *code)
{
	struct rn_insn insn;
	unsigned at = 0;
	bool has_returned = false;

	while (at < JUMP_BYTES) {
		rn_insn_decode(code + at, FUNCTION_BYTES - at, &insn);
		if (insn.kind == RN_INSN_RETURN)
			has_returned = true;
		else if (!insn.is_filler)
			return false;
		at += insn.bytes;
	}
	return has_returned && !((uintptr_t)code & (FUNCTION_BYTES - 1));
}

bool rn_tsc_hook_loader(void (*mapped)(void))
{
	const struct rn_tsc_site site = {.at = _r_debug.r_brk, .window = JUMP_BYTES};
	struct rn_tsc_arena arena;

	if (!site.at || !is_empty((const uint8_t *)site.at) ||
	    !rn_tsc_arena_make(&arena, site.at, site.at + FUNCTION_BYTES, 1, on_change))
		return false;
	if (!rn_tsc_open_code(site.at, site.at + JUMP_BYTES, PROT_READ | PROT_EXEC))
		return false;
	tell = mapped;
	rn_tsc_write_jump(&site, rn_tsc_relay(&arena));
	rn_tsc_close_code(site.at, site.at + JUMP_BYTES, PROT_READ | PROT_EXEC);
	rn_tsc_arena_seal(&arena);
	return true;
}
