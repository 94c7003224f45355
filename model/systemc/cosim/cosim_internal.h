/*
 * What frames ask of the whole.
 */
#ifndef RN_SYSTEMC_COSIM_COSIM_INTERNAL_H
#define RN_SYSTEMC_COSIM_COSIM_INTERNAL_H

#include "systemc/cosim/cosim.h"

void rn_cosim_set_failed(struct rn_cosim *cosim);

/** End the process if its options say so. */
void rn_cosim_end(const struct rn_cosim *cosim);

const char *rn_cosim_fst_path(const struct rn_cosim *cosim);

#endif
