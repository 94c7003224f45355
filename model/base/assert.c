/* The failure path of RN_ASSERT: says which block ran, in which cycle, and aborts. */
#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where the simulator is; only ever read on the way to abort(). */
static const char *context_name;
static uint64_t context_cycle;

void rn_assert_context(const char *name, uint64_t cycle)
{
	context_name = name;
	context_cycle = cycle;
}

_Noreturn void rn_assert_fail(const char *cond, const char *file, int line)
{
	fflush(stdout);
	if (context_name)
		fprintf(stderr, "rnicsim: %s, cycle %" PRIu64 ": assertion failed: %s (%s:%d)\n",
			context_name, context_cycle, cond, file, line);
	else
		fprintf(stderr, "rnicsim: assertion failed: %s (%s:%d)\n", cond, file, line);
	fflush(stderr);
	abort();
}
