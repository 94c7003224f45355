/*
 * Functional coverage: named points with the number of cycles in which each was hit. A bench lists its points
 * once, as an X-macro; runs add up in a file (one line a point: count and name), which tools/cosim/coverage
 * merges with the RTL's line and toggle coverage into one report.
 */
#ifndef RN_TEST_COSIM_COMMON_COVER_H
#define RN_TEST_COSIM_COMMON_COVER_H

#include <stdbool.h>
#include <stdint.h>

struct cosim_cover {
	const char *const *names;
	uint32_t count;
	uint64_t *hits;
};

/** @names are borrowed. */
void cosim_cover_init(struct cosim_cover *cover, const char *const *names, uint32_t count);
void cosim_cover_fini(struct cosim_cover *cover);

static inline void cosim_cover_hit(struct cosim_cover *cover, uint32_t point, bool is_hit)
{
	cover->hits[point] += is_hit;
}

/** Add the counts to those of @path, which need not exist. False when it cannot be written. */
bool cosim_cover_write(const struct cosim_cover *cover, const char *path);

/** Name of the first point at or after *@point that was never hit, or NULL; *@point is its number. */
const char *cosim_cover_missing(const struct cosim_cover *cover, uint32_t *point);

#endif
