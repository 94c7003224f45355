/* The failure path of RN_ASSERT: says which block ran, in which cycle, and aborts. */
#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct rn_assert_place rn_assert_place;

_Noreturn void rn_assert_fail(const char *cond, const char *file, int line)
{
	fflush(stdout);
	if (rn_assert_place.name)
		fprintf(stderr, "rnicsim: %s, cycle %" PRIu64 ": assertion failed: %s (%s:%d)\n",
			rn_assert_place.name, rn_assert_place.cycle, cond, file, line);
	else
		fprintf(stderr, "rnicsim: assertion failed: %s (%s:%d)\n", cond, file, line);
	fflush(stderr);
	abort();
}
