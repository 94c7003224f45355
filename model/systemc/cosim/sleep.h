/*
 * idle_o and wake_o. A block that is idle is not evaluated until an input changes or wake_o cycles are over; one that says
 * so wrongly misses what it should do. In lockstep the C block shows it: it does something while the RTL is asleep. In
 * rtl a second instance is clocked through the first cycles of a sleep with its inputs held, and must do nothing.
 */
#ifndef RN_SYSTEMC_COSIM_SLEEP_H
#define RN_SYSTEMC_COSIM_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

struct rn_cosim_unit;

/** Remember whether the RTL, evaluated in @cycle and not yet clocked, goes to sleep, and what it has seen. */
void rn_cosim_note_sleep(struct rn_cosim_unit *unit, uint64_t cycle);

/** Whether in rtl nothing would wake the RTL for @cycle, whose inputs are sampled. */
bool rn_cosim_is_asleep(const struct rn_cosim_unit *unit, uint64_t cycle);

/**
 * Headline of what is wrong with idle_o in this cycle, or NULL: the ports have what was taken and pushed. @is_asleep: the
 * RTL would not have been evaluated.
 */
const char *rn_cosim_check_sleep(struct rn_cosim_unit *unit, bool is_asleep);

/** rtl: clock a second instance through the sleep that begins. Headline when it does something, or NULL. */
const char *rn_cosim_probe(struct rn_cosim_unit *unit);
void rn_cosim_probe_free(struct rn_cosim_unit *unit);

/** Describe the sleep that was wrong in a line on stderr; nothing when none was. */
void rn_cosim_print_sleep(const struct rn_cosim_unit *unit);

/** rtl: a line on stderr when the RTL sleeps although something waits at an input. */
void rn_cosim_print_sleeper(struct rn_cosim_unit *unit);

#endif
