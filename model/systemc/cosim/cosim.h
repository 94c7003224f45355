/*
 * RTL in the loop: Verilated blocks in the place of C blocks (rtl) or beside them (lockstep), recordings of what
 * passes at a unit's boundary, and what a difference leaves behind. docs/rtl.md has the user's view.
 */
#ifndef RN_SYSTEMC_COSIM_COSIM_H
#define RN_SYSTEMC_COSIM_COSIM_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/unit.h"
#include "system/scenario.h"

/* One --record-unit. */
struct rn_cosim_record {
	unsigned host;
	enum rn_unit unit;
	const char *path; /* borrowed */
};

struct rn_cosim_options {
	const struct rn_cosim_record *record; /* borrowed */
	unsigned records;
	const char *const *plusargs; /* "+name=value" for the RTL; borrowed */
	unsigned plusargs_count;
	const char *fst_path; /* waveform of the window before a difference; borrowed */
	int end_with; /* exit status with which a difference ends the process at once; 0: the simulation is stopped */
};

struct rn_cosim;

/** Whether there is a Verilated block with the parameters that @unit has in @host. */
bool rn_cosim_has_geometry(const struct rn_scenario_host *host, enum rn_unit unit);

/**
 * Whether the configuration's units can be had: what is wrong, as a text that the caller free()s, or NULL. The text
 * names the geometries that there are and how to build another.
 */
char *rn_cosim_check(const struct rn_scenario *scenario);

/** NULL and *@error (the caller free()s it) when a file cannot be written. @scenario and @options are borrowed. */
struct rn_cosim *rn_cosim_new(const struct rn_scenario *scenario,
			      const struct rn_cosim_options *options, char **error);

/**
 * After the system that was built with it. Returns 0 or an errno of a recording that could not be written, with *@message as
 * rn_output_close().
 */
int rn_cosim_free(struct rn_cosim *cosim, char **message);

/** For rn_system_options. */
const struct rn_unit_builder *rn_cosim_builder(struct rn_cosim *cosim);

/** Whether a difference, or a failed assertion of the RTL, has stopped the simulation. */
bool rn_cosim_has_failed(const struct rn_cosim *cosim);

/** Print a line on stderr for every unit of mode rtl that sleeps although something waits at its inputs. */
void rn_cosim_print_sleepers(const struct rn_cosim *cosim);

/* What a unit was in this run, for the report. */
struct rn_cosim_unit_info {
	const char *name; /* "host0.nic0.pte_cache" */
	enum rn_unit_mode mode;
	const char *geometry; /* NULL: the C block alone */
	const char *top;      /* name of the RTL's module */
	const char *digest;   /* of its sources */
	bool is_own;	      /* the user's */
	uint64_t model_ticks; /* of the C block; 0 in rtl */
	uint64_t evaluations; /* cycles in which the RTL was evaluated */
};

/** The @idx-th unit that is not the C block alone; false behind the last. */
bool rn_cosim_unit_at(const struct rn_cosim *cosim, unsigned idx, struct rn_cosim_unit_info *info);

#endif
