/*
 * Waveform (FST) of registered fifos as registers in hardware would show them: an entry is at the output from the cycle
 * in which it can be taken, and what is pushed or popped in a cycle changes the occupancy with the next edge.
 */
#ifndef RN_SYSTEMC_COSIM_FIFO_FST_H
#define RN_SYSTEMC_COSIM_FIFO_FST_H

#include "sim/stats.h"

struct rn_fifo_fst;

/**
 * Watch every fifo that @stats has (each for the first time) and write to @path: valid, occupancy and the fields of
 * the message at the head. NULL and *@message (the caller free()s it) when the file cannot be written.
 */
struct rn_fifo_fst *rn_fifo_fst_new(struct rn_sim *sim, const struct rn_stats *stats,
				    const char *path, char **message);

/** Write out what is known. Before the fifos are gone. 0 or an errno with *@message as rn_output_close(). NULL is ignored. */
int rn_fifo_fst_free(struct rn_fifo_fst *fst, char **message);

#endif
