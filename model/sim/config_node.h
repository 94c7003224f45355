/* The configuration's tree, shared by the files of the configuration reader. */
#ifndef RN_SIM_CONFIG_NODE_H
#define RN_SIM_CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "sim/config.h"

enum rn_config_kind { RN_CONFIG_SCALAR, RN_CONFIG_MAPPING, RN_CONFIG_LIST };

struct rn_config_place {
	const char *file; /* NULL: a default, given nowhere */
	unsigned line;
	unsigned column;
};

struct rn_config_node {
	enum rn_config_kind kind;
	const char *key;  /* in a mapping */
	const char *text; /* of a scalar */
	bool is_plain;	  /* scalar without quotes */
	bool is_whole;	  /* mapping of its own file or base: replaces, is not merged */
	struct rn_config_place key_place;
	struct rn_config_place place;
	struct rn_config_node *parent;
	struct rn_config_node **children;
	size_t count;
	/* Filled when somebody asks for it. */
	unsigned asked; /* 0: nobody; else the how-many-eth key of its mapping */
	unsigned asked_count;
	bool is_left_out;  /* of the canonical form */
	const char *value; /* scalar as the canonical form prints it */
	const char *help;  /* comment of `config show` */
};

struct rn_config {
	struct rn_diag *diag;
	unsigned diag_before;
	struct rn_config_node *root;
	char **search_dirs;
	size_t search_dirs_count;
	char **assignments;
	size_t assignments_count;
	/* Everything below lives as long as the configuration. */
	struct rn_config_node **nodes;
	size_t nodes_count;
	char **texts;
	size_t texts_count;
};

/** A new node; its place is unknown. */
struct rn_config_node *rn_config_node_new(struct rn_config *config, enum rn_config_kind kind);

/** Let the configuration own @text, from malloc(). Returns it. */
const char *rn_config_keep(struct rn_config *config, char *text);

/** Append @child to a mapping or list. */
void rn_config_append(struct rn_config_node *parent, struct rn_config_node *child);

/** Child @key of a mapping; NULL when there is none. */
struct rn_config_node *rn_config_find(const struct rn_config_node *mapping, const char *key);

/** Put @child in the place of @old, which is a child of @parent; it takes the key over. */
void rn_config_replace(struct rn_config_node *parent, struct rn_config_node *old,
		       struct rn_config_node *child);

void rn_config_remove(struct rn_config_node *parent, const struct rn_config_node *child);

struct rn_config_node *rn_config_clone(struct rn_config *config, const struct rn_config_node *node);

/** Lay mapping @over over mapping @under, which it changes. @over's nodes move. */
void rn_config_overlay(struct rn_config_node *under, struct rn_config_node *over);

/** Path of @node from the root, "" for the root; the caller free()s it. */
char *rn_config_path(const struct rn_config_node *node);

/** Where to point at @node: at its value, at its key if the value has no place of its own. */
struct rn_config_place rn_config_where(const struct rn_config_node *node);

/** Add "place: path: message". */
void rn_config_complain(struct rn_config *config, struct rn_config_place place,
			const struct rn_config_node *node, const char *message);

/** Parse the YAML @text that --set gives for @path; resolve the files it names. NULL after a mistake. */
struct rn_config_node *rn_config_parse_set(struct rn_config *config, const char *path,
					   const char *text);

/**
 * Path of the file @wanted, beside file @beside (NULL: in the working directory) or in a search
 * directory; NULL when it is nowhere. @tried gets the paths looked at. The caller free()s both.
 */
char *rn_config_find_file(const struct rn_config *config, const char *wanted, const char *beside,
			  char **tried);

/** The contents of @path, for the caller to free(); NULL with errno when it cannot be read. */
char *rn_config_read_file(const char *path, size_t *bytes);

/** The name nearest to @wanted, NULL when none is near. */
const char *rn_config_nearest(const char *wanted, const char *const *names, size_t count);

#endif
