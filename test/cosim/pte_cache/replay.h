/* Runs a recorded stimulus file (cosim/common/stimulus.h). */
#ifndef RN_TEST_COSIM_PTE_CACHE_REPLAY_H
#define RN_TEST_COSIM_PTE_CACHE_REPLAY_H

#include "cosim/pte_cache/coverage.h"
#include "cosim/pte_cache/rig.h"

/** False at a difference, or when the file is not one for this block and geometry (told in rig->difference). */
bool replay_run(struct rig *rig, struct coverage *coverage, const char *path);

#endif
