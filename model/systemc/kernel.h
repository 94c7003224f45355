/*
 * SystemC owns time: one SC_METHOD hosts the timing wheel of all C blocks. It drains the wheel up to
 * SystemC's next event of its own and re-arms itself for the earliest wake, so that blocks, Verilated
 * blocks and TLM sockets see one time at the cost of C events.
 */
#ifndef RN_SYSTEMC_KERNEL_H
#define RN_SYSTEMC_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "sim/sim.h"

struct rn_kernel;

/** The one kernel of this process (SystemC allows no second); @sim is borrowed. */
struct rn_kernel *rn_kernel_new(struct rn_sim *sim);
void rn_kernel_free(struct rn_kernel *kernel);

/**
 * Run until @until_ps or for @max_wakes wakes, whichever comes first; outside input enters between two such
 * calls. Returns the number of wakes run. rn_sim_now_ps() is the time reached.
 */
uint64_t rn_kernel_run(struct rn_kernel *kernel, uint64_t until_ps, uint64_t max_wakes);

#ifdef __cplusplus
}
#endif

#endif
