/*
 * Geometries: a Verilated block has its parameters fixed; these find the one that a configuration wants.
 */
#ifndef RN_SYSTEMC_COSIM_GEOMETRY_H
#define RN_SYSTEMC_COSIM_GEOMETRY_H

#include "systemc/cosim/rtl.h"

/** The kind with @params, or NULL. */
const struct rn_rtl_kind *
rn_cosim_geometry_find(enum rn_unit unit, const struct rn_param_table *table, const void *params);

/** Why there is none: the geometries that there are, and how to build another. The caller free()s it. */
char *rn_cosim_geometry_complain(enum rn_unit unit, const struct rn_param_table *table,
				 const void *params);

#endif
