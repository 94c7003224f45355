/*
 * YAML into the tree: libfyaml parses a document, the document becomes nodes with their places,
 * and files that the nodes name (base, *.yaml) are loaded in turn.
 */
#include <errno.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/config_node.h"

#define MAX_FILES_DEEP 32

/* The files being loaded, outermost last: where a cycle would show. */
struct chain {
	const struct chain *outer;
	const char *real_path;
	unsigned depth;
};

struct loader {
	struct rn_config *config;
	const char *name;	   /* in messages, and where other files are looked for */
	const struct chain *chain; /* this file; NULL for a text */
	const char *set_path;	   /* the path a --set value is for, else NULL */
	bool failed;
};

static struct rn_config_node *load_file(const struct loader *by, const char *wanted,
					const struct rn_config_node *from);

static void complain(struct loader *loader, struct rn_config_place place,
		     const struct rn_config_node *node, const char *message)
{
	rn_config_complain(loader->config, place, node, message);
	loader->failed = true;
}

static struct rn_config_place place_of(const struct loader *loader, struct fy_token *token)
{
	const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;

	if (!mark || loader->set_path)
		return (struct rn_config_place){.file = loader->name};
	return (struct rn_config_place){
		.file = loader->name,
		.line = (unsigned)mark->line + 1,
		.column = (unsigned)mark->column + 1,
	};
}

static const char *copy_text(struct rn_config *config, const char *text, size_t length)
{
	char *copy = rn_calloc(length + 1, 1);

	if (length)
		memcpy(copy, text, length);
	return rn_config_keep(config, copy);
}

static bool is_file_name(const struct rn_config_node *node)
{
	size_t length = node->kind == RN_CONFIG_SCALAR ? strlen(node->text) : 0;

	return node->is_plain && length > 5 && !strcmp(node->text + length - 5, ".yaml");
}

static struct rn_config_node *convert(struct loader *loader, struct fy_node *yaml,
				      struct rn_config_node *parent, struct rn_config_node *named);

static void set_up_scalar(struct loader *loader, struct fy_node *yaml, struct rn_config_node *node)
{
	size_t length = 0;
	const char *text = fy_node_get_scalar(yaml, &length);

	node->text = copy_text(loader->config, text, text ? length : 0);
	node->is_plain = fy_node_get_style(yaml) == FYNS_PLAIN || !length;
	node->place = place_of(loader, fy_node_get_scalar_token(yaml));
	/* libfyaml's quoted scalars start behind the quote. */
	if (node->place.column && (fy_node_get_style(yaml) == FYNS_SINGLE_QUOTED ||
				   fy_node_get_style(yaml) == FYNS_DOUBLE_QUOTED))
		node->place.column--;
	if (text && memchr(text, '\0', length))
		complain(loader, node->place, node, "a NUL character is not legal");
}

/* The mapping of the file that scalar @node names takes the node's place. */
static struct rn_config_node *include(struct loader *loader, struct rn_config_node *node)
{
	struct rn_config_node *loaded = load_file(loader, node->text, node);

	if (!loaded) {
		loader->failed = true;
		return node;
	}
	loaded->parent = node->parent;
	loaded->key = node->key;
	loaded->key_place = node->key_place;
	loaded->is_whole = true;
	return loaded;
}

static void add_pair(struct loader *loader, struct fy_node_pair *pair,
		     struct rn_config_node *mapping)
{
	struct fy_node *key = fy_node_pair_key(pair);
	struct rn_config_node *named = rn_config_node_new(loader->config, RN_CONFIG_SCALAR);
	size_t length = 0;
	const char *text = key && fy_node_is_scalar(key) ? fy_node_get_scalar(key, &length) : NULL;

	if (!text) {
		complain(loader, rn_config_where(mapping), mapping, "a key must be a plain word");
		return;
	}
	named->key = copy_text(loader->config, text, length);
	named->key_place = place_of(loader, fy_node_get_scalar_token(key));
	named->parent = mapping;

	const struct rn_config_node *twin = rn_config_find(mapping, named->key);

	if (twin) {
		char *message = rn_asprintf("duplicate key; it stands in line %u too",
					    twin->key_place.line);

		complain(loader, named->key_place, named, message);
		free(message);
		return;
	}

	struct rn_config_node *child = convert(loader, fy_node_pair_value(pair), mapping, named);

	/* `base` is dealt with when the mapping is complete. */
	if (is_file_name(child) && strcmp(child->key, "base"))
		child = include(loader, child);
	rn_config_append(mapping, child);
}

/* Lay the mapping over the file its key `base` names. */
static struct rn_config_node *apply_base(struct loader *loader, struct rn_config_node *mapping)
{
	struct rn_config_node *base = rn_config_find(mapping, "base");

	if (!base)
		return mapping;
	if (!is_file_name(base)) {
		complain(loader, rn_config_where(base), base,
			 "must be the name of a file that ends in .yaml");
		return mapping;
	}

	struct rn_config_node *under = include(loader, base);

