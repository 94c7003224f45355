/* The tree itself. Nodes and texts belong to the configuration and are freed with it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/config_node.h"

struct rn_config *rn_config_new(struct rn_diag *diag)
{
	struct rn_config *config = rn_calloc(1, sizeof(*config));

	config->diag = diag;
	config->diag_before = rn_diag_count(diag);
	config->root = rn_config_node_new(config, RN_CONFIG_MAPPING);
	return config;
}

static void free_all(char **texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(texts[i]);
	free(texts);
}

void rn_config_free(struct rn_config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->nodes_count; i++) {
		free(config->nodes[i]->children);
		free(config->nodes[i]);
	}
	free(config->nodes);
	free_all(config->texts, config->texts_count);
	free_all(config->search_dirs, config->search_dirs_count);
	free_all(config->assignments, config->assignments_count);
	free(config);
}

static void append_text(char ***texts, size_t *count, char *text)
{
	/* Grown when the count reaches a power of two. */
	if (!(*count & (*count - 1)))
		*texts = rn_reallocarray(*texts, *count ? 2 * *count : 1, sizeof(char *));
	(*texts)[(*count)++] = text;
}

const char *rn_config_keep(struct rn_config *config, char *text)
{
	append_text(&config->texts, &config->texts_count, text);
	return text;
}

void rn_config_add_search_dir(struct rn_config *config, const char *dir)
{
	append_text(&config->search_dirs, &config->search_dirs_count, rn_strdup(dir));
}

void rn_config_set(struct rn_config *config, const char *assignment)
{
	append_text(&config->assignments, &config->assignments_count, rn_strdup(assignment));
}

struct rn_config_node *rn_config_node_new(struct rn_config *config, enum rn_config_kind kind)
{
	struct rn_config_node *node = rn_calloc(1, sizeof(*node));

	node->kind = kind;
	if (!(config->nodes_count & (config->nodes_count - 1)))
		config->nodes = rn_reallocarray(config->nodes,
						config->nodes_count ? 2 * config->nodes_count : 1,
						sizeof(node));
	config->nodes[config->nodes_count++] = node;
	return node;
}

void rn_config_append(struct rn_config_node *parent, struct rn_config_node *child)
{
	if (!(parent->count & (parent->count - 1)))
		parent->children = rn_reallocarray(
			parent->children, parent->count ? 2 * parent->count : 1, sizeof(child));
	parent->children[parent->count++] = child;
	child->parent = parent;
}

struct rn_config_node *rn_config_find(const struct rn_config_node *mapping, const char *key)
{
	for (size_t i = 0; i < mapping->count; i++)
		if (!strcmp(mapping->children[i]->key, key))
			return mapping->children[i];
	return NULL;
}

static size_t index_in(const struct rn_config_node *parent, const struct rn_config_node *child)
{
	size_t idx = 0;

	while (parent->children[idx] != child)
		idx++;
	return idx;
}

void rn_config_replace(struct rn_config_node *parent, struct rn_config_node *old,
		       struct rn_config_node *child)
{
	parent->children[index_in(parent, old)] = child;
	child->parent = parent;
	child->key = old->key;
	if (!child->key_place.file)
		child->key_place = old->key_place;
}

void rn_config_remove(struct rn_config_node *parent, const struct rn_config_node *child)
{
	size_t idx = index_in(parent, child);

	parent->count--;
	for (; idx < parent->count; idx++)
		parent->children[idx] = parent->children[idx + 1];
}

struct rn_config_node *rn_config_clone(struct rn_config *config, const struct rn_config_node *node)
{
	struct rn_config_node *copy = rn_config_node_new(config, node->kind);

	*copy = *node;
	copy->children = NULL;
	copy->count = 0;
	for (size_t i = 0; i < node->count; i++)
		rn_config_append(copy, rn_config_clone(config, node->children[i]));
	return copy;
}

void rn_config_overlay(struct rn_config_node *under, struct rn_config_node *over)
{
	for (size_t i = 0; i < over->count; i++) {
		struct rn_config_node *child = over->children[i];
		struct rn_config_node *old = rn_config_find(under, child->key);

		if (!old)
			rn_config_append(under, child);
		else if (old->kind == RN_CONFIG_MAPPING && child->kind == RN_CONFIG_MAPPING &&
			 !child->is_whole)
			rn_config_overlay(old, child);
		else
			rn_config_replace(under, old, child);
	}
}

char *rn_config_path(const struct rn_config_node *node)
{
	const struct rn_config_node *parent = node->parent;

	if (!parent)
		return rn_strdup("");

	char *above = rn_config_path(parent);
	const char *dot = *above ? "." : "";
	char *path = parent->kind == RN_CONFIG_LIST
			     ? rn_asprintf("%s%s%zu", above, dot, index_in(parent, node))
			     : rn_asprintf("%s%s%s", above, dot, node->key);

	free(above);
	return path;
}

struct rn_config_place rn_config_where(const struct rn_config_node *node)
{
	for (; node; node = node->parent) {
		/* An empty value has no place of its own: its key has. */
		if (node->place.file && (node->place.line || !node->key_place.line))
			return node->place;
		if (node->key_place.file)
			return node->key_place;
	}
	return (struct rn_config_place){0};
}

void rn_config_complain(struct rn_config *config, struct rn_config_place place,
			const struct rn_config_node *node, const char *message)
{
	char *path = node ? rn_config_path(node) : rn_strdup("");

	rn_diag_add(config->diag, place.file, place.line, place.column, "%s%s%s", path,
		    *path ? ": " : "", message);
	free(path);
}

void rn_config_error(struct rn_config *config, const struct rn_config_node *section,
		     const char *key, const char *format, ...)
{
	struct rn_config_node *child = key ? rn_config_find(section, key) : NULL;
	struct rn_config_place place = rn_config_where(child ? child : section);
	char *path = rn_config_path(section);
	char *whole = key ? rn_asprintf("%s%s%s", path, *path ? "." : "", key) : rn_strdup(path);
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rn_diag_add(config->diag, place.file, place.line, place.column, "%s%s%s", whole,
		    *whole ? ": " : "", text);
	free(whole);
	free(path);
}

/* Edit distance, for names of up to 63 characters. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64];
	size_t length = strlen(b);

	if (length > 63 || strlen(a) > 63)
		return 64;
	for (unsigned j = 0; j <= length; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= length; j++) {
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);
			unsigned skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = change < skip ? change : skip;
		}
	}
	return row[length];
}

const char *rn_config_nearest(const char *wanted, const char *const *names, size_t count)
{
	size_t third = strlen(wanted) / 3;
	unsigned limit = third < 1 ? 1 : third > 3 ? 3 : (unsigned)third;
	const char *nearest = NULL;

	for (size_t i = 0; i < count; i++) {
		unsigned far = distance(wanted, names[i]);

		if (far <= limit) {
			nearest = names[i];
			limit = far - (far > 0);
		}
	}
	return nearest;
}
