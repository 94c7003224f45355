/* From what was loaded to what is meant: list entries with a count are repeated, --set laid on top. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/config_node.h"

#define MAX_COUNT 1024

static const struct rn_config_place set_place = {.file = "--set"};

struct assignment {
	struct rn_config *config;
	const char *text;
	const char *path; /* owned by the configuration, as all texts here */
	struct rn_config_node *value;
};

static void complain(struct assignment *set, const char *path, size_t length, const char *message)
{
	rn_diag_add(set->config->diag, set_place.file, 0, 0, "%.*s: %s", (int)length, path,
		    message);
}

/* Numbers without sign or other decoration. */
static bool to_index(const char *word, size_t *idx)
{
	char *end;

	if (*word < '0' || *word > '9' || strlen(word) > 6)
		return false;
	*idx = strtoul(word, &end, 10);
	return !*end;
}

static void mark_set(struct rn_config_node *node)
{
	node->place = set_place;
	node->key_place = set_place;
	for (size_t i = 0; i < node->count; i++)
		mark_set(node->children[i]);
}

static struct rn_config_node *new_value(struct assignment *set)
{
	struct rn_config_node *value = rn_config_clone(set->config, set->value);

	mark_set(value);
	value->is_whole = true;
	return value;
}

static void assign_in(struct assignment *set, struct rn_config_node *node, const char *rest);

/* @word is the path's next key or index, @rest what follows it, "" at the end. */
static void assign_to_child(struct assignment *set, struct rn_config_node *node,
			    struct rn_config_node *child, const char *rest)
{
	if (*rest) {
		assign_in(set, child, rest);
		return;
	}

	struct rn_config_node *value = new_value(set);

	value->key_place = set_place;
	rn_config_replace(node, child, value);
}

static void assign_in_mapping(struct assignment *set, struct rn_config_node *node, const char *word,
			      const char *rest)
{
	struct rn_config_node *child = rn_config_find(node, word);

	if (!child) {
		child = rn_config_node_new(set->config, RN_CONFIG_MAPPING);
		child->key = word;
		child->key_place = set_place;
		child->place = set_place;
		rn_config_append(node, child);
	}
	assign_to_child(set, node, child, rest);
}

static void assign_in_list(struct assignment *set, struct rn_config_node *node, const char *word,
			   const char *rest)
{
	size_t idx;

	if (!strcmp(word, "*")) {
		for (size_t i = 0; i < node->count; i++)
			assign_to_child(set, node, node->children[i], rest);
		return;
	}
	if (to_index(word, &idx) && idx < node->count) {
		assign_to_child(set, node, node->children[idx], rest);
		return;
	}

	char *path = rn_config_path(node);
	char *message = node->count ? rn_asprintf("%s is a list; legal after it: 0 to %zu, or *",
						  path, node->count - 1)
				    : rn_asprintf("%s is a list without entries", path);

	complain(set, set->path, strlen(set->path), message);
	free(message);
	free(path);
}

static void assign_in(struct assignment *set, struct rn_config_node *node, const char *rest)
{
	size_t length = strcspn(rest, ".");
	const char *word = rn_config_keep(set->config, rn_asprintf("%.*s", (int)length, rest));

	rest += length;
	rest += *rest == '.';
	if (node->kind == RN_CONFIG_MAPPING) {
		assign_in_mapping(set, node, word, rest);
	} else if (node->kind == RN_CONFIG_LIST) {
		assign_in_list(set, node, word, rest);
	} else {
		char *path = rn_config_path(node);
		char *message = rn_asprintf("%s is a value and has no keys", path);

		complain(set, set->path, strlen(set->path), message);
		free(message);
		free(path);
	}
}

/* How often list entry @node stands; its `count` is used up. */
static size_t take_count(struct rn_config *config, struct rn_config_node *node)
{
	struct rn_config_node *count =
		node->kind == RN_CONFIG_MAPPING ? rn_config_find(node, "count") : NULL;
	size_t times = 1;

	if (!count)
		return 1;
	if (count->kind != RN_CONFIG_SCALAR || !count->is_plain || !to_index(count->text, &times) ||
	    times < 1 || times > MAX_COUNT) {
		rn_config_complain(config, rn_config_where(count), count,
				   "must be an integer from 1 to 1024");
		times = 1;
	}
	rn_config_remove(node, count);
	return times;
}

static void repeat(struct rn_config *config, struct rn_config_node *node)
{
	struct rn_config_node **written = node->children;
	size_t count = node->count;

	if (node->kind == RN_CONFIG_LIST) {
		size_t *times = rn_calloc(count, sizeof(*times));

		for (size_t i = 0; i < count; i++)
			times[i] = take_count(config, written[i]);
		node->children = NULL;
		node->count = 0;
		for (size_t i = 0; i < count; i++) {
			rn_config_append(node, written[i]);
			while (--times[i])
				rn_config_append(node, rn_config_clone(config, written[i]));
		}
		free(times);
		free(written);
	}
	for (size_t i = 0; i < node->count; i++)
		repeat(config, node->children[i]);
}

static bool is_path(const char *path)
{
	size_t length = strlen(path);

	return length && path[0] != '.' && path[length - 1] != '.' && !strstr(path, "..");
}

static void assign(struct rn_config *config, const char *text, const char *equals)
{
	struct assignment set = {.config = config, .text = text};

	set.path = rn_config_keep(config, rn_asprintf("%.*s", (int)(equals - text), text));
	if (!is_path(set.path)) {
		complain(&set, text, strlen(text), "must be KEY.PATH=VALUE");
		return;
	}
	set.value = rn_config_parse_set(config, set.path, equals + 1);
	if (!set.value)
		return;
	repeat(config, set.value);
	assign_in(&set, config->root, set.path);
}

/* `hosts.0.count` speaks of the list as it is written, everything else of the one it becomes. */
static bool sets_count(const char *text, const char *equals)
{
	static const char count[] = ".count";
	size_t length = strlen(count);

	return (size_t)(equals - text) > length && !strncmp(equals - length, count, length);
}

static void assign_all(struct rn_config *config, bool counts)
{
	for (size_t i = 0; i < config->assignments_count; i++) {
		const char *text = config->assignments[i];
		const char *equals = strchr(text, '=');

		if (equals && sets_count(text, equals) == counts)
			assign(config, text, equals);
		else if (!equals && counts)
			rn_diag_add(config->diag, set_place.file, 0, 0,
				    "%s: must be KEY.PATH=VALUE", text);
	}
}

struct rn_config_node *rn_config_compose(struct rn_config *config)
{
	assign_all(config, true);
	repeat(config, config->root);
	assign_all(config, false);
	return config->root;
}