	if (under == base)
		return mapping;
	rn_config_remove(mapping, base);
	rn_config_overlay(under, mapping);
	under->key = mapping->key;
	under->key_place = mapping->key_place;
	under->place = mapping->place;
	under->parent = mapping->parent;
	return under;
}

static void fill_mapping(struct loader *loader, struct fy_node *yaml, struct rn_config_node *node)
{
	struct fy_node_pair *pair;
	void *iterator = NULL;

	while ((pair = fy_node_mapping_iterate(yaml, &iterator))) {
		add_pair(loader, pair, node);
		if (!node->place.file && node->count)
			node->place = node->children[0]->key_place;
	}
}

static void fill_list(struct loader *loader, struct fy_node *yaml, struct rn_config_node *node)
{
	struct fy_node *item;
	void *iterator = NULL;

	while ((item = fy_node_sequence_iterate(yaml, &iterator))) {
		/* Appended first, so that messages know its index. */
		struct rn_config_node *place_holder =
			rn_config_node_new(loader->config, RN_CONFIG_SCALAR);

		rn_config_append(node, place_holder);

		struct rn_config_node *child = convert(loader, item, node, place_holder);

		if (is_file_name(child))
			child = include(loader, child);
		node->children[node->count - 1] = child;
		if (!node->place.file)
			node->place = rn_config_where(child);
	}
}

/* @named has the key and its place, and stands where the converted node will. */
static struct rn_config_node *convert(struct loader *loader, struct fy_node *yaml,
				      struct rn_config_node *parent, struct rn_config_node *named)
{
	struct rn_config_node *node = named;

	node->parent = parent;
	node->text = "";
	node->is_plain = true;
	if (!yaml)
		return node;
	if (fy_node_is_alias(yaml) || fy_node_get_anchor(yaml) || fy_node_get_tag(yaml, NULL)) {
		complain(loader, rn_config_where(node), node,
			 "anchors, aliases and tags are not legal");
		return node;
	}
	switch (fy_node_get_type(yaml)) {
	case FYNT_SCALAR:
		set_up_scalar(loader, yaml, node);
		return node;
	case FYNT_SEQUENCE:
		node->kind = RN_CONFIG_LIST;
		fill_list(loader, yaml, node);
		return node;
	case FYNT_MAPPING:
		node->kind = RN_CONFIG_MAPPING;
		fill_mapping(loader, yaml, node);
		return apply_base(loader, node);
	}
	return node;
}

static void report_yaml_errors(struct loader *loader, struct fy_diag *diag,
			       const struct rn_config_node *root)
{
	struct fy_diag_error *error;
	void *iterator = NULL;

	while ((error = fy_diag_errors_iterate(diag, &iterator)) && error->type != FYET_ERROR)
		continue;

	struct rn_config_place place = {.file = loader->name};
	char *message = rn_asprintf("not YAML%s%s", error ? ": " : "", error ? error->msg : "");

	if (error && error->line > 0 && error->column > 0 && !loader->set_path) {
		place.line = (unsigned)error->line;
		place.column = (unsigned)error->column;
	}
	complain(loader, place, root, message);
	free(message);
}

/* The only document of the stream, converted to @root or to what replaces it. */
static struct rn_config_node *convert_stream(struct loader *loader, struct fy_parser *parser,
					     struct fy_diag *diag, struct rn_config_node *root)
{
	const struct rn_config_place place = {.file = loader->name};
	struct fy_document *document = fy_parse_load_document(parser);
	struct fy_node *yaml = document ? fy_document_root(document) : NULL;

	if (yaml)
		root = convert(loader, yaml, root->parent, root);
	else if (!fy_parser_get_stream_error(parser))
		complain(loader, place, root, "empty");
	if (document)
		fy_parse_document_destroy(parser, document);

	document = yaml ? fy_parse_load_document(parser) : NULL;
	if (document) {
		complain(loader, place, NULL, "more than one YAML document");
		fy_parse_document_destroy(parser, document);
	}
	if (fy_parser_get_stream_error(parser))
		report_yaml_errors(loader, diag, root);
	return root;
}

