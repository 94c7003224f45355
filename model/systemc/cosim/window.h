/*
 * The window before a difference: a checkpoint of the RTL and the inputs since, from which a second instance is run
 * again with a waveform. Nothing is traced while all is well, and memory is bounded: two stretches of inputs, of which
 * the older is dropped when the newer is full.
 */
#ifndef RN_SYSTEMC_COSIM_WINDOW_H
#define RN_SYSTEMC_COSIM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct rn_cosim_unit;
struct rn_cosim_window;

/** A window of @cycles to twice as many evaluated cycles of @unit's RTL, which has been reset. */
struct rn_cosim_window *rn_cosim_window_new(struct rn_cosim_unit *unit, unsigned cycles);
void rn_cosim_window_free(struct rn_cosim_window *window);

/** The inputs that @unit's ports show are about to be evaluated in @cycle. */
void rn_cosim_window_note(struct rn_cosim_window *window, struct rn_cosim_unit *unit,
			  uint64_t cycle);

/** Write the waveform; @first and @last get the cycles that it shows. False with *@message (the caller free()s it) when @path cannot be written. */
bool rn_cosim_window_write(const struct rn_cosim_window *window, struct rn_cosim_unit *unit,
			   const char *path, uint64_t *first, uint64_t *last, char **message);

#endif
