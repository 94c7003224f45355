/*
 * Units of the NIC that exist in SystemVerilog too. Whoever builds a NIC may put something in the place of such a
 * unit's C block, or look on at its ports; this is where it is asked.
 */
#ifndef RN_NIC_UNIT_H
#define RN_NIC_UNIT_H

#include <stdbool.h>
#include <stdio.h>

struct rn_block;
struct rn_doorbell_identity;
struct rn_nic_env;
struct rn_param_table;

enum rn_unit { RN_UNIT_DOORBELL, RN_UNIT_PTE_CACHE, RN_UNITS };

enum rn_unit_mode {
	RN_UNIT_MODEL,	  /* the C block */
	RN_UNIT_RTL,	  /* the Verilated block; there is no C block */
	RN_UNIT_LOCKSTEP, /* the C block drives, the Verilated one must do the same in every cycle */
	RN_UNIT_MODES
};

/* One unit of one NIC. What env names outlives the NIC; the rest is to be copied. */
struct rn_unit_site {
	enum rn_unit unit;
	const struct rn_nic_env *env;
	const struct rn_param_table *table;
	const void *params; /* of @table */
	const void *ports;  /* struct rn_doorbell_ports or struct rn_pte_cache_ports */
	const struct rn_doorbell_identity *identity; /* of the doorbell unit, else NULL */
};

struct rn_unit_builder {
	void *arg;
	/** Build what stands in the C block's place, connected to the ports. False: the C block is to be built. */
	bool (*replace)(void *arg, const struct rn_unit_site *site);
	/** The C block @block has been built. */
	void (*watch)(void *arg, const struct rn_unit_site *site, struct rn_block *block);
	/** Log lookups to @log (borrowed) as the PTE cache's C block does, where something else stands in its place. */
	void (*set_log)(void *arg, FILE *log);
};

/** "pte_cache": configuration key, folder, name in reports. */
const char *rn_unit_name(enum rn_unit unit);

/** The unit of that name; RN_UNITS when there is none. */
enum rn_unit rn_unit_find(const char *name);

/** "model", "rtl", "lockstep"; NULL behind the last, so that it can be a list of choices. */
extern const char *const rn_unit_mode_names[RN_UNIT_MODES + 1];

#endif
