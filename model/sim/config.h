/*
 * Configuration: YAML files composed into one tree, --set values on top, and the tree bound
 * section by section to parameter tables. Every mistake goes to the caller's diagnostics as
 * "file:line:column: key: what is legal"; nothing is guessed and nothing is ignored.
 *
 * In files, on top of YAML's mappings, lists and scalars (no anchors, aliases or tags):
 *  - `base: other.yaml` in a mapping: that file's mapping, with this mapping's keys over it.
 *    Mappings are merged key by key; lists and scalars are replaced; so is a mapping that
 *    names a base or a file of its own.
 *  - a plain scalar that ends in .yaml: that file's mapping stands in its place.
 *  - `count: N` in a mapping in a list: the entry stands N times.
 * Files are looked for beside the file that names them (those named by --set: in the working
 * directory), then in the search directories.
 *
 * Keys are written as paths: hosts.0.nic.dma.tags.
 *
 * Use: new, add_search_dir, load_file, set ..., compose; then section, list, bind, string and
 * choice for everything that is legal; then finish. A key that nobody asked for is a mistake.
 */
#ifndef RN_SIM_CONFIG_H
#define RN_SIM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "sim/param.h"

struct rn_config;
struct rn_config_node; /* owned by its configuration */

/** Nothing loaded, nothing set. Mistakes go to @diag, which is borrowed. */
struct rn_config *rn_config_new(struct rn_diag *diag);
void rn_config_free(struct rn_config *config);

/** Also look for files in @dir (copied), after the directories added before. */
void rn_config_add_search_dir(struct rn_config *config, const char *dir);

/** Load @path, looked for in the working directory, then in the search directories. False after a mistake. */
bool rn_config_load_file(struct rn_config *config, const char *path);

/** Load YAML @text as if it stood in file @name. */
bool rn_config_load_text(struct rn_config *config, const char *name, const char *text);

/**
 * Take "key.path=value" to be laid over what was loaded; the value is YAML. `*` in the path
 * means every entry of a list. Later ones win.
 */
void rn_config_set(struct rn_config *config, const char *assignment);

/** Repeat what has a count, lay the --set values on top. Returns the root mapping, never NULL. Once. */
struct rn_config_node *rn_config_compose(struct rn_config *config);

/**
 * The mapping at @key of @parent; an empty one when the key is not given, so that the
 * defaults are bound and shown. @help is borrowed, a line for `config show`. Never NULL.
 */
struct rn_config_node *rn_config_section(struct rn_config *config, struct rn_config_node *parent,
					 const char *key, const char *help);

/** Whether the configuration gives @key of @parent; does not make the key legal. */
bool rn_config_has(const struct rn_config_node *parent, const char *key);

/** The list at @key of @parent, an empty one when the key is not given. Never NULL. */
struct rn_config_node *rn_config_list(struct rn_config *config, struct rn_config_node *parent,
				      const char *key, const char *help);
size_t rn_config_length(const struct rn_config_node *list);

/** Make a list that is not given @count empty entries long, so that its defaults are bound and shown. */
void rn_config_fill(struct rn_config *config, struct rn_config_node *list, size_t count);

/** Mapping @idx (< length) of @list. Never NULL. */
struct rn_config_node *rn_config_at(struct rn_config *config, struct rn_config_node *list,
				    size_t idx);

/**
 * Fill @params (of table->struct_bytes) with the table's defaults and then with what
 * @section gives. Unknown keys are found by rn_config_finish(), so that several tables can
 * share a section.
 */
void rn_config_bind(struct rn_config *config, struct rn_config_node *section,
		    const struct rn_param_table *table, void *params);

/**
 * The string at @key, or @def; @def NULL makes the key required. Any scalar is a string. Owned by
 * the configuration; never NULL ("" after a mistake).
 */
const char *rn_config_string(struct rn_config *config, struct rn_config_node *section,
			     const char *key, const char *def, const char *help);

struct rn_config_choice {
	const char *key;
	const char *const *names; /* NULL-terminated */
	int def;		  /* index of the default */
	const char *help;
};

/** Index of the name at choice->key. */
int rn_config_choose(struct rn_config *config, struct rn_config_node *section,
		     const struct rn_config_choice *choice);

/** Report every key that nobody asked for. True when there was no mistake at all since rn_config_new(). */
bool rn_config_finish(struct rn_config *config);

/**
 * Add a mistake found by the caller (values that do not fit each other) at @key of @section, or
 * at the section itself when @key is NULL or not given.
 */
void rn_config_error(struct rn_config *config, const struct rn_config_node *section,
		     const char *key, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/**
 * Print everything that was asked for, defaults included, as YAML that loads again; with
 * range, unit, origin and help as comments. In the order in which it was asked for.
 */
void rn_config_print(const struct rn_config *config, FILE *out);

/** The same without comments: equal configurations give equal text. The caller free()s it. */
char *rn_config_canonical(const struct rn_config *config);

/** Leave a section, which is not the first of its mapping, out of the canonical form and so of the hash. */
void rn_config_leave_out(struct rn_config_node *section);

/** FNV-1a of the canonical form. */
uint64_t rn_config_hash(const struct rn_config *config);

#endif
