#include "systemc/cosim/geometry.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "systemc/cosim/cosim.h"

/* Value of @key in "key=value key=value"; @def when it is not there. */
static double value_of(const char *params, const char *key, double def)
{
	size_t length = strlen(key);

	while (*params) {
		size_t end = strcspn(params, " ");

		if (end > length && strncmp(params, key, length) == 0 && params[length] == '=')
			return strtod(params + length + 1, NULL);
		params += end;
		params += strspn(params, " ");
	}
	return def;
}

static bool fits(const struct rn_rtl_kind *kind, const struct rn_param_table *table,
		 const void *params)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct rn_param_desc *row = &table->rows[i];

		if (value_of(kind->params, row->key, row->def) != rn_param_value(row, params))
			return false;
	}
	return true;
}

const struct rn_rtl_kind *
rn_cosim_geometry_find(enum rn_unit unit, const struct rn_param_table *table, const void *params)
{
	for (const struct rn_rtl_kind *const *kind = rn_rtl_kinds; *kind; kind++)
		if ((*kind)->unit == unit && fits(*kind, table, params))
			return *kind;
	return NULL;
}

/* mpt_sets -> MptSets */
static void print_module_name(FILE *out, const char *key)
{
	for (bool is_first = true; *key; key++) {
		if (*key == '_') {
			is_first = true;
			continue;
		}
		fputc(is_first ? toupper((unsigned char)*key) : *key, out);
		is_first = false;
	}
}

static void print_upper(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(toupper((unsigned char)*name), out);
}

/* What a build needs to know of these parameters. */
static void print_command(FILE *out, enum rn_unit unit, const struct rn_param_table *table,
			  const void *params)
{
	const char *gap = "";

	fputs("; another: cmake --preset release -DRN_GEOMETRY_", out);
	print_upper(out, rn_unit_name(unit));
	fputs("=\"", out);
	for (size_t i = 0; i < table->count; i++) {
		double value = rn_param_value(&table->rows[i], params);

		if (value == table->rows[i].def)
			continue;
		fputs(gap, out);
		print_module_name(out, table->rows[i].key);
		fprintf(out, "=%.0f", value);
		gap = " ";
	}
	fputs("\" && cmake --build --preset release", out);
}

/* "stress (mpt_sets=2 ...)": what is not the default. */
static void print_kind(FILE *out, const struct rn_rtl_kind *kind,
		       const struct rn_param_table *table)
{
	const char *gap = "";

	fprintf(out, " %s (", kind->geometry);
	for (size_t i = 0; i < table->count; i++) {
		double value = value_of(kind->params, table->rows[i].key, table->rows[i].def);

		if (value == table->rows[i].def)
			continue;
		fprintf(out, "%s%s=%.0f", gap, table->rows[i].key, value);
		gap = " ";
	}
	fputs(*gap ? ")" : "the defaults)", out);
}

char *rn_cosim_geometry_complain(enum rn_unit unit, const struct rn_param_table *table,
				 const void *params)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return rn_strdup("no geometry of the RTL has these parameters");
	fprintf(out,
		"no Verilated geometry of %s has these parameters. There are:", rn_unit_name(unit));
	for (const struct rn_rtl_kind *const *kind = rn_rtl_kinds; *kind; kind++)
		if ((*kind)->unit == unit)
			print_kind(out, *kind, table);
	print_command(out, unit, table, params);
	fclose(out);
	return text;
}

struct place {
	const struct rn_param_table *table;
	const void *params;
};

static struct place place_of(const struct rn_scenario_host *host, enum rn_unit unit)
{
	if (unit == RN_UNIT_DOORBELL)
		return (struct place){&rn_doorbell_param_table, &host->nic.doorbell};
	return (struct place){&rn_pte_cache_param_table, &host->nic.pte_cache};
}

bool rn_cosim_has_geometry(const struct rn_scenario_host *host, enum rn_unit unit)
{
	struct place place = place_of(host, unit);

	return rn_cosim_geometry_find(unit, place.table, place.params) != NULL;
}

static char *check_host(const struct rn_scenario_host *host, unsigned idx)
{
	for (unsigned unit = 0; unit < RN_UNITS; unit++) {
		struct place place = place_of(host, unit);
		char *why, *text;

		if (host->unit[unit] == RN_UNIT_MODEL || rn_cosim_has_geometry(host, unit))
			continue;
		why = rn_cosim_geometry_complain(unit, place.table, place.params);
		text = rn_asprintf("hosts.%u.nic.unit.%s: %s: %s", idx, rn_unit_name(unit),
				   rn_unit_mode_names[host->unit[unit]], why);
		free(why);
		return text;
	}
	return NULL;
}

char *rn_cosim_check(const struct rn_scenario *scenario)
{
	char *text = NULL;

	for (unsigned i = 0; i < scenario->hosts && !text; i++)
		text = check_host(&scenario->host[i], i);
	return text;
}