/* Bytes of the UTF-8 character at @text, 0 when it is none or a control character. */
static size_t character_bytes(const unsigned char *text, size_t left)
{
	size_t bytes = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	uint32_t code = bytes == 1 ? text[0] : text[0] & (0x7fu >> bytes);
	static const uint32_t least[] = {0, ' ', 0x80, 0x800, 0x10000};

	if (text[0] == '\n' || text[0] == '\r' || text[0] == '\t')
		return 1;
	if (bytes > left || (text[0] >= 0x80 && text[0] < 0xc2) || text[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < bytes; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[bytes] || (code >= 0x7f && code < 0xa0) || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return bytes;
}

/* Refuse what is no text, and directives: libfyaml 0.7.12 loops for ever on some of both. */
static void check_text(struct loader *loader, const char *text, size_t bytes)
{
	struct rn_config_place place = {.file = loader->name, .line = 1, .column = 1};
	size_t length;

	for (size_t i = 0; i < bytes && !loader->failed; i += length, place.column++) {
		length = character_bytes((const unsigned char *)text + i, bytes - i);
		if (!length)
			complain(loader, place, NULL,
				 "neither a character in UTF-8 nor legal here");
		else if (text[i] == '%' && place.column == 1)
			complain(loader, place, NULL, "YAML directives are not legal");
		if (text[i] == '\n') {
			place.line++;
			place.column = 0;
		}
	}
}

static struct rn_config_node *parse(struct loader *loader, const char *text, size_t bytes)
{
	struct fy_diag_cfg diag_cfg;

	check_text(loader, text, bytes);
	if (loader->failed)
		return NULL;
	fy_diag_cfg_default(&diag_cfg);

	struct fy_diag *diag = fy_diag_create(&diag_cfg);
	const struct fy_parse_cfg parse_cfg = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_ALLOW_DUPLICATE_KEYS |
			 FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
		.diag = diag,
	};

	fy_diag_set_collect_errors(diag, true);

	struct fy_parser *parser = fy_parser_create(&parse_cfg);
	struct rn_config_node *root = rn_config_node_new(loader->config, RN_CONFIG_SCALAR);

	/* Messages about a --set value say its path. */
	root->key = loader->set_path;
	root->parent = loader->set_path ? loader->config->root : NULL;
	if (parser && !fy_parser_set_string(parser, text, bytes))
		root = convert_stream(loader, parser, diag, root);
	else
		report_yaml_errors(loader, diag, root);
	if (parser)
		fy_parser_destroy(parser);
	fy_diag_destroy(diag);
	return loader->failed ? NULL : root;
}

struct rn_config_node *rn_config_parse_set(struct rn_config *config, const char *path,
					   const char *text)
{
	struct loader loader = {.config = config, .name = "--set", .set_path = path};
	struct rn_config_node *root = parse(&loader, text, strlen(text));

	if (root && is_file_name(root))
		root = include(&loader, root);
	return loader.failed ? NULL : root;
}

static bool is_in_chain(const struct chain *chain, const char *real_path)
{
	for (; chain; chain = chain->outer)
		if (!strcmp(chain->real_path, real_path) || chain->depth >= MAX_FILES_DEEP)
			return true;
	return false;
}

static struct rn_config_node *must_be_mapping(struct rn_config *config, struct rn_config_node *root)
{
	if (!root || root->kind == RN_CONFIG_MAPPING)
		return root;
	rn_config_complain(config, rn_config_where(root), NULL, "must be a mapping of keys");
	return NULL;
}

static void complain_about_file(const struct loader *by, const struct rn_config_node *from,
				char *message)
{
	const struct rn_config_place nowhere = {0};

	rn_config_complain(by->config, from ? from->place : nowhere, from, message);
	free(message);
}

static struct rn_config_node *load_found(const struct loader *by, const char *path,
					 const struct chain *chain,
					 const struct rn_config_node *from)
{
	struct loader loader = {.config = by->config, .name = path, .chain = chain};
	struct rn_config_node *root;
	size_t bytes;
	char *text = rn_config_read_file(path, &bytes);

	if (!text) {
		complain_about_file(by, from,
				    rn_asprintf("cannot read %s: %s", path, strerror(errno)));
		return NULL;
	}
	root = parse(&loader, text, bytes);
	free(text);
	return must_be_mapping(by->config, root);
}

/* The mapping of file @wanted, named in @by's file at @from (NULL: on the command line). */
static struct rn_config_node *load_file(const struct loader *by, const char *wanted,
					const struct rn_config_node *from)
{
	char *tried;
	char *path = rn_config_find_file(by->config, wanted, by->name, &tried);
	char *real = path ? realpath(path, NULL) : NULL;
	struct rn_config_node *root = NULL;

	if (!real || is_in_chain(by->chain, real)) {
		complain_about_file(by, from,
				    real ? rn_asprintf("%s names itself, directly or by others",
						       path)
					 : rn_asprintf("no such file: %s", tried));
		free(path);
	} else {
		struct chain link = {.outer = by->chain,
				     .real_path = real,
				     .depth = by->chain ? by->chain->depth + 1 : 0};

		root = load_found(by, rn_config_keep(by->config, path), &link, from);
	}
	free(real);
	free(tried);
	return root;
}

bool rn_config_load_file(struct rn_config *config, const char *path)
{
	const struct loader command_line = {.config = config};
	struct rn_config_node *root = load_file(&command_line, path, NULL);

	if (root)
		config->root = root;
	return root;
}

bool rn_config_load_text(struct rn_config *config, const char *name, const char *text)
{
	struct loader loader = {.config = config, .name = rn_config_keep(config, rn_strdup(name))};
	struct rn_config_node *root = must_be_mapping(config, parse(&loader, text, strlen(text)));

	if (root)
		config->root = root;
	return root;
}
