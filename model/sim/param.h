/*
 * Hardware parameters: one row each. The row gives the struct field, the type and range
 * check, the text of `rnicsim config` and of the documentation.
 *
 * A block's header declares
 *
 *	#define RN_DMA_PARAMS(X)                                                   \
 *		X(u32, tags, 64, 1, 1024, "tags", "read requests outstanding")      \
 *		X(u64, retry_ps, 0, 0, 1000000, "ps", "...")
 *	RN_PARAM_STRUCT(rn_dma_params, RN_DMA_PARAMS);
 *	extern const struct rn_param_table rn_dma_param_table;
 *
 * and its source defines the table with
 *	#define RN_PARAM_OWNER rn_dma_params
 *	RN_PARAM_TABLE(rn_dma_param_table, "dma", RN_DMA_PARAMS);
 *
 * Types: u32, u64, f64 (double), bool (a bool; range ignored). Enumerations and strings are
 * the configuration reader's own (sections scenario, fabric ...).
 */
#ifndef RN_SIM_PARAM_H
#define RN_SIM_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t rn_param_u32;
typedef uint64_t rn_param_u64;
typedef double rn_param_f64;
typedef bool rn_param_bool;

enum rn_param_type { RN_PARAM_u32, RN_PARAM_u64, RN_PARAM_f64, RN_PARAM_bool };

struct rn_param_desc {
	const char *key;
	enum rn_param_type type;
	size_t offset;
	double def, min, max;
	const char *unit;
	const char *help;
};

struct rn_param_table {
	const char *section; /* unit name, e.g. "pte_cache" */
	const struct rn_param_desc *rows;
	size_t count;
	size_t struct_bytes;
};

#define RN_PARAM_FIELD(type, key, def, min, max, unit, help) rn_param_##type key;
#define RN_PARAM_STRUCT(tag, LIST)                                                                 \
	struct tag {                                                                               \
		LIST(RN_PARAM_FIELD)                                                               \
	}

/* The row macro needs the struct's name: define RN_PARAM_OWNER before RN_PARAM_TABLE's list expands. */
#define RN_PARAM_ROW(type_, key_, def_, min_, max_, unit_, help_)                                  \
	{.key = #key_,                                                                             \
	 .type = RN_PARAM_##type_,                                                                 \
	 .offset = offsetof(struct RN_PARAM_OWNER, key_),                                          \
	 .def = (def_),                                                                            \
	 .min = (min_),                                                                            \
	 .max = (max_),                                                                            \
	 .unit = (unit_),                                                                          \
	 .help = (help_)},
#define RN_PARAM_TABLE(name_, section_, LIST)                                                      \
	static const struct rn_param_desc name_##_rows[] = {LIST(RN_PARAM_ROW)};                   \
	const struct rn_param_table name_ = {.section = (section_),                                \
					     .rows = name_##_rows,                                 \
					     .count = sizeof(name_##_rows) /                       \
						      sizeof(name_##_rows[0]),                     \
					     .struct_bytes = sizeof(struct RN_PARAM_OWNER)}

/** Fill @params (of table->struct_bytes) with the defaults. */
void rn_params_set_defaults(const struct rn_param_table *table, void *params);

/** Value of @row as a double, for printing and checks (exact for integers below 2^53). */
double rn_param_value(const struct rn_param_desc *row, const void *params);

#endif
